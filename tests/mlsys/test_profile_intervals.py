"""Interval arithmetic against brute force on a grid of seconds, and accounts that add up."""

import numpy as np
import pytest

from mlsys.profile import (
    Event,
    Trace,
    clip,
    device_account,
    difference,
    exposed_s,
    gaps,
    intersection,
    length,
    overlap_s,
    union,
)
from mlsys.profile.intervals import as_intervals


def on_grid(rows, seconds=60):
    """Which whole seconds the intervals cover; their ends are whole."""
    covered = np.zeros(seconds, bool)
    for begin, end in np.asarray(rows, int).reshape(-1, 2):
        covered[begin:end] = True
    return covered


def drawn(rng, most=12):
    begin = rng.integers(0, 50, rng.integers(0, most))
    return np.stack([begin, begin + rng.integers(0, 10, len(begin))], axis=1)


@pytest.mark.parametrize("seed", range(200))
def test_as_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    a, b = drawn(rng), drawn(rng)
    in_a, in_b = on_grid(a), on_grid(b)
    for found, wanted in ((union(a), in_a), (intersection(a, b), in_a & in_b), (difference(a, b), in_a & ~in_b),
                          (gaps(a, (5, 40)), ~in_a & (np.arange(60) >= 5) & (np.arange(60) < 40))):
        assert np.array_equal(on_grid(found), wanted) and length(found) == wanted.sum()
        assert np.all(found[1:, 0] > found[:-1, 1]) and np.all(found[:, 1] > found[:, 0])  # in order, with gaps between
    assert overlap_s(a, b) + exposed_s(a, b) == length(a)
    assert length(union([*a, *b])) == length(a) + length(b) - overlap_s(a, b)
    assert length(clip(a, (5, 40))) + length(gaps(a, (5, 40))) == 35


def test_exact_with_odd_numbers():
    """Ends are compared and never rounded: neighbours that share a float touch, others do not."""
    x = 0.1 + 0.2
    assert union([(0.1, x), (x, 0.9)]).tolist() == [[0.1, 0.9]]
    assert len(union([(0.1, 0.3), (x, 0.9)])) == 2 and 0.3 < x
    assert np.array_equal(union([(1, 5), (2, 3), (5, 5)]), [[1, 5]])


def test_empty_and_backward():
    assert union([]).shape == (0, 2) and length([]) == 0 and gaps([], (1, 3)).tolist() == [[1, 3]]
    assert difference([(0, 1)], []).tolist() == [[0, 1]] and intersection([(0, 1)], []).shape == (0, 2)
    with pytest.raises(ValueError, match=r"\(3.0, 2.0\) ends before it starts"):
        as_intervals([(0, 1), (3, 2)])


def test_accounts_sum_to_the_wall_and_follow_their_order():
    rows = [("kernel", 0, 4), ("kernel", 3, 5), ("nccl", 4, 8), ("memcpy", 7, 9), ("memcpy", 11, 14), ("sync", 0, 20)]
    trace = Trace(tuple(Event(kind, kind, kind, begin, end - begin) for kind, begin, end in rows))
    assert device_account(trace, 0, (0, 12)) == {"compute": 5, "exposed communication": 3, "exposed copies": 2, "idle": 2}


@pytest.mark.parametrize("seed", range(20))
def test_accounts_of_drawn_traces_sum_to_the_wall(seed):
    rng = np.random.default_rng(seed)
    events = [Event(kind, kind, "compute", float(begin), float(end - begin)) for kind in ("kernel", "nccl", "memcpy", "launch")
              for begin, end in drawn(rng)]
    parts = device_account(Trace(tuple(events)), 0, (3, 47))
    assert sum(parts.values()) == pytest.approx(44) and min(parts.values()) >= 0
