"""The text of every hint, once: one table a unit, names unique over the whole course.

A hint says which assumption went wrong, never the code that would be right.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache


@cache
def all_hints() -> dict[str, str]:
    """Every hint name and its text. Raises ValueError if two units use the same name."""
    found: dict[str, str] = {}
    for unit in pkgutil.iter_modules(__path__):
        table = importlib.import_module(f"{__name__}.{unit.name}").HINTS
        twice = found.keys() & table.keys()
        if twice:
            raise ValueError(f"the hint names {sorted(twice)} stand in more than one unit")
        found |= table
    return found


def hint_text(name: str) -> str:
    """The text of one hint. Raises KeyError that names the hint if there is none."""
    hints = all_hints()
    if name not in hints:
        raise KeyError(f"there is no hint called {name!r}")
    return hints[name]
