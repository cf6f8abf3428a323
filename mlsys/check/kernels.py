"""Checks of kernels: run the kernel that was handed in on the check's own simulator.

The kernel travels as text (`Kernel.portable()`); what it does, moves and races over is counted here, so a
changed simulator or a forged report on the other side earns nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .hints import hint_text
from .run import CheckFailed

if TYPE_CHECKING:
    from ..gpu.simt.report import Report

MAX_ROUNDS = 5_000  # of one loop of a kernel that is handed in


def launch(handed_in, grid, block, *args, trace: bool = True, hints: dict[type, str] | None = None) -> Report:
    """Run a kernel that was handed in and give its report; arrays in args are changed in place.

    A kernel may also write to its inputs: pass copies, or the truth is worked out from what it wrote.
    handed_in: a kernel, or what its `portable()` gave. grid, block: as for a launch. trace: count and look for races.
    hints: kind of KernelError -> name of the hint to print with it.
    Raises CheckFailed with the kernel's own sentence if it is not written, cannot be read or stops.

    >>> import numpy as np
    >>> from mlsys.gpu.simt import kernel, thread_idx
    >>> @kernel
    ... def twice(a):
    ...     a[thread_idx.x] *= 2
    >>> numbers = np.arange(3)
    >>> launch(twice, 1, 3, numbers).stores.sectors, numbers
    (1, array([0, 2, 4]))
    """
    from ..gpu.simt.errors import KernelError  # loaded where kernels are checked, not in every notebook
    from ..gpu.simt.portable import from_portable

    try:
        return from_portable(taken_apart(handed_in)).launch(grid, block, args, trace=trace, max_rounds=MAX_ROUNDS)
    except NotImplementedError as error:
        raise CheckFailed(f"{error}.") from None
    except (KernelError, SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError) as error:
        known = next((hint for kind, hint in (hints or {}).items() if isinstance(error, kind)), None)
        text = str(error) or f"The kernel raised {type(error).__name__}"
        text = text if "\n" in text else text.rstrip(".") + "."
        raise CheckFailed(text + (f"\nHint: {hint_text(known)}" if known else "")) from None


def taken_apart(handed_in) -> dict:
    """The text and numbers of a kernel. Raises what `portable()` raises, TypeError for what is no kernel."""
    try:
        return handed_in if isinstance(handed_in, dict) else handed_in.portable()
    except AttributeError:
        raise TypeError("This is no kernel: put @kernel in front of its def") from None
