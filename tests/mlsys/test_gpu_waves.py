"""Waves of a grid: counted block by block, and the numbers that vendors' charts show."""

import pytest

from mlsys.gpu.waves import Waves, least_utilisation, waves
from mlsys.specs import A100_80GB, ACCELERATORS, H100_SXM


def test_133_blocks_on_132_sms():
    grid = waves(133, H100_SXM)
    assert (grid.count, grid.full, grid.tail) == (2, 1, 1)
    assert f"{grid.utilisation:.1%}" == "50.4%"


def test_waves_against_filling_slots_one_by_one():
    for slots in (1, 5, 108):
        for blocks in range(1, 4 * slots + 2):
            rounds, left = 0, blocks
            while left > 0:
                left -= slots
                rounds += 1
            grid = Waves(blocks, slots)
            assert grid.count == rounds
            assert grid.full * slots + grid.tail == blocks
            assert grid.utilisation == pytest.approx(blocks / (rounds * slots)) and 0 < grid.utilisation <= 1
            assert (grid.utilisation == 1) == (grid.tail == 0)


def test_more_blocks_on_an_sm_are_more_slots_and_never_more_waves():
    for blocks in (1, 107, 108, 109, 1000):
        counts = [waves(blocks, A100_80GB, each).count for each in (1, 2, 4, 32)]
        assert counts == sorted(counts, reverse=True)
        assert waves(blocks, A100_80GB, 2).slots == 216


def test_the_worst_tail_is_one_block():
    for slots in (4, 132):
        for full in (1, 3, 10):
            worst = min(Waves(blocks, slots).utilisation for blocks in range(full * slots + 1, 12 * slots))
            assert worst == pytest.approx(least_utilisation(full, slots))


def test_text():
    assert str(waves(264, H100_SXM)) == "264 blocks, 132 slots: 2 waves, all full, 100.0% used"
    assert str(waves(1, H100_SXM)) == "1 blocks, 132 slots: 1 wave, 1 of 132 slots in the last, 0.8% used"


def test_errors_say_what_is_wrong():
    unknown = next(chip for chip in ACCELERATORS.values() if chip.units is None)
    with pytest.raises(ValueError, match=f"{unknown.name}: the number of its SMs"):
        waves(1, unknown)
    with pytest.raises(ValueError, match="blocks=0 is below 1"):
        waves(0, H100_SXM)
    with pytest.raises(ValueError, match="blocks_per_sm=0 is below 1"):
        waves(1, H100_SXM, 0)
