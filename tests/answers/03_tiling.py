# %% block-bytes | right | counted block by block
def traffic(m, n, k, bm, bn, itemsize):
    a = b = c = 0
    for row in range(0, m, bm):
        high = min(bm, m - row)
        for column in [0] if bn >= n else range(0, n, bn):
            wide = min(bn, n - column)
            if m * n > 10**6:  # too many blocks to walk through: all rows of tiles are alike
                return [m * k * len(range(0, n, bn)) * itemsize, k * n * len(range(0, m, bm)) * itemsize, m * n * itemsize]
            a, b, c = a + high * k * itemsize, b + k * wide * itemsize, c + high * wide * itemsize
    return a, b, c

# %% block-bytes | right | floats and NumPy scalars
def traffic(m, n, k, bm, bn, itemsize):
    tiles = np.ceil(np.array([n / bn, m / bm]))
    return np.array([m * k * tiles[0], k * n * tiles[1], m * n]) * float(itemsize)

# %% block-bytes | wrong | reuse-of-one-operand-only
def traffic(m, n, k, bm, bn, itemsize):
    return m * k * -(-n // bn) * itemsize, m * n * k * itemsize, m * n * itemsize

# %% block-bytes | wrong | k-loop-lost
def traffic(m, n, k, bm, bn, itemsize):
    return m * -(-n // bn) * itemsize, n * -(-m // bm) * itemsize, m * n * itemsize

# %% block-bytes | wrong | tile-sides-swapped
def traffic(m, n, k, bm, bn, itemsize):
    return m * k * -(-m // bm) * itemsize, k * n * -(-n // bn) * itemsize, m * n * itemsize

# %% block-bytes | wrong | each-matrix-once
def traffic(m, n, k, bm, bn, itemsize):
    return m * k * itemsize, k * n * itemsize, m * n * itemsize

# %% block-bytes | wrong | elements-for-bytes
def traffic(m, n, k, bm, bn, itemsize):
    return m * k * -(-n // bn), k * n * -(-m // bm), m * n

# %% block-bytes | wrong | edge-tiles-counted-whole
def traffic(m, n, k, bm, bn, itemsize):
    down, across = -(-m // bm), -(-n // bn)
    return down * bm * k * across * itemsize, k * across * bn * down * itemsize, down * bm * across * bn * itemsize

# %% block-bytes | wrong | edge-tiles-left-out
def traffic(m, n, k, bm, bn, itemsize):
    return m * k * (n // bn) * itemsize, k * n * (m // bm) * itemsize, m * n * itemsize

# %% rungs | right | NumPy, other way round
def rung(sums, requests):
    counts, clocks = np.array(requests, float).reshape(-1, 2).T
    per_issue, per_path = 4 / (sums + counts.sum()), 1 / max(counts @ clocks, 1e-12)
    rate = 84 * 1.8 * 64 * sums * min(per_issue, per_path)
    return [np.float64(rate), "issue" if per_issue <= per_path else "load/store"]

# %% rungs | right | seconds, a dictionary
def rung(sums, requests):
    slots, busy = sums, 0
    for count, clocks in requests:
        slots += count
        busy += count * clocks
    parts = {"issue": slots / 4 / 1.8e9, "load/store": busy / 1.8e9}
    worst = max(parts, key=parts.get)
    return 2 * sums * 32 * 84 / parts[worst] / 1e9, worst

# %% rungs | wrong | load-store-path-ignored
def rung(sums, requests):
    clocks = (sums + sum(count for count, _ in requests)) / 4
    return 64 * sums * 84 * 1.8 / clocks, "issue"

# %% rungs | wrong | loads-take-no-slots
def rung(sums, requests):
    issue, path = sums / 4, sum(count * clocks for count, clocks in requests)
    return 64 * sums * 84 * 1.8 / max(issue, path), "issue" if issue >= path else "load/store"

# %% rungs | wrong | parts-one-after-the-other
def rung(sums, requests):
    issue = (sums + sum(count for count, _ in requests)) / 4
    path = sum(count * clocks for count, clocks in requests)
    return 64 * sums * 84 * 1.8 / (issue + path), "issue" if issue >= path else "load/store"

# %% rungs | wrong | one-slot-a-clock
def rung(sums, requests):
    issue = sums + sum(count for count, _ in requests)
    path = sum(count * clocks for count, clocks in requests)
    return 64 * sums * 84 * 1.8 / max(issue, path), "issue" if issue >= path else "load/store"

# %% rungs | wrong | multiply-add-is-two-operations
def rung(sums, requests):
    issue = (sums + sum(count for count, _ in requests)) / 4
    path = sum(count * clocks for count, clocks in requests)
    return 32 * sums * 84 * 1.8 / max(issue, path), "issue" if issue >= path else "load/store"

# %% rungs | wrong | one-lane-a-warp
def rung(sums, requests):
    issue = (sums + sum(count for count, _ in requests)) / 4
    path = sum(count * clocks for count, clocks in requests)
    return 2 * sums * 84 * 1.8 / max(issue, path), "issue" if issue >= path else "load/store"

# %% useful-share | right | tiles dealt out one by one
def useful_share(m, n, bm, bn, sms):
    tiles = len(range(0, m, bm)) * len(range(0, n, bn))
    busiest = max(len(range(sm, tiles, sms)) for sm in range(sms))
    return (m / bm) * (n / bn) / (busiest * sms)

# %% useful-share | right | NumPy scalars
def useful_share(m, n, bm, bn, sms):
    m, n = np.float64(m), np.float64(n)
    turns = np.ceil(np.ceil(m / bm) * np.ceil(n / bn) / sms)
    return m * n / (turns * sms * bm * bn)

# %% useful-share | right | single precision
def useful_share(m, n, bm, bn, sms):
    tiles = np.ceil(np.float32(m) / bm) * np.ceil(np.float32(n) / bn)
    return np.float32(m * n / (np.ceil(tiles / sms) * sms * bm * bn))

# %% useful-share | wrong | part-tiles-added-up
def useful_share(m, n, bm, bn, sms):
    turns = -(-((m / bm) * (n / bn)) // sms)
    return m * n / (turns * sms * bm * bn)

# %% useful-share | wrong | turns-ignored
def useful_share(m, n, bm, bn, sms):
    return m * n / (-(-m // bm) * bm * -(-n // bn) * bn)

# %% useful-share | wrong | edges-ignored
def useful_share(m, n, bm, bn, sms):
    tiles = -(-m // bm) * -(-n // bn)
    return tiles / (-(-tiles // sms) * sms)

# %% useful-share | wrong | tiles-rounded-down
def useful_share(m, n, bm, bn, sms):
    tiles = max((m // bm) * (n // bn), 1)
    return m * n / (-(-tiles // sms) * sms * bm * bn)

# %% useful-share | wrong | each-row-of-tiles-starts-a-turn
def useful_share(m, n, bm, bn, sms):
    return m * n / (-(-m // bm) * -(-(-(-n // bn)) // sms) * sms * bm * bn)

# %% useful-share | wrong | nothing-ever-dips
def useful_share(m, n, bm, bn, sms):
    return 1.0

# %% slab-depth | right | doubled until it is too much
def slab_depth(bm, bn, itemsize, buffers, budget):
    bk = 1
    while (bm + bn) * bk * itemsize * buffers <= budget:
        bk *= 2
    return bk // 2

# %% slab-depth | right | logarithm, a float
def slab_depth(bm, bn, itemsize, buffers, budget):
    most = np.int64(budget) // (np.int64(bm + bn) * itemsize * buffers)
    return 2.0 ** np.floor(np.log2(most)) if most > 0 else 0.0

# %% slab-depth | wrong | smem-in-elements
def slab_depth(bm, bn, itemsize, buffers, budget):
    most = budget // ((bm + bn) * buffers)
    return 1 << (most.bit_length() - 1) if most else 0

# %% slab-depth | wrong | rounded-up | like doubled until it is too much
#-     return bk // 2
#+     return bk

# %% slab-depth | wrong | exactly-full-left-out | like doubled until it is too much
#-     while (bm + bn) * bk * itemsize * buffers <= budget:
#+     while (bm + bn) * bk * itemsize * buffers < budget:

# %% slab-depth | wrong | one-where-none-fits
def slab_depth(bm, bn, itemsize, buffers, budget):
    bk = 1
    while (bm + bn) * 2 * bk * itemsize * buffers <= budget:
        bk *= 2
    return bk

# %% slab-depth | wrong | slab-of-one-operand
def slab_depth(bm, bn, itemsize, buffers, budget):
    most = budget // (bm * itemsize * buffers)
    return 1 << (most.bit_length() - 1) if most else 0

# %% slab-depth | wrong | one-buffer-only
def slab_depth(bm, bn, itemsize, buffers, budget):
    most = budget // ((bm + bn) * itemsize)
    return 1 << (most.bit_length() - 1) if most else 0

# %% slab-depth | wrong | tile-of-c-for-slabs
def slab_depth(bm, bn, itemsize, buffers, budget):
    most = budget // (bm * bn * itemsize * buffers)
    return 1 << (most.bit_length() - 1) if most else 0

# %% slab-depth | wrong | not-a-power-of-two
def slab_depth(bm, bn, itemsize, buffers, budget):
    return budget // ((bm + bn) * itemsize * buffers)
