# %% attend | right | one einsum, minus infinity, and a clean-up after the softmax
def attend(q, k, v, mask):
    heads, t, d = q.shape
    q = q.reshape(k.shape[0], -1, t, d)
    scores = np.where(mask, np.einsum("gntd,gsd->gnts", q, k) / d**0.5, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(largest), largest, 0.0))
    total = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return np.einsum("gnts,gsd->gntd", weights, v).reshape(heads, t, d)

# %% attend | right | pair by pair, in lists
def attend(q, k, v, mask):
    out = []
    for h, queries in enumerate(q):
        g = h * len(k) // len(q)
        rows = []
        for i, query in enumerate(queries):
            keys = [j for j in range(k.shape[1]) if mask[i, j]]
            scores = [float(query @ k[g, j]) / math_root(len(query)) for j in keys]
            e = [np.exp(score - max(scores)) for score in scores]
            rows.append(sum((w / sum(e) * v[g, j] for w, j in zip(e, keys)), np.zeros(v.shape[-1])))
        out.append(rows)
    return np.array(out)

def math_root(n):
    return float(n) ** 0.5

# %% attend | wrong | attend-no-scale
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    s = np.where(mask, q @ k.swapaxes(1, 2), -1e30)
    e = np.exp(s - s.max(-1, keepdims=True)) * mask
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300) @ v

# %% attend | wrong | attend-divides-by-d | like attend-no-scale
#-     s = np.where(mask, q @ k.swapaxes(1, 2), -1e30)
#+     s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1], -1e30)

# %% attend | wrong | attend-times-root | like attend-no-scale
#-     s = np.where(mask, q @ k.swapaxes(1, 2), -1e30)
#+     s = np.where(mask, q @ k.swapaxes(1, 2) * q.shape[-1] ** 0.5, -1e30)

# %% attend | wrong | attend-query-axis
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -1e30)
    e = np.exp(s - s.max(-2, keepdims=True)) * mask
    return e / np.maximum(e.sum(-2, keepdims=True), 1e-300) @ v

# %% attend | wrong | attend-mask-after
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    s = q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) * mask @ v

# %% attend | wrong | attend-mask-transposed
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    mask = mask.T
    s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True)) * mask
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300) @ v

# %% attend | wrong | attend-reads-the-forbidden
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -1e9)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v

# %% attend | wrong | attend-nothing-is-nan
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    with np.errstate(all="ignore"):
        s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -np.inf)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v

# %% attend | wrong | attend-own-mask
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    mask = np.tri(*mask.shape, dtype=bool)
    s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True)) * mask
    return e / e.sum(-1, keepdims=True) @ v

