# Alternatives and mistakes for lesson 1.1; see CONTRIBUTING.md for the form of the headers.

# %% view-chain | right | addresses of a real array
def apply_views(shape, ops):
    place = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    base = place
    for op, *rest in ops:
        if op == "permute":
            place = np.transpose(place, rest[0])
        elif op == "slice":
            axis, start, count, step = rest
            index = [slice(None)] * place.ndim
            index[axis] = slice(start, None, step)
            place = place[tuple(index)]
            assert place.shape[axis] == count
        else:
            place = np.broadcast_to(place, rest[0])
    offset = place.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return list(np.int64(place.shape)), [np.int64(s) // 4 for s in place.strides], np.int64(offset // 4)

# %% view-chain | right | recursion over the chain
def apply_views(shape, ops):
    if not ops:
        return tuple(shape), tuple(int(np.prod(shape[i + 1:])) for i in range(len(shape))), 0
    shape, strides, offset = apply_views(shape, ops[:-1])
    kind, *rest = ops[-1]
    if kind == "permute":
        return tuple(shape[i] for i in rest[0]), tuple(strides[i] for i in rest[0]), offset
    if kind == "slice":
        axis, start, count, step = rest
        return (shape[:axis] + (count,) + shape[axis + 1:],
                strides[:axis] + (strides[axis] * step,) + strides[axis + 1:], offset + start * strides[axis])
    new = tuple(rest[0])
    pad = len(new) - len(shape)
    return new, (0,) * pad + tuple(0 if o != n else s for o, n, s in zip(shape, new[pad:], strides)), offset

# %% view-chain | wrong | strides-in-bytes
def apply_views(shape, ops):
    shape, strides, offset = list(shape), [4 * int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
    for op, *rest in ops:
        if op == "permute":
            shape, strides = [shape[i] for i in rest[0]], [strides[i] for i in rest[0]]
        elif op == "slice":
            axis, start, count, step = rest
            offset += start * strides[axis]
            shape[axis], strides[axis] = count, strides[axis] * step
        else:
            new = rest[0]
            extra = len(new) - len(shape)
            strides = [s if o == n else 0 for o, n, s in zip([1] * extra + shape, new, [0] * extra + strides)]
            shape = list(new)
    return tuple(shape), tuple(strides), offset

# %% view-chain | wrong | slice-step-not-in-stride | like strides-in-bytes
#-     shape, strides, offset = list(shape), [4 * int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#+     shape, strides, offset = list(shape), [int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#-             shape[axis], strides[axis] = count, strides[axis] * step
#+             shape[axis] = count

# %% view-chain | wrong | slice-start-not-scaled | like strides-in-bytes
#-     shape, strides, offset = list(shape), [4 * int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#+     shape, strides, offset = list(shape), [int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#-             offset += start * strides[axis]
#+             offset += start

# %% view-chain | wrong | broadcast-keeps-stride | like strides-in-bytes
#-     shape, strides, offset = list(shape), [4 * int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#+     shape, strides, offset = list(shape), [int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#-             strides = [s if o == n else 0 for o, n, s in zip([1] * extra + shape, new, [0] * extra + strides)]
#+             strides = [int(np.prod(shape))] * extra + strides

# %% view-chain | wrong | permute-inverted | like strides-in-bytes
#-     shape, strides, offset = list(shape), [4 * int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#+     shape, strides, offset = list(shape), [int(np.prod(shape[i + 1:])) for i in range(len(shape))], 0
#-             shape, strides = [shape[i] for i in rest[0]], [strides[i] for i in rest[0]]
#+             back = [rest[0].index(i) for i in range(len(shape))]
#+             shape, strides = [shape[i] for i in back], [strides[i] for i in back]

# %% broadcast-back | right | padding with ones, reduce over both kinds at once
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    pairs = zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b))
    out = []
    for x, y in pairs:
        if not (x == y or x == 1 or y == 1):
            raise ValueError("shapes do not fit")
        out.append(np.int64(max(x, y)))
    return out

def sum_back(grad, shape):
    padded = (1,) * (np.ndim(grad) - len(shape)) + tuple(shape)
    axes = tuple(i for i, (g, n) in enumerate(zip(grad.shape, padded)) if n == 1)
    return np.float64(grad).sum(axes).reshape(shape)

# %% broadcast-back | wrong | broadcast-aligned-left
def broadcast_shape(a, b):
    out = []
    for i in range(max(len(a), len(b))):
        x, y = a[i] if i < len(a) else 1, b[i] if i < len(b) else 1
        if x != y and 1 not in (x, y):
            raise ValueError("no fit")
        out.append(max(x, y))
    return tuple(out)

