"""The ladder of published kernels: order and limits come out of the model, values within what the docstring admits."""

import numpy as np
import pytest

from mlsys.gpu import sgemm_ladder
from mlsys.gpu.sgemm_ladder import LEAST_CLOCKS, PUBLISHED, errors, ladder, predict, steps
from mlsys.gpu.tiles import Tile


def test_the_order_is_the_published_one():
    found = ladder()
    assert [step.step.name for step in sorted(found, key=lambda step: step.gflops)] == sorted(PUBLISHED, key=PUBLISHED.get)
    assert len({round(step.gflops, 3) for step in found}) == 9


def test_the_values_are_as_far_off_as_the_docstring_says():
    ratio = np.array(list(errors(ladder()).values()))
    assert 0.75 < ratio.min() and ratio.max() < 1.32
    assert np.median(abs(ratio - 1)) < 0.15


def test_what_holds_each_step_back():
    limits = {step.step.name: step.limiter for step in ladder()}
    assert set(list(limits.values())[:7]) == {"load/store"}
    assert limits["warp tiles"] == limits["library"] == "issue"
    worst = {step.step.name: step.worst_request for step in ladder()}
    assert worst["naive"] == "A" and worst["2D tiles"] == "A" and worst["vector loads"] == "B in fours"


def test_requests_by_hand():
    """Naive: 32 rows of A are 32 lines. 2D tiles: the two rows of a warp lie in one bank."""
    naive = {request.what: request.clocks / 32 for request in steps()[0].requests}
    assert naive == {"A": 32, "B": LEAST_CLOCKS}
    coalesced = {request.what: request.clocks / 32 for request in steps()[1].requests}
    assert coalesced == {"A": LEAST_CLOCKS, "B": LEAST_CLOCKS}
    squares = {request.what: request for request in steps()[4].requests}
    assert squares["A"].clocks / 8 / squares["A"].times == 2
    assert squares["fetch A"].clocks / 8 / 4 == 4


@pytest.mark.parametrize("number", range(3, 8))
def test_threads_cover_the_tile(number):
    """What the threads of a block read of a slab of A and of B is exactly the slab: no row or column left out."""
    step = steps()[number]
    if step.name in ("vector loads", "tuned", "warp tiles"):
        a, b = (request for request in step.requests if request.what in ("A in fours", "B in fours"))
        rows = {(start // 4 + offset) for start in a.addresses.ravel().tolist() for offset in range(8)}
        assert rows == set(range(step.tile.bm))
        reach = 64 if step.name == "warp tiles" else 8
        columns = {start // 4 + offset for start in b.addresses.ravel().tolist() for offset in range(reach)}
        assert set(range(step.tile.bn)) <= columns


def test_fetched_is_the_slab():
    for step in steps():
        if step.staged:
            fetched = sum(r.addresses.size * r.width * r.times for r in step.requests if r.what.startswith("fetch"))
            assert fetched == step.tile.smem_bytes, step.name


def test_no_step_beats_the_peak():
    assert all(step.gflops < 38_700 for step in ladder())


def test_one_clock_a_request_makes_small_tiles_too_fast(monkeypatch):
    """The docstring's claim on what the undocumented two clocks are worth."""
    before = errors(ladder())
    monkeypatch.setattr(sgemm_ladder, "LEAST_CLOCKS", 1)
    after = errors(ladder())
    assert after["coalesced"] > 1.7 * before["coalesced"] and after["warp tiles"] < 1.05 * before["warp tiles"]


def test_occupancy_of_published_registers():
    resident = {step.step.name: step.resident for step in ladder()}
    assert resident["shared memory"] == 1 and resident["2D tiles"] == 2
    assert predict(steps()[2]).step.tile == Tile(32, 32, 32, 1, 1)
