"""The answers beside exercises: right alternatives and wrong versions, in tests/answers/.

A file belongs to one notebook (tests/answers/01_tensors.py to 01_tensors.ipynb) and is cut
into sections by lines such as

    # %% gemm-cost | wrong | flops-without-the-two

Each section replaces the whole answer cell of its exercise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADER = re.compile(r"# %%(.*)")
KINDS = ("right", "wrong")


@dataclass(frozen=True)
class Version:
    """One version of an answer. A wrong one carries the name of the hint that it must meet."""

    exercise: str
    kind: str  # right or wrong
    name: str  # what is different about it; for a wrong one, its hint
    source: str
    line: int  # of its header, counted from 1


def read_answers(path: Path) -> list[Version]:
    """All versions in a file, in order. Raises ValueError that names file and line of the first fault."""
    path = Path(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    starts = [n for n, line in enumerate(lines) if HEADER.match(line)]
    versions, seen = [], {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        where = f"{path.name}:{start + 1}"
        exercise, kind, name = parse_header(lines[start], where)
        if (exercise, name) in seen:
            raise ValueError(f"{where}: {exercise} has {name!r} already in line {seen[exercise, name]}")
        seen[exercise, name] = start + 1
        source = "\n".join(lines[start + 1 : end]).strip("\n")
        if not source.strip():
            raise ValueError(f"{where}: the section is empty")
        versions.append(Version(exercise, kind, name, source, start + 1))
    return versions


def parse_header(line: str, where: str) -> tuple[str, str, str]:
    """Exercise, kind and name of a section.

    >>> parse_header("# %% gemm-cost | right | einsum path", "01_tensors.py:1")
    ('gemm-cost', 'right', 'einsum path')
    """
    parts = [part.strip() for part in HEADER.match(line)[1].split("|")]
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{where}: {line!r} is not '# %% EXERCISE | right or wrong | NAME'")
    if parts[1] not in KINDS:
        raise ValueError(f"{where}: the kind is right or wrong, not {parts[1]!r}")
    return parts[0], parts[1], parts[2]
