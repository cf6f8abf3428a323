"""`text` and `untext`: a notebook as a text file for an editor, and back.

The text lies under `.text/` and never under `source/`: nbgrader hands every file that it
finds there to students, solutions included.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .cells import canonical
from .files import course_root, notebook_text, read_notebook, refuse_printed, shown, write_file
from .textform import from_text, to_text


def text_command(notebook: Path, out: str | None) -> int:
    """Write the text form of a notebook, to .text/ unless told otherwise; `-` means standard output."""
    root = course_root()
    text = to_text(read_notebook(notebook))
    if out == "-":
        sys.stdout.write(text)
        return 0
    path = Path(out).resolve() if out else default_text(notebook, root)
    if path.is_relative_to(root / "source"):
        raise ValueError(f"{shown(path, root)} lies in source/: nbgrader would hand it to students")
    write_file(path, text)
    print(shown(path, root))
    return 0


def show_command(notebook: Path) -> int:
    """Print the text form for `git diff`; a file that has none, such as one with conflict marks, as it is."""
    try:
        sys.stdout.write(to_text(read_notebook(notebook)))
    except ValueError:
        sys.stdout.write(notebook.read_text(encoding="utf-8", errors="replace"))
    return 0


def untext_command(text: Path, notebook: Path) -> int:
    """Write the notebook that a text form means. The version that it replaces is kept under .text/."""
    root, notebook = course_root(), notebook.resolve()
    refuse_printed(notebook, root)
    try:
        content = notebook_text(canonical(from_text(text.read_text(encoding="utf-8"))))
    except ValueError as error:
        raise ValueError(f"{text}, {error}") from None
    if notebook.exists() and notebook.is_relative_to(root):
        keep_before(notebook, content, root)
    write_file(notebook, content)
    print(shown(notebook, root))
    return 0


def default_text(notebook: Path, root: Path) -> Path:
    """Where the text of a notebook goes: the same path under .text/."""
    notebook = notebook.resolve()
    if not notebook.is_relative_to(root):
        raise ValueError(f"{notebook} is outside of {root}; say where its text should go")
    return (root / ".text" / notebook.relative_to(root)).with_suffix(".nbtxt")


def keep_before(notebook: Path, content: str, root: Path) -> None:
    """Keep the notebook that is about to be replaced, if it says something else."""
    old = notebook.read_text(encoding="utf-8", errors="surrogateescape")
    if old != content:
        kept = default_text(notebook, root).with_suffix(".before.ipynb")
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(notebook.read_bytes())
