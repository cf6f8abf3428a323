# Alternatives and mistakes for problem set 4; see CONTRIBUTING.md for the form of the headers.

# %% launches | right | five tests, NumPy numbers, the bound from a launch of the right kernel
def launch_tests():
    sizes = dict(rows=np.int64(3), width=np.int64(320), grid=np.int32(3), block=64.0)
    values = matrix("rising", 3, 320)
    moved = by_tree.launch(3, 64, (values, values.copy(), 3, 320), trace=True).sectors
    return (
        {**sizes, "values": "rising", "look_at": (), "most_sectors": moved},
        {**sizes, "values": "rising", "look_at": ("result",)},
        {"rows": 7, "width": 160, "grid": 3, "block": 160, "values": "rising", "look_at": ("result",)},
        {"rows": 5, "width": 33, "grid": 1, "block": 64, "values": "falling", "look_at": ["races"]},
        {"rows": 5, "width": 100, "grid": 8, "block": 96, "values": "negative", "look_at": ["result", "races"]},
    )

# %% launches | right | one test for each fault
def launch_tests():
    return [
        dict(rows=8, width=32, grid=1, block=32, values="random", look_at=["result"]),
        dict(rows=1, width=200, grid=1, block=32, values="rising", look_at=["result"], most_sectors=None),
        dict(rows=1, width=224, grid=1, block=224, values="rising", look_at=["result"]),
        dict(rows=1, width=65, grid=1, block=32, values="negative", look_at=["result"]),
        dict(rows=8, width=256, grid=1, block=256, values="random", look_at=["races"]),
        dict(rows=1, width=1, grid=1, block=32, values="random", look_at=[]),
        dict(rows=1, width=256, grid=1, block=32, values="rising", look_at=[], most_sectors=96),
    ]

# %% launches | wrong | launches-rules
def launch_tests():
    return [
        dict(rows=4, width=96, grid=2, block=100, values="rising", look_at=["result", "races"]),
        dict(rows=2, width=40, grid=2, block=64, values="negative", look_at=["result"]),
        dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=300),
    ]

# %% launches | wrong | launches-accuse
def launch_tests():
    return [
        dict(rows=4, width=96, grid=2, block=96, values="rising", look_at=["result", "races"]),
        dict(rows=2, width=40, grid=2, block=64, values="negative", look_at=["result"]),
        dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=299),
    ]

# %% launches | wrong | launches-enough-blocks | like launches-rules
#-         dict(rows=4, width=96, grid=2, block=100, values="rising", look_at=["result", "races"]),
#+         dict(rows=4, width=96, grid=4, block=96, values="rising", look_at=["result", "races"]),

# %% launches | wrong | launches-wide-row | like launches-accuse
#-         dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=299),
#+         dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=[], most_sectors=300),

# %% launches | wrong | launches-odd-block | like launches-rules
#-         dict(rows=4, width=96, grid=2, block=100, values="rising", look_at=["result", "races"]),
#+         dict(rows=4, width=64, grid=2, block=64, values="rising", look_at=["result", "races"]),

# %% launches | wrong | launches-all-below-zero
def launch_tests():
    return [
        dict(rows=4, width=96, grid=2, block=96, values="rising", look_at=["result", "races"]),
        dict(rows=2, width=40, grid=2, block=64, values="random", look_at=["result"]),
        dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=300),
    ]

# %% launches | wrong | launches-ragged-end
def launch_tests():
    return [
        dict(rows=4, width=96, grid=2, block=96, values="rising", look_at=["result", "races"]),
        dict(rows=2, width=64, grid=2, block=64, values="negative", look_at=["result"]),
        dict(rows=2, width=384, grid=2, block=32, values="rising", look_at=["result"], most_sectors=300),
    ]

# %% launches | wrong | launches-races-unseen | like launches-rules
#-         dict(rows=4, width=96, grid=2, block=100, values="rising", look_at=["result", "races"]),
#+         dict(rows=4, width=96, grid=2, block=96, values="rising", look_at=["result"]),

# %% launches | wrong | launches-second-row | like launches-rules
#-         dict(rows=4, width=96, grid=2, block=100, values="rising", look_at=["result", "races"]),
#+         dict(rows=4, width=96, grid=4, block=96, values="rising", look_at=["result", "races"]),

# %% launches | wrong | launches-narrow-row | like launches-all-below-zero
#-         dict(rows=2, width=40, grid=2, block=64, values="random", look_at=["result"]),
#+         dict(rows=2, width=70, grid=2, block=64, values="negative", look_at=["result"]),

