"""The literal numbers in the checks of problem set 3, and what its tasks say, are what they are said to be.

Formats: the library's own codec. Layouts: the swizzles of CUTLASS. Sparse rows: the same kernel in the SIMT simulator.
The cache: every cache that is allowed, and the library's. Serving: every plan, from the library's roofline and counts.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from itertools import product
from pathlib import Path

import nbformat
import numpy as np
import pytest

from grading.cells import role_of
from mlsys.dtypes import decode, encode, mx, nvfp4
from mlsys.gpu import Cache, conflicts, hits
from mlsys.gpu.roofline import Work, bounds_s
from mlsys.gpu.simt import block_dim, block_idx, kernel, thread_idx
from mlsys.specs import ACCELERATORS, H100_SXM
from mlsys.specs.models import LLAMA3_8B, LLAMA3_70B
from mlsys.transformer.counts import kv_cache_bytes, parameter_parts, parameters

ROOT = Path(__file__).parents[2]
CELLS = nbformat.read(ROOT / "source/ps03_gpu_architecture/ps03_gpu_architecture.ipynb", 4).cells
SOURCES = {cell.id: cell.source for cell in CELLS}


@pytest.fixture(scope="module")
def space() -> dict:
    """Set-up, given cells and solutions."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in CELLS:
            if role_of(cell) in ("setup", "given", "answer"):
                exec(cell.source, names)
    return names


def held(cell: str, name: str = "LEAST") -> dict:
    """The literal table of a check cell."""
    return eval(re.search(rf"^{name} = (.*)$", SOURCES[cell], re.M)[1])


def test_mxfp4_file_is_the_librarys(space):
    x = np.random.default_rng(0).standard_t(3, (5, 96))
    stored = mx(x, "e2m1")
    packed = (stored.codes[..., 0::2] | stored.codes[..., 1::2] << 4).astype(np.uint8)
    assert np.array_equal(space["read_mxfp4"](packed, stored.scales), stored.values())


def test_mxfp4_goes_into_nvfp4_without_loss(space):
    """A power of two is an e4m3 number and a block of 32 is two of 16, so nothing need be lost."""
    x = mx(np.random.default_rng(1).normal(size=(3, 64)), "e2m1").values().astype(float)
    codes, scales = space["write_nvfp4"](x, np.ones(64), 1.0)
    assert np.array_equal(decode(codes, "e2m1") * np.repeat(decode(scales, "e4m3fn"), 16, axis=1), x)


def error_with(case, scales) -> np.ndarray:
    """Weighted error of each block with these scale codes, (rows, blocks)."""
    x, importance = case
    whole, blocks = nvfp4(x).tensor_scale, x.reshape(len(x), -1, 16)
    step = np.maximum(decode(scales, "e4m3fn").astype(float), 2.0**-9)[..., None] * whole
    return (importance.reshape(-1, 16) * (blocks - decode(encode(blocks / step, "e2m1"), "e2m1") * step) ** 2).sum(-1)


def test_least_errors_are_exhaustive(space):
    literal = held("four-bits-check-least")
    assert literal == held("four-bits-check-near") and list(literal) == list(space["CASES"])
    for name, case in space["CASES"].items():
        shape = nvfp4(case[0]).scales.shape
        least = np.min([error_with(case, np.full(shape, code, np.uint8)) for code in range(1, 127)], axis=0).sum()
        assert math.isclose(least, literal[name], rel_tol=1e-5), name


def test_the_usual_rule_and_four_over_six_lose(space):
    """Between the usual rule and the least error lies the choice between 4 and 6."""
    for name, case in space["CASES"].items():
        x, whole = case[0], nvfp4(case[0]).tensor_scale
        largest = np.abs(x.reshape(len(x), -1, 16)).max(-1)
        errors = [error_with(case, encode(largest / top / whole, "e4m3fn")) for top in (6, 4)]
        plain, either, least = errors[0].sum(), np.min(errors, axis=0).sum(), held("four-bits-check-least")[name]
        assert math.isclose(plain, space["plain_error"](case), rel_tol=1e-6)
        assert plain > either > 1.05 * least and plain > 1.3 * least, name


def test_the_librarys_own_rule_gets_no_point_for_writing(space):
    def usual(x, importance, whole):
        stored = nvfp4(x)
        return stored.codes.reshape(x.shape), stored.scales

    with pytest.raises(Exception, match="the largest number of a block becomes 6"):
        exec(SOURCES["four-bits-check-plain"], {**space, "write_nvfp4": usual})


