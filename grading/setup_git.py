"""`setup-git`: `git diff` shows notebooks in text form, with the cell's header above each change.

Works together with the line `*.ipynb diff=notebook` in .gitattributes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .files import course_root


def settings() -> dict[str, str]:
    """git's settings for the kind `notebook`."""
    python = Path(sys.executable).as_posix()
    return {
        "diff.notebook.textconv": f'"{python}" -m grading text --show',
        "diff.notebook.xfuncname": "^%%%% (.*)$",
    }


def setup_git_command() -> int:
    """Write the settings into this clone's own git configuration."""
    root = course_root()
    for name, value in settings().items():
        run = subprocess.run(["git", "config", "--local", name, value], cwd=root, capture_output=True, text=True)
        if run.returncode:
            raise ValueError(f"git does not take {name} in {root}: {run.stderr.strip()}")
        print(f"{name} = {value}")
    return 0
