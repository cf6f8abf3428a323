"""Sealed execution: a submission's answers run in a sandbox, its checks in another process.

The names are loaded when they are asked for: the servers in the sandbox need, and get, only half of
these files.
"""

from __future__ import annotations

__all__ = ["CheckResult", "Grader", "GraderUnavailable", "Limits", "Report"]


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"grading.sealed has no {name}")
    from . import execute

    return getattr(execute, name)