@pytest.mark.parametrize("columns, bits", [(8, 3), (4, 2), (2, 1)])
def test_layout_of_wide_cells_is_the_swizzle_of_cutlass(space, columns, bits):
    """Swizzle<bits, 4, 3>: address bits 4 and up, exclusive or with the bits three places higher."""
    address = np.arange(64 * columns) * 16
    swizzled = address ^ (address >> 3 & (2**bits - 1) << 4)
    assert np.array_equal(space["place"](64, columns, 16, 64 * columns * 16).ravel(), swizzled)


def test_layouts_of_every_allowed_shape(space):
    for cell in (4, 8, 16):
        for rows, columns in product([n for n in (8, 16, 32, 64, 128) if n * cell >= 128], (1, 2, 4, 8, 16, 32, 64)):
            if rows * columns >= 32:
                places = space["place"](rows, columns, cell, rows * columns * cell)
                assert sorted(places.ravel()) == list(range(0, rows * columns * cell, cell))
                for cells in (places, places.T):
                    assert conflicts(cells.reshape(-1, 32), cell).conflicts == 0, (cell, rows, columns)


def test_passes_of_a_layout_are_the_librarys(space):
    rng = np.random.default_rng(3)
    for cell, rows, columns in ((4, 32, 32), (8, 16, 8), (16, 8, 4), (16, 64, 2)):
        cells = cell * rng.permutation(2 * rows * columns)[: rows * columns].reshape(rows, columns)
        used = conflicts(cells.reshape(-1, 32), cell)
        assert used.conflicts > 0 and space["passes_of"](cells, cell) == used.passes
        assert used.least == cells.size * cell // 128


@pytest.mark.parametrize("part", ["padded", "words", "wide", "short"])
def test_a_table_of_the_visible_layouts_is_caught(space, part):
    """The solution for the shapes that a student sees, the plain layout for all others."""
    source, shown, solution = SOURCES[f"tile-layout-check-{part}"], set(), space["place"]

    def recorded(*shape):
        shown.add(shape)
        return solution(*shape)

    def table(rows, columns, cell_bytes, room_bytes):
        shape = rows, columns, cell_bytes, room_bytes
        return solution(*shape) if shape in shown else cell_bytes * np.arange(rows * columns).reshape(rows, columns)

    exec(source.split("### BEGIN HIDDEN")[0], {**space, "place": recorded})
    with pytest.raises(space["check"].CheckFailed, match="column"):
        exec(source, {**space, "place": table})


