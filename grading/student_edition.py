"""`student-edition`: print source/ to notebooks/ and assignments/, and lose nothing on the way."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from . import guard
from .files import course_root, parse_notebook, read_notebook, shown, source_notebooks, write_file
from .printer import Printer

START = "00_start_here"


def target_of(source: Path, root: Path) -> str:
    """Where a notebook of source/ is printed to, relative to the root.

    >>> target_of(Path("/course/source/ps01_foundations/ps01_foundations.ipynb"), Path("/course"))
    'assignments/ps01_foundations/ps01_foundations.ipynb'
    """
    folder, *rest = source.relative_to(root / "source").parts
    if not rest or len(rest) > 1:
        raise ValueError(f"{shown(source, root)} does not lie in a folder of its unit, such as source/01_foundations/")
    if folder == START:
        return f"notebooks/{rest[0]}"
    return f"{'assignments' if folder.startswith('ps') else 'notebooks'}/{folder}/{rest[0]}"


def targets(root: Path) -> dict[str, Path]:
    """Every printed notebook with its source."""
    return {target_of(source, root): source for source in source_notebooks(root)}


def orphans(root: Path, wanted: dict[str, Path]) -> list[str]:
    """Printed notebooks whose source is gone: known to git or to our record, and still there."""
    command = ["git", "ls-files", "-z", "--", "notebooks", "assignments"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, timeout=30)
        tracked = listed.stdout.decode("utf-8", "replace").split("\0") if listed.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired):
        tracked = []
    names = {name for name in [*tracked, *guard.recorded(root)] if name.endswith(".ipynb")}
    return sorted(name for name in names - set(wanted) if (root / name).is_file())


def print_one(root: Path, target: str, text: str, force: bool) -> str | None:
    """Print one notebook if its target is free. Returns what to tell, None if it was fresh already."""
    path, new = root / target, parse_notebook(text, target)
    if path.exists() and path.read_bytes() == text.encode():
        if not guard.is_own_print(root, target):
            guard.remember(root, target, new)
        return None
    reason = guard.obstacle(root, target, new)
    if reason and not (force and may_force(path, new)):
        raise ValueError(reason)
    if reason:
        kept = root / ".text" / f"{target}.before.ipynb"
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, kept)
    guard.remember(root, target, new)
    write_file(path, text)
    return f"printed {target}" + (f"; the copy before is in {shown(kept, root)}" if reason else "")


def may_force(path: Path, new) -> bool:
    """Is the target readable and its places for answers as they were printed?"""
    try:
        return guard.is_unanswered(read_notebook(path), new)
    except ValueError:
        return False


def print_command(force: bool) -> int:
    """Print what is not fresh; name each notebook that has to stay and why, and print the others."""
    root, bad = course_root(), 0
    wanted, printer = targets(root), Printer(root)
    for target, source in wanted.items():
        try:
            told = print_one(root, target, printer.print(source), force)
            if told:
                print(told)
        except ValueError as error:
            print(f"{shown(source, root)}: {error}.")
            bad = 1
    for target in orphans(root, wanted):
        if guard.is_own_print(root, target):
            (root / target).unlink()
            print(f"removed {target}: its source is gone")
        else:
            print(f"{target} has no source, and not all in it was printed here; remove it if nobody needs it.")
            bad = 1
    return bad


def stale(root: Path) -> list[str]:
    """A sentence for each printed copy that is not what nbgrader prints from its source today.

    A copy that its reader runs or answers is not stale as long as the committed one is fresh.
    """
    wanted, printer, faults = targets(root), Printer(root), []
    for target, source in wanted.items():
        text, path = printer.print(source), root / target
        found = path.read_bytes() if path.is_file() else None
        if found == text.encode() or found is not None and guard.git_version(root, target) == text:
            continue
        state = "is missing" if found is None else "is not what its source prints"
        faults.append(f"{target} {state}; run: python -m grading student-edition")
    return faults + [f"{target} is printed, but its source is gone" for target in orphans(root, wanted)]


def check_command() -> int:
    """Name every stale copy; print nothing to files."""
    faults = stale(course_root())
    print("\n".join(faults) or "Every printed copy is fresh.")
    return 1 if faults else 0
