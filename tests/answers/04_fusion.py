# Alternatives and mistakes for lesson 4.4; see CONTRIBUTING.md for the form of the headers.

# %% chain-times | right | array by array, NumPy scalars
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    apart, fused = np.float64(0), np.float64(0)
    results = [result for result, _ in steps]
    for name, size in sizes.items():
        uses = sum(name in operands for _, operands in steps)
        apart += size * (uses + (name in results))
        if name in results:
            fused += size * (name in wanted)
        elif uses:
            fused += size
    return [apart / bandwidth + launch_s * len(steps), fused / bandwidth + launch_s]

# %% chain-times | right | step by step with what is in registers
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    seconds, bytes_fused, registers = 0.0, 0, set()
    for result, operands in steps:
        operands = set(operands)
        seconds += launch_s + (sum(map(sizes.get, operands)) + sizes[result]) / bandwidth
        bytes_fused += sum(sizes[name] for name in operands - registers)
        registers |= operands | {result}
        bytes_fused += sizes[result] if result in wanted else 0
    return np.array([seconds, launch_s + bytes_fused / bandwidth])

# %% chain-times | right | backward from what is wanted
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    needed = set(wanted)
    for result, operands in reversed(steps):
        needed |= set(operands) if result in needed else set()
    inputs = needed - {result for result, _ in steps}
    apart = sum(sizes[result] + sum(map(sizes.get, set(operands))) for result, operands in steps)
    return apart / bandwidth + launch_s * len(steps), sum(map(sizes.get, inputs | set(wanted))) / bandwidth + launch_s

# %% chain-times | wrong | operands-read-again
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    made = [result for result, _ in steps]
    apart = sum(sizes[r] + sum(sizes[n] for n in set(o)) for r, o in steps)
    fused = sum(sizes[n] for _, o in steps for n in set(o) if n not in made) + sum(sizes[n] for n in wanted)
    return len(steps) * launch_s + apart / bandwidth, launch_s + fused / bandwidth

# %% chain-times | wrong | kept-result-not-written | like operands-read-again
#-     fused = sum(sizes[n] for _, o in steps for n in set(o) if n not in made) + sum(sizes[n] for n in wanted)
#+     fused = sum(sizes[n] for n in {n for _, o in steps for n in o} - set(made)) + sizes[made[-1]]

# %% chain-times | wrong | results-between-still-written
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    apart = sum(sizes[r] + sum(sizes[n] for n in set(o)) for r, o in steps)
    fused = sum(sizes.values())
    return len(steps) * launch_s + apart / bandwidth, launch_s + fused / bandwidth

# %% chain-times | wrong | launch-for-every-step
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    made = {result for result, _ in steps}
    apart = sum(sizes[r] + sum(sizes[n] for n in set(o)) for r, o in steps)
    fused = sum(sizes[n] for n in {n for _, o in steps for n in o} - made | set(wanted))
    return len(steps) * launch_s + apart / bandwidth, len(steps) * launch_s + fused / bandwidth

# %% chain-times | wrong | writes-forgotten
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    made = {result for result, _ in steps}
    apart = sum(sizes[n] for _, o in steps for n in set(o))
    fused = sum(sizes[n] for n in {n for _, o in steps for n in o} - made)
    return len(steps) * launch_s + apart / bandwidth, launch_s + fused / bandwidth

# %% chain-times | wrong | named-twice-read-twice
def chain_times(steps, sizes, wanted, bandwidth, launch_s):
    made = {result for result, _ in steps}
    apart = sum(sizes[r] + sum(sizes[n] for n in o) for r, o in steps)
    fused = sum(sizes[n] for n in {n for _, o in steps for n in o} - made | set(wanted))
    return len(steps) * launch_s + apart / bandwidth, launch_s + fused / bandwidth

