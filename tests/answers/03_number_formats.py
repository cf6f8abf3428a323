# Alternatives and mistakes for lesson 3.3; see CONTRIBUTING.md for the form of the headers.

# %% codec | right | arrays; the nearest of all values by bisection
def decode_all(fmt):
    e, m, bias = fmt["exponent"], fmt["mantissa"], fmt["bias"]
    field, fraction = np.divmod(np.arange(2 ** (e + m)), 2**m)
    size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
    if fmt["top"] == "infinity":
        size[field == 2**e - 1] = np.nan
        size[-(2**m)] = np.inf
    elif fmt["top"] == "nan":
        size[-1] = np.nan
    return np.concatenate([size, -size])


def encode_all(numbers, fmt):
    import bisect
    positive = np.asarray(decode_all({**fmt, "top": "number"}))[: 2 ** (fmt["exponent"] + fmt["mantissa"])].tolist()
    real = np.asarray(decode_all(fmt))[: len(positive)]
    last = int(np.flatnonzero(~np.isnan(real))[-1]) if fmt["top"] != "infinity" else (2 ** fmt["exponent"] - 1) << fmt["mantissa"]
    middles = [(a + b) / 2 for a, b in zip(positive, positive[1:])]
    out = []
    for x in numbers:
        size = abs(float(x))
        code = bisect.bisect_left(middles, size)
        if code < len(middles) and middles[code] == size and code % 2:
            code += 1
        out.append(np.int64(min(code, last) + (len(positive) if x < 0 else 0)))
    return np.array(out)

# %% codec | right | bits as text, fractions
from fractions import Fraction


def decode_all(fmt):
    out, width = [], 1 + fmt["exponent"] + fmt["mantissa"]
    for code in range(2**width):
        bits = format(code, f"0{width}b")
        e, f = bits[1 : 1 + fmt["exponent"]], bits[1 + fmt["exponent"] :]
        power = Fraction(2) ** (max(int(e, 2), 1) - fmt["bias"])
        value = float(((("1" in e) and 1) + Fraction(int(f, 2), 2 ** fmt["mantissa"])) * power)
        if fmt["top"] != "number" and "0" not in e and (fmt["top"] == "infinity" or "0" not in f):
            value = float("inf") if fmt["top"] == "infinity" and "1" not in f else float("nan")
        out.append(-value if bits[0] == "1" else value)
    return out


def encode_all(numbers, fmt):
    e, m, out = fmt["exponent"], fmt["mantissa"], []
    for x in map(Fraction, numbers):
        field = 1
        while field < 2**e and abs(x) >= Fraction(2) ** (field + 1 - fmt["bias"]):
            field += 1
        units = abs(x) * 2**m / Fraction(2) ** (field - fmt["bias"])
        code = (field - 1) * 2**m + round(units)
        top = 2 ** (e + m) - 1 - {"infinity": 2**m - 1, "nan": 1, "number": 0}[fmt["top"]]
        out.append(min(code, top) + (2 ** (e + m) if x < 0 else 0))
    return out

# %% codec | wrong | subnormals-with-a-leading-one
def decode_all(fmt):
    e, m, bias = fmt["exponent"], fmt["mantissa"], fmt["bias"]
    field, fraction = np.divmod(np.arange(2 ** (e + m)), 2**m)
    size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
    if fmt["top"] == "infinity":
        size[field == 2**e - 1] = np.nan
        size[-(2**m)] = np.inf
    elif fmt["top"] == "nan":
        size[-1] = np.nan
    return np.concatenate([size, -size])


def encode_all(numbers, fmt):
    e, m, bias = fmt["exponent"], fmt["mantissa"], fmt["bias"]
    most = {"infinity": (2**e - 1) << m, "nan": 2 ** (e + m) - 2, "number": 2 ** (e + m) - 1}[fmt["top"]]
    codes = []
    for x in numbers:
        exponent = max(int(np.frexp(abs(x))[1]) - 1, 1 - bias)
        units = round(abs(float(x)) / 2.0 ** (exponent - m))
        code = units + (exponent + bias - 1) * 2**m
        codes.append(min(code, most) + (x < 0) * 2 ** (e + m))
    return codes

# %% codec | wrong | subnormals-one-binade-low | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (0 - bias - m))

# %% codec | wrong | top-exponent-read-as-numbers | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#-     if fmt["top"] == "infinity":
#-         size[field == 2**e - 1] = np.nan
#-         size[-(2**m)] = np.inf
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#+     if fmt["top"] == "infinity":
#+         pass