# %% attend | wrong | attend-overflows
def attend(q, k, v, mask):
    k, v = (np.repeat(x, len(q) // len(x), axis=0) for x in (k, v))
    with np.errstate(all="ignore"):
        e = np.exp(np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -np.inf))
        total = e.sum(-1, keepdims=True)
        return e / np.where(total > 0, total, 1.0) @ v

# %% attend | wrong | attend-heads-interleaved
def attend(q, k, v, mask):
    k, v = (np.tile(x, (len(q) // len(x), 1, 1)) for x in (k, v))
    s = np.where(mask, q @ k.swapaxes(1, 2) / q.shape[-1] ** 0.5, -1e30)
    e = np.exp(s - s.max(-1, keepdims=True)) * mask
    return e / np.maximum(e.sum(-1, keepdims=True), 1e-300) @ v

# %% running | right | the mean so far, and the logarithm of the total weight
def absorb(state, scores, values):
    seen, mean = (-np.inf, 0.0 * values[0]) if state is None else state
    for score, value in zip(scores, values):
        if score > -np.inf:
            new = np.logaddexp(seen, score)
            mean = mean * np.exp(seen - new) + value * np.exp(score - new)
            seen = new
    return seen, mean

def result(state):
    return [float(x) for x in state[1]]

# %% running | right | one array as the state, numbers in lists
def absorb(state, scores, values):
    d = values.shape[1]
    if state is None:
        state = ([None, 0.0] + [0.0] * d,)
    largest, total, *mixed = state[0]
    for score, value in zip(scores.tolist(), values.tolist()):
        if score == float("-inf"):
            continue
        if largest is None or score > largest:
            shrink = 0.0 if largest is None else float(np.exp(largest - score))
            largest, total, mixed = score, total * shrink, [m * shrink for m in mixed]
        w = float(np.exp(score - largest))
        total, mixed = total + w, [m + w * x for m, x in zip(mixed, value)]
    return ([largest, total, *mixed],)

def result(state):
    _, total, *mixed = state[0]
    return np.array(mixed) / (total or 1.0)

# %% running | wrong | running-mixture-stale
def absorb(state, scores, values):
    largest, total, mixed = (-np.inf, 0.0, np.zeros(values.shape[1])) if state is None else state
    new = max(largest, scores.max())
    if new == -np.inf:
        return largest, total, mixed
    e = np.exp(scores - new)
    return new, total * np.exp(largest - new) + e.sum(), mixed + e @ values

def result(state):
    return state[2] / (state[1] or 1.0)

# %% running | wrong | running-sum-stale | like running-mixture-stale
#-     return new, total * np.exp(largest - new) + e.sum(), mixed + e @ values
#+     return new, total + e.sum(), mixed * np.exp(largest - new) + e @ values

# %% running | wrong | running-both-stale | like running-mixture-stale
#-     return new, total * np.exp(largest - new) + e.sum(), mixed + e @ values
#+     return new, total + e.sum(), mixed + e @ values

# %% running | wrong | running-blocks-averaged
def absorb(state, scores, values):
    blocks, mean = (0, np.zeros(values.shape[1])) if state is None else state
    e = np.exp(scores - max(scores.max(), -1e9))
    mine = e @ values / max(e.sum(), 1e-300)
    return blocks + 1, mean + (mine - mean) / (blocks + 1)

def result(state):
    return state[1]

# %% running | wrong | running-last-block-only
def absorb(state, scores, values):
    e = np.exp(scores - max(scores.max(), -1e9))
    return e.sum(), e @ values

def result(state):
    return state[1] / (state[0] or 1.0)

# %% running | wrong | running-keeps-everything
def absorb(state, scores, values):
    if state is None:
        return scores, values
    return np.concatenate([state[0], scores]), np.concatenate([state[1], values])

def result(state):
    scores, values = state
    e = np.exp(scores - max(scores.max(), -1e9))
    return e @ values / (e.sum() or 1.0)

# %% running | wrong | running-no-maximum
def absorb(state, scores, values):
    total, mixed = (0.0, np.zeros(values.shape[1])) if state is None else state
    with np.errstate(all="ignore"):
        e = np.exp(scores)
        return total + e.sum(), mixed + e @ values

def result(state):
    with np.errstate(all="ignore"):
        return state[1] / state[0]

# %% running | wrong | running-maximum-from-zero
def absorb(state, scores, values):
    largest, total, mixed = (0.0, 0.0, np.zeros(values.shape[1])) if state is None else state
    new = max(largest, scores.max())
    shrink, e = np.exp(largest - new), np.exp(scores - new)
    return new, total * shrink + e.sum(), mixed * shrink + e @ values

def result(state):
    _, total, mixed = state
    return mixed / total if total else mixed

# %% running | wrong | running-maximum-falls
def absorb(state, scores, values):
    largest, total, mixed = (-np.inf, 0.0, np.zeros(values.shape[1])) if state is None else state
    new = scores.max()
    if new == -np.inf:
        return largest, total, mixed
    with np.errstate(all="ignore"):
        shrink, e = np.exp(largest - new), np.exp(scores - new)
        return new, total * shrink + e.sum(), mixed * shrink + e @ values

def result(state):
    with np.errstate(all="ignore"):
        return state[2] / (state[1] or 1.0)

# %% running | wrong | running-empty-block-is-nan
def absorb(state, scores, values):
    largest, total, mixed = (-np.inf, 0.0, np.zeros(values.shape[1])) if state is None else state
    new = max(largest, scores.max())
    with np.errstate(all="ignore"):
        shrink, e = np.exp(largest - new), np.exp(scores - new)
        return new, total * shrink + e.sum(), mixed * shrink + e @ values

def result(state):
    return state[2] / (state[1] or 1.0)

# %% rotary | right | complex numbers
def turned(x, positions, base):
    half = x.shape[-1] // 2
    speed = np.exp(-np.log(base) * np.arange(half) / half)
    points = (x[:, :half] + 1j * x[:, half:]) * np.exp(1j * np.outer(positions, speed))
    return np.hstack([points.real, points.imag])

# %% rotary | right | one rotation matrix a pair, in extended precision
def turned(x, positions, base):
    out = np.array(x, np.longdouble)
    half = out.shape[1] // 2
    for row, place in enumerate(positions):
        for i in range(half):
            angle = np.longdouble(place) * np.longdouble(base) ** (-np.longdouble(2 * i) / (2 * half))
            matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
            out[row, [i, i + half]] = matrix @ out[row, [i, i + half]]
    return out.astype(float)

# %% rotary | wrong | rotary-neighbours
def turned(x, positions, base):
    half = x.shape[1] // 2
    angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / half)
    a, b, out = x[:, ::2], x[:, 1::2], np.empty_like(x)
    out[:, ::2], out[:, 1::2] = a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)
    return out

# %% rotary | wrong | rotary-clockwise
def turned(x, positions, base):
    half = x.shape[1] // 2
    angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / half)
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * np.cos(angle) + b * np.sin(angle), b * np.cos(angle) - a * np.sin(angle)], axis=1)

