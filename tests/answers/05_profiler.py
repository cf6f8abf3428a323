# Alternatives and mistakes for lesson 4.5; see CONTRIBUTING.md for the form of the headers.

# %% wall-shares | right | a sweep over the ends of all rows, NumPy scalars
def wall_shares(rows, start, end):
    order = ["kernel", "nccl", "memcpy"]
    marks = []
    for _, kind, begin, stop in rows:
        if kind in order and stop > begin:
            marks += [(begin, 1, order.index(kind)), (stop, -1, order.index(kind))]
    marks += [(start, 0, 0), (end, 0, 0)]
    running, sums, before = [0, 0, 0], np.zeros(4), None
    for time, change, part in sorted(marks):
        if before is not None and start <= before < end:
            sums[next((p for p in range(3) if running[p]), 3)] += min(time, end) - before
        running[part] += change
        before = time
    return list(100 * sums / np.float64(end - start))

# %% wall-shares | right | pieces between neighbouring cuts, arrays
def wall_shares(rows, start, end):
    cuts = np.unique(np.clip([start, end, *(t for row in rows for t in row[2:])], start, end))
    parts = {"kernel": 0, "nccl": 1, "memcpy": 2}
    best = np.full(len(cuts) - 1, 3)
    for row in rows:
        if row[1] in parts:
            inside = (cuts[:-1] >= row[2]) & (cuts[1:] <= row[3])
            best[inside] = np.minimum(best[inside], parts[row[1]])
    return np.bincount(best, np.diff(cuts), 4) / (end - start) * 100

# %% wall-shares | wrong | durations-added-up
def wall_shares(rows, start, end):
    sums = {"kernel": 0.0, "nccl": 0.0, "memcpy": 0.0}
    for _, kind, begin, stop in rows:
        if kind in sums:
            sums[kind] += max(0, min(stop, end) - max(begin, start))
    shares = [100 * value / (end - start) for value in sums.values()]
    return [*shares, 100 - sum(shares)]

# %% wall-shares | wrong | streams-averaged
def wall_shares(rows, start, end):
    def busy(stream, kinds):
        covered, reach = 0.0, start
        for s, kind, begin, stop in sorted(rows, key=lambda row: row[2]):
            if s == stream and kind in kinds:
                covered += max(0, min(stop, end) - max(begin, reach))
                reach = max(reach, min(stop, end))
        return covered

    kernel_streams = {row[0] for row in rows if row[1] == "kernel"}
    compute = sum(busy(s, ("kernel",)) for s in kernel_streams) / max(len(kernel_streams), 1)
    grid = np.arange(start, end)
    def on(kind):
        return np.any([np.zeros(len(grid), bool), *((grid >= b) & (grid < e) for _, k, b, e in rows if k == kind)], axis=0)

    nccl = (on("nccl") & ~on("kernel")).sum()
    copies = (on("memcpy") & ~on("nccl") & ~on("kernel")).sum()
    shares = [100 * float(v) / (end - start) for v in (compute, nccl, copies)]
    return [*shares, 100 - sum(shares)]

# %% wall-shares | wrong | hidden-communication-counted
def wall_shares(rows, start, end):
    def on(*kinds):
        grid = np.arange(start, end)
        hits = [(grid >= b) & (grid < e) for _, k, b, e in rows if k in kinds]
        return np.any([np.zeros(len(grid), bool), *hits], axis=0)

    parts = [on("kernel"), on("nccl"), on("memcpy"), ~on("kernel", "nccl", "memcpy")]
    return [100 * float(part.mean()) for part in parts]

# %% wall-shares | wrong | cpu-wait-charged-to-the-device
def wall_shares(rows, start, end):
    grid = np.arange(start, end)
    def on(*kinds):
        hits = [(grid >= b) & (grid < e) for _, k, b, e in rows if k in kinds]
        return np.any([np.zeros(len(grid), bool), *hits], axis=0)

    compute, nccl, copies = on("kernel"), on("nccl"), on("memcpy")
    anything = on("kernel", "nccl", "memcpy", "sync", "launch", "cpu")
    return [100 * float(p.mean()) for p in (compute, nccl & ~compute, copies & ~nccl & ~compute, ~anything)]