# %% codec | wrong | infinities-given-to-all | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#-     if fmt["top"] == "infinity":
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#+     if fmt["top"] != "number":
#-         size[-(2**m)] = np.inf
#-     elif fmt["top"] == "nan":
#-         size[-1] = np.nan
#+         size[-(2**m)] = np.inf

# %% codec | wrong | nan-read-as-a-number | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-         size[-(2**m)] = np.inf
#-     elif fmt["top"] == "nan":
#-         size[-1] = np.nan
#+         size[-(2**m)] = np.inf

# %% codec | wrong | sign-bit-without-effect | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-     return np.concatenate([size, -size])
#+     return np.concatenate([size, size])

# %% codec | wrong | mantissa-cut-off | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-         units = round(abs(float(x)) / 2.0 ** (exponent - m))
#+         units = int(abs(float(x)) / 2.0 ** (exponent - m))

# %% codec | wrong | ties-always-up | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-         units = round(abs(float(x)) / 2.0 ** (exponent - m))
#+         units = int(abs(float(x)) / 2.0 ** (exponent - m) + 0.5)

# %% codec | wrong | subnormals-flushed-to-zero | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-         units = round(abs(float(x)) / 2.0 ** (exponent - m))
#+         units = round(abs(float(x)) / 2.0 ** (exponent - m))
#+         if abs(x) < 2.0 ** (1 - bias):
#+             units = 0

# %% codec | wrong | carry-lost | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-         units = round(abs(float(x)) / 2.0 ** (exponent - m))
#+         units = round(abs(float(x)) / 2.0 ** (exponent - m))
#+         units = 2**m + units % 2**m if units >= 2**m else units

# %% codec | wrong | too-large-always-largest | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-     most = {"infinity": (2**e - 1) << m, "nan": 2 ** (e + m) - 2, "number": 2 ** (e + m) - 1}[fmt["top"]]
#+     most = {"infinity": ((2**e - 1) << m) - 1, "nan": 2 ** (e + m) - 2, "number": 2 ** (e + m) - 1}[fmt["top"]]

# %% codec | wrong | too-large-gives-nan | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-     most = {"infinity": (2**e - 1) << m, "nan": 2 ** (e + m) - 2, "number": 2 ** (e + m) - 1}[fmt["top"]]
#+     most = {"infinity": (2**e - 1) << m, "nan": 2 ** (e + m) - 1, "number": 2 ** (e + m) - 1}[fmt["top"]]

# %% codec | wrong | sign-not-encoded | like subnormals-with-a-leading-one
#-     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), (2**m + fraction) * 2.0 ** (0 - bias - m))
#+     size = np.where(field > 0, (2**m + fraction) * 2.0 ** (field - bias - m), fraction * 2.0 ** (1 - bias - m))
#-         codes.append(min(code, most) + (x < 0) * 2 ** (e + m))
#+         codes.append(min(code, most))

# %% ones | right | simulated, NumPy scalars
def sum_of_ones(n, m, chunk):
    def total(addend, count):
        s = 0.0
        for _ in range(count):
            s += addend
            spacing = 2.0 ** (np.frexp(s)[1] - 1 - m)
            s = np.rint(s / spacing) * spacing
        return s

    parts = n // chunk
    return np.array([total(1.0, n), total(total(1.0, chunk), parts), np.float64(chunk + parts - 2) * 0.5 ** (m + 1)])

# %% ones | right | as a list, with floats
def sum_of_ones(n, m, chunk):
    exact = 2.0 ** (m + 1)
    one = n if n < exact else exact
    first = float(min(exact, chunk))
    second = n / chunk * first
    if second > exact * first:
        second = exact * first
    return [one, second, (chunk - 1) / exact + (n / chunk - 1) / exact]

