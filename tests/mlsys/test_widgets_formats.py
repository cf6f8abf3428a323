"""The format inspector shows what the codec says, and its sums are those of a sum that is rounded each time."""

import math
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.dtypes import FORMATS, bit_fields, decode, find, neighbours, rounded
from mlsys.viz.formats import bits_against_snr, chunked_sum, number_rows, positive_numbers, running_sum, sum_drift
from mlsys.widgets.formats import NAMES, VALUES, FormatExplorer, around, drift, finding, number, store, sum_finding


@pytest.fixture
def box():
    return FormatExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("addend", [0.001, 0.3, 1.0, 100.0])
@pytest.mark.parametrize("rounding", ["nearest", "truncate"])
def test_a_running_sum_is_the_codec_applied_after_every_addition(name, addend, rounding):
    total, stored = 0.0, float(rounded(addend, name))
    for got in running_sum(addend, 300, name, rounding):
        total = float(rounded(total + stored, name, rounding=rounding))
        assert got == total


@pytest.mark.parametrize("name, end", [("bf16", 256), ("fp16", 2048), ("e4m3fn", 16), ("e5m2", 8), ("tf32", 2048), ("e2m1", 4)])
def test_ones_stop_at_two_to_the_significand(name, end):
    assert running_sum(1, 4096, name)[-1] == end == 2 ** (find(name).mantissa_bits + 1)


def test_stochastic_rounding_goes_on_and_is_right_on_average():
    ends = [running_sum(1, 4096, "bf16", "stochastic", np.random.default_rng(seed))[-1] for seed in range(100)]
    error = np.std(ends, ddof=1) / 10
    assert abs(np.mean(ends) - 4096) < 4 * error and 0 < error < 41


