"""Results as plain data: what a worker hands to the coordinator, and what the ledger keeps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ..sealed.report import FAULT, NOT_ATTEMPTED
from .store import digest

PACKAGE = Path(__file__).resolve().parents[2]


def plain(report) -> dict:
    """A report of sealed grading as JSON data; the graded notebook as its text."""
    data = {name: getattr(report, name) for name in ("level", "version", "seed", "limits", "seconds", "problem")}
    data["checks"] = [asdict(check) for check in report.checks]
    data["repairs"] = list(report.repairs)
    data["notebook"] = nbformat.writes(report.notebook) if report.notebook else ""
    return json.loads(json.dumps(data))  # nothing but plain data goes on from here


def graded_cells(master: NotebookNode) -> dict[str, float]:
    """Points of each check cell of an instructor's notebook."""
    entries = [cell.metadata.get("nbgrader", {}) for cell in master.cells if cell.cell_type == "code"]
    return {entry["grade_id"]: float(entry["points"]) for entry in entries if entry.get("grade")}


def without_grading(master: NotebookNode, outcome: str, problem: str, version: str, seed: str) -> dict:
    """The result of a notebook that no grader saw. A missing one has 0 points, a fault of ours has none at all."""
    points = None if outcome == FAULT else 0.0
    checks = [
        {"cell": cell, "outcome": outcome, "points": points, "max_points": most, "message": problem, "hidden": False,
         "seconds": 0.0}
        for cell, most in graded_cells(master).items()
    ]  # fmt: skip
    return {
        "level": None, "version": version, "seed": seed, "limits": {}, "seconds": 0.0, "problem": problem,
        "checks": checks, "repairs": [], "notebook": "",
    }  # fmt: skip


def fault(master: NotebookNode, why: str, version: str, seed: str) -> dict:
    return without_grading(master, FAULT, why, version, seed)


def missing(master: NotebookNode, why: str, version: str, seed: str) -> dict:
    return without_grading(master, NOT_ATTEMPTED, why, version, seed)


def has_fault(results: dict[str, dict]) -> bool:
    """Whether a notebook of a submission has a check that a person must look at."""
    return any(check["points"] is None for result in results.values() for check in result["checks"])


def points(results: dict[str, dict]) -> float:
    return sum(check["points"] or 0.0 for result in results.values() for check in result["checks"])


@cache
def grader_version(package: Path = PACKAGE) -> str:
    """The grader's own number and a hash of the code that decides: sealed grading and the library with the checks."""
    from ..sealed.execute import VERSION

    content = hashlib.sha256()
    for path in sorted((*(package / "mlsys").rglob("*.py"), *(package / "grading" / "sealed").rglob("*.py"))):
        content.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return f"{VERSION}+{content.hexdigest()[:12]}"


def tests_hash(masters: dict[str, Path]) -> str:
    """Hash of the instructor's notebooks of an assignment."""
    return digest(json.dumps({name: digest(path.read_bytes()) for name, path in sorted(masters.items())}).encode())


def staged(path: Path) -> dict[str, dict] | None:
    """Results that were kept in staging; None if there are none, or only half of a file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


Make = Callable[[], object]  # opens a Grader
