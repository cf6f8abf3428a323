"""Coalescing: one load of a warp becomes as many 32-byte sectors as its lanes touch, whatever they use of them.

The hardware joins the addresses of a warp's 32 lanes and moves each sector that any of them needs once. Four
sectors make a 128-byte cache line. A request that reads 128 bytes in a row moves 4 sectors; one whose lanes are 32
bytes or more apart moves 32 of them, eight times as much for the same data.
Left out: caches. A sector counts each time a request asks for it, so traffic to L2 and beyond may be lower than counted
here, never higher. Requests that the hardware splits (8 and 16 bytes a lane) count as one, as the profiler counts them.
Lessons: coalescing and occupancy, CUDA programming model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SECTOR, LINE, WARP = 32, 128, 32
ROWS = 2048  # warps at a time: their addresses stay in a core's L2 cache


@dataclass(frozen=True)
class Traffic:
    """What the requests of an access moved. Requests without an active lane are none."""

    requests: int
    sectors: int
    lines: int
    bytes_asked: int

    @property
    def bytes_moved(self) -> int:
        """Bytes of all sectors."""
        return self.sectors * SECTOR

    @property
    def sectors_per_request(self) -> float:
        """Mean sectors of a request: 4 is the least for 32 lanes with 4 bytes each, unless lanes share words."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def efficiency(self) -> float:
        """Bytes asked for over bytes moved. Above 1 where lanes read the same bytes, which then move once."""
        return self.bytes_asked / self.bytes_moved if self.sectors else 1.0


def coalesce(addresses: np.ndarray, itemsize: int = 4, active: np.ndarray | None = None) -> Traffic:
    """Traffic of many requests. addresses (..., warps, lanes) in bytes, itemsize bytes a lane, active a mask of lanes.

    A warp is one row; it has at most 32 lanes.

    >>> lanes = np.arange(32).reshape(1, 32)
    >>> [coalesce(lanes * 4 * stride).sectors for stride in (1, 2, 8)]
    [4, 8, 32]
    >>> coalesce(lanes * 4 + 4)
    Traffic(requests=1, sectors=5, lines=2, bytes_asked=128)
    """
    sectors = units_per_request(addresses, itemsize, active, SECTOR)
    lines = units_per_request(addresses, itemsize, active, LINE)
    lanes = np.size(addresses) if active is None else int(np.count_nonzero(active))
    return Traffic(int(np.count_nonzero(sectors)), int(sectors.sum()), int(lines.sum()), lanes * itemsize)


def units_per_request(
    addresses: np.ndarray, itemsize: int = 4, active: np.ndarray | None = None, unit_bytes: int = SECTOR
) -> np.ndarray:
    """Distinct units (sectors, lines, pages) that each request touches: (..., warps), uint8. 0 where no lane is active.

    Raises ValueError unless addresses are whole numbers with an axis of warps and one of at most 32 lanes, and
    itemsize lies in 1..unit_bytes, a power of two.

    >>> warps = np.array([[0, 4, 8, 64], [0, 0, 0, 0]])
    >>> units_per_request(warps).tolist(), units_per_request(warps, active=warps > 4).tolist()
    ([2, 1], [2, 0])
    """
    addresses, active = _rows(addresses, active)
    if not 1 <= itemsize <= unit_bytes:
        raise ValueError(f"itemsize={itemsize} is not between 1 and unit_bytes={unit_bytes}")
    if unit_bytes & (unit_bytes - 1):
        raise ValueError(f"unit_bytes={unit_bytes} is no power of two")
    shape, lanes = addresses.shape[:-1], addresses.shape[-1]
    flat = addresses.reshape(-1, lanes)
    mask = None if active is None else active.reshape(-1, lanes)
    counts = np.empty(len(flat), np.uint8)
    shift = unit_bytes.bit_length() - 1
    for start in range(0, len(flat), ROWS):
        part = slice(start, start + ROWS)
        counts[part] = _count(flat[part], None if mask is None else mask[part], itemsize, shift)
    return counts.reshape(shape)


def _rows(addresses, active):
    addresses = np.asarray(addresses)
    if addresses.dtype.kind not in "iu":
        raise ValueError(f"addresses are whole numbers of bytes, and these are {addresses.dtype}")
    if addresses.ndim < 2 or not 1 <= addresses.shape[-1] <= WARP:
        raise ValueError(f"addresses of shape {addresses.shape}: the last axis is lanes, at most 32, and the one before it warps")
    if addresses.dtype.itemsize < 4:
        addresses = addresses.astype(np.int32)
    if active is not None:
        active = np.broadcast_to(np.asarray(active, bool), addresses.shape)
    return addresses, active


def _count(rows: np.ndarray, mask: np.ndarray | None, itemsize: int, shift: int) -> np.ndarray:
    """Units of each row of a (warps, lanes) part."""
    base = int(rows.min()) >> shift
    unit = _narrow(rows >> shift, base)
    straddling = itemsize > 1 and (itemsize & (itemsize - 1) or int(np.bitwise_or.reduce(rows, None)) & (itemsize - 1))
    last = _narrow((rows + (itemsize - 1)) >> shift, base) if straddling else unit
    extra = 0
    if mask is not None and not mask.all():  # idle lanes all ask for one unit beyond the rest, which is taken off again
        beyond = last.dtype.type(int(last.max()) + 1)
        idle = np.multiply(~mask, beyond, dtype=last.dtype)
        unit, last = np.maximum(unit, idle), np.maximum(last, idle)
        extra = _true_in_row(mask) < mask.shape[1]
    if not _in_order(unit):
        unit = np.sort(unit, 1)
    if straddling:  # lanes in order: each adds what lies beyond the end of the one before
        last = last if _in_order(last) else np.sort(last, 1)
        new = last[:, 1:] - np.maximum(unit[:, 1:] - 1, last[:, :-1])
        return new.sum(1) + (last[:, 0] - unit[:, 0] + 1) - extra
    return _true_in_row(unit[:, 1:] != unit[:, :-1]) + 1 - extra


def _narrow(unit: np.ndarray, base: int) -> np.ndarray:
    """Unit numbers from base on, in 32 bits where they fit with one to spare: half the bytes to walk over."""
    if unit.dtype == np.int32 and base >= 0:
        return unit if int(unit.max()) < 2**31 - 1 else unit.astype(np.int64)
    return (unit - unit.dtype.type(base)).astype(np.int32 if int(unit.max()) - base < 2**31 - 1 else np.int64)


def _in_order(rows: np.ndarray) -> bool:
    return bool((rows[:, 1:] >= rows[:, :-1]).all())


def _true_in_row(flags: np.ndarray) -> np.ndarray:
    """How many of each row are true, eight at a time."""
    wide = np.zeros((len(flags), 32), bool)
    wide[:, : flags.shape[1]] = flags
    words = wide.view(np.uint64)
    bytes_each = words[:, 0] + words[:, 1] + words[:, 2] + words[:, 3]
    return ((bytes_each * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
