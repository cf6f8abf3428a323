"""Number formats against ml_dtypes and CUDA's own conversions: every code, every column, and the rules between them."""

import csv
from pathlib import Path

import numpy as np
import pytest

from mlsys.dtypes import FORMATS, Format, bit_fields, decode, encode, find, neighbours, rounded

DATA = Path(__file__).parent / "data"
SMALL = [name for name, fmt in FORMATS.items() if fmt.bits <= 16]
COLUMNS = {  # column of the table: format, saturate, whose NaN
    "ml_e4m3fn": ("e4m3fn", False, "ml_dtypes"),
    "cuda_e4m3_satfinite": ("e4m3fn", True, "cuda"),
    "cuda_e4m3_nosat": ("e4m3fn", False, "cuda"),
    "ml_e5m2": ("e5m2", False, "ml_dtypes"),
    "cuda_e5m2_satfinite": ("e5m2", True, "cuda"),
    "cuda_e5m2_nosat": ("e5m2", False, "cuda"),
    "ml_e2m1fn": ("e2m1", False, "ml_dtypes"),
    "cuda_e2m1": ("e2m1", True, "cuda"),
    "ml_e2m3fn": ("e2m3", False, "ml_dtypes"),
    "cuda_e2m3": ("e2m3", True, "cuda"),
    "ml_e3m2fn": ("e3m2", False, "ml_dtypes"),
    "cuda_e3m2": ("e3m2", True, "cuda"),
    "ml_bf16": ("bf16", None, "ml_dtypes"),
    "cuda_bf16_rn": ("bf16", None, "cuda"),
    "ml_fp16": ("fp16", None, "ml_dtypes"),
    "cuda_fp16_rn": ("fp16", None, "cuda"),
}


def table(name):
    """Rows of a CSV file; its first line says where they are from."""
    with open(DATA / name, encoding="utf-8") as lines:
        assert next(lines).startswith("# ")
        return list(csv.DictReader(lines))


def same(a, b):
    """Equal, with NaN equal to NaN and -0 apart from 0."""
    return (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)


def finite(name):
    """Every finite number of a format once, in order."""
    values = decode(np.arange(1 << find(name).bits), name)
    return np.unique(values[np.isfinite(values)]).astype(np.float64)


def test_codes_table():
    for row in table("number_format_codes.csv"):
        value = decode([int(row["code"])], row["format"])
        assert same(value, np.float32([float(row["value"])])).all(), row


@pytest.mark.parametrize("column", COLUMNS)
def test_conversions_table(column):
    rows = table("number_format_conversions.csv")
    x = np.array([int(row["float32_hex"], 16) for row in rows], np.uint32).view(np.float32)
    name, saturate, nan = COLUMNS[column]
    assert encode(x, name, saturate=saturate, nan=nan).tolist() == [int(row[column]) for row in rows]


def test_limits_table():
    for row in table("number_formats.csv"):
        fmt = find(row["format"])
        assert (fmt.bits, fmt.exponent_bits, fmt.mantissa_bits) == tuple(
            int(row[key]) for key in ("bits", "exponent_bits", "mantissa_bits")
        )
        ours = (fmt.max, fmt.smallest_normal, fmt.smallest_subnormal, fmt.eps, fmt.has_inf, fmt.has_nan)
        keys = ("max_finite", "smallest_normal", "smallest_subnormal", "eps")
        assert ours == (*(float(row[key]) for key in keys), row["has_inf"] == "True", row["has_nan"] == "True"), row["format"]


def test_tf32_is_the_top_of_float32():
    bits = np.random.default_rng(0).integers(0, 0x7F7F0000, 10_000).astype(np.uint32)
    cut = encode(bits.view(np.float32), "tf32", rounding="truncate")
    assert np.array_equal(cut, bits >> 13)
    assert np.array_equal(decode(cut, "tf32"), (bits >> 13 << 13).view(np.float32))
    assert (find("tf32").bits, find("tf32").max) == (19, 3.4011621342146535e38)


