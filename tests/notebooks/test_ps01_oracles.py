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


def test_least_times_agree_between_algorithms(space):
    versions = [v for v in read_answers(ROOT / "tests/answers/ps01_foundations.py") if v.exercise == "recompute" and v.kind == "right"]
    answers = [SOURCES["recompute-answer"], *(v.source for v in versions)]
    assert len(answers) >= 3
    for source in answers:
        names = dict(space)
        exec(source, names)
        for name, cap, least in least_times():
            sizes, times = chains(space)[name]
            peak, extra = space["replay"](sizes, times, [int(i) for i in names["place_checkpoints"](sizes, times, cap)])
            assert peak <= cap
            assert math.isclose(extra, least, rel_tol=1e-6), (name, cap, extra, least)


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
