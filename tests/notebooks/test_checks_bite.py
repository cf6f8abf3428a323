"""Each check bites: right answers get every point, the stub none, each mistake meets its own hint.

A version is run as it will be when graded: the set-up cell, the given cells, the answer cell and
then each check cell with its hidden part; nothing else of the notebook.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import pkgutil
import re
from pathlib import Path

import nbformat
import pytest

import mlsys
from grading.answers import read_answers
from grading.cells import exercise_of, role_of
from mlsys.check.hints import all_hints, hint_text

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "source").glob("*/*.ipynb"))
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n.*?### END SOLUTION", re.M | re.S)


def read_notebook(path: Path):
    """The shared cells' sources and, for each exercise, its answer cell and its check cells."""
    cells = nbformat.read(path, 4).cells
    shared = [c.source for c in cells if role_of(c) in ("setup", "given")]
    answers = {exercise_of(c.id): c.source for c in cells if role_of(c) == "answer"}
    checks = {name: {c.id: c.source for c in cells if role_of(c) == "check" and exercise_of(c.id) == name} for name in answers}
    return shared, answers, checks


def run(source: str, name: str, space: dict) -> str | None:
    """Execute one cell; None if it passed, else the text of its error."""
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(source, name, "exec"), space)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def world(shared: list[str]) -> dict:
    """A namespace in which the shared cells have run."""
    space: dict = {"__name__": "__main__"}
    for source in shared:
        assert run(source, "<shared cell>", space) is None
    return space


def grade(space: dict, answer: str, checks: dict[str, str]) -> dict[str, str | None]:
    """The error of every check cell, None where it passed."""
    space = dict(space)
    error = run(answer, "<answer>", space)
    assert error is None, f"the answer cell itself fails: {error}"
    return {cell: run(source, f"<{cell}>", dict(space)) for cell, source in checks.items()}


def cases():
    for path in NOTEBOOKS:
        _, answers, _ = read_notebook(path)
        for name in answers:
            yield pytest.param(path, name, id=f"{path.stem}-{name}")


@pytest.mark.parametrize("path, name", list(cases()))
def test_versions(path, name):
    shared, answers, checks = read_notebook(path)
    versions = [v for v in read_answers(ROOT / "tests/answers" / f"{path.stem}.py") if v.exercise == name]
    space = world(shared)
    assert set(grade(space, answers[name], checks[name]).values()) == {None}, "the solution does not get full points"
    stub = SOLUTION.sub(r"\1raise NotImplementedError()", answers[name])
    assert None not in grade(space, stub, checks[name]).values(), "the empty stub gets points"
    assert any(v.kind == "right" for v in versions), "no alternative right answer stands beside this exercise"
    assert sum(v.kind == "wrong" for v in versions) >= 3, "fewer than three wrong versions stand beside this exercise"
    for version in versions:
        errors = grade(space, version.source, checks[name])
        if version.kind == "right":
            assert set(errors.values()) == {None}, f"{version.name}: {errors}"
        else:
            told = "\n".join(error for error in errors.values() if error)
            assert hint_text(version.name) in told, f"{version.name} meets another message: {told or 'it passes'}"


def test_answers_belong_to_exercises():
    known = {(p.stem, name) for p in NOTEBOOKS for name in read_notebook(p)[1]}
    for path in (ROOT / "tests/answers").glob("*.py"):
        for version in read_answers(path):
            assert (path.stem, version.exercise) in known, f"{path.name}:{version.line} belongs to no exercise"


def test_every_hint_is_met():
    """Each hint in the tables is the name of a wrong version, so each has been seen to appear."""
    met = {v.name for p in (ROOT / "tests/answers").glob("*.py") for v in read_answers(p) if v.kind == "wrong"}
    assert set(all_hints()) - met == set(), "hints that no wrong version meets"


def public_functions():
    """Every public function and class of the library below the pictures."""
    for module in pkgutil.walk_packages(mlsys.__path__, "mlsys."):
        if any(part in module.name.split(".") for part in ("viz", "widgets", "check")) or "._" in module.name:
            continue
        for name, item in vars(importlib.import_module(module.name)).items():
            if callable(item) and not name.startswith("_") and getattr(item, "__module__", "").startswith("mlsys"):
                yield item


@contextlib.contextmanager
def room(more_bytes: int = 2**31):
    """At most so many more bytes of address space: a constructor that is called with a model's size asks for all."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not Linux
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_library_holds_no_answer(path):
    """No public function of the library, put in the place of an answer, passes a check."""
    shared, answers, checks = read_notebook(path)
    space = world(shared)
    functions = set(public_functions())
    for name, answer in answers.items():
        asked = re.findall(r"^(?:def|class) (\w+)", answer, re.M)
        for cell, source in checks[name].items():
            used = [a for a in asked if re.search(rf"\b{a}\b", source)]
            for item in functions:
                with room():
                    error = run(source, f"<{cell}>", {**space, **dict.fromkeys(used, item)})
                assert error is not None, f"{item.__module__}.{item.__qualname__} passes {cell}"