# %% launches | wrong | launches-sectors-uncounted | like launches-accuse
#-         dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=299),
#+         dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"]),

# %% launches | wrong | launches-generous-count | like launches-accuse
#-         dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=299),
#+         dict(rows=2, width=400, grid=2, block=32, values="rising", look_at=["result"], most_sectors=420),

# %% histogram | right | a piece of the data for each block, all slots set to 0
@kernel
def histogram(data, counts, n, bins):
    slots = shared(256, int32)
    me = thread_idx.x
    for b in range(me, 256, block_dim.x):
        slots[b] = 0
    sync_threads()
    rounds = (n + grid_dim.x * block_dim.x - 1) // (grid_dim.x * block_dim.x)
    for step in range(rounds):
        i = (block_idx.x * rounds + step) * block_dim.x + me
        if i < n:
            b = data[i]
            if b >= 0 and b < bins:
                atomic_add(slots, b, 1)
    sync_threads()
    b = me
    while b < bins:
        found = slots[b]
        if found != 0:
            atomic_add(counts, b, found)
        b += block_dim.x

# %% histogram | right | one slot more for what is no bin
@kernel
def histogram(data, counts, n, bins):
    part = shared(257, int32)
    stride = block_dim.x * grid_dim.x
    for b in range(thread_idx.x, bins + 1, block_dim.x):
        part[b] = 0
    sync_threads()
    i = thread_idx.x + block_idx.x * block_dim.x
    while i < n:
        b = data[i]
        atomic_add(part, b if b >= 0 and b < bins else bins, 1)
        i += stride
    sync_threads()
    for b in range(thread_idx.x, bins, block_dim.x):
        if part[b]:
            atomic_add(counts, b, part[b])

# %% histogram | wrong | histogram-lost-updates
@kernel
def histogram(data, counts, n, bins):
    part = shared(256, int32)
    t = thread_idx.x
    for b in range(t, bins, block_dim.x):
        part[b] = 0
    sync_threads()
    for i in range(block_idx.x * block_dim.x + t, n, grid_dim.x * block_dim.x):
        b = data[i]
        if 0 <= b < bins:
            part[b] += 1
    sync_threads()
    for b in range(t, bins, block_dim.x):
        if part[b] > 0:
            atomic_add(counts, b, part[b])

# %% histogram | wrong | histogram-one-round | like histogram-lost-updates
#-     for i in range(block_idx.x * block_dim.x + t, n, grid_dim.x * block_dim.x):
#+     i = block_idx.x * block_dim.x + t
#+     if i < n:
#-             part[b] += 1
#+             atomic_add(part, b, 1)

# %% histogram | wrong | histogram-barrier-missed | like histogram-lost-updates
#-             part[b] += 1
#-     sync_threads()
#+             atomic_add(part, b, 1)
#+         sync_threads()

# %% histogram | wrong | histogram-slots-unset | like histogram-lost-updates
#-     for b in range(t, bins, block_dim.x):
#-         part[b] = 0
#+     if t < bins:
#+         part[t] = 0
#-             part[b] += 1
#+             atomic_add(part, b, 1)

# %% histogram | wrong | histogram-no-such-slot | like histogram-lost-updates
#-     t = thread_idx.x
#+     t = thread_idx.x
#+     part[t] = 0
#-             part[b] += 1
#+             atomic_add(part, b, 1)

# %% histogram | wrong | histogram-barrier-forgotten | like histogram-lost-updates
#-         part[b] = 0
#-     sync_threads()
#+         part[b] = 0
#-             part[b] += 1
#+             atomic_add(part, b, 1)

# %% histogram | wrong | histogram-every-element-global
@kernel
def histogram(data, counts, n, bins):
    for i in range(block_idx.x * block_dim.x + thread_idx.x, n, grid_dim.x * block_dim.x):
        b = data[i]
        if 0 <= b < bins:
            atomic_add(counts, b, 1)

# %% histogram | wrong | histogram-adds-zeros | like histogram-lost-updates
#-             part[b] += 1
#+             atomic_add(part, b, 1)
#-         if part[b] > 0:
#-             atomic_add(counts, b, part[b])
#+         atomic_add(counts, b, part[b])