@kernel
def sparse(values, starts, sums, rows, width):
    i = block_idx.x * block_dim.x + thread_idx.x
    row = i // width
    if row < rows:
        at = starts[row] + i % width
        end = starts[row + 1]
        total = 0.0
        while at < end:
            total += values[at]
            at += width
        sums[i] = total


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
def test_sparse_rows_as_simulated(space, width):
    lengths = np.minimum(np.random.default_rng(width).geometric(0.1, 101) - 1, 60)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    values, warps = np.ones(starts[-1], np.float32), -(-len(lengths) * width // 32)
    sums = np.zeros(32 * warps)
    report = sparse.launch(grid=warps, block=32, args=(values, starts, sums, len(lengths), width), trace=True)
    line = next(r for r in report.lines if "values[at]" in r.text)
    slots, share = space["loop_slots"](lengths, width)
    assert slots == 4 * line.issue_slots + 2 * math.log2(width) * warps
    assert math.isclose(share, line.active_share) and space["value_sectors"](lengths, width) == line.sectors
    assert sums.sum() == len(values)


def test_three_matrices_want_three_widths(space):
    assert [space["best_width"](lengths)[0] for lengths in space["MATRICES"].values()] == [4, 32, 8]


def test_cache_is_the_librarys(space):
    rng = np.random.default_rng(2)
    for line_bytes, sets, ways in ((32, 4, 2), (128, 1, 5), (64, 16, 3)):
        trace = rng.integers(0, 2 * line_bytes * sets * ways, 400)
        cache = {"line_bytes": line_bytes, "sets": sets, "ways": ways, "policy": "LRU"}
        assert space["count_misses"](cache, trace.tolist()) == np.count_nonzero(
            ~hits(Cache(sets, ways, line_bytes), trace)
        )
    fifo = {"line_bytes": 32, "sets": 1, "ways": 2, "policy": "FIFO"}
    assert (
        space["count_misses"](fifo, [0, 32, 0, 64, 0]) == 4
        and space["count_misses"]({**fifo, "policy": "LRU"}, [0, 32, 0, 64, 0]) == 3
    )


def test_experiments_tell_all_caches_apart(space):
    traces = space["experiments"]()
    assert len(traces) <= 400 and sum(map(len, traces)) <= 12_000
    for line_bytes, sets, ways, policy in product(
        (32, 64, 128, 256), (1, 2, 16, 128, 256), (2, 3, 8, 15, 16), ("LRU", "FIFO")
    ):
        cache = {"line_bytes": line_bytes, "sets": sets, "ways": ways, "policy": policy}
        assert space["conclude"]([space["count_misses"](cache, trace) for trace in traces]) == cache


def plans(job: dict, share: float = 0.9):
    """Every allowed plan as (dollars, chip, form, batch), by the library's roofline and counts."""
    parts = parameter_parts(LLAMA3_70B)
    matrices, output = parts["attention"] + parts["mlp"], parts["output layer"]
    for name, rent in job["rent"].items():
        chip = ACCELERATORS[name]
        for kind, bits in (("bf16", 16), ("fp8", 8 + 32 / 128**2), ("int4", 4 + 16 / 128)):
            precision = "fp8" if kind == "fp8" and chip.peak_fp8 else "bf16"
            for batch in range(1, 3000):
                cache = kv_cache_bytes(LLAMA3_70B, job["context"], batch, job["cache_bits"] / 8)
                held = matrices * bits / 8 + 2 * (parameters(LLAMA3_70B) - matrices) + cache
                scores = 4 * LLAMA3_70B.layers * LLAMA3_70B.q_width * job["context"] * batch
                step_s = bounds_s(Work(2 * matrices * batch, matrices * bits / 8), chip, precision)[0]
                step_s += (
                    bounds_s(Work(2 * output * batch, 2 * output), chip)[0] + bounds_s(Work(scores, cache), chip)[0]
                )
                if held > share * chip.mem_bytes or step_s > job["token_s"]:
                    break
                yield rent * step_s / 3600 / batch * 1e6, name, kind, batch


def test_cheapest_plans_are_exhaustive(space):
    literal = held("serve-check-limits")
    winners = set()
    for name, job in space["JOBS"].items():
        best = min(plans(job))
        assert math.isclose(best[0], literal[name], rel_tol=1e-5), (name, best)
        ours = space["cheapest"](space["MODEL"], space["CHIPS"], space["FORMS"], job)
        assert math.isclose(ours[0], best[0], rel_tol=1e-9) and ours[1:3] == best[1:3]
        winners.add(best[1:3])
    assert len(winners) == 4, "each visible job is meant to want another plan"
    assert all(str(dollars) in SOURCES["serve-check-least"] for dollars in literal.values())


def test_numbers_of_the_serving_task(space):
    model, chips, forms = (space[name] for name in ("MODEL", "CHIPS", "FORMS"))
    step = space["step_parts"](model, chips["H100 SXM"], forms["int4"], 16, 4096, 16)
    assert [round(1e3 * s, 1) for s in step] == [10.5, 0.6, 6.4]
    assert model["matrices"] + model["output"] + model["table"] + model["norms"] == parameters(LLAMA3_70B)


def test_numbers_of_the_memo(space):
    rate, h200 = 2 * 8192**3 / 1.6e-3, ACCELERATORS["H200 SXM"]
    assert round(rate / H100_SXM.peak("bf16", sparse=True), 2) == 0.35 and round(rate / 1e12) == 687
    assert round(rate / H100_SXM.peak_bf16, 2) == 0.69 and round(rate / H100_SXM.best_bf16, 2) == 0.86
    assert H100_SXM.peak_fp8 / H100_SXM.peak_bf16 == pytest.approx(2, rel=1e-3)
    cache, weights = kv_cache_bytes(LLAMA3_8B, 8192, 64), 2 * parameters(LLAMA3_8B)
    assert cache == 64 * 2**30 and round(weights / 1e9) == 16 and round((cache + weights) / 1e9, 1) == 84.8
    assert [round(1e3 * size / h200.mem_bw, 1) for size in (80e9, cache + weights)] == [16.7, 17.7]
    assert round(h200.mem_bw / H100_SXM.mem_bw, 2) == 1.43
    assert [round(1e3 * weights / chip.mem_bw, 1) for chip in (h200, H100_SXM)] == [3.3, 4.8]
    assert H100_SXM.link_bw == 450e9
