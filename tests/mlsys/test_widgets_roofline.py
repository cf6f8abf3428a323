"""The roofline explorer says what the roofline says, and the lesson's pictures show what they were given."""

import itertools
import time

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from mlsys.gpu.roofline import Work, bandwidths, bounds_s, ceilings, product
from mlsys.specs.accelerators import ACCELERATORS
from mlsys.viz.roofline import column_banks, decode_intensity, ladder, measured_roof, miss_curves, roof
from mlsys.widgets.roofline import CHIPS, KERNELS, RooflineExplorer, decode, finding

A100, H100 = ACCELERATORS["A100 80GB SXM"], ACCELERATORS["H100 SXM"]


@pytest.fixture
def box():
    return RooflineExplorer()


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_one_reader_on_an_h100(box):
    """8.03e9 bf16 weights over 3.35 TB/s: 4.79 ms, 209 tokens a second, 1/295 of the peak."""
    assert finding(box.model()) == "Memory bounds it: at most 0.34 % of the 989.4 TFLOP/s peak"
    assert "at least 4.79 ms, 209 tokens per second at most" in box.sentence()
    assert finding(box.model()) in box.picture.value and box.model().intensities == {"memory": pytest.approx(1)}


def test_the_longest_part_is_the_least_ceiling(box):
    """Time and rate tell the same story, for every kernel, chip and precision."""
    for box.chip.value, box.kernel.value in itertools.product(CHIPS, KERNELS):
        for precision in box.precision.options:
            box.precision.value = precision
            placed = box.model()
            limits = ceilings(placed.chip, placed.intensities, placed.precision)
            assert placed.work.flops / placed.time_s == pytest.approx(min(limits.values()))
            assert placed.limiter == min(limits, key=limits.get)
            if list(placed.intensities) == ["memory"]:
                work = Work(placed.work.flops, placed.work.flops / placed.intensities["memory"])
                assert placed.time_s == pytest.approx(bounds_s(work, placed.chip, placed.precision)[0])


def test_what_the_lesson_says_is_seen(box):
    for box.precision.value in ("bf16", "fp8"):
        found = []
        for box.batch.value in (256, 512):
            found.append(box.model().limiter)
        assert found == ["memory", "compute"]
    box.precision.value, box.context.value = "bf16", 1024
    for _, batch in box.batch.options:
        box.batch.value = batch
        assert box.model().limiter == "memory" and box.model().share < 0.42
    assert not box.model().fits and "This does not fit: it needs" in box.picture.value
    box.kernel.value, box.m.value = "matrix product", 4096
    for tile, limiter in ((16, "shared memory"), (32, "shared memory"), (64, "compute")):
        box.tile.value = tile
        assert box.model().limiter == limiter and box.model().share == pytest.approx(min(1, tile / 64), rel=1e-3)


def test_only_what_a_kernel_asks_for_is_shown(box):
    groups = ((box.batch, box.context), (box.m, box.n, box.tile), (box.intensity, box.level))
    for kernel, shown in zip(KERNELS, groups):
        box.kernel.value = kernel
        assert box.chip.layout.display is None and box.kernel.layout.display is None
        for control in (box.batch, box.context, box.m, box.n, box.tile, box.intensity, box.level):
            assert control.disabled == (control not in shown) == (control.layout.display == "none")


def test_a_chip_offers_what_is_known_of_it_and_a_choice_stays(box):
    box.kernel.value, box.chip.value = "any FLOP per byte", "A100 80GB SXM"
    assert box.level.options == ("memory", "L2", "shared memory") and "fp8" not in box.precision.options
    box.level.value, box.precision.value = "L2", "fp32"
    box.chip.value = "V100 SXM2"
    assert (box.level.value, box.precision.value) == ("L2", "fp32")
    box.chip.value = "TPU v5e"
    assert (box.level.value, box.precision.value) == ("memory", "bf16") and "TPU v5e" in box.sentence()


def test_decode_counts_weights_once_and_caches_for_each():
    """Llama-3 8B: 131,072 bytes of cache a token; 4 query heads share what is read, so its own intensity is 4."""
    one, many = decode(1, 1000, 2), decode(10, 1000, 2)
    assert many.bytes_moved - one.bytes_moved == 9 * 1000 * 131_072 and many.flops == 10 * one.flops
    cache = Work(one.flops - decode(1, 0, 2).flops, one.bytes_moved - decode(1, 0, 2).bytes_moved)
    assert cache.intensity == 4
    assert decode(1, 0, 2).bytes_moved == 2 * 8_030_261_248


def test_every_corner_draws(box):
    for box.chip.value, box.kernel.value in itertools.product(CHIPS, KERNELS):
        for pick in (0, -1):
            box.batch.value, box.context.value = box.batch.options[pick][1], box.context.options[pick][1]
            box.m.value, box.n.value, box.tile.value = (c.options[pick][1] for c in (box.m, box.n, box.tile))
            box.intensity.value, box.level.value = 10.0 ** (box.intensity.min, box.intensity.max)[pick], box.level.options[pick]
            assert "nan" not in box.picture.value and "inf" not in box.picture.value
            assert finding(box.model()) in box.picture.value
    assert box._repr_mimebundle_()["image/png"].startswith(b"\x89PNG")


def test_an_update_takes_milliseconds(box):
    """Measured 1 ms of CPU time; the limit leaves room for a slow machine."""
    before = time.process_time()
    for _ in range(20):
        box.update()
    assert (time.process_time() - before) / 20 < 0.02


def test_ladder_shows_every_level_with_a_bandwidth():
    assert len(ladder(A100).texts) == 4 and len(ladder(H100).texts) == 3


def test_miss_curves_fall_to_the_compulsory_misses():
    loop = np.tile(np.arange(16) * 128, 10)
    line = miss_curves({"loop": loop}, 128, "A finding").lines[0]
    size, share = line.get_xdata(), line.get_ydata()
    assert set(share[size < 16 * 128]) == {100.0} and set(share[size >= 16 * 128]) == {10.0}


def test_column_banks_count_passes():
    axes = column_banks((32, 33, 36), "A finding")
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in axes]
    assert titles == ["rows of 32: 32 passes", "rows of 33: 1 pass", "rows of 36: 4 passes"]
    assert len(set(axes[1].lines[0].get_xdata())) == 32


def test_roofs_bend_at_their_ridges_and_hold_what_was_measured():
    ax = roof(A100, "fp32", {"a kernel": {"shared memory": 0.25}})
    assert len(ax.get_legend().get_texts()) == len(bandwidths(A100)) == 3
    assert ax.lines[-1].get_ydata()[0] == pytest.approx(4.87e12, rel=1e-3)
    works = [product(m, 8192, 8192) for m in (1, 512)]
    ax = measured_roof(H100, works, [48e-6, 96.5e-6], "A finding")
    x, y = ax.lines[-1].get_data()
    assert (y < np.minimum(H100.peak_bf16, x * H100.mem_bw)).all()


def test_decode_intensity_marks_the_ridge():
    ax = decode_intensity({"none": lambda batch: batch * 1.0}, 295.0, "A finding")
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(4096) and "ridge, 295 FLOP/B" in [text.get_text() for text in ax.texts]