# %% histogram | wrong | histogram-scattered-loads
@kernel
def histogram(data, counts, n, bins):
    part = shared(256, int32)
    t = thread_idx.x
    for b in range(t, bins, block_dim.x):
        part[b] = 0
    sync_threads()
    each = (n + grid_dim.x * block_dim.x - 1) // (grid_dim.x * block_dim.x)
    first = (block_idx.x * block_dim.x + t) * each
    for i in range(first, first + each):
        b = -1
        if i < n:
            b = data[i]
        if 0 <= b < bins:
            atomic_add(part, b, 1)
    sync_threads()
    for b in range(t, bins, block_dim.x):
        if part[b] > 0:
            atomic_add(counts, b, part[b])

# %% histogram | wrong | histogram-one-block
@kernel
def histogram(data, counts, n, bins):
    part = shared(256, int32)
    t = thread_idx.x
    for b in range(t, bins, block_dim.x):
        part[b] = 0
    sync_threads()
    if block_idx.x == 0:
        for i in range(t, n, block_dim.x):
            b = data[i]
            if 0 <= b < bins:
                atomic_add(part, b, 1)
    sync_threads()
    for b in range(t, bins, block_dim.x):
        if part[b] > 0:
            atomic_add(counts, b, part[b])

# %% two-kernels | right | times by name of the tile, pairs in pieces
def choose_tiles(products, chip):
    times = {}
    for m, n, k, calls in products:
        found = search(m, n, k, CHIPS[chip])
        names = np.stack(list(vars(found.tile).values()), axis=1).tolist()
        for name, seconds in zip(names, found.time_s.tolist()):
            times.setdefault(tuple(name), []).append(calls * seconds)
    names, table = list(times), np.array(list(times.values()))
    best = (np.inf, None)
    for at, row in enumerate(table):
        total = np.minimum(table, row).sum(axis=1)
        best = min(best, (total.min(), [names[at], names[int(total.argmin())]]), key=lambda pair: pair[0])
    return best[1]

