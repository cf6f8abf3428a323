"""The notebooks of this course: in canonical form, and without a fault that lint knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.files import read_notebook, shown, source_notebooks
from grading.formatting import formatted
from grading.lint import folder_faults, lint
from grading.textform import from_text, to_text

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [shown(path, ROOT) for path in source_notebooks(ROOT)]


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_only_notebooks_lie_in_source():
    assert [f"{path} {sentence}" for path, sentence in folder_faults(ROOT)] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_no_fault(name):
    faults = lint(ROOT, [str(ROOT / name)])
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_canonical(name):
    assert formatted(ROOT / name) == (ROOT / name).read_bytes().decode(), "run: python -m grading format"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_text_form_and_back(name):
    notebook = read_notebook(ROOT / name)
    assert from_text(to_text(notebook)) == notebook
