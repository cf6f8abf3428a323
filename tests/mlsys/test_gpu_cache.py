"""Caches against an ordered dictionary for each set, and distances against a list."""

from collections import OrderedDict

import numpy as np
import pytest

from mlsys.gpu import Cache, cache, hits, miss_curve, misses, stack_distances

CACHES = [Cache(64, 4), Cache(16, 8), Cache(1, 8), Cache(7, 3), Cache(4, 1), Cache(1, 2), Cache(2, 40), Cache(512, 8, 32)]


def by_dictionary(of, addresses):
    """One access after the other."""
    sets = [OrderedDict() for _ in range(of.sets)]
    found = []
    for line in (addresses // of.line_bytes).tolist():
        kept = sets[line % of.sets]
        found.append(line in kept)
        kept[line] = None
        kept.move_to_end(line)
        if len(kept) > of.ways:
            kept.popitem(last=False)
    return found


def by_list(lines):
    stack, found = [], []
    for line in lines:
        found.append(stack.index(line) if line in stack else -1)
        stack = [line] + [other for other in stack if other != line]
    return found


def traces(seed=0, n=12_000):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    return {
        "popular": np.minimum(rng.zipf(1.2, n), 3000) * 128,
        "random": rng.integers(0, 300, n) * 128 + rng.integers(0, 128, n),
        "loop": t % 700 * 128,
        "still then wild": np.where(t % 3000 < 2500, rng.integers(0, 3, n), rng.integers(0, 4000, n)) * 128,
        "few lines": rng.integers(0, 6, n) * 128 * 64,
        "one line": np.zeros(n, int),
    }


@pytest.mark.parametrize("of", CACHES, ids=str)
@pytest.mark.parametrize("name", traces(n=1))
def test_hits_against_a_dictionary(of, name):
    trace = traces()[name]
    assert hits(of, trace).tolist() == by_dictionary(of, trace)


@pytest.mark.parametrize("pieces", [1, 3, 50, 100_000])
def test_cutting_the_trace_changes_nothing(pieces, monkeypatch):
    monkeypatch.setattr(cache, "LANES", pieces)
    for trace in traces(1, 3000).values():
        for of in (Cache(2, 4), Cache(1, 16), Cache(64, 2)):
            assert hits(of, trace).tolist() == by_dictionary(of, trace)


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 1000, 1500])
def test_distances_against_a_list(n):
    for trace in traces(2, n).values():
        assert stack_distances(trace).tolist() == by_list((trace // 128).tolist())


def test_distances_and_the_cache_agree():
    for trace in traces(3).values():
        distances = stack_distances(trace)
        sizes = np.array([1, 2, 5, 16, 31])
        assert miss_curve(distances, sizes).tolist() == [int((~hits(Cache(1, size), trace)).sum()) for size in sizes.tolist()]
        assert (np.diff(miss_curve(distances, np.arange(1, 4000))) <= 0).all()


def test_more_ways_never_miss_more():
    for trace in traces(4).values():
        found = [hits(Cache(16, ways), trace) for ways in (1, 2, 4, 8, 33)]
        assert all((more | ~fewer).all() for fewer, more in zip(found, found[1:]))  # what hit, still hits


def test_causes_of_misses_add_up():
    for trace in traces(5).values():
        for of in (Cache(64, 4), Cache(32, 1)):
            found = misses(of, trace)
            assert found.total == int((~hits(of, trace)).sum())
            assert found.compulsory == len(np.unique(trace // 128))
        assert misses(Cache(1, 64), trace).conflict == 0


def test_a_column_walk_conflicts_and_padding_helps():
    """64 rows of 4 KiB: all first elements share 2 sets of 64, until a row is a line longer."""
    column = np.tile(np.arange(64) * 4096, 4)
    padded = np.tile(np.arange(64) * (4096 + 128), 4)
    assert [misses(Cache(64, 2), walk).conflict for walk in (column, padded)] == [192, 0]


def test_empty_and_wrong():
    assert hits(Cache(4, 2), np.array([], int)).shape == (0,)
    assert hits(Cache(4, 2), np.array([2**45, 0, 2**45])).tolist() == [False, False, True]
    with pytest.raises(ValueError, match="ways=0"):
        Cache(4, 0)
    with pytest.raises(ValueError, match="address -1"):
        hits(Cache(4, 2), np.array([0, -1]))
    with pytest.raises(ValueError, match="float64"):
        stack_distances(np.array([0.0]))