# %% flash | right | finished outputs merged by their log-sum-exps, unequal blocks of keys, a tuple
def flash_program(n, d, rows, cols):
    program = ()
    for first in np.arange(0, n, rows):
        program += (f"q = Q[{first}:{first + rows}]", f"q = q / sqrt({d})")
        for key in range(0, min(int(first) + rows, n), cols):
            program += (f"k = K[{key}:{key + cols}]", f"s = causal(q @ k.T, {first}, {key})")
            program += ("peak = maximum(rowmax(s), -1000000)", "s = exp(s - peak)", "lse = peak + log(rowsum(s))", f"k = V[{key}:{key + cols}]")
            if key == 0:
                program += ("out = s @ k / rowsum(s)", "old = lse")
                continue
            program += ("top = maximum(old, lse)", "new = top + log(exp(old - top) + exp(lse - top))")
            program += ("out = out * exp(old - new) + s @ k * exp(peak - new)", "old = new")
        program += (f"O[{first}:{first + rows}] = out", f"L[{first}:{first + rows}] = old")
    return program

# %% flash | right | last keys first, freed by hand, product in a buffer of its own
def flash_program(n, d, rows, cols):
    lines = []
    for i in range(0, n, rows):
        r = min(rows, n - i)
        lines += [f"q = Q[{i}:{i + r}]", f"out = full({r}, {d}, 0.0)", f"total = full({r}, 1, 0.0)", f"peak = full({r}, 1, -1e30)"]
        for j in reversed(range(0, i + r, cols)):
            lines += [f"k = K[{j}:{min(j + cols, n)}]", "s = q @ k.T", f"s = causal(s / sqrt({d}), {i}, {j})", "free(k)"]
            lines += ["new = maximum(rowmax(s), peak)", "total = total * exp(peak - new)", "out = out * exp(peak - new)"]
            lines += ["peak = new", "s = exp(s - peak)", "total = total + rowsum(s)", f"v = V[{j}:{min(j + cols, n)}]"]
            lines += ["more = s @ v", "free(v)", "out = out + more", "free(more, s, new)"]
        lines += ["out = out / total", f"O[{i}:{i + r}] = out", f"L[{i}:{i + r}, 0:1] = log(total) + peak"]
    return lines

# %% flash | right | numbers that stretch, an output that is normalised all the way, one buffer for keys and values
def flash_program(n, d, rows, cols):
    lines = []
    for i in range(0, n, rows):
        lines += [f"q = Q[{i}:{i + rows}]", f"q = q / sqrt({d})", "old = -inf", "out = 0"]
        for j in range(0, min(i + rows, n), cols):
            lines += [f"kv = K[{j}:{j + cols}]", f"s = causal(q @ kv.T, {i}, {j})", f"kv = V[{j}:{j + cols}]", "top = maximum(old, rowmax(s))"]
            lines += ["lse = top + log(exp(old - top) + rowsum(exp(s - top)))", "s = exp(s - lse)", "out = out * exp(old - lse) + s @ kv", "old = lse"]
        lines += [f"O[{i}:{i + rows}, :] = out", f"L[{i}:{i + rows}] = old"]
    return lines

# %% flash | wrong | more-in-sram-than-asked
def flash_program(n, d, rows, cols):
    lines = []
    for i in range(0, n, rows):
        last = min(i + rows, n)
        lines += [f"q = Q[{i}:{last}]", f"k = K[0:{last}]", f"v = V[0:{last}]", f"s = causal(q @ k.T * {d**-0.5}, {i}, 0)"]
        lines += ["peak = rowmax(s)", "s = exp(s - peak)", f"O[{i}:{last}] = s @ v / rowsum(s)", f"L[{i}:{last}] = peak + log(rowsum(s))"]
    return lines

# %% flash | wrong | scores-sent-to-memory
def flash_program(n, d, rows, cols):
    lines = []
    for i in range(0, n, rows):
        lines += [f"q = Q[{i}:{i + rows}]"]
        for j in range(0, n, cols):
            lines += [f"k = K[{j}:{j + cols}]", f"S[{i}:{i + rows}, {j}:{j + cols}] = causal(q @ k.T * {d**-0.5}, {i}, {j})"]
    return lines

