"""The answers beside exercises: right alternatives and wrong versions, in tests/answers/.

A file belongs to one notebook (tests/answers/01_tensors.py to 01_tensors.ipynb) and is cut
into sections by lines such as

    # %% gemm-cost | wrong | flops-without-the-two

Each section replaces the whole answer cell of its exercise. One that differs from an earlier version in a few lines names
that one and holds these lines only:

    # %% gemm-cost | wrong | flops-without-the-two | like counted from shapes
    #-     flops = 2 * m * n * k
    #+     flops = m * n * k
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADER = re.compile(r"# %%(.*)")
KINDS = ("right", "wrong")
CHANGE_BLOCK = re.compile(r"((?:#-(?: .*)?\n)+)((?:#\+(?: .*)?\n)*)")
CHANGE = re.compile(rf"(?:{CHANGE_BLOCK.pattern})+")


@dataclass(frozen=True)
class Version:
    """One version of an answer. A wrong one carries the name of the hint that it must meet."""

    exercise: str
    kind: str  # right or wrong
    name: str  # what is different about it; for a wrong one, its hint
    source: str
    line: int  # of its header, counted from 1


def read_answers(path: Path) -> list[Version]:
    """All versions in a file, in order and whole. Raises ValueError that names file and line of the first fault."""
    path = Path(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    starts = [n for n, line in enumerate(lines) if HEADER.match(line)]
    versions, seen = [], {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        where = f"{path.name}:{start + 1}"
        exercise, kind, name, like = parse_header(lines[start], where)
        if (exercise, name) in seen:
            raise ValueError(f"{where}: {exercise} has {name!r} already in line {seen[exercise, name]}")
        seen[exercise, name] = start + 1
        source = "\n".join(lines[start + 1 : end]).strip("\n")
        if not source.strip():
            raise ValueError(f"{where}: the section is empty")
        if like:
            base = next((v for v in versions if (v.exercise, v.name) == (exercise, like)), None)
            if base is None:
                raise ValueError(f"{where}: no version of {exercise} above is called {like!r}")
            source = changed(base.source, source, where)
        versions.append(Version(exercise, kind, name, source, start + 1))
    return versions


def parse_header(line: str, where: str) -> tuple[str, str, str, str]:
    """Exercise, kind and name of a section, and the name of the version that it is like, or "".

    >>> parse_header("# %% gemm-cost | right | einsum path", "01_tensors.py:1")
    ('gemm-cost', 'right', 'einsum path', '')
    """
    parts = [part.strip() for part in HEADER.match(line)[1].split("|")]
    like = parts.pop()[5:].strip() if len(parts) == 4 and parts[3].startswith("like ") else ""
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"{where}: {line!r} is not '# %% EXERCISE | right or wrong | NAME [| like NAME]'")
    if parts[1] not in KINDS:
        raise ValueError(f"{where}: the kind is right or wrong, not {parts[1]!r}")
    return parts[0], parts[1], parts[2], like


def changed(base: str, change: str, where: str) -> str:
    """A version with blocks of its lines (#-) replaced by others (#+). Each block has to stand in it exactly once.

    >>> changed("x = 1\\ny = 2", "#- y = 2\\n#+ y = 3\\n#+ z = 4", "here")
    'x = 1\\ny = 3\\nz = 4'
    """
    if not CHANGE.fullmatch(change + "\n"):
        raise ValueError(f"{where}: a section that is like another holds lines that begin with '#- ' and, after these, '#+ '")
    text = f"{base}\n"
    for block in CHANGE_BLOCK.finditer(change + "\n"):
        old, new = ("".join(line[3:] + "\n" for line in part.splitlines()) for part in block.groups())
        found = list(re.finditer("(?m)^" + re.escape(old), text))
        if len(found) != 1:
            raise ValueError(f"{where}: stands {len(found)} times in the version that it is like:\n{old}")
        text = text[: found[0].start()] + new + text[found[0].end() :]
    return text.strip("\n")
