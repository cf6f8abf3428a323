"""Kernel time of every widget: what one change of a control costs, at both ends of each control.

    python -m tests.benchmarks.widgets

Processor time of this process, median of ten changes from the other end. The aim is 10 ms,
the most allowed is 100 ms; the table says which is missed. Never run by pytest.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import statistics
import time

import ipywidgets as w

import mlsys.widgets
from mlsys.widgets.base import Explorer


def all_widgets():
    """Every widget of the course, found in the files: the tests use this too."""
    for module in pkgutil.iter_modules(mlsys.widgets.__path__):
        name = f"mlsys.widgets.{module.name}"
        for item in vars(importlib.import_module(name)).values():
            if inspect.isclass(item) and issubclass(item, Explorer) and item is not Explorer and item.__module__ == name:
                yield item


def controls(box) -> list:
    """What a reader can move: all but the sentence and the picture."""
    return [c for c in box.children if c not in (box.readout, box.picture)]


def values(control) -> list:
    """Both ends of a slider, or all choices."""
    if isinstance(control, w.FloatLogSlider):
        return [control.base**control.min, control.base**control.max]
    if isinstance(control, (w.IntSlider, w.FloatSlider)):
        return [control.min, control.max]
    if isinstance(control, w.Checkbox):
        return [False, True]
    return [option[1] if isinstance(option, tuple) else option for option in control.options]


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
    for kind in all_widgets():
        for control in controls(kind()):
            first, *_, last = values(control)
            low, high = cost_ms(control, first, last), cost_ms(control, last, first)
            mark = "  above the aim" if max(low, high) > 10 else ""
            print(f"{kind.__name__:21}{control.description:24}{low:9.2f}{high:9.2f}{mark}")


if __name__ == "__main__":
    main()
