"""Rooflines: bounds, ridges, and matrix products that were measured below them."""

import numpy as np
import pytest

from mlsys.gpu import Work, attainable_flops, bandwidths, bounds_s, limiter
from mlsys.gpu.roofline import ceilings, levels, product
from mlsys.specs import A100_80GB, ACCELERATORS, H100_SXM


@pytest.mark.parametrize("name", ["A100 80GB SXM", "H100 SXM", "MI300X", "TPU v5e"])
def test_the_roof_bends_at_the_ridge(name):
    chip = ACCELERATORS[name]
    below, above = chip.ridge * 0.999, chip.ridge * 1.001
    assert attainable_flops(chip, below) == below * chip.mem_bw
    assert attainable_flops(chip, above) == chip.peak_bf16
    assert limiter(Work(below * 1e9, 1e9), chip) == "memory" and limiter(Work(above * 1e9, 1e9), chip) == "compute"
    roof = attainable_flops(chip, np.geomspace(0.01, 1e5, 200))
    assert (np.diff(roof) >= 0).all() and roof.max() == chip.peak_bf16


def test_bounds_hold_each_other():
    rng = np.random.default_rng(0)
    for flops, size in 10 ** rng.uniform(6, 15, (200, 2)):
        low, high = bounds_s(Work(flops, size), A100_80GB)
        assert low <= high <= 2 * low
        assert low == pytest.approx(flops / attainable_flops(A100_80GB, flops / size))


def test_work_adds_up():
    both = Work(10, 2) + Work(30, 3)
    assert both == Work(40, 5) and both.intensity == 8
    apart = sum(bounds_s(part, H100_SXM)[0] for part in (Work(1e12, 1), Work(1, 1e10)))
    assert bounds_s(Work(1e12 + 1, 1e10 + 1), H100_SXM)[0] < apart


def test_decode_of_an_8b_model_is_memory_bound():
    """Each of 8.03e9 bf16 weights is read for one token: 4.8 ms on an H100, however fast it computes."""
    step = Work(flops=2 * 8.03e9, bytes_moved=2 * 8.03e9)
    assert limiter(step, H100_SXM) == "memory"
    assert bounds_s(step, H100_SXM)[0] == pytest.approx(4.79e-3, rel=2e-3)


def test_best_measured_products_lie_under_the_roof():
    shapes = {"A100 80GB SXM": (1024, 10240, 5120), "H100 SXM": (2048, 2048, 13312), "B200 SXM": (1792, 16128, 3072)}
    for name, (m, n, k) in shapes.items():
        chip = ACCELERATORS[name]
        product = Work(2 * m * n * k, 2 * (m * k + k * n + m * n))
        assert chip.best_bf16 < attainable_flops(chip, product.intensity)


def test_shared_memory_is_the_faster_roof():
    assert bandwidths(A100_80GB)["shared memory"] == pytest.approx(19.5e12, rel=1e-2)
    assert bandwidths(ACCELERATORS["MI300X"]) == {"memory": 5.3e12}
    assert attainable_flops(A100_80GB, 10, bw=bandwidths(A100_80GB)["shared memory"]) > attainable_flops(A100_80GB, 10)


def test_precision_without_a_peak():
    with pytest.raises(ValueError, match="A100 80GB SXM has no confirmed peak in fp8"):
        bounds_s(Work(1, 1), A100_80GB, "fp8")


def test_l2_as_the_white_paper_and_a_later_table_have_it():
    """5,120 bytes a clock at 1.41 GHz; a table of 2023 (PMC10448217, table 3) prints 7,219 GB/s, and 3,133 for the V100."""
    assert bandwidths(A100_80GB)["L2"] == pytest.approx(7.219e12, rel=1e-3)
    assert bandwidths(ACCELERATORS["V100 SXM2"])["L2"] == pytest.approx(3.133e12, rel=1e-3)
    assert "L2" not in bandwidths(H100_SXM)


def test_levels_get_smaller_but_for_the_registers_and_never_slower():
    for name in ("V100 SXM2", "A100 80GB SXM", "H100 SXM"):
        found = levels(ACCELERATORS[name])
        known = [level.bw for level in found if level.bw]
        assert known == sorted(known)
        memory, l2, shared, registers = (level.size_bytes for level in found)
        assert memory > 1000 * l2 and registers > shared
    with pytest.raises(ValueError, match="MI300X"):
        levels(ACCELERATORS["MI300X"])


def test_ceilings_agree_with_the_plain_roof_and_with_limiter():
    for m in (1, 64, 512, 4096):
        work = product(m, 8192, 8192)
        limits = ceilings(H100_SXM, {"memory": work.intensity})
        assert min(limits.values()) == pytest.approx(float(attainable_flops(H100_SXM, work.intensity)))
        assert min(limits, key=limits.get) == limiter(work, H100_SXM)
    assert product(4096, 4096, 4096).intensity == pytest.approx(1365.33, rel=1e-5)
    with pytest.raises(ValueError, match="H100 SXM: no bandwidth is known for L2"):
        ceilings(H100_SXM, {"L2": 1.0})


def test_shared_memory_bends_the_a100_at_one_flop_per_byte():
    """64 multiply-adds and 128 bytes a clock in each SM."""
    assert A100_80GB.peak("fp32") / bandwidths(A100_80GB)["shared memory"] == pytest.approx(1, rel=2e-3)