# %% wall-shares | wrong | percent-of-busy-time
def wall_shares(rows, start, end):
    grid = np.arange(start, end)
    def on(kind):
        return np.any([np.zeros(len(grid), bool), *((grid >= b) & (grid < e) for _, k, b, e in rows if k == kind)], axis=0)

    compute, nccl, copies = on("kernel"), on("nccl"), on("memcpy")
    busy = compute | nccl | copies
    parts = (compute, nccl & ~compute, copies & ~nccl & ~compute, ~busy)
    return [100 * float(p.sum()) / float(busy.sum()) for p in parts]

# %% wall-shares | wrong | warm-up-included
def wall_shares(rows, start, end):
    low, high = min(row[2] for row in rows), max(row[3] for row in rows)
    grid = np.arange(low, high)
    def on(kind):
        return np.any([np.zeros(len(grid), bool), *((grid >= b) & (grid < e) for _, k, b, e in rows if k == kind)], axis=0)

    compute, nccl, copies = on("kernel"), on("nccl"), on("memcpy")
    sums = [p.sum() for p in (compute, nccl & ~compute, copies & ~nccl & ~compute)]
    shares = [100 * float(s) / (end - start) for s in sums]
    return [*shares, 100 - sum(shares)]

# %% wall-shares | wrong | rows-at-the-edge-dropped
def wall_shares(rows, start, end):
    grid = np.arange(start, end)
    rows = [row for row in rows if row[2] >= start and row[3] <= end]
    def on(kind):
        return np.any([np.zeros(len(grid), bool), *((grid >= b) & (grid < e) for _, k, b, e in rows if k == kind)], axis=0)

    compute, nccl, copies = on("kernel"), on("nccl"), on("memcpy")
    parts = (compute, nccl & ~compute, copies & ~nccl & ~compute, ~(compute | nccl | copies))
    return [100 * float(p.mean()) for p in parts]

# %% wall-shares | wrong | whole-trace-for-the-wall
def wall_shares(rows, start, end):
    grid = np.arange(start, end)
    def on(kind):
        return np.any([np.zeros(len(grid), bool), *((grid >= b) & (grid < e) for _, k, b, e in rows if k == kind)], axis=0)

    compute, nccl, copies = on("kernel"), on("nccl"), on("memcpy")
    parts = (compute, nccl & ~compute, copies & ~nccl & ~compute, ~(compute | nccl | copies))
    wall = max(row[3] for row in rows) - min(row[2] for row in rows)
    return [100 * float(p.sum()) / wall for p in parts]

# %% classify | right | occupancy as a fraction, another threshold
def classify(seen):
    busy = {"compute": seen[SMS], "memory": seen[DRAM]}
    best = max(busy, key=busy.get)
    if busy[best] > 75:
        return best
    warps, *others = (seen[name] for name in LIMITS)
    room = np.float64(min([warps, *others])) / warps
    return "latency" if seen[GRID] <= 1.0 or room >= 0.55 else "occupancy"

# %% classify | right | the names written out
def classify(seen):
    sm = float(seen["sm__throughput.avg.pct_of_peak_sustained_elapsed"])
    dram = float(seen["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"])
    if sm >= 60 and sm >= dram:
        return "compute"
    if dram >= 60:
        return "memory"
    prefix = "launch__occupancy_limit_"
    least = min(value for name, value in seen.items() if name.startswith(prefix))
    waiting = seen["launch__waves_per_multiprocessor"] > 1
    return "occupancy" if waiting and 2 * least < seen[prefix + "warps"] else "latency"

# %% classify | wrong | larger-of-the-two-percentages
def classify(seen):
    return "compute" if seen[SMS] > seen[DRAM] else "memory"

# %% classify | wrong | occupancy-asked-first
def classify(seen):
    if min(seen[name] for name in LIMITS) < 0.5 * seen[LIMITS[0]]:
        return "occupancy"
    if max(seen[SMS], seen[DRAM]) >= 60:
        return "compute" if seen[SMS] > seen[DRAM] else "memory"
    return "latency"

# %% classify | wrong | percent-taken-for-a-share
def classify(seen):
    if max(seen[SMS], seen[DRAM]) >= 0.6:
        return "compute" if seen[SMS] > seen[DRAM] else "memory"
    return "occupancy" if min(seen[name] for name in LIMITS) < 0.5 * seen[LIMITS[0]] and seen[GRID] > 1 else "latency"

