"""Stretches and rectangles cover what they are made of, once."""

import numpy as np

from mlsys.viz.runs import rectangles, runs


def test_runs_are_the_longest_stretches_of_equal_values():
    rng = np.random.default_rng(0)
    for values in (rng.random(12) < 0.5, rng.integers(0, 3, 40), np.array([], int)):
        found = runs(values)
        assert [v for value, first, end in found for v in [value] * (end - first)] == values.tolist()
        assert all(a[2] == b[1] and a[0] != b[0] for a, b in zip(found, found[1:]))


def test_rectangles_cover_each_place_once():
    for first in range(12):
        for end in range(first, 30):
            for across in (1, 4, 7, 64):
                found = rectangles(first, end, across)
                places = [(row + j) * across + column + i for column, row, wide, high in found for j in range(high) for i in range(wide)]
                assert sorted(places) == list(range(first, end)) and len(found) <= 3
                assert all(0 <= column and column + wide <= across for column, _, wide, _ in found)
