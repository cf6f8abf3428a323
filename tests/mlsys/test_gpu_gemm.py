"""The GEMM model: against held-out measurements, and what must hold whatever the constants are."""

from dataclasses import fields, replace

import numpy as np
import pytest

from mlsys.gpu.gemm import constants_of, plan, predict, roofline_s, time_s
from mlsys.gpu.gemm_constants import ACCELERATOR, SHARED
from mlsys.gpu.gemm_validation import measured, validation_rows

BARS = {"a100": 6.0, "a40": 7.3, "h100": 7.1}  # % MAPE on rows held out from the fit
GPUS = list(BARS)


@pytest.mark.parametrize("gpu", GPUS)
def test_held_out_measurements_are_predicted(gpu):
    """Rows that a hash of their sizes kept from the fit. A roofline with three constants, fitted to the same rows, is behind."""
    (row,) = (row for row in validation_rows() if gpu in row.data)
    assert row.rows > 250 and row.mape < BARS[gpu] and row.median < 5
    assert row.mape < 0.85 * row.baseline_mape < 0.85 * 10


@pytest.mark.parametrize("gpu", GPUS)
def test_no_prediction_is_below_what_the_chip_allows(gpu):
    on = ACCELERATOR[gpu]
    m, n, k, _ = measured()[gpu].T
    clock = 1.13 if gpu == "h100" else 1.0  # an H100 may run at 1.98 GHz; its peak is stated for 1.83
    least = np.maximum(2 * m * n * k / on.peak("fp16") / clock, 2 * (m * k + k * n + m * n) / on.mem_bw)
    assert (time_s(gpu, m, n, k) > least).all()


@pytest.mark.parametrize("gpu", GPUS)
def test_time_never_falls_when_the_product_grows(gpu):
    rng = np.random.default_rng(0)
    sizes = np.arange(1, 1500)
    for other in rng.integers(1, 9000, (4, 2)):
        for axis in range(3):
            shape = [int(other[0]), int(other[1])]
            shape.insert(axis, sizes)
            assert (np.diff(time_s(gpu, *shape)) >= -1e-15).all(), f"axis {axis}, others {other}"


@pytest.mark.parametrize("gpu", GPUS)
def test_better_hardware_is_never_slower(gpu):
    ours = constants_of(gpu)
    m, n, k = np.random.default_rng(1).integers(1, 8000, (3, 200))
    before = predict(gpu, m, n, k, ours).time_s
    better = {"compute_share": 1.2, "droop": 0.5, "memory_share": 1.2, "l2_bw": 1.2, "launch_s": 0.5, "reduce_s": 0.5}
    assert set(better) == {field.name for field in fields(ours)}
    for name, factor in better.items():
        after = predict(gpu, m, n, k, replace(ours, **{name: factor * getattr(ours, name)})).time_s
        assert (after <= before * (1 + 1e-12)).all() and (after < before).any(), name


def test_arrays_give_what_single_numbers_give():
    m, n, k = np.array([1, 100, 4096]), np.array([[768], [8192]]), 4096
    table = time_s("a100", m, n, k)
    assert table.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            alone = time_s("a100", int(m[j]), int(n[i, 0]), k)
            assert isinstance(alone, float) and alone == table[i, j]
    assert plan("a100", m, n, k).split.shape == (2, 3) and time_s("a100", np.float64(8), 8, 8) == time_s("a100", 8, 8, 8)


def test_a_few_rows_more_cost_a_wave():
    """128 x 128 tiles and larger: one row too many starts a row of tiles; two thirds of the way to the next step it is paid off."""
    m = np.arange(3000, 4200)
    rate = 2 * m * 5120 * 5120 / time_s("a100", m, 5120, 5120)
    drops = np.flatnonzero(np.diff(rate) / rate[:-1] < -0.01)
    assert len(drops) and ((m[drops] % 64) == 0).all()


def test_few_tiles_are_split_along_k():
    small, large = plan("a100", 64, 1024, 16384), plan("a100", 4096, 4096, 4096)
    assert small.split > 1 and large.split == 1
    no_splits = predict("a100", 64, 1024, 16384, constants_of("a100"), replace(SHARED, splits=(1,)))
    assert no_splits.time_s > 1.2 * small.time_s


def test_the_plan_adds_up():
    found = plan("h100", 2048, 4096, 4096)
    assert found.blocks == 2048 * 4096 // (found.tile_m * found.tile_n) * found.split
    assert found.waves == pytest.approx(found.blocks / 132)
    parts = found.compute_s, found.memory_s, found.l2_s
    assert max(parts) < found.time_s < sum(parts) + found.launch_s + 0.2 * max(parts)


def test_limits_that_are_known_by_hand():
    """A matrix times a vector streams its weights: 2 n k bytes at the fitted share of the bandwidth, and a launch."""
    for gpu, on in ACCELERATOR.items():
        streamed = 2 * 28672 * 8192 / (on.mem_bw * constants_of(gpu).memory_share)
        found = plan(gpu, 1, 28672, 8192)
        assert found.limiter == "memory" and streamed < found.time_s < 1.25 * streamed + found.launch_s
    assert plan("a100", 8, 64, 64).limiter == "launch"


@pytest.mark.parametrize("call, sentence", [
    (lambda: time_s("b200", 1, 1, 1), "gpu='b200' was not measured; there are a100, a40, h100"),
    (lambda: time_s("a100", 0, 1, 1), "m=0 is below 1"),
    (lambda: time_s("a100", 1, [4, -2], 1), "n=-2 is below 1"),
    (lambda: time_s("a100", 1, 1, 2.5), "k=2.5 is no whole number"),
    (lambda: time_s("a100", "8", 1, 1), "m=8 is no whole number"),
])
def test_wrong_input_is_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_the_roofline_is_the_larger_part_and_a_launch():
    assert roofline_s("a100", 4096, 4096, 4096, 1, 1, 0) == pytest.approx(2 * 4096**3 / 312e12)
    assert roofline_s("a100", 1, 4096, 4096, 1, 1, 5e-6) == pytest.approx(5e-6 + 2 * (4096**2 + 8192) / 2.039e12)
    assert roofline_s("a100", np.array([1, 2]), 4096, 4096, 1, 1, 0).shape == (2,)


def test_constants_do_not_transfer():
    """What the lesson and the docstring say: A100's constants on an A40 and on an H100."""
    for gpu, low, high in (("a40", 0.07, 0.09), ("h100", 0.3, 0.33)):
        rows = measured()[gpu]
        off = predict(gpu, *rows[:, :3].T, constants_of("a100")).time_s / rows[:, 3] - 1
        assert low < np.mean(abs(off)) < high
