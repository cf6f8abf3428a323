"""Floors: `mlsys` imports only downward, and only the top two floors know of pictures and widgets."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "mlsys"
FLOORS = {
    0: "units specs",
    1: "tensor dtypes autograd gradcheck nn optim tokenizer transformer gpu net collectives",
    2: "parallel cluster data profile classic post serving datacentre production",
    3: "viz",
    4: "widgets",
}
FLOOR = {part: floor for floor, parts in FLOORS.items() for part in parts.split()}
TOWERS = ({"gpu", "net", "collectives"}, set(FLOORS[1].split()) - {"gpu", "net", "collectives"})
BESIDE = {"check": {"gpu"}, "course": set()}  # and what they use of the library: `check` runs kernels that are handed in
PICTURES = {"matplotlib", "ipywidgets", "IPython"}
ALLOWED = {**dict.fromkeys(range(3), {"numpy"}), 3: {"numpy", "matplotlib"}, 4: {"numpy", *PICTURES}}


def part_of(path: Path) -> str:
    """The part of the library that a file belongs to; empty for mlsys/__init__.py.

    >>> part_of(LIBRARY / "viz" / "picture.py"), part_of(LIBRARY / "units.py")
    ('viz', 'units')
    """
    first = path.relative_to(LIBRARY).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported(source: str, package: list[str]) -> set[str]:
    """Full dotted names that a source imports, also inside functions.

    >>> sorted(imported("from . import style; from mlsys import viz; import numpy as np", ["mlsys", "viz"]))
    ['mlsys.viz', 'mlsys.viz.style', 'numpy']
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            whole = module == "mlsys" or (node.level and not node.module)
            names |= {f"{module}.{alias.name}" for alias in node.names} if whole else {module}
    return names


def may_import(part: str, other: str) -> bool:
    """Whether one part of the library may import another."""
    if part == other:
        return True
    if part in BESIDE or other in BESIDE:
        # pictures and widgets may use what stands beside the stairs
        return other in BESIDE.get(part, ()) or (part not in BESIDE and FLOOR[part] >= 3)
    if FLOOR[part] == FLOOR[other] == 1:
        return any({part, other} <= tower for tower in TOWERS)
    return FLOOR[part] >= FLOOR[other]


def files():
    return sorted(LIBRARY.rglob("*.py"))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(LIBRARY).as_posix())
def test_imports_go_down(path):
    part = part_of(path)
    if part and part not in BESIDE:
        assert part in FLOOR, f"{part} has no floor yet: give it one in FLOORS and in CONTRIBUTING.md"
    allowed = ALLOWED[FLOOR[part]] if part in FLOOR else {"numpy"}
    for name in imported(path.read_text(encoding="utf-8"), ["mlsys", *path.relative_to(LIBRARY).parts[:-1]]):
        top, *rest = name.split(".")
        if top == "mlsys":
            other = rest[0] if rest else ""
            assert not other or (part and may_import(part, other)), f"{part or 'mlsys'} may not import {other}"
        else:
            assert top in allowed | sys.stdlib_module_names, f"{part or 'mlsys'} may not import {top}"


def loaded_by(statement: str) -> set[str]:
    """Top-level modules outside the standard library that a fresh Python has after a statement."""
    show = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"

    def modules(code: str) -> set[str]:
        done = subprocess.run([sys.executable, "-c", f"{code}; {show}"], cwd=ROOT, capture_output=True, check=True)
        return set(json.loads(done.stdout))

    return modules(statement) - modules("pass") - sys.stdlib_module_names


def test_import_mlsys_needs_numpy_alone():
    assert loaded_by("import mlsys") <= {"mlsys", "numpy"}


def test_lower_floors_load_no_pictures():
    parts = sorted({part_of(path) for path in files()} - {""})
    low = [part for part in parts if part in BESIDE or FLOOR[part] < 3]
    assert loaded_by("; ".join(f"import mlsys.{part}" for part in low)) <= {"mlsys", "numpy"}


def test_pictures_are_drawn_without_matplotlib():
    """SVG text needs no plotting library: matplotlib is loaded where a figure asks for it."""
    assert not loaded_by("import mlsys.viz") & PICTURES
