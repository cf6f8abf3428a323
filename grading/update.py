"""Bring a git clone of the course up to date and keep every word that the learner wrote.

Only files that the learner changed *and* the new edition changes are touched with care: each is first
copied beside itself, as NAME.yours-20260131-101500.ipynb, then the new edition goes into its place. All
other changed files stay as they are. If git refuses, everything is put back.
Needs the standard library alone: `start.py update` runs it with the system's Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path


def git(root: Path, *words: str) -> str:
    """What `git WORDS` prints; ends the run with git's own message if it fails."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        sys.exit(f"git {words[0]} did not work, and nothing of yours was changed. git says:\n{done.stderr.strip()}")
    return done.stdout


def is_clone(root: Path) -> bool:
    """Whether this folder is the top of a git working tree, and git is there to ask."""
    if shutil.which("git") is None:
        return False
    done = subprocess.run(["git", "-C", str(root), "rev-parse", "--show-cdup"], capture_output=True, text=True)
    return done.returncode == 0 and not done.stdout.strip()


def changed_here(root: Path) -> dict[str, str]:
    """Files that differ from the last commit, by path, with git's two-letter state (?? = new here)."""
    entries = git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all").split("\0")
    return {entry[3:]: entry[:2] for entry in entries if entry}


def copy_name(path: Path, now: str) -> Path:
    """The name of the learner's copy beside a file.

    >>> copy_name(Path("notebooks/tour.ipynb"), "20260131-101500").name
    'tour.yours-20260131-101500.ipynb'
    """
    return path.with_name(f"{path.stem}.yours-{now}{path.suffix}")


def update_clone(root: str | Path) -> int:
    """Fast-forward the clone to its upstream branch; 0, or an exit with a sentence."""
    root = Path(root)
    if not is_clone(root):
        sys.exit(
            "This folder is not a git clone (or git is not installed), so it cannot be updated in place. Download the "
            "new edition into another folder and copy over the notebooks that you wrote in."
        )
    git(root, "fetch", "--quiet")
    ours, new = git(root, "rev-parse", "HEAD").strip(), git(root, "rev-parse", "@{upstream}").strip()
    base = git(root, "merge-base", ours, new).strip()
    if new == base:
        print("The course is up to date.")
        return 0
    if base != ours:
        sys.exit("You have commits of your own, so git must join two histories. Run `git pull --rebase` yourself.")
    here = changed_here(root)
    if any(state[0] not in " ?" for state in here.values()):
        sys.exit("Some changes are staged for a commit. Commit them or run `git restore --staged .`, then update again.")
    upstream = set(git(root, "diff", "--name-only", "--no-renames", "-z", ours, new).split("\0"))
    mine = {root / name: state for name, state in here.items() if name in upstream and (root / name).is_file()}
    copies = swap_in(root, mine, new)
    print("The course is up to date now.")
    for path, copy in copies.items():
        print(f"{path.relative_to(root)} is the new edition; what you wrote is in {copy.name} beside it.")
    if len(mine) < len(here):
        print("Every other file that you changed is as you left it.")
    return 0


def swap_in(root: Path, mine: dict[Path, str], new: str) -> dict[Path, Path]:
    """Copy the learner's files aside and take the new commit; on any failure put all of them back."""
    now = time.strftime("%Y%m%d-%H%M%S")
    copies = {path: copy_name(path, now) for path in mine}
    for path, copy in copies.items():
        shutil.copy2(path, copy)
    try:
        for path, state in mine.items():
            if state == "??":
                path.unlink()
            else:
                git(root, "checkout", "--quiet", "HEAD", "--", str(path.relative_to(root)))
        git(root, "merge", "--quiet", "--ff-only", new)
    except BaseException:
        for path, copy in copies.items():
            copy.replace(path)
        raise
    return copies
