"""Every notebook runs from top to bottom with its solutions; printed problem sets too, with only the checks unanswered.

Printed lessons are run by `tests/browser/test_lessons.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
SOURCE = sorted((ROOT / "source").glob("*/*.ipynb"))
PRINTED = sorted((ROOT / "assignments").rglob("*.ipynb"))


def errors(path: Path, tmp_path: Path, monkeypatch) -> list[tuple[str, str, str]]:
    """(cell id, error name, text) of every error when the notebook is run in a fresh kernel."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("MLSYS_DATA_DIR", str(tmp_path))
    notebook = nbformat.read(path, 4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.widget_registry = {}
    client.execute()
    return [
        (cell.id, output.ename, output.evalue)
        for cell in notebook.cells if cell.cell_type == "code"
        for output in cell.outputs if output.output_type == "error"
    ]


@pytest.mark.parametrize("path", SOURCE, ids=lambda p: p.stem)
def test_solutions_run(path, tmp_path, monkeypatch):
    assert errors(path, tmp_path, monkeypatch) == []


@pytest.mark.parametrize("path", PRINTED, ids=lambda p: p.stem)
def test_printed_copies_run(path, tmp_path, monkeypatch):
    """Run All reaches the end, and each check says that its function is not written yet."""
    found = errors(path, tmp_path, monkeypatch)
    checks = [c.id for c in nbformat.read(path, 4).cells if c.metadata.get("nbgrader", {}).get("grade") and c.cell_type == "code"]
    assert [cell for cell, _, _ in found] == checks
    for cell, name, text in found:
        assert name == "CheckFailed" and "is not written yet." in text, f"{cell}: {name}: {text}"
