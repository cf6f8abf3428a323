"""Make requirements.lock and tests/requirements.lock anew from the ranges in pyproject.toml.

    python -m pip install uv
    python tests/relock.py

uv resolves once for every Python from 3.10 on and every system that pyproject.toml names for it, and
says in a marker where a line applies. A lock names no index and no address: pip asks the index that
the machine is set up for. The second file holds what the test extra adds to the first.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = [
    "uv", "pip", "compile", "pyproject.toml", "--quiet", "--upgrade",
    "--universal", "--python-version=3.10", "--fork-strategy=requires-python",
    "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--only-binary=:all:",
]  # fmt: skip


def resolve(*words: str) -> list[str]:
    """The lines `name==version ; marker` that uv finds."""
    done = subprocess.run([*UV, *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "==" in line]


def write(name: str, what: str, lines: list[str]) -> None:
    """Write one lock file, its purpose in the first line."""
    text = f"# Made by tests/relock.py from pyproject.toml: {what}. Do not edit.\n" + "\n".join(lines) + "\n"
    (ROOT / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    base = resolve()
    write("requirements.lock", "what the course runs on", base)
    write("tests/requirements.lock", "what its tests add", [n for n in resolve("--extra=test") if n not in base])


if __name__ == "__main__":
    main()
