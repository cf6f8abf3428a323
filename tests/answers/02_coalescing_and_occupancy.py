# Alternatives and mistakes for lesson 4.2; see CONTRIBUTING.md for the form of the headers.

# %% request-cost | right | a map of the memory, NumPy scalars
def request_cost(addresses, itemsize):
    starts = np.array([a for a in addresses if a is not None], dtype=np.int64)
    if not starts.size:
        return [0, 0]
    every = np.unique(starts[:, None] + np.arange(itemsize))
    sectors = np.unique(every // 32)
    return [np.int64(sectors.size), np.int64(sectors.size * 32 - every.size)]

# %% request-cost | right | lanes in order, merged into runs of bytes
def request_cost(addresses, itemsize):
    runs = []
    for start in sorted(a for a in addresses if a is not None):
        if runs and start <= runs[-1][1]:
            runs[-1][1] = max(runs[-1][1], start + itemsize)
        else:
            runs.append([start, start + itemsize])
    sectors, last = 0, -1
    for start, end in runs:
        low, high = max(start >> 5, last + 1), (end - 1) >> 5
        sectors += max(high - low + 1, 0)
        last = max(last, high)
    return sectors, 32 * sectors - sum(end - start for start, end in runs)

# %% request-cost | wrong | lines-for-sectors
def request_cost(addresses, itemsize):
    asked = {byte for start in addresses if start is not None for byte in range(start, start + itemsize)}
    lines = {byte // 128 for byte in asked}
    return len(lines), 128 * len(lines) - len(asked)

# %% request-cost | wrong | a-sector-for-each-lane
def request_cost(addresses, itemsize):
    lanes = sum(a is not None for a in addresses)
    return lanes, lanes * (32 - itemsize)

# %% request-cost | wrong | span-cut-into-sectors
def request_cost(addresses, itemsize):
    active = [a for a in addresses if a is not None]
    span = max(active) - min(active) + itemsize
    sectors = -(-span // 32)
    return sectors, sectors * 32 - len(set(active)) * itemsize

# %% request-cost | wrong | everything-moved-is-used
def request_cost(addresses, itemsize):
    return len({byte // 32 for a in addresses if a is not None for byte in range(a, a + itemsize)}), 0

# %% request-cost | wrong | shared-bytes-counted-twice
def request_cost(addresses, itemsize):
    active = [a for a in addresses if a is not None]
    sectors = {byte // 32 for a in active for byte in range(a, a + itemsize)}
    return len(sectors), 32 * len(sectors) - itemsize * len(active)

# %% request-cost | wrong | end-of-an-element-forgotten
def request_cost(addresses, itemsize):
    asked = {byte for a in addresses if a is not None for byte in range(a, a + itemsize)}
    sectors = {a // 32 for a in addresses if a is not None}
    return len(sectors), 32 * len(sectors) - len(asked)

# %% request-cost | wrong | idle-lanes-read-address-0
def request_cost(addresses, itemsize):
    asked = {byte for a in addresses for byte in range(a or 0, (a or 0) + itemsize)}
    sectors = {byte // 32 for byte in asked}
    return len(sectors), 32 * len(sectors) - len(asked)

# %% residency | right | blocks are moved in one after the other
def residency(row, threads, regs, smem):
    warps = (threads + 31) // 32
    each = np.ceil(32 * regs / row["register_step"]) * row["register_step"]
    takes = np.ceil((smem + row["smem_kept"]) / row["smem_step"]) * row["smem_step"]
    rooms = row["partitions"] * np.floor(row["registers"] / row["partitions"] / each)
    blocks = np.int64(0)
    while True:
        n = blocks + 1
        if n * warps > row["warps"]:
            name = "warps"
        elif n * warps > rooms:
            name = "registers"
        elif n * takes > row["smem"]:
            name = "shared memory"
        elif n > row["blocks"]:
            name = "blocks"
        else:
            blocks = n
            continue
        return [blocks, np.float64(blocks * warps) / row["warps"], name]

# %% residency | wrong | granularity-ignored
def residency(row, threads, regs, smem):
    warps = -(-threads // 32)
    taken = -(-(smem + row["smem_kept"]) // row["smem_step"]) * row["smem_step"]
    limits = {"warps": row["warps"] // warps, "registers": row["registers"] // (threads * regs),
              "shared memory": row["smem"] // taken if taken else 999, "blocks": row["blocks"]}
    name = min(limits, key=limits.get)
    return limits[name], limits[name] * warps / row["warps"], name

# %% residency | wrong | floor-of-warps
def residency(row, threads, regs, smem):
    warps = max(threads // 32, 1)
    each = -(-32 * regs // 256) * 256
    taken = -(-(smem + row["smem_kept"]) // row["smem_step"]) * row["smem_step"]
    limits = {"warps": row["warps"] // warps, "registers": 16_384 // each * 4 // warps,
              "shared memory": row["smem"] // taken if taken else 999, "blocks": row["blocks"]}
    name = min(limits, key=limits.get)
    return limits[name], limits[name] * warps / row["warps"], name

# %% residency | wrong | block-cap-ignored
def residency(row, threads, regs, smem):
    warps = -(-threads // 32)
    each = -(-32 * regs // 256) * 256
    taken = -(-(smem + row["smem_kept"]) // row["smem_step"]) * row["smem_step"]
    limits = {"warps": row["warps"] // warps, "registers": 16_384 // each * 4 // warps,
              "shared memory": row["smem"] // taken if taken else 999}
    name = min(limits, key=limits.get)
    return limits[name], limits[name] * warps / row["warps"], name

# %% residency | wrong | one-pool-of-registers
def residency(row, threads, regs, smem):
    warps = -(-threads // 32)
    each = -(-32 * regs // 256) * 256
    taken = -(-(smem + row["smem_kept"]) // row["smem_step"]) * row["smem_step"]
    limits = {"warps": row["warps"] // warps, "registers": row["registers"] // (each * warps),
              "shared memory": row["smem"] // taken if taken else 999, "blocks": row["blocks"]}
    name = min(limits, key=limits.get)
    return limits[name], limits[name] * warps / row["warps"], name

# %% residency | wrong | occupancy-of-threads
def residency(row, threads, regs, smem):
    warps = -(-threads // 32)
    each = -(-32 * regs // 256) * 256
    taken = -(-(smem + row["smem_kept"]) // row["smem_step"]) * row["smem_step"]
    limits = {"warps": row["warps"] // warps, "registers": 16_384 // each * 4 // warps,
              "shared memory": row["smem"] // taken if taken else 999, "blocks": row["blocks"]}
    name = min(limits, key=limits.get)
    return limits[name], limits[name] * threads / (32 * row["warps"]), name

# %% residency | wrong | kept-memory-ignored
def residency(row, threads, regs, smem):
    warps = -(-threads // 32)
    each = -(-32 * regs // 256) * 256
    taken = -(-smem // row["smem_step"]) * row["smem_step"]
    limits = {"warps": row["warps"] // warps, "registers": 16_384 // each * 4 // warps,
              "shared memory": row["smem"] // taken if taken else 999, "blocks": row["blocks"]}
    name = min(limits, key=limits.get)
    return limits[name], limits[name] * warps / row["warps"], name

# %% residency | wrong | steps-of-shared-memory-ignored | like kept-memory-ignored
#-     taken = -(-smem // row["smem_step"]) * row["smem_step"]
#+     taken = smem + row["smem_kept"]

# %% residency | wrong | all-kept-at-once | like kept-memory-ignored
#-               "shared memory": row["smem"] // taken if taken else 999, "blocks": row["blocks"]}
#+               "shared memory": (row["smem"] - row["smem_kept"]) // taken if taken else 999, "blocks": row["blocks"]}

# %% copy-speed | right | time of a warp, sectors from a map of the memory
def copy_speed(bw, itemsize, stride, offset):
    starts = (offset + np.arange(32) * stride) * itemsize
    sectors = len(np.unique(starts // 32)) + len(np.unique(np.arange(32 * itemsize) // 32))
    seconds = 32 * sectors / bw
    return np.float64(2 * 32 * itemsize / seconds)

# %% copy-speed | wrong | writes-like-reads
def copy_speed(bw, itemsize, stride, offset):
    return bw * itemsize / len({(offset + lane * stride) * itemsize // 32 for lane in range(32)})

# %% copy-speed | wrong | whole-lines-move
def copy_speed(bw, itemsize, stride, offset):
    lines = {(offset + lane * stride) * itemsize // 128 for lane in range(32)}
    return bw * 2 * itemsize / (4 * len(lines) + itemsize)

# %% copy-speed | wrong | no-end-to-the-stride
def copy_speed(bw, itemsize, stride, offset):
    return bw * 2 / (1 + stride)

# %% copy-speed | wrong | offset-in-bytes
def copy_speed(bw, itemsize, stride, offset):
    return bw * 2 * itemsize / (len({(offset + lane * stride * itemsize) // 32 for lane in range(32)}) + itemsize)

# %% copy-speed | wrong | useful-bytes-counted-once
def copy_speed(bw, itemsize, stride, offset):
    return bw * itemsize / (len({(offset + lane * stride) * itemsize // 32 for lane in range(32)}) + itemsize)

# %% fewest-loads | right | all numbers of loads at once, NumPy integers
def fewest_loads(latency, clock_bytes, itemsize, base_regs):
    loads = np.arange(1, 256)
    regs = base_regs + loads * (itemsize / 4)
    warps = np.minimum(64, 4 * np.floor(16_384 / (256 * np.ceil(regs / 8)))).astype(int)
    enough = (regs <= 255) & (warps * loads * 32 * itemsize / latency >= clock_bytes)
    return [loads[enough][0], warps[enough][0]] if enough.any() else None

# %% fewest-loads | wrong | full-occupancy-every-time
def fewest_loads(latency, clock_bytes, itemsize, base_regs):
    return int(np.ceil(latency * clock_bytes / (64 * 32 * itemsize))), 64

# %% fewest-loads | wrong | registers-of-loads-forgotten
def fewest_loads(latency, clock_bytes, itemsize, base_regs):
    warps = min(64, 16_384 // (-(-32 * base_regs // 256) * 256) * 4)
    loads = int(np.ceil(latency * clock_bytes / (warps * 32 * itemsize)))
    return (loads, warps) if base_regs + loads * itemsize // 4 <= 255 else None

# %% fewest-loads | wrong | granularity-ignored
def fewest_loads(latency, clock_bytes, itemsize, base_regs):
    for loads in range(1, (255 - base_regs) * 4 // itemsize + 1):
        warps = min(64, 65_536 // (32 * (base_regs + loads * itemsize // 4)))
        if warps * 32 * loads * itemsize >= latency * clock_bytes:
            return loads, warps

# %% fewest-loads | wrong | one-pool-of-registers | like granularity-ignored
#-         warps = min(64, 65_536 // (32 * (base_regs + loads * itemsize // 4)))
#+         warps = min(64, 65_536 // (-(-32 * (base_regs + loads * itemsize // 4) // 256) * 256))

# %% fewest-loads | wrong | threads-for-warps
def fewest_loads(latency, clock_bytes, itemsize, base_regs):
    for loads in range(1, (255 - base_regs) * 4 // itemsize + 1):
        warps = min(64, 16_384 // (-(-32 * (base_regs + loads * itemsize // 4) // 256) * 256) * 4)
        if warps * loads * itemsize >= latency * clock_bytes:
            return loads, warps

# %% fewest-loads | wrong | more-registers-than-there-are
def fewest_loads(latency, clock_bytes, itemsize, base_regs):
    for loads in range(1, 500):
        warps = min(64, 16_384 // (-(-32 * (base_regs + loads * itemsize // 4) // 256) * 256) * 4)
        if warps * 32 * loads * itemsize >= latency * clock_bytes:
            return loads, warps
