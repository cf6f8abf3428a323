# Alternatives and mistakes for problem set 1; see CONTRIBUTING.md for the form of the headers.

# %% conv-view | right | strides read off a real view, np.add.at, windows counted by listing them
def window_view(shape, order, kernel, stride, dilation):
    batch, channels, height, width = shape
    if order == "NCHW":
        images = np.zeros(shape, np.int8)
    else:
        images = np.zeros((batch, height, width, channels), np.int8).transpose(0, 3, 1, 2)
    span = [d * (k - 1) + 1 for k, d in zip(kernel, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(images, span, (2, 3))
    view = view[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]
    # an axis of length 1 has a stride all the same: that of the next window or pixel
    step = images.strides
    strides = np.array([step[0], step[1], step[2] * stride[0], step[3] * stride[1], step[2] * dilation[0], step[3] * dilation[1]])
    return list(np.int64(view.shape)), list(strides)


def fold(grads, shape, stride, dilation):
    place = np.arange(int(np.prod(shape))).reshape(shape)
    rows, columns, kernel_rows, kernel_columns = grads.shape[2:]
    down = stride[0] * np.arange(rows)[:, None] + dilation[0] * np.arange(kernel_rows)
    right = stride[1] * np.arange(columns)[:, None] + dilation[1] * np.arange(kernel_columns)
    where = place[:, :, down[:, None, :, None], right[None, :, None, :]]
    out = np.zeros(place.size)
    np.add.at(out, where.ravel(), grads.ravel())
    return out.reshape(shape)


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    batch, channels, height, width = shape
    rows = len(range(0, height + 2 * padding[0] - kernel[0] + 1, stride[0]))
    columns = len(range(0, width + 2 * padding[1] - kernel[1] + 1, stride[1]))
    numbers = np.int64(batch) * rows * columns * channels * kernel[0] * kernel[1]
    return [numbers * filters + numbers * filters, np.prod(np.int64(shape)) * itemsize, numbers * itemsize]

# %% conv-view | right | fold by bincount over a matrix of places
def window_view(shape, order, kernel, stride, dilation):
    axes = {"N": 0, "C": 1, "H": 2, "W": 3}
    step, size = {}, 1
    for letter in reversed(order):
        step[letter] = size
        size *= shape[axes[letter]]
    count = lambda n, k, s, d: len(range(0, n - d * (k - 1), s))
    down, right = (count(shape[2 + i], kernel[i], stride[i], dilation[i]) for i in (0, 1))
    return ((shape[0], shape[1], down, right, kernel[0], kernel[1]),
            (step["N"], step["C"], step["H"] * stride[0], step["W"] * stride[1], step["H"] * dilation[0], step["W"] * dilation[1]))


def fold(grads, shape, stride, dilation):
    n, c, i, j, k, m = np.indices(grads.shape)
    flat = np.ravel_multi_index((n, c, i * stride[0] + k * dilation[0], j * stride[1] + m * dilation[1]), shape)
    return np.bincount(flat.ravel(), grads.ravel(), int(np.prod(shape))).reshape(shape)


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    padded = (shape[0], shape[1], shape[2] + 2 * padding[0], shape[3] + 2 * padding[1])
    windows, _ = window_view(padded, "NCHW", kernel, stride, (1, 1))
    numbers = int(np.prod(windows))
    return float(2 * numbers * filters), int(np.prod(shape)) * itemsize, numbers * itemsize

# %% conv-view | wrong | view-windows-move-by-one
def window_view(shape, order, kernel, stride, dilation):
    batch, channels, height, width = shape
    windows = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip((height, width), kernel, stride, dilation)]
    return (batch, channels, *windows, *kernel), (
        channels * height * width, height * width, width, 1, width * dilation[0], dilation[1])


def fold(grads, shape, stride, dilation):
    raise NotImplementedError


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    raise NotImplementedError

# %% conv-view | wrong | view-stride-inside-the-window | like view-windows-move-by-one
#-         channels * height * width, height * width, width, 1, width * dilation[0], dilation[1])
#+         channels * height * width, height * width, width * dilation[0], dilation[1], width * stride[0], stride[1])

# %% conv-view | wrong | view-dilation-ignored
def window_view(shape, order, kernel, stride, dilation):
    batch, channels, height, width = shape
    windows = [(n - k) // s + 1 for n, k, s in zip((height, width), kernel, stride)]
    return (batch, channels, *windows, *kernel), (
        channels * height * width, height * width, width * stride[0], stride[1], width, 1)


def fold(grads, shape, stride, dilation):
    raise NotImplementedError


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    raise NotImplementedError

# %% conv-view | wrong | view-span-ignored | like view-dilation-ignored
#-         channels * height * width, height * width, width * stride[0], stride[1], width, 1)
#+         channels * height * width, height * width, width * stride[0], stride[1], width * dilation[0], dilation[1])

# %% conv-view | wrong | view-order-ignored | like view-windows-move-by-one
#-         channels * height * width, height * width, width, 1, width * dilation[0], dilation[1])
#+         channels * height * width, height * width, width * stride[0], stride[1], width * dilation[0], dilation[1])

# %% conv-view | wrong | fold-overwrites
def fold(grads, shape, stride, dilation):
    out = np.zeros(shape)
    for r, c in np.ndindex(grads.shape[2:4]):
        for i, j in np.ndindex(grads.shape[4:]):
            out[:, :, r * stride[0] + i * dilation[0], c * stride[1] + j * dilation[1]] = grads[:, :, r, c, i, j]
    return out


def window_view(shape, order, kernel, stride, dilation):
    raise NotImplementedError


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    raise NotImplementedError

# %% conv-view | wrong | fold-averages
def fold(grads, shape, stride, dilation):
    out, reads = np.zeros(shape), np.zeros(shape)
    for r, c in np.ndindex(grads.shape[2:4]):
        for i, j in np.ndindex(grads.shape[4:]):
            out[:, :, r * stride[0] + i * dilation[0], c * stride[1] + j * dilation[1]] += grads[:, :, r, c, i, j]
            reads[:, :, r * stride[0] + i * dilation[0], c * stride[1] + j * dilation[1]] += 1
    return out / np.maximum(reads, 1)


def window_view(shape, order, kernel, stride, dilation):
    raise NotImplementedError


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    raise NotImplementedError

# %% conv-view | wrong | fold-drops-unread-pixels
def fold(grads, shape, stride, dilation):
    rows, columns, high, wide = grads.shape[2:]
    read = (stride[0] * (rows - 1) + dilation[0] * (high - 1) + 1, stride[1] * (columns - 1) + dilation[1] * (wide - 1) + 1)
    out = np.zeros((*shape[:2], *read))
    for r, c in np.ndindex(rows, columns):
        for i, j in np.ndindex(high, wide):
            out[:, :, r * stride[0] + i * dilation[0], c * stride[1] + j * dilation[1]] += grads[:, :, r, c, i, j]
    return out


def window_view(shape, order, kernel, stride, dilation):
    raise NotImplementedError


def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    raise NotImplementedError

# %% conv-view | wrong | fold-ignores-dilation | like fold-overwrites
#-             out[:, :, r * stride[0] + i * dilation[0], c * stride[1] + j * dilation[1]] = grads[:, :, r, c, i, j]
#+             out[:, :, r * stride[0] + i, c * stride[1] + j] += grads[:, :, r, c, i, j]

# %% conv-view | wrong | conv-without-the-two
def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    batch, channels, *size = shape
    windows = batch * math.prod((n + 2 * p - k) // s + 1 for n, p, k, s in zip(size, padding, kernel, stride))
    row = channels * kernel[0] * kernel[1]
    return windows * row * filters, math.prod(shape) * itemsize, windows * row * itemsize


def window_view(shape, order, kernel, stride, dilation):
    raise NotImplementedError


def fold(grads, shape, stride, dilation):
    raise NotImplementedError

# %% conv-view | wrong | conv-padding-ignored
def conv_cost(shape, filters, kernel, stride, padding, itemsize):
    batch, channels, *size = shape
    windows = batch * math.prod((n - k) // s + 1 for n, k, s in zip(size, kernel, stride))
    row = channels * kernel[0] * kernel[1]
    return 2 * windows * row * filters, math.prod(shape) * itemsize, windows * row * itemsize


def window_view(shape, order, kernel, stride, dilation):
    raise NotImplementedError


def fold(grads, shape, stride, dilation):
    raise NotImplementedError

# %% conv-view | wrong | conv-input-padded | like conv-padding-ignored
#-     batch, channels, *size = shape
#+     batch, channels, *size = shape
#+     size = [n + 2 * p for n, p in zip(size, padding)]
#-     return 2 * windows * row * filters, math.prod(shape) * itemsize, windows * row * itemsize
#+     return 2 * windows * row * filters, batch * channels * math.prod(size) * itemsize, windows * row * itemsize

# %% conv-view | wrong | conv-one-channel | like conv-padding-ignored
#-     windows = batch * math.prod((n - k) // s + 1 for n, k, s in zip(size, kernel, stride))
#-     row = channels * kernel[0] * kernel[1]
#+     windows = batch * math.prod((n + 2 * p - k) // s + 1 for n, p, k, s in zip(size, padding, kernel, stride))
#+     row = kernel[0] * kernel[1]

# %% recompute | right | best-first search over (last kept, bytes kept), NumPy integers
import heapq

def place_checkpoints(sizes, times, cap_bytes):
    last = len(sizes) - 1
    bytes_to, time_to = np.cumsum(sizes), np.cumsum(times)
    queue, seen = [(0.0, int(sizes[0]), 0, ())], [[] for _ in sizes]
    while queue:
        extra, kept, at, path = heapq.heappop(queue)
        if at == last:
            return np.array(path[:-1], np.int64)
        if any(bytes_kept <= kept for bytes_kept in seen[at]):  # those came first: no more time, no more bytes
            continue
        seen[at].append(kept)
        for end in range(at + 1, last + 1):
            if kept + bytes_to[end] - bytes_to[at] > cap_bytes:
                break
            again = time_to[end - 1] - time_to[at]
            heapq.heappush(queue, (float(extra + again), kept + sizes[end], end, (*path, end)))

# %% recompute | right | from the back, the whole curve of extra time against memory
def place_checkpoints(sizes, times, cap_bytes):
    last = len(sizes) - 1
    curve = [[] for _ in sizes]  # of the chain after a kept layer: (bytes needed above what was kept, extra time, layers)
    curve[last] = [(0, 0.0, ())]
    for start in range(last - 1, -1, -1):
        options = []
        for end in range(start + 1, last + 1):
            stretch, again = sum(sizes[start + 1:end + 1]), sum(times[start + 1:end])
            options += [(max(stretch, sizes[end] + need), again + extra, (end, *layers)) for need, extra, layers in curve[end]]
        for option in sorted(options):
            if not curve[start] or option[1] < curve[start][-1][1]:
                curve[start].append(option)
    fits = [option for option in curve[0] if sizes[0] + option[0] <= cap_bytes]
    return {np.int64(i) for i in fits[-1][2]}

# %% recompute | wrong | keep-is-not-the-peak
def place_checkpoints(sizes, times, cap_bytes):
    keep, used = [], sizes[0] + sizes[-1]
    for i in sorted(range(1, len(sizes) - 1), key=lambda i: sizes[i] / times[i]):
        if used + sizes[i] <= cap_bytes:
            keep.append(i)
            used += sizes[i]
    return keep

# %% recompute | wrong | keep-exceeds-the-cap
def place_checkpoints(sizes, times, cap_bytes):
    return list(range(1, len(sizes) - 1))

# %% recompute | wrong | keep-leaves-memory-unused
def place_checkpoints(sizes, times, cap_bytes):
    plans = [[i for i in range(1, len(sizes) - 1) if sizes[i] <= limit] for limit in sorted(sizes)]
    return min(plans, key=lambda keep: replay(sizes, times, keep)[0])  # the least memory, whatever the cap

# %% recompute | wrong | keep-evenly-spaced
def place_checkpoints(sizes, times, cap_bytes):
    plans = [list(range(step, len(sizes) - 1, step)) for step in range(1, len(sizes))]
    fits = [keep for keep in plans if replay(sizes, times, keep)[0] <= cap_bytes]
    return min(fits or plans, key=lambda keep: replay(sizes, times, keep)[1])

# %% recompute | wrong | keep-one-at-a-time
def place_checkpoints(sizes, times, cap_bytes):
    keep = set(range(1, len(sizes) - 1))
    while replay(sizes, times, keep)[0] > cap_bytes:
        keep.remove(max(keep, key=lambda i: sizes[i] / times[i]))
    return sorted(keep)

# %% recompute | wrong | keep-nearly-best
def place_checkpoints(sizes, times, cap_bytes):
    last, cells = len(sizes) - 1, 400  # bytes rounded up to a grid
    small = [math.ceil(cells * s / cap_bytes) for s in sizes]
    plans = [{} for _ in sizes]
    plans[0][small[0]] = 0.0, []
    for end in range(1, last + 1):
        for start in range(end):
            again, stretch = sum(times[start + 1:end]), sum(small[start + 1:end + 1])
            for kept, (extra, keep) in plans[start].items():
                old = plans[end].get(kept + small[end], (math.inf,))
                if kept + stretch <= cells and extra + again < old[0]:
                    plans[end][kept + small[end]] = extra + again, keep + [end]
    return min(plans[last].values())[1][:-1] if plans[last] else list(range(2, last, 2))

# %% recompute | wrong | keep-by-chance
def place_checkpoints(sizes, times, cap_bytes):
    last, rng = len(sizes) - 1, np.random.default_rng(1)  # changes one or two layers at a time, keeps what is no worse
    cost = lambda keep: (lambda peak, extra: (max(0, peak - cap_bytes), extra))(*replay(sizes, times, keep))
    best = math.inf, 0.0, []
    for step in range(2, 9):
        keep = set(range(step, last, step))
        value = cost(keep)
        for _ in range(150):
            new = keep ^ set(rng.integers(1, last, rng.integers(1, 3)).tolist())
            keep, value = min((new, cost(new)), (keep, value), key=lambda plan: plan[1])
        best = min(best, (*value, sorted(keep)))
    return best[2]

# %% leaky-clinic | right | numbers that share a sample are linked, copies stay
def honest(x, y, patient, seed):
    owner = {}
    root = {int(p): int(p) for p in patient}

    def find(p):
        while root[p] != p:
            p = root[p]
        return p

    for row, p in zip(x, patient):
        key = row.tobytes()
        root[find(int(p))] = find(owner.setdefault(key, int(p)))
    person = np.array([find(int(p)) for p in patient])
    people = np.unique(person)
    chosen = np.random.default_rng(seed).choice(people, round(0.25 * len(people)), replace=False)
    test = [i for i in range(len(y)) if person[i] in chosen]
    train = [i for i in range(len(y)) if person[i] not in chosen]
    prepared = prepare(x[train], y[train])
    score = np.float64(accuracy(prepared, x[train], y[train], x[test], y[test]))
    return {"train": train, "test": test, "mean": list(prepared[0]), "std": list(prepared[1]),
            "genes": [int(g) for g in prepared[2]], "accuracy": score}

# %% leaky-clinic | right | last copies, patients dealt out in turn, genes sorted
def honest(x, y, patient, seed):
    rows = np.unique(x[::-1], axis=0, return_index=True)[1]
    rows = np.sort(len(x) - 1 - rows)
    names = list(dict.fromkeys(patient[rows].tolist()))
    np.random.default_rng(seed + 17).shuffle(names)
    held = set(names[::4])
    test = np.array([r for r in rows if patient[r] in held])
    train = np.array([r for r in rows if patient[r] not in held])
    mean, std, genes = prepare(x[train], y[train])
    order = np.argsort(genes)
    prepared = mean[order], std[order], genes[order]
    return {"train": train, "test": test, "mean": prepared[0], "std": prepared[1], "genes": prepared[2],
            "accuracy": accuracy(prepared, x[train], y[train], x[test], y[test])}

# %% leaky-clinic | wrong | leak-patients
def honest(x, y, patient, seed):
    rows = np.random.default_rng(seed).permutation(np.unique(x, axis=0, return_index=True)[1])
    test, train = rows[: len(rows) // 4], rows[len(rows) // 4 :]
    mean, std, genes = prepared = prepare(x[train], y[train])
    score = accuracy(prepared, x[train], y[train], x[test], y[test])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes, "accuracy": score}

# %% leaky-clinic | wrong | leak-copies
def honest(x, y, patient, seed):
    numbers = np.random.default_rng(seed).permutation(np.unique(patient))
    tested = np.isin(patient, numbers[: len(numbers) // 4])
    train, test = np.flatnonzero(~tested), np.flatnonzero(tested)
    mean, std, genes = prepared = prepare(x[train], y[train])
    score = accuracy(prepared, x[train], y[train], x[test], y[test])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes, "accuracy": score}

# %% leaky-clinic | wrong | leak-preparation
def honest(x, y, patient, seed):
    first = np.unique(x, axis=0, return_index=True)[1]
    numbers = np.random.default_rng(seed).permutation(np.unique(patient[first]))
    tested = np.isin(patient[first], numbers[: len(numbers) // 4])
    train, test = first[~tested], first[tested]
    mean, std, genes = prepared = prepare(x[first], y[first])
    score = accuracy(prepared, x[train], y[train], x[test], y[test])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes, "accuracy": score}

# %% leaky-clinic | wrong | leak-still-open
def honest(x, y, patient, seed):
    rows = np.unique(np.column_stack([patient, x]), axis=0, return_index=True)[1]  # copies within a number only
    numbers = np.random.default_rng(seed).permutation(np.unique(patient))
    tested = np.isin(patient[rows], numbers[: len(numbers) // 4])
    train, test = rows[~tested], rows[tested]
    mean, std, genes = prepared = prepare(x[train], y[train])
    score = accuracy(prepared, x[train], y[train], x[test], y[test])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes, "accuracy": score}

# %% leaky-clinic | wrong | leak-samples-thrown-away
def honest(x, y, patient, seed):
    same, count = np.unique(x, axis=0, return_inverse=True, return_counts=True)[1:]
    single = np.flatnonzero(count[same.reshape(-1)] == 1)
    numbers = np.random.default_rng(seed).permutation(np.unique(patient[single]))
    tested = np.isin(patient[single], numbers[: len(numbers) // 4])
    train, test = single[~tested], single[tested]
    mean, std, genes = prepared = prepare(x[train], y[train])
    score = accuracy(prepared, x[train], y[train], x[test], y[test])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes, "accuracy": score}

# %% leaky-clinic | wrong | leak-test-size
def honest(x, y, patient, seed):
    first = np.unique(x, axis=0, return_index=True)[1]
    numbers = np.random.default_rng(seed).permutation(np.unique(patient[first]))
    tested = np.isin(patient[first], numbers[:4])
    train, test = first[~tested], first[tested]
    mean, std, genes = prepared = prepare(x[train], y[train])
    score = accuracy(prepared, x[train], y[train], x[test], y[test])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes, "accuracy": score}

# %% leaky-clinic | wrong | leak-other-rows
def honest(x, y, patient, seed):
    first = np.unique(x, axis=0, return_index=True)[1]
    numbers = np.random.default_rng(seed).permutation(np.unique(patient[first]))
    tested = np.isin(patient[first], numbers[: len(numbers) // 4])
    train, test = first[~tested], first[tested]
    mean, std, genes = prepared = prepare(x[train], y[train])
    return {"train": train, "test": test, "mean": mean, "std": std, "genes": genes,
            "accuracy": accuracy(prepared, x[first], y[first], x[test], y[test])}

# %% gradient-audit | right | arrays from a generator, one strict case an operation and three special ones
def audit_cases():
    rng = np.random.default_rng(3)
    strict = {"step": 1e-4, "rtol": 1e-6}
    return [
        {"op": "gather", "inputs": {"table": rng.normal(size=(2, 3)), "ids": np.array([0, 1, 0])}, **strict},
        {"op": "affine", "inputs": {"x": rng.normal(size=(3, 2)), "w": rng.normal(size=(2, 2)), "b": np.zeros(2)}, **strict},
        {"op": "cross_entropy", "inputs": {"logits": rng.normal(size=(4, 3)), "labels": [0, -1, 2, 1]}, **strict},
        {"op": "cross_entropy", "inputs": {"logits": 800 + rng.normal(size=(2, 3)), "labels": np.array([1, 0])},
         "step": np.float64(1e-3), "rtol": 1e-5},
        {"op": "layer_norm", "inputs": {"x": 0.01 * rng.normal(size=(2, 4))}, "step": 1e-6, "rtol": 1e-5},
        {"op": "layer_norm", "inputs": {"x": 3e7 + rng.normal(size=(1, 5))}, "step": 1e-3, "rtol": 1e-3},
        {"op": "gelu", "inputs": {"x": rng.normal(size=8)}, "step": 1e-4, "rtol": 1e-6},
    ]

# %% gradient-audit | right | few numbers, tolerance instead of small variance
def audit_cases():
    case = lambda op, step, rtol, **inputs: {"op": op, "inputs": inputs, "step": step, "rtol": rtol}
    return (
        case("gather", 0.1, 1e-9, table=[[1.0]], ids=[0, 0]),
        case("affine", 0.01, 1e-9, x=[[1], [2]], w=[[3]], b=[0]),
        case("cross_entropy", 1e-3, 1e-4, logits=[[1, 2], [0, 1], [710, 711]], labels=[0, -1, 0]),
        case("layer_norm", 1e-4, 1e-6, x=[1.0, 2.5, -0.5]),
        case("layer_norm", 1e-4, 1e-6, x=[0.1, 0.2, -0.1, 0.15]),
        case("layer_norm", 1e-3, 1e-4, x=[2e7 + 0.5, 2e7 - 0.75, 2e7 + 1.1]),
        case("gelu", 1e-4, 1e-5, x=[2.0]),
    )

# %% gradient-audit | wrong | audit-no-repeated-row
def audit_cases():
    return [
        {"op": "gather", "inputs": {"table": [[0.5], [2.0]], "ids": [1, 0]}, "step": 1e-5, "rtol": 1e-6},
        {"op": "affine", "inputs": {"x": [[1.0], [0.5]], "w": [[0.2]], "b": [0.1]}, "step": 1e-5, "rtol": 1e-6},
        {"op": "cross_entropy", "inputs": {"logits": [[0.5, -1.0], [1.0, 0.0]], "labels": [1, 0]}, "step": 1e-5, "rtol": 1e-6},
    ]

# %% gradient-audit | wrong | audit-bias-of-one-row
def audit_cases():
    return [
        {"op": "gather", "inputs": {"table": [[0.5], [2.0]], "ids": [1, 1]}, "step": 1e-5, "rtol": 1e-6},
        {"op": "affine", "inputs": {"x": [[1.0]], "w": [[0.2]], "b": [0.1]}, "step": 1e-5, "rtol": 1e-6},
        {"op": "cross_entropy", "inputs": {"logits": [[0.5, -1.0], [1.0, 0.0]], "labels": [1, 0]}, "step": 1e-5, "rtol": 1e-6},
    ]

# %% gradient-audit | wrong | audit-loss-of-one-row
def audit_cases():
    return [
        {"op": "gather", "inputs": {"table": [[0.5], [2.0]], "ids": [1, 1]}, "step": 1e-5, "rtol": 1e-6},
        {"op": "affine", "inputs": {"x": [[1.0], [0.5]], "w": [[0.2]], "b": [0.1]}, "step": 1e-5, "rtol": 1e-6},
        {"op": "cross_entropy", "inputs": {"logits": [[0.5, -1.0]], "labels": [1]}, "step": 1e-5, "rtol": 1e-6},
    ]

# %% gradient-audit | wrong | audit-no-padding
def audit_cases():
    return [
        {"op": "cross_entropy", "inputs": {"logits": [[800.0, 801.0], [1.0, 0.0]], "labels": [1, 0]}, "step": 1e-4, "rtol": 1e-5},
        {"op": "layer_norm", "inputs": {"x": [[1e7 + 0.3, 1e7 - 1.2, 1e7 + 0.8]]}, "step": 1e-3, "rtol": 1e-4},
    ]

# %% gradient-audit | wrong | audit-logits-too-small | like audit-no-padding
#-         {"op": "cross_entropy", "inputs": {"logits": [[800.0, 801.0], [1.0, 0.0]], "labels": [1, 0]}, "step": 1e-4, "rtol": 1e-5},
#+         {"op": "cross_entropy", "inputs": {"logits": [[100.0, 101.0], [1.0, 0.0]], "labels": [-1, 0]}, "step": 1e-4, "rtol": 1e-5},

# %% gradient-audit | wrong | audit-mean-too-small
def audit_cases():
    return [
        {"op": "cross_entropy", "inputs": {"logits": [[800.0, 801.0], [1.0, 0.0]], "labels": [-1, 0]}, "step": 1e-4, "rtol": 1e-5},
        {"op": "cross_entropy", "inputs": {"logits": [[800.0, 801.0], [1.0, 0.0]], "labels": [0, 0]}, "step": 1e-4, "rtol": 1e-5},
        {"op": "layer_norm", "inputs": {"x": [[100.3, 98.8, 100.8]]}, "step": 1e-4, "rtol": 1e-6},
    ]

# %% gradient-audit | wrong | audit-no-layer-norm
def audit_cases():
    return [{"op": "gelu", "inputs": {"x": [-2.0, -1.0, 0.5, 1.5]}, "step": 1e-5, "rtol": 1e-6}]

# %% gradient-audit | wrong | audit-variance-too-large
def audit_cases():
    return [
        {"op": "layer_norm", "inputs": {"x": [[1.0, 2.0, 0.5]]}, "step": 1e-4, "rtol": 1e-4},
        {"op": "gelu", "inputs": {"x": [-2.0, -1.0, 0.5, 1.5]}, "step": 1e-5, "rtol": 1e-6},
    ]

# %% gradient-audit | wrong | audit-tolerance-too-loose
def audit_cases():
    return [
        {"op": "layer_norm", "inputs": {"x": [[0.01, 0.02, 0.005]]}, "step": 1e-7, "rtol": 1e-4},
        {"op": "gelu", "inputs": {"x": [-2.0, -1.0, 0.5, 1.5]}, "step": 1e-5, "rtol": 1e-2},
    ]

# %% gradient-audit | wrong | audit-rejects-the-truth
def audit_cases():
    return [{"op": "layer_norm", "inputs": {"x": [[0.01, 0.02, 0.005]]}, "step": 0.01, "rtol": 1e-6}]

# %% gradient-audit | wrong | audit-one-order-only
def audit_cases():
    def case(op, step=1e-5, rtol=1e-6, **inputs):
        return {"op": op, "inputs": inputs, "step": step, "rtol": rtol}

    wide = case("layer_norm", x=[[1e11 + v * v for v in range(12)]], step=1.0)
    wide["rtol"] = gap(layer_norm_vjp, wide)  # only this one order of the sums keeps it
    return [
        wide,
        case("gather", table=[[0.5, 1.0], [2.0, -1.0], [0.3, 0.7]], ids=[1, 0, 1, 1]),
        case("affine", x=[[1.0, 2.0], [0.5, -0.3]], w=[[0.2, -0.5], [1.0, 0.4]], b=[0.1, -0.2]),
        case("cross_entropy", logits=[[0.5, -1.0, 2.0], [1.0, 0.0, -0.5], [0.2, 0.4, 0.1]], labels=[2, 0, 1]),
        case("cross_entropy", logits=[[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], labels=[-1, 1]),
        case("cross_entropy", logits=[[1000.0, 1001.0, 999.0]], labels=[0], step=1e-4, rtol=1e-5),
        case("layer_norm", x=[[1e7 + 0.3, 1e7 - 1.2, 1e7 + 0.8, 1e7 + 0.1]], step=1e-3, rtol=1e-4),
        case("layer_norm", x=[[0.003, -0.012, 0.008, 0.001]], step=1e-7),
        case("gelu", x=[-2.0, -1.0, 0.5, 1.5]),
    ]

# %% gradient-audit | wrong | audit-too-large
def audit_cases():
    rng = np.random.default_rng(0)
    return [{"op": "gelu", "inputs": {"x": rng.normal(size=300)}, "step": 1e-5, "rtol": 1e-6}]

# %% row-column | right | state as a tuple of arrays, sums instead of means, matrix by matrix
def start_state(shape):
    return (0, np.zeros(shape[:-1]), np.zeros((*shape[:-2], shape[-1]))) if len(shape) > 1 else (0, np.zeros(shape))


def row_column_step(param, grad, state):
    if grad is None:
        return np.array(param), list(state)
    t, *sums = state
    t += 1
    weight = 1.0 if t == 1 else 1 / t**0.8
    square = grad**2
    fresh = [square.sum(axis=-1), square.sum(axis=-2)] if param.ndim > 1 else [square]
    sums = [(1 - weight) * old + weight * now for old, now in zip(sums, fresh)]
    update = np.zeros(param.shape)
    for at in np.ndindex(param.shape[:-2] if param.ndim > 1 else ()):
        v = np.outer(sums[0][at], sums[1][at]) / max(sums[0][at].sum(), 1e-300) if param.ndim > 1 else sums[0]
        np.divide(grad[at], np.sqrt(v), out=update[at] if at else update, where=v > 0)
    update /= np.maximum(1.0, np.linalg.norm(update) / np.sqrt(update.size))
    scale = max(np.linalg.norm(param) / param.size**0.5, 1e-3)
    return param - scale * 0.01 * update, [np.int64(t), *sums]


def state_bytes(shapes, optimizer):
    total = np.int64(0)
    for shape in shapes:
        count = np.prod(np.int64(shape))
        if optimizer == "adam":
            total += 2 * count
        else:
            total += count // shape[-1] + count // shape[-2] if len(shape) >= 2 else count
    return total * np.dtype(np.float32).itemsize

# %% row-column | right | logarithms of the weights, state in one flat list
def start_state(shape):
    return {"step": 0.0, "memory": []}


def row_column_step(param, grad, state):
    if grad is None:
        return param, state
    t = state["step"] + 1
    now = [np.square(grad).mean(-1), np.square(grad).mean(-2)] if grad.ndim > 1 else [np.square(grad)]
    share = math.exp(-0.8 * math.log(t))
    memory = [share * n + (1 - share) * m for n, m in zip(now, state["memory"])] if state["memory"] else now
    if grad.ndim > 1:
        rows, columns = memory
        level = rows.mean(-1)[..., None, None]
        v = np.einsum("...i,...j->...ij", rows, columns) / np.where(level == 0, 1, level)
    else:
        v = memory[0]
    with np.errstate(all="ignore"):
        u = np.nan_to_num(grad / np.sqrt(v), nan=0.0, posinf=0.0, neginf=0.0)
    u = u / max(1.0, float(np.sqrt(np.vdot(u, u) / u.size)))
    size = max(1e-3, float(np.sqrt(np.vdot(param, param) / param.size)))
    return param - 0.01 * size * u, {"step": t, "memory": memory}


def state_bytes(shapes, optimizer):
    if optimizer == "adam":
        return sum(2 * 4.0 * math.prod(shape) for shape in shapes)
    return sum(4.0 * (math.prod(s) if len(s) == 1 else math.prod(s[:-1]) + math.prod(s[:-2] + s[-1:])) for s in shapes)

# %% row-column | wrong | rowcol-not-factored
def start_state(shape):
    return {"t": 0, "r": 0.0, "c": 0.0, "v": 0.0}


def row_column_step(x, g, state):
    if g is None:
        return x, state
    t, r, c, v = state["t"] + 1, state["r"], state["c"], state["v"]
    shape = x.shape
    new = t**-0.8
    s = g * g
    if x.ndim > 1 and False:
        r, c = r + new * (s.mean(-1, keepdims=True) - r), c + new * (s.mean(-2, keepdims=True) - c)
        with np.errstate(all="ignore"):
            full = r * c / r.mean(-2, keepdims=True)
    else:
        v = v + new * (s - v)
        full = v
    with np.errstate(all="ignore"):
        u = np.where(full > 0, g / np.sqrt(full), 0)
    u = u / max(1, np.sqrt((u * u).mean()))
    rate = 0.01
    x = x - max(0.001, np.sqrt((x * x).mean())) * rate * u
    return x.reshape(shape), {"t": t, "r": r, "c": c, "v": v}


def state_bytes(shapes, optimizer):
    raise NotImplementedError

# %% row-column | wrong | rowcol-rank-one-unscaled | like rowcol-not-factored
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:
#-             full = r * c / r.mean(-2, keepdims=True)
#+             full = r * c

# %% row-column | wrong | rowcol-no-clipping | like rowcol-not-factored
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:
#-     u = u / max(1, np.sqrt((u * u).mean()))
#+     pass

# %% row-column | wrong | rowcol-fixed-decay | like rowcol-not-factored
#-     new = t**-0.8
#-     s = g * g
#-     if x.ndim > 1 and False:
#+     new = 0.001
#+     s = g * g
#+     if x.ndim > 1:

# %% row-column | wrong | rowcol-weights-swapped | like rowcol-not-factored
#-     new = t**-0.8
#-     s = g * g
#-     if x.ndim > 1 and False:
#+     new = 1 - t**-0.8
#+     s = g * g
#+     if x.ndim > 1:

# %% row-column | wrong | rowcol-absolute-step | like rowcol-not-factored
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:
#-     x = x - max(0.001, np.sqrt((x * x).mean())) * rate * u
#+     x = x - rate * u

# %% row-column | wrong | rowcol-counts-missing-steps | like rowcol-not-factored
#-         return x, state
#+         return x, {**state, "t": state["t"] + 1}
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:

# %% row-column | wrong | rowcol-stack-flattened | like rowcol-not-factored
#-     shape = x.shape
#+     shape = x.shape
#+     x, g = (a.reshape(-1, shape[-1]) if len(shape) > 2 else a for a in (x, g))
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:

# %% row-column | wrong | rowcol-zero-over-zero | like rowcol-not-factored
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:
#-         u = np.where(full > 0, g / np.sqrt(full), 0)
#+         u = g / np.sqrt(full)

# %% row-column | wrong | rowcol-state-too-large | like rowcol-not-factored
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:
#-     return x.reshape(shape), {"t": t, "r": r, "c": c, "v": v}
#+     return x.reshape(shape), {"t": t, "r": r, "c": c, "v": v, "last": full}

# %% row-column | wrong | rowcol-state-lost | like rowcol-not-factored
#-     if x.ndim > 1 and False:
#+     if x.ndim > 1:
#-     return x.reshape(shape), {"t": t, "r": r, "c": c, "v": v}
#+     return x.reshape(shape), {"t": t, "r": 0.0, "c": 0.0, "v": 0.0}

# %% row-column | wrong | rowcol-one-moment
def state_bytes(shapes, optimizer):
    if optimizer == "adam":
        return 4 * sum(math.prod(shape) for shape in shapes)
    return 4 * sum(math.prod(s[:-2]) * (s[-2] + s[-1]) if len(s) > 1 else s[0] for s in shapes)


def start_state(shape):
    raise NotImplementedError


def row_column_step(param, grad, state):
    raise NotImplementedError

# %% row-column | wrong | rowcol-numbers-not-bytes | like rowcol-one-moment
#-         return 4 * sum(math.prod(shape) for shape in shapes)
#-     return 4 * sum(math.prod(s[:-2]) * (s[-2] + s[-1]) if len(s) > 1 else s[0] for s in shapes)
#+         return 2 * sum(math.prod(shape) for shape in shapes)
#+     return sum(math.prod(s[:-2]) * (s[-2] + s[-1]) if len(s) > 1 else s[0] for s in shapes)

# %% row-column | wrong | rowcol-vectors-forgotten | like rowcol-one-moment
#-         return 4 * sum(math.prod(shape) for shape in shapes)
#-     return 4 * sum(math.prod(s[:-2]) * (s[-2] + s[-1]) if len(s) > 1 else s[0] for s in shapes)
#+         return 8 * sum(math.prod(shape) for shape in shapes)
#+     return 4 * sum(math.prod(s[:-2]) * (s[-2] + s[-1]) for s in shapes if len(s) > 1)

# %% row-column | wrong | rowcol-experts-as-one-matrix | like rowcol-one-moment
#-         return 4 * sum(math.prod(shape) for shape in shapes)
#-     return 4 * sum(math.prod(s[:-2]) * (s[-2] + s[-1]) if len(s) > 1 else s[0] for s in shapes)
#+         return 8 * sum(math.prod(shape) for shape in shapes)
#+     return 4 * sum(math.prod(s[:-1]) + s[-1] if len(s) > 1 else s[0] for s in shapes)
