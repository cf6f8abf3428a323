# %% pixel | right | list of all threads, NumPy scalars
def pixel_of(block, warp, lane, block_shape, width, height):
    bx, by = block_shape
    threads = [(tx, ty) for ty in range(by) for tx in range(bx)]
    number = np.int64(warp) * 32 + lane
    if number >= len(threads):
        return None
    x, y = np.array(block) * block_shape + threads[number]
    if x >= width or y >= height:
        return None
    return [x, y]

# %% pixel | right | remainders
def pixel_of(block, warp, lane, block_shape, width, height):
    number = warp * 32 + lane
    if number >= block_shape[0] * block_shape[1]:
        return None
    x = block[0] * block_shape[0] + number % block_shape[0]
    y = block[1] * block_shape[1] + number // block_shape[0]
    return (x, y) if (x < width) & (y < height) else None

# %% pixel | wrong | pixel-y-runs-fastest
def pixel_of(block, warp, lane, block_shape, width, height):
    column, row = divmod(32 * warp + lane, block_shape[1])
    x, y = block[0] * block_shape[0] + column, block[1] * block_shape[1] + row
    return (x, y) if column < block_shape[0] and x < width and y < height else None

# %% pixel | wrong | pixel-warp-taken-for-a-row
def pixel_of(block, warp, lane, block_shape, width, height):
    x, y = block[0] * block_shape[0] + lane, block[1] * block_shape[1] + warp
    return (x, y) if x < width and y < height else None

# %% pixel | wrong | pixel-block-forgotten
def pixel_of(block, warp, lane, block_shape, width, height):
    y, x = divmod(32 * warp + lane, block_shape[0])
    return (x, y) if y < block_shape[1] and x < width and y < height else None

# %% pixel | wrong | pixel-guard-forgotten
def pixel_of(block, warp, lane, block_shape, width, height):
    row, column = divmod(32 * warp + lane, block_shape[0])
    return block[0] * block_shape[0] + column, block[1] * block_shape[1] + row

# %% pixel | wrong | pixel-lane-without-thread
def pixel_of(block, warp, lane, block_shape, width, height):
    row, column = divmod(32 * warp + lane, block_shape[0])
    x, y = block[0] * block_shape[0] + column, block[1] * block_shape[1] + row
    return (x, y) if x < width and y < height else None

# %% blur | right | ranges cut at the edges, mean in floats
@kernel
def blur(image, out, height, width):
    x = block_idx.x * block_dim.x + thread_idx.x
    y = block_idx.y * block_dim.y + thread_idx.y
    if y >= height or x >= width:
        return
    total = 0.0
    top, bottom = max(y - 1, 0), min(y + 2, height)
    left, right = max(x - 1, 0), min(x + 2, width)
    for v in range(top, bottom):
        for u in range(left, right):
            total += image[v, u]
    out[y, x] = np.uint8(total / float32((bottom - top) * (right - left)))

# %% blur | right | device function, sizes from the arrays
@device
def pixel(image, y, x):
    if y < 0 or x < 0 or y >= image.shape[0] or x >= image.shape[1]:
        return 0
    return int32(image[y, x])