# %% flash | wrong | own-block-skipped
def flash_program(n, d, rows, cols):
    lines = []
    for i in range(0, n, rows):
        last = min(i + rows, n)
        lines += [f"q = Q[{i}:{last}]", f"out = full({last - i}, {d}, 0)"]
        lines += [f"peak = full({last - i}, 1, -inf)", f"total = full({last - i}, 1, 0)"]
        for j in range(0, i, cols):
            lines += [f"k = K[{j}:{j + cols}]", f"s = causal(q @ k.T * {d**-0.5}, {i}, {j})", "new = maximum(peak, rowmax(s))"]
            lines += ["s = exp(s - new)", "total = total * exp(peak - new) + rowsum(s)", f"v = V[{j}:{j + cols}]"]
            lines += ["out = out * exp(peak - new) + s @ v", "peak = new"]
        lines += [f"O[{i}:{last}] = out / total", f"L[{i}:{last}] = peak + log(total)"]
    return lines

# %% flash | wrong | reads-the-next-key | like own-block-skipped
#-         for j in range(0, i, cols):
#-             lines += [f"k = K[{j}:{j + cols}]", f"s = causal(q @ k.T * {d**-0.5}, {i}, {j})", "new = maximum(peak, rowmax(s))"]
#+         for j in range(0, last, cols):
#+             lines += [f"k = K[{j}:{j + cols}]", f"s = causal(q @ k.T * {d**-0.5}, {i + 1}, {j})", "new = maximum(peak, rowmax(s))"]

# %% flash | wrong | scale-forgotten | like own-block-skipped
#-         for j in range(0, i, cols):
#-             lines += [f"k = K[{j}:{j + cols}]", f"s = causal(q @ k.T * {d**-0.5}, {i}, {j})", "new = maximum(peak, rowmax(s))"]
#+         for j in range(0, last, cols):
#+             lines += [f"k = K[{j}:{j + cols}]", f"s = causal(q @ k.T, {i}, {j})", "new = maximum(peak, rowmax(s))"]

# %% flash | wrong | old-output-not-rescaled | like own-block-skipped
#-         for j in range(0, i, cols):
#+         for j in range(0, last, cols):
#-             lines += ["out = out * exp(peak - new) + s @ v", "peak = new"]
#+             lines += ["out = out + s @ v", "peak = new"]

# %% flash | wrong | maximum-begins-at-zero | like own-block-skipped
#-         lines += [f"peak = full({last - i}, 1, -inf)", f"total = full({last - i}, 1, 0)"]
#-         for j in range(0, i, cols):
#+         lines += [f"peak = full({last - i}, 1, 0)", f"total = full({last - i}, 1, 0)"]
#+         for j in range(0, last, cols):

# %% flash | wrong | sum-not-divided | like own-block-skipped
#-         for j in range(0, i, cols):
#+         for j in range(0, last, cols):
#-         lines += [f"O[{i}:{last}] = out / total", f"L[{i}:{last}] = peak + log(total)"]
#+         lines += [f"O[{i}:{last}] = out", f"L[{i}:{last}] = peak + log(total)"]

# %% flash | wrong | lse-without-peak-or-sum | like own-block-skipped
#-         for j in range(0, i, cols):
#+         for j in range(0, last, cols):
#-         lines += [f"O[{i}:{last}] = out / total", f"L[{i}:{last}] = peak + log(total)"]
#+         lines += [f"O[{i}:{last}] = out / total", f"L[{i}:{last}] = peak"]

