"""A memory with two levels, instrumented: large arrays in HBM, a small SRAM on the chip, and a count of what passes between.

A program is a list of lines (`sram_language` says which). `run` carries them out with real numbers, refuses to put more
into SRAM than it holds, and counts every byte that is read from HBM or written to it.
Simplified: one SRAM works through the whole program. A real chip runs many blocks at once, each on a multiprocessor with
a shared memory of its own, and blocks that read the same rows at about the same time find them in the L2 cache: what is
counted here is the traffic of all multiprocessors with the levels above them, and an upper bound of HBM's own. Registers
hold no buffers here; real kernels keep accumulators there, so a real chip has room for larger blocks.
Numbers are computed in float64 whatever width they are counted with: this tells of traffic, not of rounding.
Lessons: fusion and IO-aware kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .roofline import Work
from .sram_language import Evaluation, NoSuchArray, SramError, SramFull, Step, parse, some

MAX_LINES = 20_000
MAX_BUFFERS = 1_000
MAX_WORK = 10**10  # of one program: FLOPs of products, and 20 for each other number that is made; some seconds


@dataclass(frozen=True)
class Report:
    """What a program moved and computed. Bytes by array, and by kernel as (read, written).

    peak_bytes: the most that lay in SRAM at once; peak_line: where that was.
    """

    read_bytes: dict[str, int]
    written_bytes: dict[str, int]
    kernels: dict[str, tuple[int, int]]
    peak_bytes: int
    peak_line: str
    matmul_flops: int
    vector_flops: int

    @property
    def hbm_bytes(self) -> int:
        """All bytes between the levels, both ways."""
        return sum(self.read_bytes.values()) + sum(self.written_bytes.values())

    @property
    def work(self) -> Work:
        """For the roofline: all operations, and all bytes."""
        return Work(self.matmul_flops + self.vector_flops, self.hbm_bytes)


@dataclass
class Sram:
    """The machine while it runs. itemsize: bytes that a number is counted with."""

    hbm: dict[str, np.ndarray]
    sram_bytes: int
    itemsize: int
    buffers: dict[str, np.ndarray] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    kernels: dict[str, list[int]] = field(default_factory=dict)
    kernel: str = "program"
    peak: tuple[int, str] = (0, "")
    matmul_flops: int = 0
    vector_flops: int = 0
    work: int = 0
    replaced_in_product: bool = False

    def step(self, line: str) -> None:
        """Carry one line out."""
        if not isinstance(line, str):
            raise SramError("a line is text")
        step = parse(line)
        getattr(self, f"_{step.kind}")(step, line)

    def used(self, without: str = "") -> int:
        """Bytes of all buffers, one of them left out."""
        return self.itemsize * sum(buffer.size for name, buffer in self.buffers.items() if name != without)

    def _load(self, step: Step, line: str) -> None:
        block = self._block(step, step.source)
        self._keep(step.target, block.copy(), line)
        self._move(self.read, 0, step.source, block.size)

    def _store(self, step: Step, line: str) -> None:
        block, value = self._block(step, step.target), self._evaluate(step.source)
        if value.shape != block.shape:
            raise SramError(f"the value has shape {value.shape}, the place in {step.target} has {block.shape}")
        block[...] = value
        self._move(self.written, 1, step.target, block.size)

    def _set(self, step: Step, line: str) -> None:
        value = self._evaluate(step.source, step.target)
        self._keep(step.target, value.copy(), line, beside_old=self.replaced_in_product)

    def _free(self, step: Step, line: str) -> None:
        for name in step.source:
            if name not in self.buffers:
                raise SramError(f"there is no buffer {name} in SRAM; it has {some(self.buffers)}")
            del self.buffers[name]

    def _kernel(self, step: Step, line: str) -> None:
        self.buffers.clear()
        self.kernel = step.target

    def _evaluate(self, expression, target: str = "") -> np.ndarray:
        work = Evaluation(self.buffers, self.sram_bytes // self.itemsize)
        value = work.value(expression)
        self.matmul_flops += work.matmul_flops
        self.vector_flops += work.vector_flops
        self.work += work.matmul_flops + 20 * (work.vector_flops + work.made)
        if self.work > MAX_WORK:
            raise SramError(f"this is more work than the {MAX_WORK:,} operations that a program may take")
        self.replaced_in_product = target in work.in_product
        return value

    def _block(self, step: Step, array: str) -> np.ndarray:
        """The part of an array that a step names; the end is cut off where the array ends, as in NumPy."""
        if array not in self.hbm:
            raise NoSuchArray(f"there is no array {array} in HBM; it has {', '.join(self.hbm)}")
        block = self.hbm[array][slice(*step.rows), slice(*step.columns)]
        if block.size == 0:
            raise SramError(f"{array} has shape {self.hbm[array].shape}; nothing of it lies in that range")
        return block

    def _keep(self, name: str, value: np.ndarray, line: str, beside_old: bool = False) -> None:
        """Put a value into a buffer. beside_old: its old content is still being read while the new one is made."""
        if name in self.hbm:
            raise SramError(f"{name} is an array in HBM; a buffer needs another name")
        if name not in self.buffers and len(self.buffers) >= MAX_BUFFERS:
            raise SramError(f"there are {MAX_BUFFERS:,} buffers already; use a name again, or free some")
        others = self.used(without="" if beside_old else name)
        wanted = self.itemsize * value.size
        if others + wanted > self.sram_bytes:
            held = [f"{key} {self.itemsize * buffer.size:,}" for key, buffer in self.buffers.items() if beside_old or key != name]
            free = f"{self.sram_bytes - others:,} of {self.sram_bytes:,} are free"
            raise SramFull(f"{name} takes {wanted:,} bytes, {free} ({some(held) if held else 'empty'})")
        self.buffers[name] = value
        self.peak = max(self.peak, (others + wanted, line), key=lambda peak: peak[0])

    def _move(self, counter: dict[str, int], way: int, array: str, size: int) -> None:
        counter[array] = counter.get(array, 0) + self.itemsize * size
        self.kernels.setdefault(self.kernel, [0, 0])[way] += self.itemsize * size


def run(program: Sequence[str], hbm: dict[str, np.ndarray], sram_bytes: int, itemsize: int = 2) -> Report:
    """Carry a program out on arrays in HBM, which change in place, and say what it moved.

    hbm: matrices of float64 by name. Raises SramError (SramFull, NoSuchArray) with the line that is refused, also for more
    lines, buffers or work than a program of somebody else should take from you.

    >>> arrays = {"X": np.ones((4, 8)), "Y": np.zeros((4, 8))}
    >>> report = run(["x = X[0:4]", "Y[0:4] = exp(x) / rowsum(exp(x))"], arrays, sram_bytes=64)
    >>> report.hbm_bytes, report.peak_bytes, float(arrays["Y"][0, 0])
    (128, 64, 0.125)
    >>> run(["x = X[0:4]"], arrays, sram_bytes=32)
    Traceback (most recent call last):
    mlsys.gpu.sram_language.SramFull: line 1, `x = X[0:4]`: x takes 64 bytes, 32 of 32 are free (empty)
    """
    for name, array in hbm.items():
        if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != np.float64:
            raise ValueError(
                f"{name} in HBM is {getattr(array, 'dtype', type(array).__name__)} with {np.ndim(array)} axes, not a float64 matrix"
            )
    if sram_bytes < 1 or itemsize < 1:
        raise ValueError(f"sram_bytes={sram_bytes}, itemsize={itemsize}: both are at least 1")
    if not isinstance(program, (list, tuple)) or not 0 < len(program) <= MAX_LINES:
        raise SramError(f"a program is a list of 1 to {MAX_LINES:,} lines of text")
    machine = Sram(hbm, sram_bytes, itemsize)
    for number, line in enumerate(program, 1):
        try:
            machine.step(line)
        except (ValueError, ArithmeticError, TypeError, RecursionError, MemoryError) as error:
            kind = type(error) if isinstance(error, SramError) else SramError
            shown = str(line)[:80].encode("utf-8", "replace").decode()
            raise kind(f"line {number}, `{shown}`: {error}") from None
    kernels = {name: (read, written) for name, (read, written) in machine.kernels.items()}
    return Report(machine.read, machine.written, kernels, *machine.peak, machine.matmul_flops, machine.vector_flops)
