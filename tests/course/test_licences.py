"""Licences: one for code, one for prose and figures, and a row in DATA.md for every data file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<file>[^`]+)` \| (?P<what>.+) \| (?P<source>.+) \| (?P<licence>.+) \|$", re.M)


def data_files() -> set[str]:
    """Everything under mlsys/ that is neither code nor a page."""
    files = (path for path in (ROOT / "mlsys").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files if path.suffix not in (".py", ".md")}


def test_every_data_file_is_listed():
    rows = [row.groupdict() for row in ROW.finditer((ROOT / "DATA.md").read_text(encoding="utf-8"))]
    assert {row["file"] for row in rows} == data_files()
    assert len(rows) == len(data_files())


def test_both_licences_are_there():
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License\n")
    content = (ROOT / "LICENSE-CONTENT").read_text(encoding="utf-8")
    assert "SPDX: CC-BY-4.0" in content and "https://creativecommons.org/licenses/by/4.0/" in content
