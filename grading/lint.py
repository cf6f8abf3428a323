"""`lint`: the form of notebooks that no other test would miss until a student meets it.

Each rule is a function that yields faults; a fault names the notebook, the cell and, in a
sentence, what is wrong. Rules for single cells, exercises and lessons have a file each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from nbformat import NotebookNode

from .files import course_root, read_notebook, shown, source_notebooks
from .lint_cells import cell_faults
from .lint_exercises import exercise_faults, points_faults
from .lint_lesson import lesson_faults

Fault = tuple[str, str]  # cell id or "", sentence
FOLDER = re.compile(r"(\d\d|ps\d\d)_[a-z]+(_[a-z]+)*")
FILE = re.compile(r"(\d\d|ps\d\d)_[a-z]+(_[a-z]+)*\.ipynb")


def kind_of(path: Path) -> str:
    """What a notebook is, by its folder: start page, lesson or problem set."""
    folder = path.parent.name
    return "start" if folder.startswith("00") else "problem set" if folder.startswith("ps") else "lesson"


def notebook_faults(notebook: NotebookNode, kind: str) -> Iterator[Fault]:
    """All faults of one notebook. Where a cell has no role, the rules about exercises wait."""
    unclear = False
    for fault in cell_faults(notebook):
        unclear |= "no role means" in fault[1]
        yield fault
    if unclear:
        return
    rules: list[Callable] = [exercise_faults]
    rules += {"lesson": [lesson_faults], "problem set": [points_faults], "start": []}[kind]
    for rule in rules:
        yield from rule(notebook)


def folder_faults(root: Path) -> Iterator[tuple[Path, str]]:
    """Files of source/ that nbgrader would hand to students beside the notebooks, and names out of order."""
    for path in sorted((root / "source").rglob("*")):
        if path.is_dir() or ".ipynb_checkpoints" in path.parts:
            continue
        folder = path.relative_to(root / "source").parent
        if path.suffix != ".ipynb":
            yield path, "lies in source/, and nbgrader hands every file there to students; keep it elsewhere"
        elif len(folder.parts) != 1 or not FOLDER.fullmatch(folder.name):
            yield path, "does not lie in a folder named like 03_gpu_architecture or ps03_gpu_architecture"
        elif not FILE.fullmatch(path.name):
            yield path, "is not named like 01_sms_and_warps.ipynb"
        elif folder.name.startswith("ps") and path.stem != folder.name:
            yield path, f"is not named like its folder, {folder.name}.ipynb"


def lint(root: Path, files: list[str] | None = None) -> list[str]:
    """One sentence for each fault of the named notebooks, or of all in source/ and of its folders."""
    said = []
    if not files:
        said += [f"{shown(path, root)} {sentence}." for path, sentence in folder_faults(root)]
    for path in source_notebooks(root, files):
        name = shown(path, root)
        try:
            notebook = read_notebook(path)
        except ValueError as error:
            said.append(f"{error}.")
            continue
        for cell_id, sentence in notebook_faults(notebook, kind_of(path)):
            said.append(f"{name}, cell {cell_id!r}: {sentence}." if cell_id else f"{name}: {sentence}.")
    return said


def lint_command(files: list[str]) -> int:
    """Print the faults; 1 if there are any."""
    root = course_root()
    faults = lint(root, files)
    number = len(source_notebooks(root, files))
    print("\n".join(faults) or f"{number} notebook{'s' * (number != 1)}, no fault.")
    return 1 if faults else 0
