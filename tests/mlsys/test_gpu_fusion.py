"""Fusion plans against counts by brute force, and what no plan can do."""

import itertools

import numpy as np
import pytest

from mlsys.gpu.fusion import (
    BASE_REGISTERS,
    POINTER_REGISTERS,
    Graph,
    Op,
    PlanError,
    gelu,
    most_alive,
    one_by_one,
    score,
)
from mlsys.specs import A100_80GB


def random_graph(rng, ops=6):
    """A graph in which every result may be used by every later operation."""
    names = ["x0", "x1"]
    made = []
    for place in range(ops):
        inputs = tuple(rng.choice(names, rng.integers(1, min(3, len(names)) + 1), replace=False).tolist())
        made.append(Op(f"t{place}", inputs, float(rng.integers(1, 100))))
        names.append(f"t{place}")
    wanted = tuple({made[-1].out, *rng.choice([op.out for op in made], 2).tolist()})
    return Graph(tuple(made), {name: int(rng.integers(1, 1000)) for name in names}, wanted)


def count(graph, plan):
    """Bytes by asking of each kernel and array whether it crosses the border."""
    total = 0
    for group in plan:
        inside = set(group)
        for name, size in graph.sizes.items():
            reads = any(name in op.inputs and op.out in inside for op in graph.ops) and name not in inside
            used_outside = any(name in op.inputs and op.out not in inside for op in graph.ops) or name in graph.wanted
            total += size * (reads + (name in inside and used_outside))
    return total


def splits(items):
    """Every way to cut a list into pieces."""
    for cuts in itertools.product((False, True), repeat=len(items) - 1):
        groups = [[items[0]]]
        for item, cut in zip(items[1:], cuts):
            groups.append([item]) if cut else groups[-1].append(item)
        yield groups


def test_every_plan_of_random_graphs_moves_what_brute_force_counts():
    rng = np.random.default_rng(0)
    for _ in range(20):
        graph = random_graph(rng)
        for plan in splits([op.out for op in graph.ops]):
            found = score(graph, plan, A100_80GB)
            assert found.bytes_moved == count(graph, plan)
            assert sum(kernel.vector_flops for kernel in found.kernels) == sum(op.flops for op in graph.ops)


def test_joining_two_neighbours_never_moves_more():
    rng = np.random.default_rng(1)
    for _ in range(20):
        graph = random_graph(rng)
        for plan in splits([op.out for op in graph.ops]):
            before = score(graph, plan, A100_80GB)
            for place in range(len(plan) - 1):
                joined = plan[:place] + [plan[place] + plan[place + 1]] + plan[place + 2 :]
                after = score(graph, joined, A100_80GB)
                assert after.bytes_moved <= before.bytes_moved and after.time_s <= before.time_s * (1 + 1e-12)


def test_gelu_apart_and_together():
    """Nine kernels make 21 passes over the array, one makes 2."""
    graph = gelu(1000)
    assert score(graph, one_by_one(graph), A100_80GB).bytes_moved == 21 * 2000
    assert score(graph, [list(graph.made)], A100_80GB).bytes_moved == 2 * 2000
    found = score(graph, one_by_one(graph), A100_80GB, launch_s=1e-5)
    assert found.time_s == pytest.approx(9 * 1e-5 + 42_000 / A100_80GB.mem_bw)


def brute_alive(ops):
    """Between two steps every value is alive that was loaded or made before and is used after; at a step its operands are too."""
    most = 0
    for place, op in enumerate(ops):
        before = {name for earlier in ops[:place] for name in (*earlier.inputs, earlier.out)}
        needed = {name for later in ops[place:] for name in later.inputs}
        after = {name for later in ops[place + 1 :] for name in later.inputs}
        most = max(most, len((before & needed) | set(op.inputs)), len(((before | set(op.inputs)) & after) | {op.out}))
    return most


