"""Shuffles and votes: lanes of a warp read each other's registers, without memory or barrier.

Every lane of the warp that is asked must take part: to read from a lane that sits the statement
out, or that has no thread, is an error here and an undefined value on hardware.
Lessons: CUDA programming model.
"""

from __future__ import annotations

import numpy as np

from mlsys.gpu.simt.errors import KernelError, LaneError, place
from mlsys.gpu.simt.masks import WARP, Geometry, Mask
from mlsys.gpu.simt.values import truth, value

LANE = np.arange(WARP)


def source_lanes(how: str, distance: np.ndarray, width: int) -> np.ndarray:
    """The lane that each lane reads from; itself where the source would leave its group of `width`.

    >>> source_lanes("down", np.array([[1]]), 4)[0, :8].tolist()
    [1, 2, 3, 3, 5, 6, 7, 7]
    """
    first = LANE - LANE % width
    wanted = {
        "down": lambda: LANE + distance,
        "up": lambda: LANE - distance,
        "xor": lambda: LANE ^ distance,
        "from": lambda: first + distance % width,
    }[how]()
    return np.where((wanted >= first) & (wanted < first + width), wanted, LANE)


def shuffle(geometry: Geometry, mask: Mask, how: str, of, distance, width: int) -> np.ndarray:
    """Each lane's value of the lane that `how` and `distance` name, as (blocks, threads)."""
    if value(distance).dtype.kind not in "iu":
        raise KernelError(f"a shuffle over {value(distance).dtype} lanes; their number is an integer.")
    if width not in (1, 2, 4, 8, 16, 32):
        raise KernelError(f"a shuffle has width={width}; it must be a power of two up to 32.")
    of = np.broadcast_to(value(of), geometry.shape)
    distance = geometry.rows(np.broadcast_to(value(distance), geometry.shape))
    source = source_lanes(how, distance, width)
    active = geometry.rows(np.broadcast_to(mask.lanes, geometry.shape))
    asleep = active & ~np.take_along_axis(active, source, 1)
    if asleep.any():
        row, lane = (int(k[0]) for k in np.nonzero(asleep))
        block, warp = divmod(row, geometry.warps_per_block)
        thread = geometry.thread(block * geometry.threads + warp * WARP + lane)
        raise LaneError(
            f"{place(thread)} reads from lane {int(source[row, lane])} of its warp, which does not take part.", thread
        )
    return unrow(geometry, np.take_along_axis(geometry.rows(of), source, 1))


def unrow(geometry: Geometry, rows: np.ndarray) -> np.ndarray:
    """The reverse of `Geometry.rows`."""
    return rows.reshape(geometry.blocks, -1)[:, : geometry.threads]


def vote(geometry: Geometry, mask: Mask, how: str, condition) -> np.ndarray:
    """One answer for each warp, over its active lanes."""
    active = np.broadcast_to(mask.lanes, geometry.shape)
    yes = geometry.rows(np.broadcast_to(truth(condition), geometry.shape) & active)
    if how == "any":
        answer = yes.any(1)
    elif how == "all":
        answer = (yes | ~geometry.rows(active)).all(1)
    else:
        answer = np.packbits(yes, axis=1, bitorder="little").view("<u4")[:, 0].astype(np.uint32)
    return unrow(geometry, np.repeat(answer[:, None], WARP, 1))