def test_chunks_are_running_sums_that_begin_again():
    got = chunked_sum(0.1, 100, 16, "e4m3fn")
    inner = running_sum(0.1, 16, "e4m3fn")
    assert got.shape == (100,)
    assert np.array_equal(got, [i // 16 * inner[-1] + inner[i % 16] for i in range(100)])
    assert np.array_equal(chunked_sum(3, 50, 64, "bf16"), running_sum(3, 50, "bf16"))


@pytest.mark.parametrize("call", [
    lambda: running_sum(0.0, 5, "bf16"),
    lambda: running_sum(math.inf, 5, "bf16"),
    lambda: running_sum(1, 5, "bf16", "up"),
    lambda: running_sum(1, 5, "bf16", "stochastic"),
    lambda: chunked_sum(1, 5, 0, "bf16"),
    lambda: positive_numbers("fp32", 0, 1),
])
def test_what_makes_no_sense_is_refused(call):
    with pytest.raises(ValueError):
        call()


@pytest.mark.parametrize("name", NAMES)
def test_stored_values_are_nearest_and_the_line_shows_them(name):
    fmt = find(name)
    for x in VALUES + tuple(-v for v in VALUES):
        stored, shown = store(x, fmt), around(store(x, fmt), fmt)
        assert stored.value == rounded(x, fmt) and decode(stored.code, fmt) == stored.value
        assert shown == sorted(set(shown)) and len(shown) == 6
        if abs(x) <= fmt.max:
            low, high = neighbours(x, fmt)
            assert {low, high} <= set(shown) and stored.value in (low, high)
            assert abs(stored.value - x) <= stored.spacing / 2
            assert low == high or high - low == stored.spacing
        else:
            assert math.copysign(fmt.max, x) in shown


@pytest.mark.parametrize("name", [n for n in FORMATS if n != "e8m0" and find(n).bits <= 16])
def test_positive_numbers_are_all_of_them(name):
    fmt = find(name)
    values = positive_numbers(name, 0, fmt.max)
    assert len(values) == fmt.max_code + 1 and values[-1] == fmt.max and (np.diff(values) > 0).all()


def test_what_the_lesson_says_is_seen(box):
    assert "0.1 becomes 0.100098 in bf16: 0.098 % off" in box.sentence()
    assert "4,096 additions of 1 in bf16 end at 256, exact 4,096: stuck after 256; in chunks of 64 the sum ends at 4,096" in box.sentence()
    box.format.value, box.value.value = "e4m3fn", 465.0
    assert "465 becomes 448 in e4m3fn, the largest number" in box.sentence()
    box.format.value, box.value.value = "fp16", 65_519.0
    assert "65,519 becomes 65,504" in box.sentence()
    box.value.value = 65_520.0
    assert "65,520 overflows to infinity in fp16" in box.picture.value
    box.value.value, box.negative.value = 6e-8, True
    assert "bits 1 00000 0000000001" in box.sentence()


def test_the_boxes_show_the_bits(box):
    for box.format.value in NAMES:
        texts = [shape for shape in box.draw().shapes if shape[0] == "text" and shape[4:6] == (12, "middle")]
        assert "".join(text[3] for text in texts if text[3] in ("0", "1")) == "".join(bit_fields(box.model()[0].code, box.format.value))


def test_every_corner_draws_and_nothing_leaves_the_picture(box):
    for box.format.value in NAMES:
        for box.value.value in (VALUES[0], 465.0, VALUES[-1]):
            for box.negative.value in (False, True):
                picture = box.draw()
                assert "nan" not in picture.svg()
                for shape in picture.shapes:
                    if shape[0] in ("circle", "rect", "text"):
                        assert 0 <= shape[1] <= picture.width and 0 <= shape[2] <= picture.height, shape
        for box.addend.value, box.chunk.value in ((0.001, 8), (100.0, 512)):
            for box.rounding.value in ("nearest", "stochastic", "truncate"):
                assert "nan" not in box.picture.value
                assert sum_finding(box.format.value, box.addend.value, box.model()[1])[:30] in box.picture.value


def test_no_title_is_cut_off():
    """Bold 14 pixel letters are 7.6 wide on average; the picture has 684 from where titles begin."""
    assert max(len(finding(name, store(sign * v, find(name)))) for name in NAMES for v in VALUES for sign in (1, -1)) <= 88
    for name in NAMES:
        assert max(len(sum_finding(name, addend, running_sum(addend, 4096, name))) for addend in (0.001, 0.3, 100.0)) <= 88


def test_an_update_takes_milliseconds(box):
    """Measured 3 to 6 ms of CPU time, 10 with new sums; the limit leaves room for a slow machine."""
    before = time.process_time()
    for _ in range(20):
        drift.cache_clear()
        box.update()
    assert (time.process_time() - before) / 20 < 0.05


def test_numbers_and_titles():
    shown = [number(v) for v in (0.0, -448.0, 2.0**-24, math.inf, 123_456.5, 1.0)]
    assert shown == ["0", "-448", "5.9605e-8", "infinity", "123,456.5", "1"]
    assert finding("fp16", store(1e-8, find("fp16"))) == "1e-8 becomes 0 in fp16: its smallest number is 5.9605e-8"
    assert finding("bf16", store(1.0, find("bf16"))).startswith("1 is a number of bf16: nothing is lost")


def test_figures_show_what_they_were_given():
    ax = number_rows(["e2m1", "e5m2"], 0, 8, "A finding")
    assert [text.get_text() for text in ax.texts] == ["8 numbers", f"{len(positive_numbers('e5m2', 0, 8))} numbers"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["e2m1", "e5m2"]
    sums = {"bf16": running_sum(1, 1000, "bf16"), "fp16": running_sum(1, 1000, "fp16")}
    ax = sum_drift(sums, 1, "A finding")
    assert [line.get_ydata()[-1] for line in ax.lines] == [1000, 256, 1000]
    assert len({line.get_linestyle() for line in ax.lines}) == 3
    assert [text.get_text() for text in ax.texts][1:] == ["bf16: 256", "fp16: 1,000"]
    ax = bits_against_snr({"MXFP4": (4.25, 15.7), "int4": (4.0, 6.0)}, "A finding")
    assert [tuple(map(float, (*line.get_xdata(), *line.get_ydata()))) for line in ax.lines] == [(4.25, 15.7), (4.0, 6.0)]
