"""The literal numbers in the checks of problem set 1 are what they are said to be.

Least extra times: exhaustive search where 2**20 sets can be tried, elsewhere three algorithms that agree.
Adafactor: PyTorch itself, where it is installed.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from grading.answers import read_answers
from grading.cells import role_of

ROOT = Path(__file__).parents[2]
CELLS = nbformat.read(ROOT / "source/ps01_foundations/ps01_foundations.ipynb", 4).cells
SOURCES = {cell.id: cell.source for cell in CELLS}
ENTRY = re.compile(r'\("([\w -]+)", ([\d.e]+), ([\d.e-]+)\)')


@pytest.fixture(scope="module")
def space() -> dict:
    """Set-up and given cells, as every check finds them."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in CELLS:
            if role_of(cell) in ("setup", "given"):
                exec(cell.source, names)
    return names


def chains(space: dict) -> dict:
    """The chains of the checks by name: sizes and times."""
    found = {"VGG-16": space["vgg_16"][:2], "VGG-19": space["vgg_19"][:2], "MobileNet": space["mobile"][:2]}
    for seed in range(5):
        rng = np.random.default_rng(200 + seed)
        sizes = [int(v) * 10**6 for v in rng.integers(50, 1000, 41)]
        found[f"chain {seed}"] = sizes, [0.0] + [float(v) / 1e6 for v in rng.integers(1, 1000, 40)]
    return found


def least_times() -> set[tuple[str, float, float]]:
    """(chain, cap, least extra time) as the checks hold them."""
    held = set()
    for name in ("within-half", "within-tenth", "least"):
        source = SOURCES[f"recompute-check-{name}"]
        held |= {(chain, float(cap), float(least)) for chain, cap, least in ENTRY.findall(source)}
        visible = source.split("### BEGIN")[0]
        held |= {("VGG-16", float(c), float(s)) for c, s in re.findall(r"\((\d+e9), ([\d.]+)\)", visible)}
    return held


def exhaustive(sizes, times, caps) -> list[float]:
    """Least extra time under each cap, over all sets of kept layers at once."""
    last = len(sizes) - 1
    sets = np.arange(2 ** (last - 1), dtype=np.int64)
    kept, stretch = np.full(len(sets), sizes[0], np.int64), np.zeros(len(sets), np.int64)
    peak, extra = kept.copy(), np.zeros(len(sets))
    for i in range(1, last + 1):
        stays = (sets >> (i - 1)) & 1 == 1 if i < last else np.ones(len(sets), bool)
        peak = np.where(stays, np.maximum(peak, kept + stretch + sizes[i]), peak)
        kept = kept + stays * sizes[i]
        stretch = np.where(stays, 0, stretch + sizes[i])
        extra += np.where(stays, 0.0, times[i])
    return [float(extra[peak <= cap].min()) for cap in caps]


def test_least_times_of_vgg_are_exhaustive(space):
    sizes, times = chains(space)["VGG-16"]
    held = [(cap, least) for name, cap, least in least_times() if name == "VGG-16"]
    assert len(held) >= 5
    assert np.allclose(exhaustive(sizes, times, [cap for cap, _ in held]), [least for _, least in held], rtol=1e-6)


def test_exhaustive_agrees_with_the_replay(space):
    rng = np.random.default_rng(0)
    for _ in range(20):
        sizes, times = [int(v) for v in rng.integers(1, 9, 7)], [0.0, *rng.random(6)]
        plans = [space["replay"](sizes, times, [i for i in range(1, 6) if s >> (i - 1) & 1]) for s in range(32)]
        caps = sorted({peak for peak, _ in plans})
        want = [min(extra for peak, extra in plans if peak <= cap) for cap in caps]
        assert np.allclose(exhaustive(sizes, times, caps), want)


def planners(space: dict) -> list:
    """`place_checkpoints` of the solution and of each right version."""
    beside = read_answers(ROOT / "tests/answers/ps01_foundations.py")
    versions = [v for v in beside if v.exercise == "recompute" and v.kind == "right"]
    found = []
    for source in [SOURCES["recompute-answer"], *(v.source for v in versions)]:
        names = dict(space)
        exec(source, names)
        found.append(names["place_checkpoints"])
    return found