@kernel
def blur(image, out, height, width):
    x, y = block_idx.x * block_dim.x + thread_idx.x, block_idx.y * block_dim.y + thread_idx.y
    total = 0
    for k in range(9):
        total += pixel(image, y + k // 3 - 1, x + k % 3 - 1)
    rows = 3 - (y == 0) - (y == height - 1)
    columns = 3 - (x == 0) - (x == width - 1)
    if x < width and y < height:
        out[y, x] = total // (rows * columns)

# %% blur | wrong | kernel-without-guard
@kernel
def blur(image, out, height, width):
    x = block_idx.x * block_dim.x + thread_idx.x
    y = block_idx.y * block_dim.y + thread_idx.y
    total, count = 0, 0
    for v in range(y - 1, y + 2):
        for u in range(x - 1, x + 2):
            if 0 <= v < height and 0 <= u < width:
                total += image[v, u]
                count += 1
    out[y, x] = total // max(count, 1)

# %% blur | wrong | kernel-first-block-only
@kernel
def blur(image, out, height, width):
    x, y = thread_idx.x, thread_idx.y
    if x < width and y < height:
        total, count = 0, 0
        for v in range(y - 1, y + 2):
            for u in range(x - 1, x + 2):
                if 0 <= v < height and 0 <= u < width:
                    total += image[v, u]
                    count += 1
        out[y, x] = total // count

# %% blur | wrong | kernel-x-down-a-column | like kernel-first-block-only
#-     x, y = thread_idx.x, thread_idx.y
#+     y = block_idx.x * block_dim.x + thread_idx.x
#+     x = block_idx.y * block_dim.y + thread_idx.y

# %% blur | wrong | blur-neighbours-outside
@kernel
def blur(image, out, height, width):
    x = block_idx.x * block_dim.x + thread_idx.x
    y = block_idx.y * block_dim.y + thread_idx.y
    if x < width and y < height:
        total = 0
        for v in range(y - 1, y + 2):
            for u in range(x - 1, x + 2):
                total += image[v, u]
        out[y, x] = total // 9

# %% blur | wrong | blur-edge-is-not-nine | like blur-neighbours-outside
#-                 total += image[v, u]
#+                 if 0 <= v < height and 0 <= u < width:
#+                     total += image[v, u]

# %% tree | right | neighbours first, shared array as large as the block
@kernel
def absmax_tree(values, out, n):
    slots = shared(block_dim.x, np.float32)
    t, i = thread_idx.x, block_idx.x * block_dim.x + thread_idx.x
    slots[t] = 0.0
    if i < n:
        slots[t] = max(values[i], -values[i])
    sync_threads()
    step = 1
    while step < block_dim.x:
        if t % (2 * step) == 0 and slots[t + step] > slots[t]:
            slots[t] = slots[t + step]
        step *= 2
        sync_threads()
    if t == 0:
        out[block_idx.x] = slots[0]

# %% tree | right | device function, four at a time
FAN = 4

@device
def larger(a, b):
    if a > b:
        return a
    return b

@kernel
def absmax_tree(values, out, n):
    slots = shared(1024, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    mine = 0.0
    if i < n:
        mine = np.maximum(values[i], -values[i])
    slots[t] = mine
    left = block_dim.x
    while left > 1:
        left = (left + FAN - 1) // FAN
        sync_threads()
        if t < left:
            for k in range(1, FAN):
                if t + k * left < block_dim.x:
                    mine = larger(mine, slots[t + k * left])
        sync_threads()
        if t < left:
            slots[t] = mine
    if t == 0:
        out[block_idx.x] = mine

# %% tree | wrong | reduce-without-barrier
@kernel
def absmax_tree(values, out, n):
    largest = shared(1024, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    largest[t] = abs(values[i]) if i < n else 0.0
    sync_threads()
    half = block_dim.x // 2
    while half > 0:
        if t < half:
            largest[t] = max(largest[t], largest[t + half])
        half //= 2
    if t == 0:
        out[block_idx.x] = largest[0]

# %% tree | wrong | reduce-several-write
@kernel
def absmax_tree(values, out, n):
    largest = shared(1024, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    largest[t] = np.abs(values[i]) if i < n else 0.0
    sync_threads()
    half = block_dim.x // 2
    while half > 0:
        if t < half:
            largest[t] = np.fmax(largest[t], largest[t + half])
        sync_threads()
        half //= 2
    out[block_idx.x] = largest[0]

# %% tree | wrong | reduce-barrier-in-branch | like reduce-without-barrier
#-             largest[t] = max(largest[t], largest[t + half])
#+             largest[t] = max(largest[t], largest[t + half])
#+             sync_threads()

# %% tree | wrong | reduce-slot-never-written | like reduce-without-barrier
#-     largest[t] = abs(values[i]) if i < n else 0.0
#+     if i < n:
#+         largest[t] = abs(values[i])
#-             largest[t] = max(largest[t], largest[t + half])
#+             largest[t] = max(largest[t], largest[t + half])
#+         sync_threads()

# %% tree | wrong | kernel-without-guard | like reduce-without-barrier
#-     i = block_idx.x * block_dim.x + t
#-     largest[t] = abs(values[i]) if i < n else 0.0
#+     largest[t] = abs(values[block_idx.x * block_dim.x + t])
#-             largest[t] = max(largest[t], largest[t + half])
#+             largest[t] = max(largest[t], largest[t + half])
#+         sync_threads()

# %% tree | wrong | kernel-first-block-only | like reduce-without-barrier
#-     i = block_idx.x * block_dim.x + t
#-     largest[t] = abs(values[i]) if i < n else 0.0
#+     largest[t] = abs(values[t]) if t < n else 0.0
#-             largest[t] = max(largest[t], largest[t + half])
#+             largest[t] = max(largest[t], largest[t + half])
#+         sync_threads()

# %% tree | wrong | reduce-sign-kept | like reduce-without-barrier
#-     largest[t] = abs(values[i]) if i < n else 0.0
#+     largest[t] = values[i] if i < n else 0.0
#-             largest[t] = max(largest[t], largest[t + half])
#+             largest[t] = max(largest[t], largest[t + half])
#+         sync_threads()

# %% tree | wrong | reduce-one-thread-works
@kernel
def absmax_tree(values, out, n):
    slots = shared(1024, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    slots[t] = abs(values[i]) if i < n else 0.0
    sync_threads()
    if t == 0:
        best = slots[0]
        for k in range(1, block_dim.x):
            best = max(best, slots[k])
        out[block_idx.x] = best

# %% tree | wrong | reduce-by-atomics
@kernel
def absmax_tree(values, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    if i < n:
        atomic_max(out, block_idx.x, abs(values[i]))

# %% shuffle | right | device function, xor shuffles, partials of absent warps set to 0
WARP = 32

@device
def warp_max(v):
    step = WARP // 2
    while step > 0:
        v = max(v, shfl_xor(v, step))
        step //= 2
    return v

@kernel
def absmax_shuffle(values, out, n):
    partial = shared(WARP, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    if t < WARP and t * WARP >= block_dim.x:
        partial[t] = 0.0
    mine = 0.0
    if i < n:
        mine = abs(values[i])
    mine = warp_max(mine)
    if t % WARP == 0:
        partial[t // WARP] = mine
    sync_threads()
    mine = warp_max(partial[t % WARP])
    if t == 0:
        out[block_idx.x] = mine

# %% shuffle | right | up-shuffles, the last lane holds the answer
@kernel
def absmax_shuffle(values, out, n):
    partial = shared(32, float32)
    t, lane = thread_idx.x, thread_idx.x % 32
    i = block_idx.x * block_dim.x + t
    v = max(values[i], -values[i]) if i < n else 0.0
    for k in range(5):
        v = max(v, shfl_up(v, 1 << k))
    if lane == 31:
        partial[t // 32] = v
    sync_threads()
    if t == 31:
        for w in range(block_dim.x // 32):
            v = max(v, partial[w])
        out[block_idx.x] = v

# %% shuffle | wrong | reduce-several-write
@kernel
def absmax_shuffle(values, out, n):
    largest = shared(32, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    v = abs(values[i]) if i < n else 0.0
    for k in range(5):
        v = max(v, shfl_xor(v, 1 << k))
    largest[t // 32] = v
    sync_threads()
    if t == 0:
        for k in range(block_dim.x // 32):
            v = max(v, largest[k])
        out[block_idx.x] = v

# %% shuffle | wrong | reduce-first-warp-only
@kernel
def absmax_shuffle(values, out, n):
    i = block_idx.x * block_dim.x + thread_idx.x
    v = abs(values[i]) if i < n else 0.0
    for k in range(5):
        v = max(v, shfl_down(v, 16 >> k))
    if thread_idx.x == 0:
        out[block_idx.x] = v

# %% shuffle | wrong | reduce-shuffle-in-branch
@kernel
def absmax_shuffle(values, out, n):
    largest = shared(32, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    v = 0.0
    if i < n:
        v = abs(values[i])
        for k in range(5):
            v = max(v, shfl_xor(v, 16 >> k))
    if t % 32 == 0:
        largest[t // 32] = v
    sync_threads()
    if t < 32:
        v = largest[t] if t < block_dim.x // 32 else 0.0
        for k in range(5):
            v = max(v, shfl_xor(v, 16 >> k))
        if t == 0:
            out[block_idx.x] = v

# %% shuffle | wrong | reduce-without-barrier
@kernel
def absmax_shuffle(values, out, n):
    largest = shared(32, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    v = abs(values[i]) if i < n else 0.0
    for k in range(5):
        v = max(v, shfl_down(v, 16 >> k))
    if t % 32 == 0:
        largest[t // 32] = v
    if t < 32:
        v = largest[t] if t < block_dim.x // 32 else 0.0
        for k in range(5):
            v = max(v, shfl_down(v, 16 >> k))
        if t == 0:
            out[block_idx.x] = v

# %% shuffle | wrong | reduce-slot-never-written | like reduce-without-barrier
#-     if t < 32:
#-         v = largest[t] if t < block_dim.x // 32 else 0.0
#+     sync_threads()
#+     if t < 32:
#+         v = largest[t]

# %% shuffle | wrong | reduce-barrier-in-branch
@kernel
def absmax_shuffle(values, out, n):
    largest = shared(32, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    if i >= n:
        return
    largest[t // 32] = 0.0
    sync_threads()
    out[block_idx.x] = largest[0]

# %% shuffle | wrong | reduce-tree-in-shared-memory
@kernel
def absmax_shuffle(values, out, n):
    slots = shared(1024, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    slots[t] = abs(values[i]) if i < n else 0.0
    sync_threads()
    left = block_dim.x
    while left > 1:
        half = (left + 1) // 2
        if t + half < left:
            slots[t] = max(slots[t], slots[t + half])
        sync_threads()
        left = half
    if t == 0:
        out[block_idx.x] = slots[0]

# %% shuffle | wrong | reduce-one-thread-works
@kernel
def absmax_shuffle(values, out, n):
    if thread_idx.x == 0:
        best = 0.0
        for k in range(block_idx.x * block_dim.x, min(n, (block_idx.x + 1) * block_dim.x)):
            best = max(best, abs(values[k]))
        out[block_idx.x] = best

# %% shuffle | wrong | reduce-by-atomics
@kernel
def absmax_shuffle(values, out, n):
    largest = shared(1, float32)
    t = thread_idx.x
    i = block_idx.x * block_dim.x + t
    if t == 0:
        largest[0] = 0.0
        out[block_idx.x] = 0.0
    sync_threads()
    if i < n:
        atomic_max(largest, 0, abs(values[i]))
        atomic_max(out, block_idx.x, abs(values[i]))
