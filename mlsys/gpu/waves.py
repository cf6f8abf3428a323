"""Waves: a grid runs in rounds of as many blocks as the chip holds, and the last round is rarely full.

A chip with so many SMs and room for so many blocks on each has SMs x blocks per SM slots. Equal blocks start together
and end together, so a grid takes ceil(blocks / slots) times as long as one block, and the last wave, the tail, costs as
much as a full one however few blocks it has.
Left out: blocks that take unequal times blur the waves, and a half-empty SM runs its blocks faster since they share it
with fewer; both make the true loss smaller than this. The start of a launch costs a few microseconds more.
Lessons: SMs and warps, tiling.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..specs.accelerators import Accelerator


@dataclass(frozen=True)
class Waves:
    """How a grid fills a chip. blocks: of the grid; slots: blocks that the chip holds at once."""

    blocks: int
    slots: int

    @property
    def full(self) -> int:
        """Waves in which every slot has a block."""
        return self.blocks // self.slots

    @property
    def tail(self) -> int:
        """Blocks left for a last, partly filled wave; 0 if the last wave is full."""
        return self.blocks % self.slots

    @property
    def count(self) -> int:
        """Waves, the partly filled one included: how many times as long as one block the grid takes."""
        return self.full + (self.tail > 0)

    @property
    def utilisation(self) -> float:
        """Share of the slots' time in which a block runs."""
        return self.blocks / (self.count * self.slots)

    def __str__(self) -> str:
        waves = f"{self.count} wave{'s' * (self.count != 1)}"
        last = f", {self.tail} of {self.slots} slots in the last" if self.tail else ", all full"
        return f"{self.blocks} blocks, {self.slots} slots: {waves}{last}, {self.utilisation:.1%} used"


def waves(blocks: int, chip: Accelerator, blocks_per_sm: int = 1) -> Waves:
    """Waves of a grid of equal blocks on a chip.

    Raises ValueError for a chip whose SMs are not known and for numbers below 1.

    >>> from mlsys.specs import H100_SXM
    >>> print(waves(133, H100_SXM))
    133 blocks, 132 slots: 2 waves, 1 of 132 slots in the last, 50.4% used
    """
    if chip.units is None:
        raise ValueError(f"{chip.name}: the number of its SMs is not known")
    for name, value in (("blocks", blocks), ("blocks_per_sm", blocks_per_sm)):
        if value < 1:
            raise ValueError(f"{name}={value} is below 1")
    return Waves(int(blocks), chip.units * int(blocks_per_sm))


def least_utilisation(full_waves: int, slots: int) -> float:
    """The worst that a tail can do to a grid of more than so many full waves: one block more.

    >>> [round(least_utilisation(full, 132), 3) for full in (1, 4, 10)]
    [0.504, 0.802, 0.91]
    """
    return Waves(full_waves * slots + 1, slots).utilisation