# %% rotary | wrong | rotary-slow-exponent
def turned(x, positions, base):
    half = x.shape[1] // 2
    angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / (2 * half))
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=1)

# %% rotary | wrong | rotary-fast-exponent | like rotary-slow-exponent
#-     angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / (2 * half))
#+     angle = np.asarray(positions, float)[:, None] * base ** (-2 * np.arange(half) / half)

# %% rotary | wrong | rotary-one-speed | like rotary-slow-exponent
#-     angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / (2 * half))
#+     angle = np.asarray(positions, float)[:, None]

# %% rotary | wrong | rotary-no-rotation | like rotary-clockwise
#-     return np.concatenate([a * np.cos(angle) + b * np.sin(angle), b * np.cos(angle) - a * np.sin(angle)], axis=1)
#+     return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) - a * np.sin(angle)], axis=1)

# %% rotary | wrong | rotary-counts-rows | like rotary-slow-exponent
#-     angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / (2 * half))
#+     angle = np.arange(len(x))[:, None] * base ** (-np.arange(half) / half)

# %% rotary | wrong | rotary-from-one | like rotary-slow-exponent
#-     angle = np.asarray(positions, float)[:, None] * base ** (-np.arange(half) / (2 * half))
#+     angle = (1.0 + positions)[:, None] * base ** (-np.arange(half) / half)

# %% length | right | a list of products, NumPy numbers
def score_share(layer, seq):
    d, d_head, heads = np.int64(layer["d_model"]), layer["d_head"], layer["heads"]
    outs = [heads * d_head, layer["kv_heads"] * d_head, layer["kv_heads"] * d_head, heads * d_head]
    outs += [layer["d_ff"]] * (2 + layer["gated"])
    by_weights = np.float64(sum(2 * seq * d * n for n in outs))
    by_scores = np.float64(2 * 2 * seq * seq * heads * d_head)
    return seq * by_weights / by_scores, by_scores / (by_scores + by_weights)

# %% length | right | the crossover by halving an interval
def score_share(layer, seq):
    def parts(s):
        width, kv = layer["heads"] * layer["d_head"], layer["kv_heads"] * layer["d_head"]
        weights = 2 * s * layer["d_model"] * (2 * width + 2 * kv + (2 + layer["gated"]) * layer["d_ff"])
        return 4 * s * s * width, weights

    low, high = 0.0, 1e12
    for _ in range(200):
        middle = (low + high) / 2
        scores, weights = parts(middle)
        low, high = (middle, high) if scores < weights else (low, middle)
    scores, weights = parts(seq)
    return high, scores / (scores + weights)

# %% length | wrong | length-half-the-scores
def score_share(layer, seq):
    d, width, kv = layer["d_model"], layer["heads"] * layer["d_head"], layer["kv_heads"] * layer["d_head"]
    crossover = d * (2 * width + 2 * kv + (2 + layer["gated"]) * layer["d_ff"]) / width
    return crossover, seq / (seq + crossover)

# %% length | wrong | length-feed-forward-left-out
def score_share(layer, seq):
    d, width, kv = layer["d_model"], layer["heads"] * layer["d_head"], layer["kv_heads"] * layer["d_head"]
    crossover = d * (2 * width + 2 * kv) / (2 * width)
    return crossover, seq / (seq + crossover)

# %% length | wrong | length-gate-left-out
def score_share(layer, seq):
    d, width, kv = layer["d_model"], layer["heads"] * layer["d_head"], layer["kv_heads"] * layer["d_head"]
    crossover = d * (2 * width + 2 * kv + 2 * layer["d_ff"]) / (2 * width)
    return crossover, seq / (seq + crossover)

# %% length | wrong | length-heads-all-alike
def score_share(layer, seq):
    d, width = layer["d_model"], layer["heads"] * layer["d_head"]
    crossover = d * (4 * width + (2 + layer["gated"]) * layer["d_ff"]) / (2 * width)
    return crossover, seq / (seq + crossover)

# %% length | wrong | length-output-left-out
def score_share(layer, seq):
    d, width, kv = layer["d_model"], layer["heads"] * layer["d_head"], layer["kv_heads"] * layer["d_head"]
    crossover = d * (width + 2 * kv + (2 + layer["gated"]) * layer["d_ff"]) / (2 * width)
    return crossover, seq / (seq + crossover)

# %% length | wrong | length-ratio-of-parts
def score_share(layer, seq):
    d, width, kv = layer["d_model"], layer["heads"] * layer["d_head"], layer["kv_heads"] * layer["d_head"]
    crossover = d * (2 * width + 2 * kv + (2 + layer["gated"]) * layer["d_ff"]) / (2 * width)
    return crossover, seq / crossover
