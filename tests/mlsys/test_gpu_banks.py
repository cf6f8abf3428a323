"""Bank conflicts against gcd(stride, 32) and against a dictionary of banks."""

from math import gcd

import numpy as np
import pytest

from mlsys.gpu import conflicts, passes_per_request

LANES = np.arange(32).reshape(1, 32)


def by_dictionary(row, active, itemsize):
    """Passes of one request: halves and quarters of the warp one after the other, words of a bank in a set."""
    ways = max(1, itemsize // 4)
    passes = 0
    for part in range(ways):
        banks = {}
        for lane in range(part * 32 // ways, min((part + 1) * 32 // ways, len(row))):
            for word in range(row[lane] // 4, row[lane] // 4 + ways):
                if active[lane]:
                    banks.setdefault(word % 32, set()).add(word)
        passes += max(map(len, banks.values()), default=0)
    return passes


@pytest.mark.parametrize("stride", range(65))
def test_strides(stride):
    degree = gcd(stride, 32) if stride else 1  # 0: all lanes want the same word
    assert passes_per_request(LANES * 4 * stride).item() == degree
    many = np.arange(3000).reshape(-1, 1) * 4 + LANES * 4 * stride
    assert (passes_per_request(many) == degree).all()


@pytest.mark.parametrize("seed", range(80))
def test_random_words_against_a_dictionary(seed):
    rng = np.random.default_rng(seed)
    itemsize = int(rng.choice([1, 2, 4, 8, 16]))
    rows = rng.integers(0, rng.choice([30, 300, 3000, 60_000]), (9, int(rng.choice([32, 32, 17, 5])))) * itemsize
    rows = rows if seed % 4 else rows[:1] + np.arange(9).reshape(9, 1) * 64
    active = rng.random(rows.shape) < rng.choice([0.1, 0.6, 1.1])
    want = [by_dictionary(row, here, itemsize) for row, here in zip(rows.tolist(), active.tolist())]
    assert passes_per_request(rows, itemsize, active).tolist() == want
    if active.all():
        assert passes_per_request(rows, itemsize).tolist() == want


def test_order_of_lanes_and_place_make_no_difference():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 12_000, (3000, 32)) * 4
    passes = passes_per_request(rows)
    assert np.array_equal(passes, passes_per_request(rng.permuted(rows, axis=1)))
    assert np.array_equal(passes, passes_per_request(rows + 4 * 77))
    assert np.array_equal(passes, passes_per_request(rows.astype(np.int32)))


def test_idle_lanes_cost_nothing():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 12_000, (3000, 32)) * 4
    active = rng.random(rows.shape) < 0.5
    assert (passes_per_request(rows, active=active) <= passes_per_request(rows)).all()
    assert passes_per_request(rows[:5], active=np.zeros((5, 32), bool)).tolist() == [0] * 5


def test_totals():
    found = conflicts(np.concatenate([LANES * 128, LANES * 4]))
    assert (found.requests, found.passes, found.least, found.conflicts, found.bytes_asked) == (2, 33, 2, 31, 256)
    wide = conflicts(LANES * 16, 16)
    assert (wide.requests, wide.passes, wide.conflicts) == (1, 4, 0)


@pytest.mark.parametrize("rows, itemsize, says", [
    (LANES * 4 + 2, 4, "multiple of itemsize=4"),
    (LANES * 12, 12, "itemsize=12"),
    (np.arange(32), 4, r"shape \(32,\)"),
    (LANES * 2**36, 4, "less than 256 KiB"),
])  # fmt: skip
def test_errors_say_what_is_wrong(rows, itemsize, says):
    with pytest.raises(ValueError, match=says):
        passes_per_request(rows, itemsize)