# %% flash | wrong | outputs-travel
def flash_program(n, d, rows, cols):
    """Keys stay, as in 2022."""
    lines = []
    for j in range(0, n, cols):
        lines += [f"k = K[{j}:{j + cols}]", f"v = V[{j}:{j + cols}]"]
        for i in range(j // rows * rows, n, rows):
            lines += [f"q = Q[{i}:{i + rows}]", f"s = causal(q @ k.T * {d**-0.5}, {i}, {j})", "m = maximum(rowmax(s), -1000000)"]
            lines += ["s = exp(s - m)", "l = m + log(rowsum(s))"]
            if j:
                lines += [f"old = L[{i}:{i + rows}]", f"out = O[{i}:{i + rows}]", "top = maximum(old, l)"]
                lines += ["l = top + log(exp(old - top) + exp(l - top))", "out = out * exp(old - l) + s @ v * exp(m - l)"]
            else:
                lines += ["out = s @ v / rowsum(s)"]
            lines += [f"O[{i}:{i + rows}] = out", f"L[{i}:{i + rows}] = l"]
    return lines

# %% flash | wrong | blocks-of-the-future | like own-block-skipped
#-         for j in range(0, i, cols):
#+         for j in range(0, n, cols):

# %% best-block | right | 16 keys suffice where larger blocks only add, NumPy scalars
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    cols, rows = 16, np.arange(16, n + 1, 16)
    rows = rows[2 * (2 * rows * d + 2 * cols * d + rows * cols + 4 * rows) <= sram_bytes]
    seconds = []
    for r in rows:
        ends = np.minimum(np.arange(r, n + r, r), n)
        keys = np.minimum((ends + cols - 1) // cols * cols, n)
        pairs = (np.diff(ends, prepend=0) * keys).sum()
        seconds.append(max(4 * d * pairs / peak_flops, 4 * d * (n + keys.sum()) / bandwidth))
    best = int(np.argmin(seconds))
    return [rows[best], np.int32(cols), np.float64(seconds[best])]

# %% best-block | wrong | fewest-flops-taken-for-fastest
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    lasts = np.arange(16, n + 1, 16)
    return 16, 16, max(4 * d * 16 * lasts.sum() / peak_flops, 4 * d * (n + lasts.sum()) / bandwidth)

# %% best-block | wrong | largest-block-taken-for-fastest
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    best = (np.inf,)
    for rows in range(16, n + 1, 16):
        if 2 * (2 * rows * d + 32 * d + rows * 16 + 4 * rows) <= sram_bytes:
            ends = np.minimum(np.arange(rows, n + rows, rows), n)
            moved, flops = 4 * d * (n + ends.sum()) / bandwidth, 4 * d * (np.diff(ends, prepend=0) * ends).sum() / peak_flops
            best = min(best, (moved, rows, max(moved, flops)))
    return best[1], 16, best[2]

# %% best-block | wrong | scores-take-space-too
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    best = (np.inf,)
    for rows in range(16, n + 1, 16):
        if 2 * (2 * rows * d + 32 * d + 4 * rows) <= sram_bytes:
            ends = np.minimum(np.arange(rows, n + rows, rows), n)
            moved, flops = 4 * d * (n + ends.sum()) / bandwidth, 4 * d * (np.diff(ends, prepend=0) * ends).sum() / peak_flops
            best = min(best, (max(moved, flops), rows))
    return best[1], 16, best[0]

# %% best-block | wrong | numbers-taken-for-bytes | like scores-take-space-too
#-         if 2 * (2 * rows * d + 32 * d + 4 * rows) <= sram_bytes:
#+         if 2 * rows * d + 32 * d + rows * 16 + 4 * rows <= sram_bytes:

# %% best-block | wrong | mask-saves-nothing
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    best = (np.inf,)
    for rows in range(16, n + 1, 16):
        if 2 * (2 * rows * d + 32 * d + rows * 16 + 4 * rows) <= sram_bytes:
            moved = 4 * d * (n + n * -(-n // rows)) / bandwidth
            best = min(best, (max(moved, 4 * d * n * n / peak_flops), rows))
    return best[1], 16, best[0]

# %% best-block | wrong | masked-pairs-cost-too
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    best = (np.inf,)
    for rows in range(16, n + 1, 16):
        if 2 * (2 * rows * d + 32 * d + rows * 16 + 4 * rows) <= sram_bytes:
            keys = sum(min(n, first + rows) for first in range(0, n, rows))
            best = min(best, (max(2 * d * n * (n + 1) / peak_flops, 4 * d * (n + keys) / bandwidth), rows))
    return best[1], 16, best[0]

# %% best-block | wrong | last-block-padded
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    best = (np.inf,)
    for rows in range(16, n + 1, 16):
        for cols in range(16, n + 1, 16):
            if 2 * (2 * d * (rows + cols) + rows * cols + 4 * rows) > sram_bytes:
                break
            flops = moved = 0
            for first in range(0, n, rows):
                visited = -(-(first + rows) // cols)
                flops += 4 * d * rows * cols * visited
                moved += 4 * d * (rows + cols * visited)
            best = min(best, (max(flops / peak_flops, moved / bandwidth), rows, cols))
    return best[1], best[2], best[0]

# %% best-block | wrong | times-added
def best_block(n, d, sram_bytes, peak_flops, bandwidth):
    best = (np.inf,)
    for rows in range(16, n + 1, 16):
        if 2 * (2 * rows * d + 32 * d + rows * 16 + 4 * rows) <= sram_bytes:
            ends = np.minimum(np.arange(rows, n + rows, rows), n)
            moved, flops = 4 * d * (n + ends.sum()) / bandwidth, 4 * d * (np.diff(ends, prepend=0) * ends).sum() / peak_flops
            best = min(best, (moved + flops, rows))
    return best[1], 16, best[0]

# %% tile-gradients | right | pair by pair, lists
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    import math
    dq, dk, dv = (np.zeros(a.shape).tolist() for a in (q, k, v))
    for i in range(len(q)):
        for j in range(len(k)):
            if not allowed[i, j]:
                continue
            p = math.exp(scale * sum(q[i] * k[j]) - lse[i])
            ds = p * (sum(dout[i] * v[j]) - delta[i]) * scale
            for x in range(q.shape[1]):
                dq[i][x] += ds * k[j, x]
                dk[j][x] += ds * q[i, x]
                dv[j][x] += p * dout[i, x]
    return dq, dk, dv

# %% tile-gradients | right | einsum, weights set to zero
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = allowed * np.exp(np.minimum(scale * np.einsum("rd,cd->rc", q, k) - lse[:, None], 600))
    ds = scale * (p * np.einsum("rd,cd->rc", dout, v) - p * delta[:, None])
    return [np.einsum("rc,cd->rd", ds, k), np.einsum("rc,rd->cd", ds, q), np.einsum("rc,rd->cd", p, dout)]

# %% tile-gradients | wrong | tile-normalised-again
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = np.exp(scale * q @ k.T) * allowed
    p = p / np.maximum(p.sum(1, keepdims=True), 1e-300)
    ds = p * (dout @ v.T - delta[:, None]) * scale
    return ds @ k, ds.T @ q, p.T @ dout

# %% tile-gradients | wrong | delta-left-out
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = np.exp(scale * q @ k.T - lse[:, None]) * allowed
    ds = p * (dout @ v.T) * scale
    return ds @ k, ds.T @ q, p.T @ dout

# %% tile-gradients | wrong | delta-from-the-tile
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = np.exp(scale * q @ k.T - lse[:, None]) * allowed
    dp = dout @ v.T
    ds = p * (dp - (p * dp).sum(1, keepdims=True)) * scale
    return ds @ k, ds.T @ q, p.T @ dout

# %% tile-gradients | wrong | scale-lost-in-the-gradients
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = np.exp(scale * q @ k.T - lse[:, None]) * allowed
    ds = p * (dout @ v.T - delta[:, None])
    return ds @ k, ds.T @ q, p.T @ dout

# %% tile-gradients | wrong | mask-forgotten-backward
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = np.exp(scale * q @ k.T - lse[:, None])
    ds = p * (dout @ v.T - delta[:, None]) * scale
    return ds @ k, ds.T @ q, p.T @ dout

# %% tile-gradients | wrong | weights-without-lse
def tile_gradients(q, k, v, dout, lse, delta, scale, allowed):
    p = np.exp(scale * q @ k.T) * allowed
    ds = p * (dout @ v.T - delta[:, None]) * scale
    return ds @ k, ds.T @ q, p.T @ dout
