"""The numbers and the stories in problem set 4 are what they are said to be.

Launches: each broken kernel differs from the right one only where the task says. Tiles and plans: the literal bests are
those of a search written another way. Traces: a planted fault costs a tenth at least, and what lies beside it next to nothing.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from functools import cache
from itertools import combinations, permutations
from pathlib import Path

import nbformat
import numpy as np
import pytest

from grading.cells import role_of
from mlsys import profile
from mlsys.gpu.fusion import Graph, PlanError, plan_kernel, score
from mlsys.gpu.occupancy import occupancy
from mlsys.gpu.tiles import CHOICES, Tile, problem, tile_time, traffic_bytes
from mlsys.specs.accelerators import A100_80GB

ROOT = Path(__file__).parents[2]
CELLS = nbformat.read(ROOT / "source/ps04_gpu_performance/ps04_gpu_performance.ipynb", 4).cells
SOURCES = {cell.id: cell.source for cell in CELLS}


@pytest.fixture(scope="module")
def space() -> dict:
    """Set-up and given cells, and the solutions."""
    names: dict = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in CELLS:
            if role_of(cell) in ("setup", "given", "answer"):
                name = f"<{cell.id}>"
                linecache.cache[name] = (len(cell.source), None, cell.source.splitlines(True), name)
                exec(compile(cell.source, name, "exec"), names)
    return names


def broken_kernels(space: dict) -> dict[str, dict]:
    """Every broken kernel of the checks, by what is said about it."""
    found, names = {}, {**space, "must_fail": lambda tests, said, broken, hint: found.update({said: broken})}
    with contextlib.redirect_stdout(io.StringIO()):
        for part in ("sizes", "values", "barriers", "memory"):
            exec(SOURCES[f"launches-check-{part}"], names)
    return found


def test_ten_kernels_are_broken_as_the_task_says(space):
    """A friendly launch passes most of them, so a list that is not thought about catches little."""
    broken = broken_kernels(space)
    assert len(broken) == 10
    friendly = dict(rows=2, width=64, grid=2, block=64, values="random", look_at=["result"])
    assert not [said for said, kernel in broken.items() if space["failure"](friendly, kernel)]
    for said in ("a tree without barriers", "slots used again too early"):
        test = dict(rows=6, width=200, grid=2, block=64, values="rising", look_at=["result"])
        assert space["failure"](test, broken[said]) == ""
        assert "race" in space["failure"]({**test, "look_at": ["races"]}, broken[said])


def test_each_group_needs_its_own_launch(space):
    """No single launch test catches more than half of the broken kernels that a result can tell."""
    broken, caught = broken_kernels(space), []
    for rows, width, block, values in ((8, 400, 32, "rising"), (8, 96, 96, "rising"), (4, 40, 64, "negative")):
        test = dict(rows=rows, width=width, grid=2, block=block, values=values, look_at=["result", "races"])
        caught.append({said for said, kernel in broken.items() if space["failure"](test, kernel)})
    assert max(map(len, caught)) <= 7 and len(set.union(*caught)) == 8  # the two others need a count of sectors


def test_reported_histogram_is_wrong(space):
    data = np.random.default_rng(0).integers(0, 64, 1000).astype(np.int32)
    with pytest.raises(space["check"].CheckFailed, match="sync_threads"):
        space["run_histogram"](space["reported"], data, 64, 4, 256)
    got, want, report = space["run_histogram"](space["reported"], data[:512], 64, 2, 256)
    assert got.sum() < want.sum() and report.races


def judged(space: dict, cell: str, judge: str) -> list[tuple]:
    """(name, case, most) of everything that a check hands to its judge, what is hidden too."""
    found: list[tuple] = []
    names = {**space, judge: lambda answer, name, case, most: found.append((name, case, most)) or most}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(SOURCES[cell], names)
    return found


@pytest.mark.parametrize("part, factor", [("runs", 1.2), ("near", 1.02), ("least", 1.0005)])
def test_least_times_are_exhaustive(space, part, factor):
    axes = np.meshgrid(*(np.array(CHOICES[axis]) for axis in ("bm", "bn", "bk", "tm", "tn")), indexing="ij")
    names = [tuple(int(n) for n in row) for row in np.stack([axis.ravel() for axis in axes], 1)]
    tiles = [Tile(*name) for name in names]
    tiles = [tile for tile in tiles if not problem(tile) and tile.threads >= 32]
    every = Tile(*(np.array([getattr(tile, axis) for tile in tiles]) for axis in ("bm", "bn", "bk", "tm", "tn")))
    jobs = judged(space, f"two-kernels-check-{part}", "judge_tiles")
    assert len(jobs) == {"runs": 6, "near": 6, "least": 7}[part]
    for name, (chip, products), most in jobs:
        times = np.stack(
            [calls * tile_time(every, m, n, k, space["CHIPS"][chip]).time_s for m, n, k, calls in products]
        )
        order, least = np.argsort(times.sum(0)), np.inf
        for at in order:  # pairs of every tile with all others, the best ones first
            least = min(least, float(np.minimum(times, times[:, [at]]).sum(0).min()))
        assert factor * least == pytest.approx(most, rel=1e-5), (name, least)


def test_least_times_are_the_same_in_all_checks():
    parts = [re.findall(r"0\.\d{9}", SOURCES[f"two-kernels-check-{part}"]) for part in ("runs", "near")]
    assert parts[0] == parts[1] == re.findall(r"0\.\d{9}", SOURCES["two-kernels-check-least"])


@pytest.mark.parametrize("fault", [*profile.FAULTS, None])
def test_the_culprit_costs_and_the_rest_does_not(space, fault):
    """Gains by simulating the loop again, without the fault or without another one."""
    loops: list = []
    names = {**space, "loops": loops}
    exec(
        SOURCES["culprit-given"].split("\n\n\ncases")[0].replace("return seen", "loops.append(loop)\n    return seen"),
        names,
    )
    for seed in (1, 2):
        rows, slow = names["draw_case"](fault, np.random.default_rng([seed, 11]))
        assert space["culprit"](rows) == (fault, slow)
        gains = {name: profile.speedup(loops[-1], name) for name in profile.FAULTS}
        assert fault is None or gains.pop(fault) >= 1.1, (fault, seed)
        assert max(gains.values()) < 1.05, (fault, seed, gains)


def least_bytes(graph: Graph, cap: int, width: int) -> float:
    """By sets: the best way to any set of results that can be made first, and any kernel from there, in any order."""
    names = list(graph.made)

    @cache
    def needs(name: str) -> frozenset:
        return frozenset(source for source in graph.made[name].inputs if source in graph.made)

    def fits(done: frozenset, group: tuple[str, ...]) -> float:
        for order in permutations(group):
            try:
                kernel = plan_kernel(graph, order, set(done), width)
            except PlanError:
                continue
            if kernel.registers <= cap:
                return kernel.bytes_moved
        return np.inf

    best = {frozenset(): 0.0}
    closed = [frozenset(group) for size in range(len(names) + 1) for group in combinations(names, size)]
    closed = [group for group in closed if all(needs(name) <= group for name in group)]
    for after in closed[1:]:
        smaller = [done for done in best if done < after]
        best[after] = min(
            best[done] + fits(done, tuple(name for name in names if name in after - done)) for done in smaller
        )
    return best[frozenset(names)]


@pytest.mark.parametrize("part, factor", [("plans", 1.7), ("order", 1.0001)])
def test_least_bytes_of_the_small_graphs_are_exhaustive(space, part, factor):
    cases = judged(space, f"fuse-check-{part}", "judge_fusion")
    small = [(name, case, most) for name, case, most in cases if len(case["ops"]) <= 8]
    assert len(small) == 6
    for name, case, most in small:
        least = least_bytes(space["graph_of"](case), case["max_registers"], case["width"])
        assert factor * least == pytest.approx(most, rel=1e-12), (name, least)


def best_cuts(graph: Graph, cap: int, width: int) -> tuple[float, list]:
    """Least bytes of a plan that keeps the given order, and the plan."""
    names = list(graph.made)
    best: list[tuple[float, list]] = [(0.0, [])]
    for end in range(1, len(names) + 1):
        found = []
        for start in range(end):
            with contextlib.suppress(PlanError):
                kernel = plan_kernel(graph, tuple(names[start:end]), set(names[:start]), width)
                if kernel.registers <= cap:
                    found.append((best[start][0] + kernel.bytes_moved, [*best[start][1], names[start:end]]))
        best.append(min(found))
    return best[-1]


@pytest.mark.parametrize(
    "asked, part, otherwise",
    [
        ("choose_tiles", "two-kernels-check-runs", lambda products, chip: [(128, 128, 8, 8, 8)]),
        ("choose_tiles", "two-kernels-check-near", lambda products, chip: [(64, 64, 16, 4, 4)]),
        ("fuse", "fuse-check-plans", lambda case: [[out] for out, _, _ in case["ops"]]),
        ("fuse", "fuse-check-order", None),
    ],
)
def test_a_table_of_the_visible_cases_is_caught(space, asked, part, otherwise):
    """The solution for the cases that a student sees; the usual tile, no fusion, or the best cuts of the given order for others."""
    source, shown, solution = SOURCES[part], [], space[asked]

    def in_given_order(case):
        return best_cuts(space["graph_of"](case), case["max_registers"], case["width"])[1]

    def recorded(*given):
        shown.append(repr(given))
        return solution(*given)

    def table(*given):
        return (solution if repr(given) in shown else otherwise or in_given_order)(*given)

    with contextlib.redirect_stdout(io.StringIO()):
        exec(source.split("### BEGIN HIDDEN")[0], {**space, asked: recorded})
        with pytest.raises(space["check"].CheckFailed, match="allowed"):
            exec(source, {**space, asked: table})


def test_least_bytes_of_the_long_graphs_are_reached(space):
    """Adam and the block by all cuts of the given order, which the solution may not beat nor miss."""
    held = dict(re.findall(r'"([\w ,]+)": ([\d_]+)', SOURCES["fuse-check-cuts"].splitlines()[0]))
    assert len(held) == 3
    for name, least in held.items():
        case = space["FUSE_CASES"][name]
        graph = space["graph_of"](case)
        ours = score(graph, space["fuse"](case), A100_80GB, case["max_registers"], case["width"]).bytes_moved
        assert best_cuts(graph, case["max_registers"], case["width"])[0] == ours == int(least), name


def test_memo_numbers():
    half, claimed = occupancy("8.0", 256, 64), occupancy("8.0", 256, 33)
    assert (half.blocks_per_sm, half.fraction, claimed.blocks_per_sm, claimed.fraction) == (4, 0.5, 6, 0.75)
    naive, tiled = (traffic_bytes(Tile(*sizes), 4096, 4096, 4096) for sizes in ((1, 1, 1, 1, 1), (32, 32, 32, 1, 1)))
    assert round(naive / 1e9) == 550 and round(tiled / 1e9) == 17
