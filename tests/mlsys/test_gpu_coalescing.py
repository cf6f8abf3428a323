"""Coalescing against the derived table and against sets of bytes."""

import csv
from pathlib import Path

import numpy as np
import pytest

from mlsys.gpu import coalesce, units_per_request

DATA = Path(__file__).parent / "data"


def by_bytes(rows, itemsize, active, unit):
    """Distinct units of each row, counted byte by byte."""
    return [
        len({byte // unit for lane, start in enumerate(row) if active[i, lane] for byte in range(start, start + itemsize)})
        for i, row in enumerate(rows.tolist())
    ]


def test_every_row_of_the_table():
    with open(DATA / "coalescing_sectors.csv", encoding="utf-8") as lines:
        assert next(lines).startswith("# ")
        for row in csv.DictReader(lines):
            size, stride, start = (int(row[key]) for key in ("element_bytes", "stride_elements", "start_offset_bytes"))
            moved = coalesce(start + np.arange(32).reshape(1, 32) * size * stride, size)
            assert (moved.sectors, moved.lines) == (int(row["sectors_per_warp_request"]), int(row["cache_lines_touched"]))
            assert round(moved.efficiency, 6) == float(row["bytes_used_over_bytes_moved"])


@pytest.mark.parametrize("seed", range(60))
def test_random_addresses_against_bytes(seed):
    rng = np.random.default_rng(seed)
    itemsize = int(rng.choice([1, 2, 3, 4, 8, 12, 16]))
    lanes = int(rng.integers(1, 33))
    step = int(rng.choice([1, itemsize]))
    rows = rng.integers(0, rng.choice([40, 400, 100_000]), (7, lanes)) * step + int(rng.choice([0, 2**40]))
    rows = np.sort(rows, 1) if seed % 3 == 0 else rows
    active = rng.random(rows.shape) < rng.choice([0.1, 0.6, 1.1])
    for unit in (32, 128):
        assert units_per_request(rows, itemsize, active, unit).tolist() == by_bytes(rows, itemsize, active, unit)


def test_number_type_makes_no_difference():
    rows = np.random.default_rng(1).integers(0, 120, (50, 32))
    for kind in (np.int8, np.uint8, np.int32, np.uint32, np.uint64):
        assert np.array_equal(units_per_request(rows.astype(kind), 1), units_per_request(rows, 1))


def test_order_of_lanes_makes_no_difference():
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 4000, (3000, 32)) * 4
    assert np.array_equal(units_per_request(rows), units_per_request(rng.permuted(rows, axis=1)))


def test_parts_are_put_together():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 4000, (5, 1000, 32)) * 4
    active = rng.random(rows.shape) < 0.3
    active[0, :7] = False
    whole = units_per_request(rows, active=active)
    assert whole.shape == (5, 1000) and not whole[0, :7].any()
    for i in range(5):
        assert np.array_equal(units_per_request(rows[i, ::-1], active=active[i, ::-1]), whole[i, ::-1])
    moved = coalesce(rows, active=active)
    assert (moved.requests, moved.sectors) == (np.count_nonzero(whole), whole.sum())
    assert moved.bytes_asked == 4 * np.count_nonzero(active)


def test_bounds():
    rows = np.random.default_rng(4).integers(0, 10_000, (2000, 32)) * 4
    sectors, lines = (units_per_request(rows, unit_bytes=unit) for unit in (32, 128))
    assert (lines <= sectors).all() and (sectors <= 4 * lines).all() and (sectors <= 32).all()


def test_shared_words_move_once():
    moved = coalesce(np.zeros((1, 32), int))
    assert (moved.sectors, moved.efficiency) == (1, 4.0)
    nothing = coalesce(np.zeros((3, 32), int), active=np.zeros((3, 32), bool))
    assert (nothing.requests, nothing.sectors, nothing.sectors_per_request, nothing.efficiency) == (0, 0, 0.0, 1.0)


@pytest.mark.parametrize("rows, named, says", [
    (np.arange(32), {}, r"shape \(32,\)"),
    (np.zeros((2, 64), int), {}, "at most 32"),
    (np.zeros((2, 32)), {}, "float64"),
    (np.zeros((2, 32), int), {"itemsize": 64}, "itemsize=64"),
    (np.zeros((2, 32), int), {"unit_bytes": 48}, "unit_bytes=48"),
])  # fmt: skip
def test_errors_say_what_is_wrong(rows, named, says):
    with pytest.raises(ValueError, match=says):
        units_per_request(rows, **named)