def test_fp16_equals_numpy_on_every_code():
    codes = np.arange(1 << 16, dtype=np.uint16)
    assert same(decode(codes, "fp16"), codes.view(np.float16).astype(np.float32)).all()
    x = np.random.default_rng(1).integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        assert np.array_equal(encode(x, "fp16"), x.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("name", FORMATS)
def test_codes_survive_decode_and_encode(name):
    bits = find(name).bits
    codes = np.arange(1 << bits) if bits <= 16 else np.random.default_rng(2).integers(0, 1 << bits, 100_000)
    values = decode(codes, name)
    kept = ~np.isnan(values)
    assert np.array_equal(encode(values[kept], name, saturate=False), codes[kept])
    if find(name).has_nan:
        assert np.isnan(decode(encode([np.nan], name), name)).all()


@pytest.mark.parametrize("name", SMALL)
def test_nearest_is_nearest(name):
    values = finite(name)
    x = np.random.default_rng(3).uniform(-1.2, 1.2, 300) * min(find(name).max, 1e30)
    x = np.abs(x) if find(name).scale_only else x
    best = np.abs(np.clip(x, values[0], values[-1])[:, None] - values).min(1)
    assert np.array_equal(np.abs(np.clip(x, values[0], values[-1]) - rounded(x, name, saturate=True)), best)


@pytest.mark.parametrize("name", [name for name in SMALL if not FORMATS[name].scale_only])
def test_ties_go_to_the_even_code(name):
    positive = finite(name)
    positive = positive[positive >= 0]
    middle = (positive[1:] + positive[:-1]) / 2
    lower = np.arange(len(middle))
    assert np.array_equal(encode(middle, name), lower + lower % 2)
    assert np.array_equal(encode(np.nextafter(middle, 0), name), lower)
    assert np.array_equal(encode(np.nextafter(middle, np.inf), name), lower + 1)


@pytest.mark.parametrize("name", FORMATS)
def test_order_is_kept(name):
    x = np.sort(np.random.default_rng(4).standard_normal(2000) * np.exp2(np.arange(2000) % 60 - 30))
    x = x[x > 0] if find(name).scale_only else x
    for how in ({}, {"rounding": "truncate"}):
        assert (np.diff(rounded(x, name, saturate=True, **how)) >= 0).all()


def test_truncating_never_grows():
    x = np.random.default_rng(5).standard_normal(5000) * 1000
    for name in FORMATS:
        if not find(name).scale_only:
            y = rounded(x, name, rounding="truncate")
            assert (np.abs(y) <= np.abs(x)).all() and (x * y >= 0).all()
    assert encode([1e9, np.inf], "e5m2", saturate=False, rounding="truncate").tolist() == [123, 124]


def test_stochastic_rounding_has_the_right_mean():
    rng = np.random.default_rng(6)
    for x in (0.3, 1.01, -2.6, 5.1, 0.0007):
        draws = rounded(np.full(40_000, x), "e2m1", rounding="stochastic", rng=rng)
        below, above = neighbours(x, "e2m1")
        assert set(draws.tolist()) <= {below, above}
        assert abs(draws.mean() - x) < 5 * (above - below) / 2 / np.sqrt(draws.size)
    assert rounded(np.full(9, 3.0), "e2m1", rounding="stochastic", rng=rng).tolist() == [3.0] * 9


def test_small_updates_vanish_to_nearest_and_survive_stochastically():
    """A bf16 weight of 1 ignores updates below 2**-9 when it is rounded to nearest."""
    assert rounded(1 - 2.0**-9 * 0.99, "bf16") == 1.0 and rounded(1 - 2.0**-9 * 1.01, "bf16") < 1.0
    mean = rounded(np.full(100_000, 1 - 2.0**-12), "bf16", rounding="stochastic", rng=np.random.default_rng(7)).mean(dtype=np.float64)
    assert abs(mean - (1 - 2.0**-12)) < 1e-4


def test_what_is_too_large():
    too_large = [480.1, -1e30, np.inf]
    assert rounded(too_large, "e4m3fn").tolist() == [448, -448, 448]
    assert np.isnan(rounded(too_large, "e4m3fn", saturate=False)).all()
    assert rounded(too_large, "e4m3", saturate=False).tolist() == [np.inf, -np.inf, np.inf]
    assert rounded(too_large, "e2m1", saturate=False).tolist() == [6, -6, 6]  # there is nothing else to become
    assert rounded([70000.0, 1e39], "fp16").tolist() == [np.inf, np.inf]  # 16 bits and more overflow unless told not to
    assert rounded([70000.0, 1e39], "fp16", saturate=True).tolist() == [65504, 65504]


def test_scale_format_has_neither_zero_nor_sign():
    assert encode([0.0, 2.0**-200, 1.0, 1e300, -4.0], "e8m0").tolist() == [0, 0, 127, 254, 129]
    assert encode([-4.0, 1e300], "e8m0", saturate=False, nan="ml_dtypes").tolist() == [255, 255]


def test_shapes_and_types():
    assert encode(1.0, "e4m3fn").shape == () and encode(np.zeros((2, 0, 3)), "bf16").shape == (2, 0, 3)
    assert [encode(1.0, name).dtype.itemsize for name in ("e2m1", "bf16", "tf32")] == [1, 2, 4]
    assert decode(np.zeros((2, 3), np.uint8), "e2m1").shape == (2, 3)
    big = np.random.default_rng(8).integers(0, 256, (5, 1000))
    assert same(decode(big, "e5m2"), np.stack([decode(row, "e5m2") for row in big])).all()  # with a table and without
    assert np.array_equal(encode(np.arange(12.0).reshape(3, 4).T, "e4m3fn"), encode(np.arange(12.0), "e4m3fn").reshape(3, 4).T)


@pytest.mark.parametrize("name", SMALL)
def test_bit_fields_are_the_code(name):
    fmt = find(name)
    for code in np.random.default_rng(11).integers(0, 1 << fmt.bits, 50).tolist():
        parts = bit_fields(code, name)
        assert int("".join(parts), 2) == code
        assert [len(part) for part in parts] == [int(not fmt.scale_only), fmt.exponent_bits, fmt.mantissa_bits]
    assert bit_fields(0x7C00, "fp16") == ("0", "11111", "0000000000")


def test_a_format_of_your_own():
    own = Format("e3m0", 3, 0, 3, "none")
    assert decode(np.arange(8), own).tolist() == [0, 0.25, 0.5, 1, 2, 4, 8, 16]
    assert encode([3.0, 5.0, 100.0, -0.3], own).tolist() == [5, 5, 7, 9]


@pytest.mark.parametrize("call, says", [
    (lambda: encode(1.0, "e9m9"), "'e9m9' is no known format"),
    (lambda: encode(1.0, "bf16", rounding="up"), "rounding='up'"),
    (lambda: encode(1.0, "bf16", rounding="stochastic"), "rng="),
    (lambda: encode(1.0, "bf16", nan="arm"), "nan='arm'"),
    (lambda: decode([16], "e2m1"), "0..15"),
    (lambda: decode([0.5], "e2m1"), "whole numbers"),
    (lambda: bit_fields(16, "e2m1"), "code 16 of e2m1"),
    (lambda: neighbours(float("nan"), "e2m1"), "no neighbours"),
])  # fmt: skip
def test_errors_say_what_is_wrong(call, says):
    with pytest.raises(ValueError, match=says.replace("'", ".")):
        call()


def test_equals_ml_dtypes_where_it_is_installed():
    ml = pytest.importorskip("ml_dtypes")
    other = {"bf16": "bfloat16", "e2m1": "float4_e2m1fn", "e2m3": "float6_e2m3fn", "e3m2": "float6_e3m2fn", "e8m0": "float8_e8m0fnu"}
    bits = np.random.default_rng(9).integers(0, 1 << 32, 300_000, dtype=np.uint32).view(np.float32)
    every = np.concatenate([bits, np.random.default_rng(10).standard_normal(100_000).astype(np.float32) * 100])
    for name in FORMATS.keys() - {"fp32", "tf32", "fp16"}:
        dtype = np.dtype(getattr(ml, other.get(name, f"float8_{name}")))
        x = every
        if name == "e8m0":
            x = x[np.abs(x) >= 2.0**-126]  # below, ml_dtypes 0.6.0 rounds up whatever is not a power of two
        with np.errstate(all="ignore"):
            want = x.astype(dtype).view(f"u{dtype.itemsize}")
        assert np.array_equal(encode(x, name, saturate=False, nan="ml_dtypes"), want), name
        codes = np.arange(1 << find(name).bits).astype(want.dtype)
        assert same(decode(codes, name), codes.view(dtype).astype(np.float32)).all(), name
