"""Kernel time of every widget: what one change of a control costs, at both ends of each control.

    python -m tests.benchmarks.widgets

Processor time of this process, median of ten changes from the other end. The aim is 10 ms,
the most allowed is 100 ms; the table says which is missed. Never run by pytest.
"""

from __future__ import annotations

import importlib
import pkgutil
import statistics
import time

import mlsys.widgets
from mlsys.widgets.base import Explorer


def ends(control) -> list:
    """Both ends of a slider, or the first and the last choice."""
    if hasattr(control, "base"):
        return [control.base**control.min, control.base**control.max]
    if hasattr(control, "min"):
        return [control.min, control.max]
    options = [option[1] if isinstance(option, tuple) else option for option in control.options]
    return [options[0], options[-1]]


def cost_ms(control, value, other, repeats: int = 10) -> float:
    """Median processor time, in ms, of moving a control from another value to this one and drawing again."""
    start, times = control.value, []
    for _ in range(repeats):
        control.value = other
        before = time.process_time()
        control.value = value
        times.append(1e3 * (time.process_time() - before))
    control.value = start
    return statistics.median(times)


def main() -> None:
    print(f"{'widget':21}{'control':24}{'low, ms':>9}{'high, ms':>9}")
    for module in pkgutil.iter_modules(mlsys.widgets.__path__):
        for kind in vars(importlib.import_module(f"mlsys.widgets.{module.name}")).values():
            own = isinstance(kind, type) and kind.__module__ == f"mlsys.widgets.{module.name}"
            if not own or not issubclass(kind, Explorer) or kind is Explorer:
                continue
            box = kind()
            for control in box.children[:-2]:
                first, last = ends(control)
                low, high = cost_ms(control, first, last), cost_ms(control, last, first)
                mark = "  above the aim" if max(low, high) > 10 else ""
                print(f"{kind.__name__:21}{control.description:24}{low:9.2f}{high:9.2f}{mark}")


if __name__ == "__main__":
    main()