# %% two-kernels | right | all sizes laid out, an array returned
def choose_tiles(products, chip):
    sizes = np.array(np.meshgrid(*(CHOICES[axis] for axis in ("bm", "bn", "bk", "tm", "tn")))).reshape(5, -1)
    bm, bn, bk, tm, tn = sizes
    threads = (bm // tm) * (bn // tn)
    sizes = sizes[:, (bm >= tm) & (bn >= tn) & (threads >= 32) & (threads <= 1024)]
    cost = np.stack([calls * tile_time(Tile(*sizes), m, n, k, CHIPS[chip]).time_s for m, n, k, calls in products])
    sizes, cost = sizes[:, np.isfinite(cost).all(0)], cost[:, np.isfinite(cost).all(0)]
    totals = [np.minimum(cost, cost[:, [at]]).sum(0) for at in range(cost.shape[1])]
    at = int(np.argmin([total.min() for total in totals]))
    return sizes[:, [at, int(np.argmin(totals[at]))]].T

# %% two-kernels | wrong | tiles-no-such-kernel
def choose_tiles(products, chip):
    return [(96, 96, 8, 8, 8)]

# %% two-kernels | wrong | tiles-too-large-for-the-sm
def choose_tiles(products, chip):
    return [(256, 256, 64, 8, 16), (32, 64, 64, 8, 8)]

# %% two-kernels | wrong | tiles-one-does-it-all
def choose_tiles(products, chip):
    tiles = search(64, 64, 64, CHIPS[chip]).tile
    total = sum(calls * tile_time(tiles, m, n, k, CHIPS[chip]).time_s for m, n, k, calls in products)
    return [tuple(int(size[total.argmin()]) for size in vars(tiles).values())]

# %% two-kernels | wrong | tiles-each-best-somewhere
def choose_tiles(products, chip):
    found = [(calls * search(m, n, k, CHIPS[chip]).time_s[0], search(m, n, k, CHIPS[chip]).tile) for m, n, k, calls in products]
    longest = sorted(found, key=lambda pair: -pair[0])[:2]
    return [tuple(int(size[0]) for size in vars(tile).values()) for _, tile in longest]

# %% two-kernels | wrong | tiles-pair-not-best
def choose_tiles(products, chip):
    tiles = search(64, 64, 64, CHIPS[chip]).tile
    times = np.array([calls * tile_time(tiles, m, n, k, CHIPS[chip]).time_s for m, n, k, calls in products])
    one = times.sum(0).argmin()
    other = np.minimum(times, times[:, [one]]).sum(0).argmin()
    return [tuple(int(size[at]) for size in vars(tiles).values()) for at in (one, other)]

# %% culprit | right | looks at 4,000 moments, NumPy
def culprit(rows):
    ranks = np.unique([row[0] for row in rows])
    device = [row for row in rows if row[2] == "kernel"]
    moments = np.linspace(min(row[4] for row in device), max(row[5] for row in device), 4000)

    def active(wanted):
        changes = np.zeros(len(moments) + 1, int)
        found = [row for row in rows if wanted(row)]
        np.add.at(changes, np.searchsorted(moments, [row[4] for row in found]), 1)
        np.add.at(changes, np.searchsorted(moments, [row[5] for row in found]), -1)
        return np.cumsum(changes)[:-1] > 0

    kernels = [active(lambda row, rank=rank: row[0] == rank and row[2] == "kernel") for rank in ranks]
    talks = [active(lambda row, rank=rank: row[0] == rank and row[2] == "nccl") for rank in ranks]
    shares = np.array([kernel.mean() for kernel in kernels])
    if shares.max() > 1.1 * np.delete(shares, shares.argmax()).mean():
        return ["straggler", ranks[shares.argmax()]]
    idle = 1 - np.mean([(kernel | talk).mean() for kernel, talk in zip(kernels, talks)])
    if idle > 0.05:
        at = ranks[0]
        if active(lambda row: row[0] == at and row[1][:6] == "loader").mean() > 0.96:
            return ["input", None]
        waits = active(lambda row: row[0] == at and row[2] == "sync").mean()
        return ["sync" if waits > 0.2 else "launch", None]
    both = sum((kernel & talk).mean() for kernel, talk in zip(kernels, talks))
    return [None if both > 0.2 * sum(talk.mean() for talk in talks) else "overlap", None]

# %% culprit | wrong | culprit-no-pair
def culprit(rows):
    def covered(found):
        total, reached = 0.0, low
        for start, end in sorted((row[4], row[5]) for row in found):
            total, reached = total + max(0.0, min(end, high) - max(start, reached)), max(reached, end)
        return total

    ranks, device = sorted({row[0] for row in rows}), ("kernel", "nccl")
    low, high = min(row[4] for row in rows if row[2] in device), max(row[5] for row in rows if row[2] in device)
    compute = [covered(row for row in rows if row[0] == rank and row[2] == "kernel") for rank in ranks]
    talk = [covered(row for row in rows if row[0] == rank and row[2] == "nccl") for rank in ranks]
    busy = [covered(row for row in rows if row[0] == rank and row[2] in device) for rank in ranks]
    return "input"
    if max(compute) > 1.12 * min(compute):
        return "straggler", ranks[compute.index(max(compute))]
    if sum(busy) < 0.95 * len(ranks) * (high - low):
        loading = covered(row for row in rows if row[0] == ranks[0] and row[1].startswith("loader"))
        launching = covered(row for row in rows if row[0] == ranks[0] and row[2] == "launch")
        return "input" if loading > 0.97 * (high - low) else "launch" if launching > 0.6 * (high - low) else "sync", None
    exposed = sum(busy) - sum(compute)
    return "overlap" if exposed > 0.9 * sum(talk) else None, None

# %% culprit | wrong | culprit-wait-behind-a-wait | like culprit-no-pair
#-     busy = [covered(row for row in rows if row[0] == rank and row[2] in device) for rank in ranks]
#-     return "input"
#+     busy = [covered(row for row in rows if row[0] == rank and row[2] in device) for rank in ranks]
#-         return "input" if loading > 0.97 * (high - low) else "launch" if launching > 0.6 * (high - low) else "sync", None
#+         return "launch" if launching > 0.6 * (high - low) else "sync", None

# %% culprit | wrong | culprit-host-waits-device-works | like culprit-no-pair
#-     return "input"
#+     waits = covered(row for row in rows if row[0] == ranks[0] and row[3] == "wait for batch")
#+     if waits > 0.2 * (high - low):
#+         return "input", None

# %% culprit | wrong | culprit-the-others-wait | like culprit-no-pair
#-     return "input"
#+     if max(a - b for a, b in zip(busy, compute)) > 0.13 * (high - low):
#+         return "overlap", None

# %% culprit | wrong | culprit-three-percent | like culprit-no-pair
#-     return "input"
#-     if max(compute) > 1.12 * min(compute):
#+     if max(compute) > 1.01 * min(compute):

# %% culprit | wrong | culprit-last-bucket | like culprit-no-pair
#-     busy = [covered(row for row in rows if row[0] == rank and row[2] in device) for rank in ranks]
#-     return "input"
#+     busy = [covered(row for row in rows if row[0] == rank and row[2] in device) for rank in ranks]
#-     return "overlap" if exposed > 0.9 * sum(talk) else None, None
#+     return "overlap" if exposed > 0.05 * len(ranks) * (high - low) else None, None

# %% culprit | wrong | culprit-short-waits | like culprit-no-pair
#-     return "input"
#+     if any(row[2] == "sync" for row in rows) and covered(row for row in rows if row[1].startswith("loader") and row[0] == ranks[0]) < 0.97 * (high - low):
#+         return "sync", None

# %% culprit | wrong | culprit-blames-who-waits | like culprit-no-pair
#-     return "input"
#-     if max(compute) > 1.12 * min(compute):
#-         return "straggler", ranks[compute.index(max(compute))]
#+     if max(compute) > 1.12 * min(compute):
#+         return "straggler", ranks[talk.index(max(talk))]

# %% fuse | right | cheapest first through the sets of what is made
def fuse(case):
    from heapq import heappop, heappush

    graph = graph_of(case)
    names = [op.out for op in graph.ops]
    waiting, settled, number = [(0.0, 0, frozenset(), ())], set(), 0
    while waiting:
        moved, _, done, plan = heappop(waiting)
        if done in settled:
            continue
        settled.add(done)
        if len(done) == len(names):
            return plan
        stack, reached = [()], set()
        while stack:
            group = stack.pop()
            for name in names:
                try:
                    longer = (*group, name)
                    kernel = plan_kernel(graph, longer, set(done), case["width"])
                except PlanError:
                    continue
                stack.append(longer)
                after = done | set(longer)
                if kernel.registers <= case["max_registers"] and after not in reached:
                    reached.add(after)
                    number += 1
                    heappush(waiting, (moved + kernel.bytes_moved, number, after, (*plan, longer)))

# %% fuse | wrong | fuse-nothing
def fuse(case):
    return one_by_one(graph_of(case))

# %% fuse | wrong | fuse-order
def fuse(case):
    return one_by_one(graph_of(case))[::-1]

# %% fuse | wrong | fuse-product
def fuse(case):
    return [[out for out, _, _ in case["ops"]]]

# %% fuse | wrong | fuse-as-long-as-it-fits
def fuse(case):
    graph, plan, done, group = graph_of(case), [], set(), ()
    for out, _, _ in case["ops"]:
        try:
            fits = plan_kernel(graph, (*group, out), done, case["width"]).registers <= case["max_registers"]
        except PlanError:
            fits = False
        if not fits:
            plan, done, group = [*plan, list(group)], done | set(group), ()
        group = (*group, out)
    return [*plan, list(group)]

# %% fuse | wrong | fuse-registers | like fuse-as-long-as-it-fits
#-             fits = plan_kernel(graph, (*group, out), done, case["width"]).registers <= case["max_registers"]
#+             fits = plan_kernel(graph, (*group, out), done, case["width"]).registers < 255

# %% fuse | wrong | fuse-given-order
def fuse(case):
    graph, names = graph_of(case), [out for out, _, _ in case["ops"]]
    best = [(0.0, [])]
    for end in range(1, len(names) + 1):
        found = []
        for start in range(end):
            try:
                kernel = plan_kernel(graph, tuple(names[start:end]), set(names[:start]), case["width"])
            except PlanError:
                continue
            if kernel.registers <= case["max_registers"]:
                found.append((best[start][0] + kernel.bytes_moved, [*best[start][1], names[start:end]]))
        best.append(min(found))
    return best[-1][1]

# %% fuse | wrong | fuse-not-least
def fuse(case):
    needs = {out: {name for name in operands if name in [op[0] for op in case["ops"]]} for out, operands, _ in case["ops"]}
    order = []
    while needs:
        ready = [out for out in needs if needs[out] <= set(order)]
        order.append(ready[-1])
        del needs[ready[-1]]
    return in_pairs(case, order)


def in_pairs(case, order):
    graph, plan, done = graph_of(case), [], set()
    while order:
        size = 2
        try:
            plan_kernel(graph, tuple(order[:2]), done, case["width"])
        except PlanError:
            size = 1
        plan, done, order = [*plan, order[:size]], done | set(order[:size]), order[size:]
    return plan