# %% ones | wrong | leading-one-not-counted
def sum_of_ones(n, m, chunk):
    stop = 2**m
    inner = min(chunk, stop)
    return min(n, stop), min(n // chunk, stop) * inner, (chunk - 1 + n // chunk - 1) / stop

# %% ones | wrong | ties-of-the-sum-up
def sum_of_ones(n, m, chunk):
    def total(addend, count):
        s = 0.0
        for _ in range(count):
            spacing = 2.0 ** (np.frexp(s + addend)[1] - 1 - m)
            s = np.floor((s + addend) / spacing + 0.5) * spacing
        return s

    return total(1, n), total(total(1, chunk), n // chunk), (chunk + n // chunk - 2) / 2 ** (m + 1)

# %% ones | wrong | outer-sum-never-stops
def sum_of_ones(n, m, chunk):
    stop = 2 ** (m + 1)
    inner = min(chunk, stop)
    return min(n, stop), n // chunk * inner, (chunk - 1 + n // chunk - 1) / stop

# %% ones | wrong | inner-sum-never-stops
def sum_of_ones(n, m, chunk):
    stop = 2 ** (m + 1)
    inner = chunk
    return min(n, stop), min(n // chunk, stop) * inner, (chunk - 1 + n // chunk - 1) / stop

# %% ones | wrong | bound-of-one-long-sum
def sum_of_ones(n, m, chunk):
    stop = 2 ** (m + 1)
    inner = min(chunk, stop)
    return min(n, stop), min(n // chunk, stop) * inner, (n - 1) / stop

# %% ones | wrong | bound-without-the-outer-sum
def sum_of_ones(n, m, chunk):
    stop = 2 ** (m + 1)
    inner = min(chunk, stop)
    return min(n, stop), min(n // chunk, stop) * inner, (chunk - 1) / stop

# %% ones | wrong | whole-spacing-as-error
def sum_of_ones(n, m, chunk):
    stop = 2 ** (m + 1)
    inner = min(chunk, stop)
    return min(n, stop), min(n // chunk, stop) * inner, (chunk - 1 + n // chunk - 1) / 2**m

# %% ones | wrong | first-number-rounded-too
def sum_of_ones(n, m, chunk):
    stop = 2 ** (m + 1)
    inner = min(chunk, stop)
    return min(n, stop), min(n // chunk, stop) * inner, (chunk + n // chunk) / stop

# %% peak | right | NumPy, multiply-adds on both sides
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    per_second = np.prod(np.array([sms, cores, fma, clock_mhz], float)) * 1e6 * (16 / bits)
    work = np.prod(np.array(shape, float))
    return np.array([2 * per_second / 1e12, work / per_second * 1000])

# %% peak | wrong | multiply-add-counted-once
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * 16 / bits * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, m * n * k / peak * 1e3

# %% peak | wrong | peak-counts-multiply-adds
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * 16 / bits * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, 2 * m * n * k / peak * 1e3

# %% peak | wrong | product-counts-multiply-adds
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * 16 / bits * 2 * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, m * n * k / peak * 1e3

# %% peak | wrong | one-core-for-each-sm
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * fma * 16 / bits * 2 * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, 2 * m * n * k / peak * 1e3

# %% peak | wrong | width-changes-nothing
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * 2 * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, 2 * m * n * k / peak * 1e3

# %% peak | wrong | wide-inputs-faster
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * bits / 16 * 2 * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, 2 * m * n * k / peak * 1e3

# %% peak | wrong | sparse-peak-taken
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * 16 / bits * 4 * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, 2 * m * n * k / peak * 1e3

# %% peak | wrong | seconds-instead-of-milliseconds
def tensor_peak(sms, cores, fma, clock_mhz, bits, shape):
    peak = sms * cores * fma * 16 / bits * 2 * clock_mhz * 1e6
    m, n, k = shape
    return peak / 1e12, 2 * m * n * k / peak

# %% in-blocks | right | loops and lists, scale by doubling
def in_blocks(x, block, grid, bits):
    import math
    both = sorted({s * g for g in grid for s in (1, -1)})
    out, scales = [], 0
    for start in range(0, len(x), block):
        part, scale = x[start : start + block], 2.0**-200
        scales += 1
        while scale * grid[-1] < max(abs(v) for v in part):
            scale *= 2
        out += [scale * min(both, key=lambda g: abs(g * scale - v)) for v in part]
    noise = sum((a - b) ** 2 for a, b in zip(x, out))
    return [out, (len(x) * bits + 8 * scales) / len(x), 10 * math.log10(sum(v * v for v in x) / noise)]

# %% in-blocks | right | whole arrays, filled up with zeros, frexp
def in_blocks(x, block, grid, bits):
    x, grid = np.asarray(x, np.float64), np.asarray(grid, np.float64)
    rows = np.pad(x, (0, -len(x) % block)).reshape(-1, block)
    mantissa, power = np.frexp(np.abs(rows).max(1) / grid[-1])
    scale = np.ldexp(1.0, power - (mantissa == 0.5))[:, None]
    middles = (grid[1:] + grid[:-1]) / 2
    stored = np.copysign(grid[np.searchsorted(middles, np.abs(rows) / scale)] * scale, rows).ravel()[: len(x)]
    rms = np.linalg.norm(x) / np.linalg.norm(x - stored)
    return stored, np.float64(bits + 8 * len(rows) / len(x)), 20 * np.log10(rms)

# %% in-blocks | wrong | scale-bits-forgotten
def in_blocks(x, block, grid, bits):
    x, grid = np.asarray(x, float), np.asarray(grid, float)
    values = np.zeros_like(x)
    for start in range(0, len(x), block):
        part = x[start : start + block]
        largest = np.abs(part).max()
        if largest > 0:
            scale = 2.0 ** np.ceil(np.log2(largest / grid[-1]))
            nearest = np.abs(np.abs(part)[:, None] / scale - grid).argmin(axis=1)
            values[start : start + block] = np.sign(part) * grid[nearest] * scale
    blocks = -(-len(x) // block)
    snr = 10 * np.log10(np.sum(x**2) / np.sum((x - values) ** 2))
    return values, bits, snr

# %% in-blocks | wrong | scale-paid-by-every-number | like scale-bits-forgotten
#-     return values, bits, snr
#+     return values, bits + 8, snr

# %% in-blocks | wrong | scale-of-unfilled-block-in-part | like scale-bits-forgotten
#-     return values, bits, snr
#+     return values, bits + 8 / block, snr

# %% in-blocks | wrong | scale-byte-counted-as-a-bit | like scale-bits-forgotten
#-     return values, bits, snr
#+     return values, bits + blocks / len(x), snr

# %% in-blocks | wrong | largest-without-its-sign | like scale-bits-forgotten
#-         largest = np.abs(part).max()
#+         largest = part.max()
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | one-scale-for-all-blocks | like scale-bits-forgotten
#-         largest = np.abs(part).max()
#+         largest = np.abs(x).max()
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | scale-a-power-too-large | like scale-bits-forgotten
#-             scale = 2.0 ** np.ceil(np.log2(largest / grid[-1]))
#+             scale = 2.0 ** (1 + np.floor(np.log2(largest / grid[-1])))
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | scale-of-zeros-not-counted
def in_blocks(x, block, grid, bits):
    x, grid = np.asarray(x, float), np.asarray(grid, float)
    values, blocks = np.zeros_like(x), 0
    for start in range(0, len(x), block):
        part = x[start : start + block]
        largest = np.abs(part).max()
        if largest > 0:
            blocks += 1
            scale = 2.0 ** np.ceil(np.log2(largest / grid[-1]))
            nearest = np.abs(np.abs(part)[:, None] / scale - grid).argmin(axis=1)
            values[start : start + block] = np.sign(part) * grid[nearest] * scale
    snr = 10 * np.log10(np.sum(x**2) / np.sum((x - values) ** 2))
    return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | scale-rounded-down | like scale-bits-forgotten
#-             scale = 2.0 ** np.ceil(np.log2(largest / grid[-1]))
#+             scale = 2.0 ** np.floor(np.log2(largest / grid[-1]))
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | scale-not-a-power-of-two | like scale-bits-forgotten
#-             scale = 2.0 ** np.ceil(np.log2(largest / grid[-1]))
#+             scale = largest / grid[-1]
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | elements-cut-off | like scale-bits-forgotten
#-             nearest = np.abs(np.abs(part)[:, None] / scale - grid).argmin(axis=1)
#+             nearest = np.searchsorted(grid, np.abs(part) / scale, side="right") - 1
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | signs-dropped | like scale-bits-forgotten
#-             values[start : start + block] = np.sign(part) * grid[nearest] * scale
#+             values[start : start + block] = grid[nearest] * scale
#-     return values, bits, snr
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | decibels-of-amplitudes | like scale-bits-forgotten
#-     snr = 10 * np.log10(np.sum(x**2) / np.sum((x - values) ** 2))
#-     return values, bits, snr
#+     snr = 20 * np.log10(np.sum(x**2) / np.sum((x - values) ** 2))
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | noise-over-signal | like scale-bits-forgotten
#-     snr = 10 * np.log10(np.sum(x**2) / np.sum((x - values) ** 2))
#-     return values, bits, snr
#+     snr = 10 * np.log10(np.sum((x - values) ** 2) / np.sum(x**2))
#+     return values, bits + 8 * blocks / len(x), snr

# %% in-blocks | wrong | decibels-of-natural-log | like scale-bits-forgotten
#-     snr = 10 * np.log10(np.sum(x**2) / np.sum((x - values) ** 2))
#-     return values, bits, snr
#+     snr = 10 * np.log(np.sum(x**2) / np.sum((x - values) ** 2))
#+     return values, bits + 8 * blocks / len(x), snr