# %% classify | wrong | memory-asked-first
def classify(seen):
    if seen[DRAM] >= 60:
        return "memory"
    if seen[SMS] >= 60:
        return "compute"
    return "occupancy" if min(seen[name] for name in LIMITS) < 0.5 * seen[LIMITS[0]] and seen[GRID] > 1 else "latency"

# %% classify | wrong | active-warps-read-as-a-limit
def classify(seen):
    if max(seen[SMS], seen[DRAM]) >= 60:
        return "compute" if seen[SMS] > seen[DRAM] else "memory"
    return "occupancy" if seen[ACTIVE] < 50 else "latency"

# %% classify | wrong | small-grid-called-occupancy
def classify(seen):
    if max(seen[SMS], seen[DRAM]) >= 60:
        return "compute" if seen[SMS] > seen[DRAM] else "memory"
    return "occupancy" if min(seen[name] for name in LIMITS) < 0.5 * seen[LIMITS[0]] else "latency"

# %% classify | wrong | registers-alone
def classify(seen):
    if max(seen[SMS], seen[DRAM]) >= 60:
        return "compute" if seen[SMS] > seen[DRAM] else "memory"
    return "occupancy" if seen[LIMITS[1]] < 0.5 * seen[LIMITS[0]] and seen[GRID] > 1 else "latency"

# %% classify | wrong | latency-for-everything-low
def classify(seen):
    if max(seen[SMS], seen[DRAM]) >= 60:
        return "compute" if seen[SMS] > seen[DRAM] else "memory"
    return "latency"

# %% step-after | right | chains in a dictionary, NumPy
def step_after(facts, repairs):
    facts = {name: np.float64(value) for name, value in facts.items()}
    if "input" in repairs:
        facts["batch"] = np.float64(0)
    if "sync" in repairs:
        facts["restart"] = np.float64(0)
    if "overlap" in repairs:
        facts["exposed"] = facts["tail"]
    return np.max([facts["batch"], facts["host"], facts["compute"] + facts["exposed"] + facts["restart"]])

# %% step-after | right | one repair after the other
def step_after(facts, repairs):
    now = dict(facts)
    for repair in repairs:
        now.update({"input": {"batch": 0}, "sync": {"restart": 0}, "overlap": {"exposed": now["tail"]}}[repair])
    step = now["compute"] + now["exposed"] + now["restart"]
    for other in ("host", "batch"):
        if now[other] > step:
            step = now[other]
    return step

# %% step-after | wrong | savings-taken-off-the-step
def step_after(facts, repairs):
    device = facts["compute"] + facts["exposed"] + facts["restart"]
    step = max(device, facts["host"], facts["batch"])
    step -= max(0, facts["batch"] - device) if "input" in repairs else 0
    step -= facts["restart"] if "sync" in repairs else 0
    return step - (facts["exposed"] - facts["tail"] if "overlap" in repairs else 0)

# %% step-after | wrong | chains-added-up
def step_after(facts, repairs):
    step = facts["compute"] + facts["host"] + (facts["tail"] if "overlap" in repairs else facts["exposed"])
    return step + ("sync" not in repairs) * facts["restart"] + ("input" not in repairs) * facts["batch"]

# %% step-after | wrong | host-chain-forgotten
def step_after(facts, repairs):
    device = facts["compute"] + (facts["tail"] if "overlap" in repairs else facts["exposed"]) + ("sync" not in repairs) * facts["restart"]
    return max(device, ("input" not in repairs) * facts["batch"])

# %% step-after | wrong | all-communication-hidden
def step_after(facts, repairs):
    device = facts["compute"] + ("overlap" not in repairs) * facts["exposed"] + ("sync" not in repairs) * facts["restart"]
    return max(device, facts["host"], ("input" not in repairs) * facts["batch"])

# %% step-after | wrong | sync-costs-nothing
def step_after(facts, repairs):
    device = facts["compute"] + (facts["tail"] if "overlap" in repairs else facts["exposed"])
    return max(device, facts["host"], ("input" not in repairs) * facts["batch"])

# %% step-after | wrong | speed-up-instead-of-time
def step_after(facts, repairs):
    def step(without):
        device = facts["compute"] + (facts["tail"] if "overlap" in without else facts["exposed"])
        device += ("sync" not in without) * facts["restart"]
        return max(device, facts["host"], ("input" not in without) * facts["batch"])

    return step([]) / step(repairs)
