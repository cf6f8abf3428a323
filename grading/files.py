"""Where the notebooks are, and how they are read and written.

Every file is written beside its target and then moved over it, so a target is either the
old file or the new one, never half of one.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import nbformat.v4
from nbformat import NotebookNode

NOTICE = "nbgrader_config.py"


def course_root(start: Path | None = None) -> Path:
    """The course's folder: the nearest one above `start` with `source/` and nbgrader_config.py.

    Called from outside of a course it is the folder that holds this package.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / NOTICE).is_file() and (folder / "source").is_dir():
            return folder
    return Path(__file__).resolve().parents[1]


def source_notebooks(root: Path, files: list[str] | None = None) -> list[Path]:
    """The notebooks named on the command line, or all of source/ in reading order."""
    if files:
        return [Path(file).resolve() for file in files]
    found = (root / "source").rglob("*.ipynb")
    return sorted(path for path in found if ".ipynb_checkpoints" not in path.parts)


def shown(path: Path, root: Path) -> str:
    """A path as messages name it: from the course's folder on, with forward slashes."""
    path = path.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def refuse_printed(path: Path, root: Path) -> None:
    """Raise ValueError for a notebook of a student's room: an author's command would spoil it."""
    for room in ("notebooks", "assignments"):
        if path.resolve().is_relative_to(root / room):
            raise ValueError(f"{shown(path, root)} is printed from source/; write the notebook there")


def read_notebook(path: Path) -> NotebookNode:
    """The notebook in a file, unchanged: no repair of ids, no conversion. ValueError says what is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a notebook: {error}") from None
    return parse_notebook(text, str(path))


def parse_notebook(text: str, name: str) -> NotebookNode:
    """The notebook that a file's content means; name stands in the messages."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} is not a notebook: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        raise ValueError(f"{name} is not a notebook: it has no list of cells")
    if data.get("nbformat") != 4:
        raise ValueError(f"{name} has notebook format {data.get('nbformat')}, expected 4; save it in JupyterLab")
    for number, cell in enumerate(data["cells"], start=1):
        if not isinstance(cell, dict) or not _is_text(cell.get("source")) or not isinstance(cell.get("cell_type"), str):
            raise ValueError(f"{name} is not a notebook: its cell {number} has no type or no text")
        cell.setdefault("id", "")
        cell.setdefault("metadata", {})
    data.setdefault("metadata", {})
    return nbformat.v4.to_notebook(data)


def _is_text(source: object) -> bool:
    return isinstance(source, str) or isinstance(source, list) and all(isinstance(line, str) for line in source)


def notebook_text(notebook: NotebookNode) -> str:
    """The file content of a notebook, the same bytes on every machine."""
    return nbformat.v4.writes(notebook) + "\n"


def write_file(path: Path, text: str) -> None:
    """Put text into a file at once: a reader, or a crash, sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*.part"):  # of a run that was killed
        if time.time() - left.stat().st_mtime > 60:
            left.unlink()
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
