"""Block formats: scales, saturation, sizes, and how much error a scale saves."""

import numpy as np
import pytest

from mlsys.dtypes import decode, find, mx, nvfp4, rounded

ELEMENTS = ("e4m3fn", "e5m2", "e2m1", "e2m3", "e3m2")


def sample(shape=(6, 96), seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * np.exp2(rng.integers(-12, 12, (shape[0], 1)))


@pytest.mark.parametrize("element", ELEMENTS)
def test_mx_scale_is_the_power_of_two_under_the_largest(element):
    x = sample()
    t = mx(x, element)
    largest = np.abs(x.reshape(6, 3, 32)).max(-1)
    ratio = largest / decode(t.scales, "e8m0")
    top = 2.0 ** find(element).max_exponent
    assert ((ratio >= top) & (ratio < 2 * top)).all()
    assert t.codes.shape == (6, 3, 32) and t.scales.shape == (6, 3)


@pytest.mark.parametrize("element", ELEMENTS)
def test_mx_values_are_elements_times_scales(element):
    x = sample(seed=1)
    t = mx(x, element)
    scale = np.repeat(decode(t.scales, "e8m0"), 32, axis=-1)
    assert np.array_equal(t.values(), (rounded(x / scale, element, saturate=True) * scale).astype(np.float32))
    spacing = scale * 2.0 ** (find(element).max_exponent - find(element).mantissa_bits)
    inside = np.abs(x) <= find(element).max * scale
    assert (np.abs(t.values() - x)[inside] <= (spacing / 2)[inside]).all()


def test_powers_of_two_move_only_the_scales():
    x = sample(seed=2)
    small, large = mx(x, "e2m1"), mx(x * 1024, "e2m1")
    assert np.array_equal(small.codes, large.codes) and np.array_equal(small.scales + 10, large.scales)


def test_bits_of_an_element():
    x = sample((4, 128))
    assert [mx(x, e).size_bits / x.size for e in ("e4m3fn", "e2m3", "e2m1")] == [8.25, 6.25, 4.25]
    assert nvfp4(x).size_bits / x.size == 4.5


def test_last_block_is_filled_up():
    x = sample((3, 50))
    for t in (mx(x, "e4m3fn"), nvfp4(x)):
        assert t.values().shape == (3, 50)
        assert np.abs(t.values() - x).max() < 0.3 * np.abs(x).max()
    assert mx(np.ones(33)).codes.shape == (2, 32)


def test_nvfp4_scales_are_fp8_numbers_below_their_largest():
    x = sample(seed=3)
    t = nvfp4(x)
    scales = decode(t.scales, "e4m3fn")
    assert scales.max() == 448 and np.isclose(t.tensor_scale, np.abs(x).max() / (6 * 448), rtol=1e-6)
    assert np.abs(t.values()).max() == pytest.approx(np.abs(x).max(), rel=1e-6)


def test_finer_scales_err_less():
    x = np.random.default_rng(4).standard_normal((64, 256))
    error = {name: float(np.square(t.values() - x).mean()) for name, t in (("mx", mx(x, "e2m1")), ("nvfp4", nvfp4(x)))}
    assert error["nvfp4"] < error["mx"] < np.square(rounded(x / 100, "e2m1") * 100.0 - x).mean()


def test_zeros_and_what_is_not_finite():
    assert not mx(np.zeros(64)).values().any() and not nvfp4(np.zeros(64)).values().any()
    x = np.ones(64)
    x[3] = np.nan
    values = mx(x).values()
    assert np.isnan(values[:32]).all() and (values[32:] == 1).all()  # the scale is NaN, and with it the block
    with pytest.raises(ValueError, match="finite"):
        nvfp4(x)
    with pytest.raises(ValueError, match=r"shape \(\)"):
        mx(1.0)


def test_stochastic_blocks_keep_the_mean():
    x = np.tile(np.linspace(-1, 1, 32), (4000, 1))
    t = mx(x, "e2m1", rounding="stochastic", rng=np.random.default_rng(5))
    assert np.abs(t.values().mean(0, dtype=np.float64) - x[0]).max() < 0.01
