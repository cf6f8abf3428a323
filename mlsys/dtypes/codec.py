"""Encoding and decoding: real numbers to the codes of a format, and back. Bit-exact, for whole arrays.

One observation does the work. Inside a binade (from one power of two to the next) numbers of a format are evenly
spaced. Divide by that spacing, round to a whole number n, and

    code = n + (exponent - min_exponent) * 2**mantissa_bits

If rounding carries n into the next binade, the code carries with it; subnormals need no case of their own.
Equal to CUDA's conversions on the host and to ml_dtypes for every 16-bit pattern and all float32 tried.
Left out: rounding twice, as software does that goes through another format on the way; results here are nearer.
Lessons: tensor cores and number formats, numerical stability.
"""

from __future__ import annotations

import numpy as np

from .formats import Format, find

ROUNDINGS = ("nearest", "stochastic", "truncate")
NAN_STYLES = ("cuda", "ml_dtypes")


def encode(
    x,
    name: str | Format,
    saturate: bool | None = None,
    rounding: str = "nearest",
    rng: np.random.Generator | None = None,
    nan: str = "cuda",
) -> np.ndarray:
    """Codes of x in a format: an unsigned integer array of the shape of x, with the width of a code or the next larger.

    saturate: what is too large, infinity included, becomes the largest number (True) or infinity, else NaN, where the
        format has it (False). None does what a GPU does unasked: True for 8 bits and fewer, False above.
    rounding: "nearest" (ties to the even code), "truncate" (towards zero), or "stochastic": up with the probability
        of the part that is cut off, so that the mean over many draws is x. It needs an rng.
    nan: whose NaN: "cuda" (all bits set, no sign; where there is no NaN, the largest number) or "ml_dtypes" (quiet,
        sign kept; where there is no NaN, a zero).

    Raises ValueError for an unknown format, rounding or nan, and for "stochastic" without an rng.

    >>> encode([1.0, 448.0, 465.0, -1e9], "e4m3fn").tolist()
    [56, 126, 126, 254]
    >>> encode([464.0, 465.0], "e4m3fn", saturate=False).tolist()
    [126, 127]
    """
    fmt = find(name)
    if rounding not in ROUNDINGS:
        raise ValueError(f"rounding={rounding!r}: choose one of {', '.join(ROUNDINGS)}")
    if nan not in NAN_STYLES:
        raise ValueError(f"nan={nan!r}: choose one of {', '.join(NAN_STYLES)}")
    if rounding == "stochastic" and rng is None:
        raise ValueError('rounding="stochastic" draws random numbers: hand in rng=np.random.default_rng(seed)')
    shape = np.shape(x)
    x = np.atleast_1d(np.asarray(x, np.float64))
    missing = np.isnan(x)
    negative = np.signbit(x)
    code = _round(np.minimum(np.abs(np.where(missing, 0.0, x)), 2.0 ** (fmt.max_exponent + 1)), fmt, rounding, rng)
    _overflow(code, fmt, fmt.bits <= 8 if saturate is None else saturate, rounding, np.isinf(x))
    _sign(code, negative, fmt, nan)
    if missing.any():
        code[missing] = _nan_codes(negative[missing], fmt, nan)
    return code.astype(_width(fmt)).reshape(shape)[()]


def decode(codes, name: str | Format) -> np.ndarray:
    """Values of codes, as float32, which holds each of them exactly. Bits above the width of a code must be 0.

    >>> decode([0x01, 0x38, 0x7e, 0x7f, 0xb8], "e4m3fn").tolist()
    [0.001953125, 1.0, 448.0, nan, -1.0]
    >>> decode([0, 127, 254], "e8m0").tolist() == [2.0**-127, 1.0, 2.0**127]
    True
    """
    fmt = find(name)
    codes = np.asarray(codes)
    if codes.dtype.kind not in "iu":
        raise ValueError(f"codes are whole numbers, and these are {codes.dtype}")
    if codes.size and (codes.min() < 0 or int(codes.max()) >> fmt.bits):
        raise ValueError(f"codes of {fmt.name} lie in 0..{2**fmt.bits - 1}, and these in {codes.min()}..{codes.max()}")
    if fmt.bits <= 16 and codes.size > 4 << fmt.bits:
        return _values(np.arange(1 << fmt.bits), fmt)[codes]  # a table is faster than the arithmetic
    return _values(codes, fmt)[()]


def rounded(x, name: str | Format, **how) -> np.ndarray:
    """The nearest numbers that a format has: decode after encode, with the same options.

    >>> rounded([0.1, 1.0, 300.0], "e4m3fn").tolist()
    [0.1015625, 1.0, 288.0]
    """
    return decode(encode(x, name, **how), name)


