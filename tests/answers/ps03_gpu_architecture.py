# Alternatives and mistakes for problem set 3; see CONTRIBUTING.md for the form of the headers.

# %% four-bits | right | number by number, scales by broadcasting over all at once, plain lists
def read_mxfp4(blocks, scales):
    sizes = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
    matrix = []
    for row, row_scales in zip(blocks.tolist(), scales.tolist()):
        numbers = []
        for block, scale in zip(row, row_scales):
            for byte in block:
                for four in (byte % 16, byte // 16):
                    numbers.append(math.ldexp((-1) ** (four // 8) * sizes[four % 8], scale - 127))
        matrix.append(numbers)
    return matrix


def write_nvfp4(x, importance, whole):
    grid = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    steps = decode(np.arange(1, 127), "e4m3fn").astype(float) * whole
    marks = (steps[:, None] * grid).ravel()
    codes, scales = [], []
    for row in np.asarray(x):
        row_codes, row_scales = [], []
        for start in range(0, len(row), 16):
            part, weight = row[start : start + 16], importance[start : start + 16]
            gaps = np.abs(np.abs(part) - marks[:, None]).reshape(126, 8, 16)
            scale = int((weight * gaps.min(1) ** 2).sum(-1).argmin())
            row_codes += (gaps[scale].argmin(0) + 8 * (part < 0)).tolist()
            row_scales.append(scale + 1)
        codes.append(row_codes)
        scales.append(row_scales)
    return codes, scales

# %% four-bits | right | table of bytes, best scale by argmin, floats for codes
def read_mxfp4(blocks, scales):
    pairs = np.array([[decode(np.uint8(byte % 16), "e2m1"), decode(np.uint8(byte // 16), "e2m1")] for byte in range(256)], float)
    wide = pairs[blocks].reshape(*blocks.shape[:2], 32)
    return np.float32(wide * np.exp2(scales.astype(np.int64) - 127)[:, :, None]).reshape(blocks.shape[0], -1)


def write_nvfp4(x, importance, whole):
    b = np.reshape(x, (np.shape(x)[0], -1, 1, 16))
    steps = whole * decode(np.arange(1, 127), "e4m3fn").astype(float)[:, None]
    tried = encode(b / steps, "e2m1")
    errors = (np.reshape(importance, (-1, 1, 16)) * (b - decode(tried, "e2m1") * steps) ** 2).sum(-1)
    best = errors.argmin(-1)
    codes = np.take_along_axis(tried, best[..., None, None], axis=2)
    return codes.reshape(np.shape(x)).astype(float), best + 1.0

# %% four-bits | wrong | mx-high-half-first
def read_mxfp4(blocks, scales):
    codes = np.stack([blocks >> 4, blocks & 15], axis=-1).reshape(*scales.shape, 32)
    sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([sizes, -sizes])[codes] * 2.0 ** (scales.astype(int) - 127)[..., None]
    return values.reshape(len(blocks), -1)


def write_nvfp4(x, importance, whole):
    raise NotImplementedError

# %% four-bits | wrong | mx-halves-not-interleaved | like mx-high-half-first
#-     codes = np.stack([blocks >> 4, blocks & 15], axis=-1).reshape(*scales.shape, 32)
#+     codes = np.stack([blocks & 15, blocks >> 4], axis=-2).reshape(*scales.shape, 32)

# %% four-bits | wrong | mx-scale-is-no-exponent
def read_mxfp4(blocks, scales):
    codes = np.stack([blocks & 15, blocks >> 4], axis=-1).reshape(*scales.shape, 32)
    sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([sizes, -sizes])[codes] * scales[..., None]
    return values.reshape(len(blocks), -1)


def write_nvfp4(x, importance, whole):
    raise NotImplementedError

# %% four-bits | wrong | mx-bias-forgotten | like mx-scale-is-no-exponent
#-     values = np.concatenate([sizes, -sizes])[codes] * scales[..., None]
#+     values = np.concatenate([sizes, -sizes])[codes] * 2.0 ** (scales.astype(int))[..., None]

# %% four-bits | wrong | mx-bytes-wrap-around | like mx-scale-is-no-exponent
#-     values = np.concatenate([sizes, -sizes])[codes] * scales[..., None]
#+     values = np.concatenate([sizes, -sizes])[codes] * 2.0 ** (scales - np.uint8(127)).astype(float)[..., None]

# %% four-bits | wrong | mx-twos-complement | like mx-scale-is-no-exponent
#-     values = np.concatenate([sizes, -sizes])[codes] * scales[..., None]
#+     values = np.where(codes < 8, codes, codes.astype(int) - 16) * 2.0 ** (scales.astype(int) - 127)[..., None]

# %% four-bits | wrong | mx-sign-dropped | like mx-scale-is-no-exponent
#-     values = np.concatenate([sizes, -sizes])[codes] * scales[..., None]
#+     values = np.concatenate([sizes, sizes])[codes] * 2.0 ** (scales.astype(int) - 127)[..., None]

# %% four-bits | wrong | nv-values-for-codes
def read_mxfp4(blocks, scales):
    raise NotImplementedError


def write_nvfp4(x, importance, whole):
    blocks = x.reshape(len(x), -1, 16)
    largest = np.abs(blocks).max(-1)
    scales = encode(largest / 6 / whole, "e4m3fn")
    step = decode(scales, "e4m3fn").astype(float)[..., None] * whole
    return decode(encode(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0), "e2m1"), "e2m1").reshape(x.shape), scales

# %% four-bits | wrong | nv-whole-forgotten
def read_mxfp4(blocks, scales):
    raise NotImplementedError


def write_nvfp4(x, importance, whole):
    blocks = x.reshape(len(x), -1, 16)
    largest = np.abs(blocks).max(-1)
    scales = encode(largest / 6, "e4m3fn")
    step = decode(scales, "e4m3fn").astype(float)[..., None]
    return encode(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0), "e2m1").reshape(x.shape), scales

# %% four-bits | wrong | nv-largest-without-sign | like nv-whole-forgotten
#-     scales = encode(largest / 6, "e4m3fn")
#-     step = decode(scales, "e4m3fn").astype(float)[..., None]
#+     scales = encode(np.maximum(blocks.max(-1), 0) / 6 / whole, "e4m3fn")
#+     step = decode(scales, "e4m3fn").astype(float)[..., None] * whole

# %% four-bits | wrong | nv-not-the-nearest | like nv-values-for-codes
#-     return decode(encode(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0), "e2m1"), "e2m1").reshape(x.shape), scales
#+     return encode(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0), "e2m1", rounding="truncate").reshape(x.shape), scales

# %% four-bits | wrong | nv-largest-to-six | like nv-values-for-codes
#-     return decode(encode(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0), "e2m1"), "e2m1").reshape(x.shape), scales
#+     return encode(np.divide(blocks, step, out=np.zeros_like(blocks), where=step > 0), "e2m1").reshape(x.shape), scales

# %% four-bits | wrong | nv-importance-forgotten
def read_mxfp4(blocks, scales):
    raise NotImplementedError


def write_nvfp4(x, importance, whole):
    blocks, weights = x.reshape(len(x), -1, 16), importance.reshape(-1, 16)
    least = np.full(blocks.shape[:2], np.inf)
    codes, scales = np.zeros(blocks.shape, np.uint8), np.zeros(blocks.shape[:2], np.uint8)
    for scale in range(1, 127):
        step = float(decode(np.uint8(scale), "e4m3fn")) * whole
        tried = encode(blocks / step, "e2m1")
        error = ((blocks - decode(tried, "e2m1") * step) ** 2).sum(-1)
        better = error < least
        least[better], codes[better], scales[better] = error[better], tried[better], scale
    return codes.reshape(x.shape), scales

# %% four-bits | wrong | nv-few-scales-tried
def read_mxfp4(blocks, scales):
    raise NotImplementedError


def write_nvfp4(x, importance, whole):
    blocks, weights = x.reshape(len(x), -1, 16), importance.reshape(-1, 16)
    least = np.full(blocks.shape[:2], np.inf)
    codes, scales = np.zeros(blocks.shape, np.uint8), np.zeros(blocks.shape[:2], np.uint8)
    largest = np.abs(blocks).max(-1)
    for most in (4, 6):
        scale = encode(largest / most / whole, "e4m3fn")
        step = np.maximum(decode(scale, "e4m3fn").astype(float), 2.0**-9)[..., None] * whole
        tried = encode(blocks / step, "e2m1")
        error = (weights * (blocks - decode(tried, "e2m1") * step) ** 2).sum(-1)
        better = error < least
        least[better], codes[better], scales[better] = error[better], tried[better], scale[better]
    return codes.reshape(x.shape), scales

# %% tile-layout | right | rows turned round, not exclusive or
def place(rows, columns, cell_bytes, room_bytes):
    wide = 128 // cell_bytes
    lines = max(1, wide // columns)
    layout = []
    for row in range(rows):
        group = min(columns, wide)
        layout.append([float(cell_bytes * (row * columns + c // group * group + (c + row // lines) % group)) for c in range(columns)])
    return layout

# %% tile-layout | right | padding where there is room, else a swizzle of address bits
def place(rows, columns, cell_bytes, room_bytes):
    if cell_bytes == 4 and columns % 32 == 0 and room_bytes >= 4 * rows * (columns + 1):
        return 4 * (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns))
    address = np.arange(rows * columns) * cell_bytes
    span = min(128, columns * cell_bytes)
    line = address // max(128, columns * cell_bytes)
    return (address ^ (line * cell_bytes % span)).reshape(rows, columns).astype(np.int32)

# %% tile-layout | wrong | layout-not-aligned
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return row * columns + column + 0 * cell_bytes

# %% tile-layout | wrong | layout-beyond-the-room
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return cell_bytes * (row * (columns + 1) + column)

# %% tile-layout | wrong | layout-two-in-one-place
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return cell_bytes * (row * columns + (column + row) % 16)

# %% tile-layout | wrong | layout-rows-suffer
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return cell_bytes * (column * rows + row)

# %% tile-layout | wrong | layout-plain
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return cell_bytes * (row * columns + column)

# %% tile-layout | wrong | layout-short-rows
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return cell_bytes * (row * columns + (column ^ row % min(columns, 128 // cell_bytes)))

# %% tile-layout | wrong | layout-wide-cells-have-fewer-places
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    words = np.arange(rows * columns * cell_bytes // 4)
    turned = words ^ words // 32 % 32 * (cell_bytes == 4) ^ words // 32 % 2 * 4
    places = 4 * turned.reshape(rows, columns, -1)[..., 0]
    return places - places % cell_bytes

# %% tile-layout | wrong | layout-still-collides
def place(rows, columns, cell_bytes, room_bytes):
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return cell_bytes * (row * columns + (column ^ row // 2 % 16))

# %% sparse-rows | right | warp by warp, round by round
def warps(lengths, width):
    lengths, groups = [int(n) for n in lengths], 32 // width
    starts = [sum(lengths[:row]) for row in range(len(lengths))] if len(lengths) < 300 else (np.cumsum(lengths) - lengths).tolist()
    for first in range(0, len(lengths), groups):
        rows = range(first, min(first + groups, len(lengths)))
        longest = max(lengths[row] for row in rows)
        yield [[(starts[row] + now, min(width, lengths[row] - now)) for row in rows if lengths[row] > now] for now in range(0, longest, width)]


def loop_slots(lengths, width):
    rounds = busy = slots = 0
    halvings = len(bin(width)) - 3
    for warp in warps(lengths, width):
        rounds += len(warp)
        busy += sum(n for request in warp for _, n in request)
        slots += 4 * len(warp) + 2 * halvings
    return [slots, np.float64(busy) / (32 * rounds)]


def value_sectors(lengths, width):
    return sum(len({k // 8 for begin, n in request for k in range(begin, begin + n)}) for warp in warps(lengths, width) for request in warp)


def best_width(lengths):
    clocks, width = min((max(loop_slots(lengths, w)[0] / 4, value_sectors(lengths, w) / 2), w) for w in (1, 2, 4, 8, 16, 32))
    return np.int64(width), float(clocks)

# %% sparse-rows | right | all rounds as one array of requests, counted by the library
from mlsys.gpu import units_per_request


def requests(lengths, width):
    lengths = np.asarray(lengths)
    groups = 32 // width
    warps = -(-len(lengths) // groups)
    padded = np.zeros(warps * groups, int)
    padded[: len(lengths)] = lengths
    starts = np.cumsum(padded) - padded
    rounds = (-(-padded // width)).reshape(warps, groups).max(1)
    warp = np.repeat(np.arange(warps), rounds)
    now = np.arange(rounds.sum()) - np.repeat(np.cumsum(rounds) - rounds, rounds)
    lane = np.arange(32)
    row = warp[:, None] * groups + lane // width
    number = now[:, None] * width + lane % width
    return warps, starts[row] + number, number < padded[row]


def loop_slots(lengths, width):
    warps, _, busy = requests(lengths, width)
    return 4 * len(busy) + 2 * warps * (width.bit_length() - 1), busy.mean()


def value_sectors(lengths, width):
    _, number, busy = requests(lengths, width)
    return int(units_per_request(4 * number, 4, busy).sum())


def best_width(lengths):
    best = None
    for width in (32, 16, 8, 4, 2, 1):
        clocks = max(loop_slots(lengths, width)[0], 2 * value_sectors(lengths, width)) / 4
        if best is None or clocks <= best[1]:
            best = width, clocks
    return best

# %% sparse-rows | wrong | csr-mean-row
def loop_slots(lengths, width):
    lengths, groups = np.asarray(lengths), 32 // width
    rounds = -(-lengths // width)
    rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).mean(1)
    slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
    return slots, lengths.sum() / (32 * rounds.sum())


def value_sectors(lengths, width):
    raise NotImplementedError


def best_width(lengths):
    raise NotImplementedError

# %% sparse-rows | wrong | csr-last-round-cut-off
def loop_slots(lengths, width):
    lengths, groups = np.asarray(lengths), 32 // width
    rounds = lengths // width
    rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).max(1)
    slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
    return int(slots), lengths.sum() / max(32 * rounds.sum(), 1e-300)


def value_sectors(lengths, width):
    raise NotImplementedError


def best_width(lengths):
    raise NotImplementedError

# %% sparse-rows | wrong | csr-groups-in-turn | like csr-mean-row
#-     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).mean(1)
#-     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
#-     return slots, lengths.sum() / (32 * rounds.sum())
#+     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).sum(1)
#+     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
#+     return int(slots), lengths.sum() / (32 * rounds.sum())

# %% sparse-rows | wrong | csr-halvings-forgotten | like csr-mean-row
#-     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).mean(1)
#-     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
#-     return slots, lengths.sum() / (32 * rounds.sum())
#+     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).max(1)
#+     slots = 4 * rounds.sum()
#+     return int(slots), lengths.sum() / (32 * rounds.sum())

# %% sparse-rows | wrong | csr-halvings-for-each-row | like csr-mean-row
#-     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).mean(1)
#-     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
#-     return slots, lengths.sum() / (32 * rounds.sum())
#+     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).max(1)
#+     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds) * groups
#+     return int(slots), lengths.sum() / (32 * rounds.sum())

# %% sparse-rows | wrong | csr-waiting-groups-not-counted | like csr-last-round-cut-off
#-     rounds = lengths // width
#+     rounds = -(-lengths // width)
#-     return int(slots), lengths.sum() / max(32 * rounds.sum(), 1e-300)
#+     return int(slots), lengths.sum() / (width * (-(-lengths // width)).sum())

# %% sparse-rows | wrong | csr-empty-groups-not-counted
def loop_slots(lengths, width):
    lengths, groups = np.asarray(lengths), 32 // width
    slots = lanes = 0
    for first in range(0, len(lengths), groups):
        rows = lengths[first : first + groups]
        rounds = -(-int(rows.max()) // width)
        slots += 4 * rounds + 2 * int(math.log2(width))
        lanes += rounds * width * len(rows)
    return slots, lengths.sum() / lanes


def value_sectors(lengths, width):
    raise NotImplementedError


def best_width(lengths):
    raise NotImplementedError

# %% sparse-rows | wrong | csr-rows-dealt-out | like csr-mean-row
#-     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).mean(1)
#-     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
#-     return slots, lengths.sum() / (32 * rounds.sum())
#+     rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(groups, -1).max(0)
#+     slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
#+     return int(slots), lengths.sum() / (32 * rounds.sum())

# %% sparse-rows | wrong | csr-rows-begin-on-a-sector
def loop_slots(lengths, width):
    raise NotImplementedError


def value_sectors(lengths, width):
    lengths = np.asarray(lengths)
    row, number = np.repeat(np.arange(len(lengths)), lengths), np.arange(lengths.sum())
    gaps = -lengths % 8
    within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return len(set(zip(row // (32 // width), within // width, (number + np.repeat(np.cumsum(gaps) - gaps, lengths)) // 8)))


def best_width(lengths):
    raise NotImplementedError

# %% sparse-rows | wrong | csr-each-row-asks-alone | like csr-rows-begin-on-a-sector
#-     gaps = -lengths % 8
#-     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#-     return len(set(zip(row // (32 // width), within // width, (number + np.repeat(np.cumsum(gaps) - gaps, lengths)) // 8)))
#+     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#+     return len(set(zip(row, within // width, number // 8)))

# %% sparse-rows | wrong | csr-sector-for-each-lane | like csr-rows-begin-on-a-sector
#-     gaps = -lengths % 8
#-     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#-     return len(set(zip(row // (32 // width), within // width, (number + np.repeat(np.cumsum(gaps) - gaps, lengths)) // 8)))
#+     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#+     return len(number)

# %% sparse-rows | wrong | csr-array-read-once | like csr-rows-begin-on-a-sector
#-     gaps = -lengths % 8
#-     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#-     return len(set(zip(row // (32 // width), within // width, (number + np.repeat(np.cumsum(gaps) - gaps, lengths)) // 8)))
#+     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#+     return len(set(number // 8))

# %% sparse-rows | wrong | csr-lines-for-sectors | like csr-rows-begin-on-a-sector
#-     gaps = -lengths % 8
#-     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#-     return len(set(zip(row // (32 // width), within // width, (number + np.repeat(np.cumsum(gaps) - gaps, lengths)) // 8)))
#+     within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
#+     return len(set(zip(row // (32 // width), within // width, number // 32)))

# %% sparse-rows | wrong | csr-slots-alone
def loop_slots(lengths, width):
    lengths, groups = np.asarray(lengths), 32 // width
    rounds = -(-lengths // width)
    rounds = np.pad(rounds, (0, -len(rounds) % groups)).reshape(-1, groups).max(1)
    slots = 4 * rounds.sum() + 2 * int(math.log2(width)) * len(rounds)
    return int(slots), lengths.sum() / (32 * rounds.sum())


def value_sectors(lengths, width):
    lengths = np.asarray(lengths)
    row, number = np.repeat(np.arange(len(lengths)), lengths), np.arange(lengths.sum())
    within = number - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return len(set(zip(row // (32 // width), within // width, number // 8)))


def best_width(lengths):
    clocks = {w: loop_slots(lengths, w)[0] / 4 for w in (1, 2, 4, 8, 16, 32)}
    width = min(clocks, key=clocks.get)
    return width, clocks[width]

# %% sparse-rows | wrong | csr-sectors-alone | like csr-slots-alone
#-     clocks = {w: loop_slots(lengths, w)[0] / 4 for w in (1, 2, 4, 8, 16, 32)}
#+     clocks = {w: value_sectors(lengths, w) / 2 for w in (1, 2, 4, 8, 16, 32)}

# %% sparse-rows | wrong | csr-numbers-without-columns | like csr-slots-alone
#-     clocks = {w: loop_slots(lengths, w)[0] / 4 for w in (1, 2, 4, 8, 16, 32)}
#+     clocks = {w: max(loop_slots(lengths, w)[0], value_sectors(lengths, w)) / 4 for w in (1, 2, 4, 8, 16, 32)}

# %% sparse-rows | wrong | csr-no-overlap | like csr-slots-alone
#-     clocks = {w: loop_slots(lengths, w)[0] / 4 for w in (1, 2, 4, 8, 16, 32)}
#+     clocks = {w: (loop_slots(lengths, w)[0] + 2 * value_sectors(lengths, w)) / 4 for w in (1, 2, 4, 8, 16, 32)}

# %% sparse-rows | wrong | csr-slots-for-clocks | like csr-slots-alone
#-     clocks = {w: loop_slots(lengths, w)[0] / 4 for w in (1, 2, 4, 8, 16, 32)}
#+     clocks = {w: max(loop_slots(lengths, w)[0], 2 * value_sectors(lengths, w)) for w in (1, 2, 4, 8, 16, 32)}

# %% dissect | right | the first line comes back after w others, or does not
FAR = 2**17
WAYS = range(2, 17)


def experiments():
    back = lambda step, w: [0, *[step * n for n in range(1, w + 1)], 0]
    line = [np.array([0, size, size - 1]) for size in (32, 64, 128)]
    ways = [back(FAR, w) for w in WAYS]
    sets = [back(32 * 2**k, w) for w in WAYS for k in range(12)]
    policy = [[*[FAR * n for n in range(w)], 0, FAR * w, 0] for w in WAYS]
    return line + ways + sets + policy


def conclude(misses):
    misses = np.asarray(misses)
    line_bytes = 256
    for size, missed in zip((128, 64, 32), misses[2::-1]):
        line_bytes = size if missed == 2 else line_bytes
    ways = next(w for w, missed in zip(WAYS, misses[3:18]) if missed == w + 2)
    grown = misses[18:198].reshape(15, 12)[ways - 2]
    distance = 32 * 2 ** int(np.flatnonzero(grown == ways + 2)[0])
    policy = "LRU" if misses[198 + ways - 2] == ways + 1 else "FIFO"
    return dict(line_bytes=np.int64(line_bytes), ways=float(ways), sets=distance / line_bytes, policy=policy)

# %% dissect | right | a table of all lines and sets for each number of ways
LOOPS = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 18)]
TOUCH = [[*[2**16 * n for n in range(w)], 0, 2**16 * w, 0] for w in range(2, 17)]


def experiments():
    return [*LOOPS, *TOUCH, [0, 32], [0, 64], [0, 128]]


def conclude(misses):
    loops, touch, pairs = np.reshape(misses[:195], (15, 13)), misses[195:210], misses[210:]
    ways = 2 + [bool(row[-1] == 2 * k) for k, row in zip(range(3, 18), loops)].index(True)
    first = int((loops[ways - 2] == 2 * (ways + 1)).argmax())
    line = 5 + sum(missed == 1 for missed in pairs)
    return {"ways": ways, "sets": 2 ** (5 + first - line), "line_bytes": 2**line, "policy": ["FIFO", "LRU"][int(touch[ways - 2] == ways + 1)]}

# %% dissect | wrong | dissect-too-many
def experiments():
    far = 2**16
    lines = [[0, apart] for apart in (32, 64, 128)]
    ways = [2 * [far * n for n in range(k)] for k in range(3, 18)]
    sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
    policy = [[*[far * n for n in range(w)], 0, far * w, 0] for w in range(2, 17)]
    return lines + ways + sets + policy


def conclude(misses):
    misses = list(misses)
    lines, ways, sets, policy = misses[:3], misses[3:18], misses[18:198], misses[198:]
    line_bytes = 32 * 2 ** lines.count(1)
    w = next(k for k, missed in zip(range(3, 18), ways) if missed == 2 * k) - 1
    loop = sets[12 * (w - 2) : 12 * (w - 1)]  # w + 1 lines at growing distances
    distance = next(2**bits for bits, missed in zip(range(5, 17), loop) if missed == 2 * (w + 1))
    kept = policy[w - 2] == w + 1
    return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w, "policy": "LRU" if kept else "FIFO"}

# %% dissect | wrong | dissect-too-far | like dissect-too-many
#-     far = 2**16
#+     far = 2**30
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]

# %% dissect | wrong | dissect-last-that-hits | like dissect-too-many
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]
#-     line_bytes = 32 * 2 ** lines.count(1)
#+     line_bytes = 16 * 2 ** lines.count(1)

# %% dissect | wrong | dissect-one-way-too-many | like dissect-too-many
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]
#-     return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w, "policy": "LRU" if kept else "FIFO"}
#+     return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w + 1, "policy": "LRU" if kept else "FIFO"}

# %% dissect | wrong | dissect-all-lines-in-a-set | like dissect-too-many
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]
#-     return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w, "policy": "LRU" if kept else "FIFO"}
#+     return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w * distance // line_bytes, "policy": "LRU" if kept else "FIFO"}

# %% dissect | wrong | dissect-sets-in-bytes | like dissect-too-many
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]
#-     return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w, "policy": "LRU" if kept else "FIFO"}
#+     return {"line_bytes": line_bytes, "sets": distance, "ways": w, "policy": "LRU" if kept else "FIFO"}

# %% dissect | wrong | dissect-sets-are-not-lines | like dissect-too-many
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]
#-     return {"line_bytes": line_bytes, "sets": distance // line_bytes, "ways": w, "policy": "LRU" if kept else "FIFO"}
#+     return {"line_bytes": line_bytes, "sets": w * distance // line_bytes, "ways": w, "policy": "LRU" if kept else "FIFO"}

# %% dissect | wrong | dissect-used-or-loaded | like dissect-too-many
#-     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 40) for bits in range(5, 17)]
#+     sets = [2 * [2**bits * n for n in range(k)] for k in range(3, 18) for bits in range(5, 17)]
#-     kept = policy[w - 2] == w + 1
#+     kept = policy[w - 2] == w + 2

# %% serve | right | a bill of three rows, plans in arrays
def bytes_of_a_weight(form):
    return (form["bits"] * form["group"] + form["scale_bits"]) / form["group"] / 8


def rate_of(chip, form):
    return chip["bf16"] if chip.get(form["math"]) is None else chip[form["math"]]


def step_parts(model, chip, form, batch, context, cache_bits):
    bandwidth = chip["mem_bw"]
    keys = model["layers"] * model["kv_heads"] * model["head_dim"] * context * batch
    share = model["heads"] // model["kv_heads"]
    matrices = model["matrices"] * np.maximum(bytes_of_a_weight(form) / bandwidth, 2 * batch / rate_of(chip, form))
    output = 2 * model["output"] * np.maximum(1 / bandwidth, batch / chip["bf16"])
    attention = keys * np.maximum(cache_bits / 4 / bandwidth, 4 * share / chip["bf16"])
    return [matrices, output, attention]


def takeover(chip, form):
    batch = 1
    while 2 * batch / rate_of(chip, form) <= bytes_of_a_weight(form) / chip["mem_bw"]:
        batch += 1
    return np.int64(batch)


def cheapest(model, chips, forms, job):
    plans = []
    row = job["context"] * model["layers"] * 2 * model["kv_heads"] * model["head_dim"] * job["cache_bits"] / 8
    for name in job["rent"]:
        for kind in forms:
            left = 0.9 * chips[name]["mem_bytes"] - model["matrices"] * bytes_of_a_weight(forms[kind])
            left -= 2 * (model["table"] + model["output"] + model["norms"])
            n = np.arange(1, max(0, int(left / row)) + 1)
            step_s = np.sum(step_parts(model, chips[name], forms[kind], n, job["context"], job["cache_bits"]), axis=0) * np.ones(len(n))
            n, step_s = n[step_s <= job["token_s"]], step_s[step_s <= job["token_s"]]
            plans += [(job["rent"][name] * s / b / 0.0036, name, kind, int(b)) for b, s in zip(n, step_s)]
    return min(plans)

# %% serve | right | the largest batch by bisection, since more never costs more
def step_parts(model, chip, form, batch, context, cache_bits):
    def longer(size, flops, rate):
        return max(np.float64(size) / chip["mem_bw"], flops / rate)

    weight = form["bits"] / 8 + form["scale_bits"] / 8 / form["group"]
    rate = chip["bf16"] if not chip[form["math"]] else chip[form["math"]]
    tokens, wide = batch * context, model["layers"] * model["head_dim"]
    cache = tokens * wide * model["kv_heads"] * 2 * cache_bits // 8
    return (longer(model["matrices"] * weight, model["matrices"] * batch * 2, rate),
            longer(model["output"] * 2, model["output"] * batch * 2, chip["bf16"]),
            longer(cache, 2 * 2 * tokens * wide * model["heads"], chip["bf16"]))


def takeover(chip, form):
    weight = form["bits"] / 8 + form["scale_bits"] / 8 / form["group"]
    rate = chip["bf16"] if not chip[form["math"]] else chip[form["math"]]
    return int(np.floor(weight * rate / chip["mem_bw"] / 2)) + 1


def cheapest(model, chips, forms, job):
    found = []
    for name, rent in job["rent"].items():
        for kind, form in forms.items():
            def step(n):
                return sum(step_parts(model, chips[name], form, n, job["context"], job["cache_bits"]))

            def fits(n):
                cache = n * job["context"] * 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * job["cache_bits"] / 8
                weight = form["bits"] / 8 + form["scale_bits"] / 8 / form["group"]
                held = model["matrices"] * weight + 2 * (model["output"] + model["table"] + model["norms"]) + cache
                return held <= 0.9 * chips[name]["mem_bytes"] and step(n) <= job["token_s"]

            low, high = 0, 1 << 16
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if fits(middle) else (low, middle)
            if low:
                found.append([rent * step(low) / low / 3600 * 1e6, name, kind, low])
    return sorted(found)[0]

# %% serve | wrong | serve-reading-plus-computing
def step_parts(model, chip, form, batch, context, cache_bits):
    bits = form["bits"] + form["scale_bits"] / form["group"]
    numbers = batch * context * model["layers"] * model["head_dim"]
    work = [  # bytes, FLOPs, rate
        (model["matrices"] * bits / 8, 2 * model["matrices"] * batch, chip[form["math"]] or chip["bf16"]),
        (model["output"] * 2, 2 * model["output"] * batch, chip["bf16"]),
        (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
    return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)


def takeover(chip, form):
    raise NotImplementedError


def cheapest(model, chips, forms, job):
    raise NotImplementedError

# %% serve | wrong | serve-scales-forgotten | like serve-reading-plus-computing
#-     bits = form["bits"] + form["scale_bits"] / form["group"]
#+     bits = form["bits"]
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-rate-by-stored-bits | like serve-reading-plus-computing
#-         (model["matrices"] * bits / 8, 2 * model["matrices"] * batch, chip[form["math"]] or chip["bf16"]),
#+         (model["matrices"] * bits / 8, 2 * model["matrices"] * batch, chip["bf16"] * 16 / form["bits"]),
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-cache-of-all-query-heads | like serve-reading-plus-computing
#-         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+         (2 * numbers * model["heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-scores-of-key-heads-only | like serve-reading-plus-computing
#-         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["kv_heads"], chip["bf16"])]
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-one-cache-for-all | like serve-reading-plus-computing
#-         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+         (2 * numbers / batch * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-multiply-add-as-one | like serve-reading-plus-computing
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+     return tuple(max(size / chip["mem_bw"], flops / 2 / rate) for size, flops, rate in work)

# %% serve | wrong | serve-output-in-the-format | like serve-reading-plus-computing
#-         (model["output"] * 2, 2 * model["output"] * batch, chip["bf16"]),
#-         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+         (model["output"] * bits / 8, 2 * model["output"] * batch, chip[form["math"]] or chip["bf16"]),
#+         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-keys-without-values | like serve-reading-plus-computing
#-         (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#-     return tuple(size / chip["mem_bw"] + flops / rate for size, flops, rate in work)
#+         (numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
#+     return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)

# %% serve | wrong | serve-ridge-for-batch
def step_parts(model, chip, form, batch, context, cache_bits):
    raise NotImplementedError


def takeover(chip, form):
    bits = form["bits"] + form["scale_bits"] / form["group"]
    return math.floor((chip[form["math"]] or chip["bf16"]) / chip["mem_bw"]) + 1


def cheapest(model, chips, forms, job):
    raise NotImplementedError

# %% serve | wrong | serve-still-reading | like serve-ridge-for-batch
#-     return math.floor((chip[form["math"]] or chip["bf16"]) / chip["mem_bw"]) + 1
#+     return math.floor(bits / 8 / chip["mem_bw"] * (chip[form["math"]] or chip["bf16"]) / 2)

# %% serve | wrong | serve-flops-counted-once | like serve-ridge-for-batch
#-     return math.floor((chip[form["math"]] or chip["bf16"]) / chip["mem_bw"]) + 1
#+     return math.floor(bits / 8 / chip["mem_bw"] * (chip[form["math"]] or chip["bf16"])) + 1

# %% serve | wrong | serve-bf16-rate-for-all | like serve-ridge-for-batch
#-     return math.floor((chip[form["math"]] or chip["bf16"]) / chip["mem_bw"]) + 1
#+     return math.floor(bits / 8 / chip["mem_bw"] * chip["bf16"] / 2) + 1

# %% serve | wrong | serve-stored-bits-decide-the-rate | like serve-ridge-for-batch
#-     return math.floor((chip[form["math"]] or chip["bf16"]) / chip["mem_bw"]) + 1
#+     return math.floor(bits / 8 / chip["mem_bw"] * chip["bf16"] * 16 / form["bits"] / 2) + 1

# %% serve | wrong | serve-limit-broken
def step_parts(model, chip, form, batch, context, cache_bits):
    bits = form["bits"] + form["scale_bits"] / form["group"]
    numbers = batch * context * model["layers"] * model["head_dim"]
    work = [  # bytes, FLOPs, rate
        (model["matrices"] * bits / 8, 2 * model["matrices"] * batch, chip[form["math"]] or chip["bf16"]),
        (model["output"] * 2, 2 * model["output"] * batch, chip["bf16"]),
        (2 * numbers * model["kv_heads"] * cache_bits / 8, 4 * numbers * model["heads"], chip["bf16"])]
    return tuple(max(size / chip["mem_bw"], flops / rate) for size, flops, rate in work)


def takeover(chip, form):
    raise NotImplementedError


def cheapest(model, chips, forms, job):
    best = math.inf, None, None, None
    context, cache_bits = job["context"], job["cache_bits"]
    cache = 2 * context * model["layers"] * model["kv_heads"] * model["head_dim"] * cache_bits / 8
    for name, rent in job["rent"].items():
        for kind, form in forms.items():
            bits = form["bits"] + form["scale_bits"] / form["group"]
            fixed = model["matrices"] * bits / 8 + 2 * (model["output"] + model["table"] + model["norms"])
            for batch in range(1, 2000):
                step_s = sum(step_parts(model, chips[name], form, batch, context, cache_bits))
                dollars = rent / 3600 * step_s / batch * 1e6
                if step_s <= job["token_s"] and dollars < best[0]:
                    best = dollars, name, kind, batch
    return best

# %% serve | wrong | serve-far-from-the-least | like serve-limit-broken
#-             for batch in range(1, 2000):
#+             for batch in range(1, min(4, int((0.9 * chips[name]["mem_bytes"] - fixed) // cache) + 1)):

# %% serve | wrong | serve-fastest-not-cheapest | like serve-limit-broken
#-     best = math.inf, None, None, None
#+     best, fastest = None, math.inf
#-             for batch in range(1, 2000):
#+             for batch in range(1, int((0.9 * chips[name]["mem_bytes"] - fixed) // cache) + 1):
#-                 if step_s <= job["token_s"] and dollars < best[0]:
#-                     best = dollars, name, kind, batch
#+                 if step_s <= job["token_s"] and step_s / batch < fastest:
#+                     best, fastest = (dollars, name, kind, batch), step_s / batch

# %% serve | wrong | serve-one-sequence-at-a-time | like serve-limit-broken
#-             for batch in range(1, 2000):
#+             for batch in [1] * (0.9 * chips[name]["mem_bytes"] - fixed >= cache):

# %% serve | wrong | serve-whole-memory | like serve-limit-broken
#-             for batch in range(1, 2000):
#+             for batch in range(1, int((chips[name]["mem_bytes"] - fixed) // cache) + 1):

# %% serve | wrong | serve-token-table-takes-no-room | like serve-limit-broken
#-             fixed = model["matrices"] * bits / 8 + 2 * (model["output"] + model["table"] + model["norms"])
#-             for batch in range(1, 2000):
#+             fixed = model["matrices"] * bits / 8 + 2 * (model["output"] + model["norms"])
#+             for batch in range(1, int((0.9 * chips[name]["mem_bytes"] - fixed) // cache) + 1):

# %% serve | wrong | serve-readers-do-not-wait | like serve-limit-broken
#-             for batch in range(1, 2000):
#+             for batch in range(1, int((0.9 * chips[name]["mem_bytes"] - fixed) // cache) + 1):
#-                 if step_s <= job["token_s"] and dollars < best[0]:
#+                 if dollars < best[0]:

# %% serve | wrong | serve-fewest-bits | like serve-limit-broken
#-         for kind, form in forms.items():
#+         for kind, form in [("int4", forms["int4"])]:
#-             for batch in range(1, 2000):
#+             for batch in range(1, int((0.9 * chips[name]["mem_bytes"] - fixed) // cache) + 1):

# %% serve | wrong | serve-never-below-8-bits | like serve-limit-broken
#-         for kind, form in forms.items():
#+         for kind, form in list(forms.items())[:2]:
#-             for batch in range(1, 2000):
#+             for batch in range(1, int((0.9 * chips[name]["mem_bytes"] - fixed) // cache) + 1):