def test_least_times_agree_between_algorithms(space):
    plans = planners(space)
    assert len(plans) >= 3
    for plan in plans:
        for name, cap, least in least_times():
            sizes, times = chains(space)[name]
            peak, extra = space["replay"](sizes, times, [int(i) for i in plan(sizes, times, cap)])
            assert peak <= cap
            assert math.isclose(extra, least, rel_tol=1e-6), (name, cap, extra, least)


def drawn_chain(space: dict, cell: str, seed: int) -> dict:
    """A namespace with the check's `drawn_chain`, its generator and how the check calls it."""
    source = SOURCES[f"recompute-check-{cell}"]
    names = {**space, "test_rng": np.random.default_rng((7, seed))}
    exec(source[source.index("def drawn_chain") : source.index("for trial in range")], names)
    names["drawn"] = eval(re.search(r"drawn_chain(\(\d+, [\d.]+\))\n", source)[1])
    return names


def test_least_times_of_drawn_chains_agree_between_algorithms(space):
    plans = planners(space)
    for cell, seed in (("within-half", 0), ("within-tenth", 0), ("within-tenth", 1)):
        names = drawn_chain(space, cell, seed)
        sizes, times, cap, least = names["drawn_chain"](*names["drawn"])
        for plan in plans:
            peak, extra = space["replay"](sizes, times, [int(i) for i in plan(sizes, times, cap)])
            assert peak <= cap and math.isclose(extra, least, rel_tol=1e-9)


def test_least_times_of_short_drawn_chains_are_exhaustive(space):
    for seed in range(5):
        names = drawn_chain(space, "within-half", seed)
        sizes, times, cap, least = names["drawn_chain"](12, 0.5)
        assert math.isclose(exhaustive(sizes, times, [cap])[0], least, rel_tol=1e-9)


def test_chance_is_not_enough_on_long_chains(space):
    """2,000 plans changed by chance do not pass what is drawn; dropping one at a time passes the first."""

    def by_chance(sizes, times, cap, evaluations=2000):
        last, rng, best = len(sizes) - 1, np.random.default_rng(1), (math.inf, math.inf)

        def cost(keep):
            peak, extra = space["replay"](sizes, times, keep)
            return max(0, peak - cap), extra

        for step in range(2, 9):
            keep = set(range(step, last, step))
            value = cost(keep)
            for _ in range(evaluations // 7):
                new = keep ^ set(rng.integers(1, last, rng.integers(1, 3)).tolist())
                keep, value = min((new, cost(new)), (keep, value), key=lambda plan: plan[1])
            best = min(best, value)
        return best

    def by_dropping(sizes, times, cap):
        keep = set(range(1, len(sizes) - 1))
        while space["replay"](sizes, times, keep)[0] > cap:
            keep.remove(max(keep, key=lambda i: sizes[i] / times[i]))
        return space["replay"](sizes, times, keep)

    for cell, factor in (("within-half", 1.5), ("within-tenth", 1.1)):
        names = drawn_chain(space, cell, 0)
        sizes, times, cap, least = names["drawn_chain"](*names["drawn"])
        over, extra = by_chance(sizes, times, cap)
        assert over > 0 or extra > factor * least
        if cell == "within-half":
            assert by_dropping(sizes, times, cap)[1] <= factor * least


def adafactor(torch, space, start, grads) -> np.ndarray:
    param = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = torch.optim.Adafactor([param])
    for grad in grads:
        param.grad = None if grad is None else torch.tensor(grad)
        optimizer.step()
    return param.detach().numpy()


def test_adafactor_numbers_are_those_of_torch(space):
    torch = pytest.importorskip("torch")
    wave = space["wave"]
    numbers = re.compile(r"-?\d\.\d{12,}")

    def held(cell: str, what: np.ndarray) -> None:
        texts = [float(n) for n in numbers.findall(SOURCES[cell])]
        for value in what.ravel():
            assert any(math.isclose(value, n, rel_tol=1e-13) for n in texts), f"{value!r} is not in {cell}"

    five = [wave(t, (3, 4)) for t in range(1, 6)]
    held("row-column-check-matrix", adafactor(torch, space, np.linspace(-1, 1, 12).reshape(3, 4), five))
    gappy = [wave(t, (5,)) if t not in (2, 3) else None for t in range(1, 6)]
    held("row-column-check-shapes", adafactor(torch, space, np.linspace(-1, 1, 5), gappy))
    stacked = [wave(t, (2, 2, 3)) for t in range(1, 5)]
    held("row-column-check-shapes", adafactor(torch, space, np.linspace(-1, 1, 12).reshape(2, 2, 3), stacked))