def neighbours(x: float, name: str | Format) -> tuple[float, float]:
    """The largest finite number of the format that is at most x, and the smallest that is at least x.

    Beyond the largest number both are that number. Formats without a sign take positive x only.

    >>> neighbours(0.1, "e2m1"), neighbours(1.5, "e2m1"), neighbours(-0.7, "e2m1")
    ((0.0, 0.5), (1.5, 1.5), (-1.0, -0.5))
    """
    fmt = find(name)
    if np.isnan(x) or (fmt.scale_only and x <= 0):
        raise ValueError(f"x={x} has no neighbours in {fmt.name}")
    inner = int(encode(abs(x), fmt, saturate=True, rounding="truncate"))
    outer = min(inner + 1, fmt.max_code)
    low, high = (float(v) for v in decode([inner, outer], fmt))
    if low >= abs(x):  # exact, beyond the largest number, or below the smallest of a format without zero
        high = low
    return (low, high) if x >= 0 else (-high, -low)


def bit_fields(code: int, name: str | Format) -> tuple[str, str, str]:
    """Sign, exponent and mantissa of a code, as text of zeros and ones; a field that a format lacks is empty.

    >>> bit_fields(0xB8, "e4m3fn"), bit_fields(127, "e8m0")
    (('1', '0111', '000'), ('', '01111111', ''))
    """
    fmt = find(name)
    if not 0 <= code < 1 << fmt.bits:
        raise ValueError(f"code {code} of {fmt.name} does not lie in 0..{2**fmt.bits - 1}")
    text = f"{code:0{fmt.bits}b}"
    ends = (int(not fmt.scale_only), int(not fmt.scale_only) + fmt.exponent_bits)
    return text[: ends[0]], text[ends[0] : ends[1]], text[ends[1] :]


def _width(fmt: Format) -> type:
    return np.uint8 if fmt.bits <= 8 else np.uint16 if fmt.bits <= 16 else np.uint32


def _round(size: np.ndarray, fmt: Format, rounding: str, rng) -> np.ndarray:
    """Codes without sign of sizes >= 0, as int64; they may lie above fmt.max_code."""
    exponent = (size.view(np.int64) >> 52) - 1023  # floor(log2(size)); far below for 0
    np.maximum(exponent, fmt.min_exponent, out=exponent)
    units = size * ((1023 + fmt.mantissa_bits - exponent) << 52).view(np.float64)  # in spacings of this binade; exact
    if rounding == "nearest":
        n = np.rint(units).astype(np.int64)
    else:
        n = units.astype(np.int64)
        if rounding == "stochastic":
            n += rng.random(size.shape) < units - n
    code = n + ((exponent - fmt.min_exponent) << fmt.mantissa_bits)
    if fmt.scale_only:  # its code 0 is a power of two, so all codes are one lower, and there is nothing below
        code = np.maximum(code - 1, 0)
    return code


def _overflow(code: np.ndarray, fmt: Format, saturate: bool, rounding: str, infinite: np.ndarray) -> None:
    """Give codes above the largest number their fate, in place."""
    too_large = code > fmt.max_code
    if not too_large.any():
        return
    kept = saturate or fmt.specials == "none"
    outside = fmt.max_code + 1 if fmt.specials != "fnuz" else fmt.sign_code
    code[too_large] = fmt.max_code if kept else outside
    if rounding == "truncate" and not kept:  # towards zero, a finite number stays finite
        code[too_large & ~infinite] = fmt.max_code


def _sign(code: np.ndarray, negative: np.ndarray, fmt: Format, nan: str) -> None:
    """Set the sign bit, in place."""
    if fmt.scale_only:
        if nan == "ml_dtypes":  # a scale is positive: a negative number has none; CUDA takes its size
            code[negative] = fmt.max_code + 1
    elif fmt.specials == "fnuz":
        code[negative & (code > 0) & (code < fmt.sign_code)] += fmt.sign_code
    else:
        code += negative * np.int64(fmt.sign_code)


def _nan_codes(negative: np.ndarray, fmt: Format, nan: str) -> np.ndarray:
    """Codes for NaN inputs; `negative` is their sign bit."""
    if fmt.specials == "fnuz":
        return np.full(negative.shape, fmt.sign_code)
    if nan == "cuda" or fmt.scale_only:
        return np.full(negative.shape, (fmt.sign_code or 1 << fmt.bits) - 1)
    if fmt.specials == "none":
        return np.where(negative, 0, fmt.sign_code)
    quiet = fmt.max_code + 1 + ((1 << fmt.mantissa_bits) >> 1 if fmt.has_inf else 0)
    return quiet + negative * fmt.sign_code


def _values(codes: np.ndarray, fmt: Format) -> np.ndarray:
    codes = codes.astype(np.int64)
    size = codes & (fmt.sign_code - 1) if fmt.sign_code else codes
    field, fraction = size >> fmt.mantissa_bits, size & ((1 << fmt.mantissa_bits) - 1)
    normal = (field > 0) | fmt.scale_only
    units = (fraction + (normal << fmt.mantissa_bits)).astype(np.float64)
    value = np.ldexp(units, np.where(normal, field - fmt.bias, fmt.min_exponent) - fmt.mantissa_bits)
    if fmt.specials == "fnuz":
        value = np.where(codes == fmt.sign_code, np.nan, value)
    elif fmt.specials != "none":
        value = np.where(size > fmt.max_code, np.where(fmt.has_inf & (fraction == 0), np.inf, np.nan), value)
    with np.errstate(under="ignore"):
        return np.where(codes & fmt.sign_code, -value, value).astype(np.float32)
