"""The warp scheduler: Little's law exactly, the rules of both policies, and states that add up."""

import numpy as np
import pytest

from mlsys.gpu.scheduler import DONE, ISSUED, NOBODY, POLICIES, READY, WAITING, Program, chain, ipc_bound, simulate
from mlsys.specs import sm


def drawn_programs(rng):
    """Up to five warps with latencies and lengths of their own."""
    return [Program(tuple(rng.integers(1, 12, rng.integers(1, 20)).tolist()), int(rng.integers(1, 4))) for _ in range(rng.integers(1, 6))]


def looked_back(programs, policy):
    """Who issues in each cycle, each time worked out from everything that was issued before."""
    order, last = [], NOBODY
    while sum(who != NOBODY for who in order) < sum(len(p.latencies) for p in programs):
        now, can = len(order), []
        for w, p in enumerate(programs):
            times = [t for t, who in enumerate(order) if who == w]
            source = len(times) - p.ilp
            if len(times) < len(p.latencies) and (source < 0 or times[source] + p.latencies[source] <= now):
                can.append(w)
        if policy == "round robin":
            chosen = min(can, key=lambda w: (w <= last, w), default=NOBODY)
        else:
            chosen = last if last in can else min(can, default=NOBODY)
        order.append(chosen)
        last = chosen if chosen != NOBODY else last
    return order


@pytest.mark.parametrize("policy", POLICIES)
def test_the_rate_is_littles_law(policy):
    for warps, latency, ilp in np.ndindex(16, 20, 4):
        warps, latency, ilp = warps + 1, latency + 1, ilp + 1
        run = simulate([chain(3 * latency, latency, ilp)] * warps, policy, cycles=3 * latency)
        assert run.ipc == pytest.approx(ipc_bound(warps, latency, ilp), abs=1e-12), (warps, latency, ilp)


def test_sixteen_warps_hide_arithmetic():
    """The CUDA guide: 4 cycles, 4 schedulers, 16 warps."""
    schedulers = sm("7.0").partitions
    enough = next(w for w in range(1, 17) if simulate([chain(40, 4)] * w, cycles=40).empty == 0)
    assert enough * schedulers == 16


@pytest.mark.parametrize("policy", POLICIES)
def test_who_issues_is_what_the_rules_say(policy):
    rng = np.random.default_rng(0)
    for _ in range(40):
        programs = drawn_programs(rng)
        want = looked_back(programs, policy)
        run = simulate(programs, policy)
        assert run.warp[: len(want)].tolist() == want and set(run.warp[len(want) :]) <= {NOBODY}


@pytest.mark.parametrize("policy", POLICIES)
def test_states_add_up(policy):
    rng = np.random.default_rng(1)
    for _ in range(20):
        programs = drawn_programs(rng)
        run = simulate(programs, policy)
        assert run.issued + run.empty == run.cycles and run.issued == sum(len(p.latencies) for p in programs)
        assert np.array_equal((run.state == ISSUED).sum(0), run.warp != NOBODY)
        for w, p in enumerate(programs):
            assert run.instruction[run.warp == w].tolist() == list(range(len(p.latencies)))  # in order, each once
            assert run.stalls[w] == np.count_nonzero(run.state[w] == WAITING)
        empty = run.state[:, run.warp == NOBODY]
        assert not (empty == READY).any(), "a slot is empty although a warp was ready"


def test_the_run_ends_with_the_last_result():
    run = simulate([Program((3, 9, 2))])
    assert run.cycles == 3 + 9 + 2 and run.state[0].tolist() == [ISSUED, 1, 1, ISSUED, *[1] * 8, ISSUED, 1]
    two = simulate([chain(1, 2), chain(1, 9)])
    assert two.cycles == 10 and two.state[0, 2:].tolist() == [DONE] * 8


def test_a_run_cut_off_tells_the_same_story():
    rng = np.random.default_rng(2)
    for _ in range(20):
        programs = drawn_programs(rng)
        whole = simulate(programs)
        cut = int(rng.integers(1, whole.cycles + 1))
        part = simulate(programs, cycles=cut)
        assert np.array_equal(part.warp, whole.warp[:cut]) and np.array_equal(part.state, whole.state[:, :cut])


def test_the_oldest_warp_first_lets_others_compute_while_it_loads():
    """The lesson's numbers: 12 warps, a load of 690 cycles, 64 dependent instructions of 4."""
    programs = [Program(((690,) + (4,) * 64) * 20)] * 12
    rates = [simulate(programs, policy).ipc for policy in ("round robin", "greedy then oldest")]
    assert [f"{rate:.2f}" for rate in rates] == ["0.53", "0.80"]
    assert max(rates) <= 12 * 65 / (690 + 64 * 4)


def test_text_shows_each_warp():
    assert simulate([chain(2, 3), chain(2, 3)]).text(0, 4) == "warp 0  #..#\nwarp 1  +#.."


@pytest.mark.parametrize("programs, options, says", [
    ([], {}, "programs is empty"),
    ([chain(3, 4)], {"policy": "fair"}, "policy='fair' is none of round robin"),
    ([chain(3, 4)], {"cycles": 0}, "cycles=0 is below 1"),
    ([chain(3, 4), chain(3, 4, ilp=0)], {}, "warp 1: ilp=0"),
    ([chain(3, 0)], {}, "warp 0: latencies="),
    ([Program(())], {}, "warp 0: latencies="),
])  # fmt: skip
def test_errors_say_what_is_wrong(programs, options, says):
    with pytest.raises(ValueError, match=says):
        simulate(programs, **options)
