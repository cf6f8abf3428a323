"""Data sheets: what the numbers of one chip say about each other, and that each has a source."""

import pytest

from mlsys.specs import A100_80GB, ACCELERATORS, H100_SXM, SMS, sm
from mlsys.specs.sm import stacked

CHIPS = list(ACCELERATORS.values())


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_every_number_has_a_source(chip):
    assert all(chip.source_of(name) for name in chip.numbers())
    assert set(chip.notes) <= {*chip.numbers(), "best_bf16"}
    hash(chip)


@pytest.mark.parametrize("chip", [c for c in CHIPS if c.matrix_units and c.clock_hz], ids=lambda chip: chip.name)
def test_peak_is_units_times_multiply_adds_times_clock(chip):
    peak = 2 * chip.matrix_units * chip.fma_per_clock * chip.clock_hz
    assert peak == pytest.approx(chip.peak_bf16 or chip.peak_fp16, rel=3e-3)


@pytest.mark.parametrize("chip", [c for c in CHIPS if c.best_bf16], ids=lambda chip: chip.name)
def test_measured_is_below_the_peak(chip):
    assert 0.5 < chip.best_bf16 / chip.peak_bf16 < 1


def test_published_ridges():
    published = {"A100 40GB SXM": 201, "L40S": 419, "H200 SXM": 206, "B200 SXM": 281, "MI300X": 247, "TPU v5e": 241, "V100 SXM2": 139}
    assert {name: round(ACCELERATORS[name].ridge) for name in published} == published


def test_dense_and_sparse_and_both_directions_are_kept_apart():
    assert (A100_80GB.peak_bf16, A100_80GB.mem_bw) == (312e12, 2.039e12)
    assert H100_SXM.peak("fp8", sparse=True) == pytest.approx(3958e12, rel=1e-3)  # what the page prints
    assert (H100_SXM.link_bw, H100_SXM.link_bw_both) == (450e9, 900e9)
    with pytest.raises(ValueError, match="no confirmed peak in fp4"):
        H100_SXM.peak("fp4")
    with pytest.raises(ValueError, match="no known sparse peak"):
        ACCELERATORS["TPU v4"].peak("bf16", sparse=True)
    with pytest.raises(ValueError, match="link_bw is not known"):
        ACCELERATORS["TPU v4"].source_of("link_bw")


def test_chips_have_the_sm_of_their_capability():
    for chip in CHIPS:
        assert chip.compute_capability is None or chip.compute_capability in SMS


@pytest.mark.parametrize("unit", SMS.values(), ids=lambda unit: unit.compute_capability)
def test_an_sm_is_consistent(unit):
    assert unit.max_warps * 32 == unit.max_threads and unit.registers % unit.partitions == 0
    assert unit.shared_sizes[-1] == unit.shared_bytes == max(unit.shared_sizes)
    assert unit.block_shared_bytes_opt_in + unit.reserved_bytes == unit.shared_bytes
    assert unit.barriers in (0, unit.max_blocks, 2 * unit.max_blocks)


def test_capability_as_text_or_number():
    assert sm(8.0) is sm("8.0") and sm(10.3).example == "B300"
    with pytest.raises(ValueError, match="6.1 is not in the table"):
        sm("6.1")
    both = stacked([["7.5", "9.0"]])
    assert both.max_warps.tolist() == [[32, 64]] and both.shared_sizes.shape == (1, 2, 10)
