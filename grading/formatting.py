"""`format`: every notebook of source/ in canonical form, so that a diff shows what an author changed."""

from __future__ import annotations

from pathlib import Path

from .cells import canonical
from .files import course_root, notebook_text, read_notebook, refuse_printed, shown, source_notebooks, write_file


def formatted(path: Path) -> str:
    """The canonical content of a notebook file."""
    return notebook_text(canonical(read_notebook(path)))


def format_command(files: list[str], check: bool) -> int:
    """Rewrite what is not canonical; with check, only name it. Faults are named and the rest goes on."""
    root, bad = course_root(), 0
    for path in source_notebooks(root, files):
        try:
            refuse_printed(path, root)
            content = formatted(path)
        except ValueError as error:
            print(f"{shown(path, root)}: {error}.")
            bad += 1
            continue
        if path.read_bytes() == content.encode():
            continue
        if check:
            print(f"{shown(path, root)} is not in canonical form; run: python -m grading format")
            bad += 1
        else:
            write_file(path, content)
            print(f"formatted {shown(path, root)}")
    return min(bad, 1)