def sum_back(grad, shape):
    raise NotImplementedError

# %% broadcast-back | wrong | broadcast-needs-same-rank
def broadcast_shape(a, b):
    if len(a) != len(b) or any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        raise ValueError("no fit")
    return tuple(max(x, y) for x, y in zip(a, b))

def sum_back(grad, shape):
    raise NotImplementedError

# %% broadcast-back | wrong | broadcast-takes-the-larger
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    return tuple(max(x, y) for x, y in zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)))

def sum_back(grad, shape):
    raise NotImplementedError

# %% broadcast-back | wrong | adjoint-not-summed
def broadcast_shape(a, b):
    return np.broadcast_shapes(a, b)

def sum_back(grad, shape):
    while grad.ndim > len(shape):
        grad = grad[0]
    return grad[tuple(slice(0, n) for n in shape)]

# %% broadcast-back | wrong | adjoint-averaged
def broadcast_shape(a, b):
    return np.broadcast_shapes(a, b)

def sum_back(grad, shape):
    grad = grad.mean(axis=tuple(range(grad.ndim - len(shape))))
    return grad.mean(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)

# %% broadcast-back | wrong | adjoint-drops-the-axis
def broadcast_shape(a, b):
    return np.broadcast_shapes(a, b)

def sum_back(grad, shape):
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    return grad.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))

# %% broadcast-back | wrong | adjoint-only-leading-axes
def broadcast_shape(a, b):
    return np.broadcast_shapes(a, b)

def sum_back(grad, shape):
    return grad.sum(axis=tuple(range(grad.ndim - len(shape))))

# %% gemm-cost | right | counted from shapes, NumPy scalars
def gemm_cost(m, n, k, itemsize):
    shapes = np.array([(m, k), (k, n), (m, n)], dtype=np.int64)
    moved = np.int64(itemsize) * shapes.prod(axis=1).sum()
    flops = np.int64(m) * n * (k + k)
    return [flops, moved, np.float64(flops) / moved]

# %% gemm-cost | wrong | product-without-the-two
def gemm_cost(m, n, k, itemsize):
    moved = itemsize * (m * k + k * n + m * n)
    return m * n * k, moved, m * n * k / moved

# %% gemm-cost | wrong | traffic-without-the-output
def gemm_cost(m, n, k, itemsize):
    moved = itemsize * (m * k + k * n)
    return 2 * m * n * k, moved, 2 * m * n * k / moved

# %% gemm-cost | wrong | traffic-in-elements
def gemm_cost(m, n, k, itemsize):
    moved = m * k + k * n + m * n
    return 2 * m * n * k, moved, 2 * m * n * k / moved

# %% gemm-cost | wrong | intensity-upside-down
def gemm_cost(m, n, k, itemsize):
    moved = itemsize * (m * k + k * n + m * n)
    return 2 * m * n * k, moved, moved / (2 * m * n * k)

# %% walk-lines | right | closed form
def lines_fetched(rows, cols, itemsize, line_bytes, order):
    if order == "row" or cols == 1:
        return math_ceil(rows * cols * itemsize, line_bytes)
    if rows == 1:
        return math_ceil(cols * itemsize, line_bytes)
    count, last = 0, -1
    for column in range(cols):
        for row in range(rows):
            line = (row * cols + column) * itemsize // line_bytes
            count, last = count + (line != last), line
    return np.int32(count)

def math_ceil(a, b):
    return -(-a // b)

# %% walk-lines | wrong | walk-counts-lines-touched
def lines_fetched(rows, cols, itemsize, line_bytes, order):
    return -(-rows * cols * itemsize // line_bytes)

# %% walk-lines | wrong | walk-line-in-elements
def lines_fetched(rows, cols, itemsize, line_bytes, order):
    element = np.arange(rows * cols).reshape(rows, cols)
    walk = element if order == "row" else element.T
    return 1 + np.count_nonzero(np.diff(walk.ravel() // line_bytes))

# %% walk-lines | wrong | walk-rounds-down
def lines_fetched(rows, cols, itemsize, line_bytes, order):
    if order == "row":
        return rows * cols * itemsize // line_bytes
    return rows * cols * min(cols * itemsize, line_bytes) // line_bytes

# %% walk-lines | wrong | walk-every-step-a-line
def lines_fetched(rows, cols, itemsize, line_bytes, order):
    return -(-rows * cols * itemsize // line_bytes) if order == "row" else rows * cols
