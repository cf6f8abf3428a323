"""What can go wrong in a kernel, each as a sentence that names kernel, line, thread and place.

A real GPU often says nothing: a wrong index reads a neighbour's data, a missed barrier hangs,
an unset shared word holds whatever was there. The simulator stops at the first such lane.
Lessons: CUDA programming model.
"""

from __future__ import annotations

import linecache


class KernelError(RuntimeError):
    """A fault while a kernel runs. `line` and `thread` say where, when that is known.

    thread: (block, thread), each an (x, y, z) triple.
    """

    def __init__(self, what: str, thread: tuple | None = None):
        super().__init__(what)
        self.what, self.thread = what, thread
        self.kernel, self.line = "", None

    def locate(self, kernel: str, function: str, filename: str, line: int) -> None:
        """Put function and line in front of the sentence."""
        self.kernel, self.line = kernel, line
        name = kernel if function == kernel else f"{function}, called from {kernel}"
        text = linecache.getline(filename, line).strip()
        self.args = (f"{name}, line {line}: {self.what}" + (f"\n    {text}" if text else ""),)


class OutOfBounds(KernelError):
    """An index outside its array."""


class BarrierError(KernelError):
    """sync_threads() that not all threads of a block reach together."""


class UnsetRead(KernelError):
    """A read of a variable, shared or local element that nobody has written."""


class LaneError(KernelError):
    """A shuffle that asks a lane which does not take part."""


class EndlessLoop(KernelError):
    """A loop that ran through more rounds than the launch allows."""


class KernelSyntaxError(SyntaxError):
    """A construct that the kernel language does not have; raised where the kernel is defined."""


def place(thread: tuple) -> str:
    """Words for a lane.

    >>> place(((1, 0, 0), (3, 0, 0)))
    'thread (3, 0, 0) of block (1, 0, 0)'
    """
    block, lane = thread
    return f"thread {lane} of block {block}"
