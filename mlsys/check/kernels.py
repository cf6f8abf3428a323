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

MAX_ROUNDS = 20_000  # of one loop of a kernel that is handed in


def launch(handed_in: dict, grid, block, *args, trace: bool = True, hints: dict[type, str] | None = None) -> Report:
    """Run a kernel that was handed in and give its report; arrays in args are changed in place.

    handed_in: what `Kernel.portable()` gave. grid, block: as for a launch. trace: count and look for races.
    hints: kind of KernelError -> name of the hint to print with it.
    Raises CheckFailed with the kernel's own sentence if it cannot be read or stops.

    >>> import numpy as np
    >>> from mlsys.gpu.simt import kernel, thread_idx
    >>> @kernel
    ... def twice(a):
    ...     a[thread_idx.x] *= 2
    >>> numbers = np.arange(3)
    >>> launch(twice.portable(), 1, 3, numbers).stores.sectors, numbers
    (1, array([0, 2, 4]))
    """
    from ..gpu.simt.errors import KernelError, KernelSyntaxError  # loaded where kernels are checked, not in every notebook
    from ..gpu.simt.portable import from_portable

    try:
        return from_portable(handed_in).launch(grid, block, args, trace=trace, max_rounds=MAX_ROUNDS)
    except (KernelError, KernelSyntaxError, TypeError, ValueError, OverflowError) as error:
        known = next((hint for kind, hint in (hints or {}).items() if isinstance(error, kind)), None)
        text = str(error).rstrip(".") + "."
        raise CheckFailed(text + (f"\nHint: {hint_text(known)}" if known else "")) from None