def test_registers_of_random_orders():
    rng = np.random.default_rng(2)
    for _ in range(200):
        ops = random_graph(rng, 8).ops
        assert most_alive(ops) == brute_alive(ops)


def test_the_order_in_a_kernel_decides_how_many_values_are_alive():
    ops = {name: Op(name, inputs) for name, inputs in (("a", ("x",)), ("b", ("y",)), ("c", ("z",)), ("d", ("a", "b")), ("e", ("d", "c")))}
    wide, narrow = [[ops[name] for name in order] for order in ("abcde", "abdce")]
    assert (most_alive(wide), most_alive(narrow)) == (3, 2)
    graph = Graph(tuple(wide), dict.fromkeys("xyzabcde", 1), ("e",))
    kernel = score(graph, [list("abdce")], A100_80GB, width=4).kernels[0]
    assert kernel.registers == BASE_REGISTERS + 4 * POINTER_REGISTERS + 4 * 2


LAYER = Graph(
    (
        Op("h", ("x", "w"), 2e9, "matmul"),
        Op("a", ("h", "bias"), 1e6),
        Op("r", ("a", "x"), 1e6),
        Op("mean", ("r",), 1e6, "reduction"),
        Op("y", ("r", "mean"), 1e6),
        Op("z", ("y", "w"), 2e9, "matmul"),
    ),
    {"x": 2e6, "w": 2e6, "bias": 2e3, "h": 2e6, "a": 2e6, "r": 2e6, "mean": 2e3, "y": 2e6, "z": 2e6},
    ("z", "r"),
)


@pytest.mark.parametrize("plan, says", [
    ([["h", "a", "r", "mean"], ["y"], ["z"]], "h\\+a\\+r\\+mean: a product's tile holds no whole row to reduce"),
    ([["h"], ["a", "r", "mean", "y", "z"]], "a product comes first in its kernel, and there is one"),
    ([["h"], ["r", "a"], ["mean", "y"], ["z"]], "r\\+a: r needs a, which is not made before"),
    ([["h", "a"], ["a", "r"], ["mean", "y"], ["z"]], "a\\+r: a is made twice"),
    ([["h", "a", "r"], ["mean", "y"]], "no kernel makes z"),
    ([["h", "x"]], "no operation makes x"),
    ([[]], "makes nothing"),
    (["ha"], "a plan is a list of kernels"),
    (None, "a plan is a list of kernels"),
    ([[["h"]]], "no operation makes"),
])
def test_plans_that_cannot_be(plan, says):
    with pytest.raises(PlanError, match=says):
        score(LAYER, plan, A100_80GB)


def test_a_cap_on_registers():
    graph = gelu(8)
    needed = score(graph, [list(graph.made)], A100_80GB).registers
    assert score(graph, [list(graph.made)], A100_80GB, max_registers=needed).registers == needed
    with pytest.raises(PlanError, match=f"needs {needed} registers a thread; {needed - 1} are allowed"):
        score(graph, [list(graph.made)], A100_80GB, max_registers=needed - 1)


def test_what_is_wanted_is_written_also_when_fused():
    best = score(LAYER, [["h", "a", "r"], ["mean", "y"], ["z"]], A100_80GB)
    assert [kernel.writes for kernel in best.kernels] == [("r",), ("y",), ("z",)]
    assert best.kernels[0].reads == ("x", "w", "bias")
    assert best.kernels[0].time_s(A100_80GB) == pytest.approx(2e9 / 312e12 + 2e6 / 19.5e12)


def test_graphs_that_make_no_sense():
    with pytest.raises(ValueError, match="sizes has no bytes for y"):
        Graph((Op("y", ("x",)),), {"x": 1}, ("y",))
    with pytest.raises(ValueError, match="a uses b, which is made later"):
        Graph((Op("a", ("b",)), Op("b", ("x",))), dict.fromkeys("abx", 1), ("b",))
    with pytest.raises(ValueError, match="kind='sum' of y"):
        Op("y", ("x",), kind="sum")
