"""Arrays that a kernel indexes: global (the arguments), shared (one per block), local (one per thread).

`a[i, j]` checks each index against its own extent in the lanes that take part; nothing wraps
around. Shared and local elements must be written before they are read.
Where several lanes store to one element, the lane with the highest number wins; hardware
promises only that one of them does.
Lessons: CUDA programming model, memory hierarchy.
"""

from __future__ import annotations

import numpy as np

from mlsys.gpu.simt.errors import KernelError, OutOfBounds, UnsetRead, place
from mlsys.gpu.simt.masks import Geometry, Mask
from mlsys.gpu.simt.values import value

UNSIGNED = {4: np.uint32, 8: np.uint64}


class Array:
    """Shape, type and name of an array; `flat_index` turns indices into a position."""

    space = ""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype, geometry: Geometry):
        self.name, self.shape, self.dtype, self.geometry = name, shape, dtype, geometry
        self.size = int(np.prod(shape))
        self.strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]  # in elements

    def flat_index(self, index, mask: Mask, verb: str) -> np.ndarray:
        """Position in the flattened array, checked in every active lane."""
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != len(self.shape):
            raise KernelError(f"{self.name} has {len(self.shape)} axes and is indexed with {len(index)}.")
        position = None
        for i, extent, stride in zip(index, self.shape, self.strides):
            i = value(i)
            if i.dtype.kind not in "iu":
                raise KernelError(f"{self.name} is indexed with {i.dtype}; an index is an integer.")
            if i.itemsize < 4:
                i = i.astype(np.int32)
            # Seen as unsigned, an index below zero is a huge one.
            largest = i.item() % 2**64 if i.size == 1 else i.view(UNSIGNED[i.itemsize]).max()
            if largest >= extent:
                self.check_active(i, extent, index, mask, verb)
            i = i if stride == 1 else i * stride
            position = i if position is None else position + i
        return position

    def check_active(self, i, extent, index, mask: Mask, verb: str) -> None:
        """Raise OutOfBounds if a lane that takes part has its index outside."""
        bad = ((i < 0) | (i >= extent)) & mask.lanes
        if not bad.any():
            return
        lane = self.geometry.first(bad)
        numbers = [int(np.broadcast_to(value(k), self.geometry.shape).ravel()[lane]) for k in index]
        thread = self.geometry.thread(lane)
        size = " x ".join(map(str, self.shape)) + (" elements" if len(self.shape) == 1 else "")
        raise OutOfBounds(f"{place(thread)} {verb} {self.name}{numbers}, but {self.name} has {size}.", thread)


class Global(Array):
    """An argument: memory that all blocks see. Every array begins on a 256-byte boundary of its own."""

    space = "global"

    def __init__(self, name: str, array: np.ndarray, geometry: Geometry):
        super().__init__(name, array.shape, array.dtype, geometry)
        self.flat = array.reshape(-1)  # a view: launches refuse arrays that are not contiguous
        self.writable = array.flags.writeable
        self.watched = True  # whether the race detector has to follow it

    def gather(self, position: np.ndarray, mask: Mask) -> np.ndarray:
        return self.flat.take(position, mode="clip")  # clip: lanes that do not take part may point anywhere

    def scatter(self, position: np.ndarray, new: np.ndarray, mask: Mask) -> None:
        if not self.writable:
            raise KernelError(f"{self.name} is read-only, and the kernel writes to it.")
        position, new = chosen(position, new, mask)
        self.flat[position] = new


class Shared(Array):
    """One copy for each block."""

    space, owner = "shared", "block"

    def __init__(self, name: str, shape, dtype, geometry: Geometry):
        super().__init__(name, shape, dtype, geometry)
        self.data = np.zeros((geometry.blocks, self.size), dtype)
        self.flat = self.data.reshape(-1)
        self.base = np.arange(geometry.blocks, dtype=np.int64)[:, None] * self.size
        self.written = np.zeros(self.data.shape, bool)
        self.complete = False  # whether every element has been written

    def gather(self, position: np.ndarray, mask: Mask) -> np.ndarray:
        if not self.complete:
            require_written(self, self.pick(self.written, position), position, mask)
        return self.pick(self.data, position)

    def pick(self, data: np.ndarray, position: np.ndarray) -> np.ndarray:
        """data[block, position] for every block."""
        if position.shape[0] == 1:  # the same pattern in every block
            return data.take(position[0], axis=1, mode="clip")
        return data.reshape(-1).take(position + self.base, mode="clip")

    def scatter(self, position: np.ndarray, new: np.ndarray, mask: Mask) -> None:
        if position.shape[0] == 1 and mask.lanes.shape[0] == 1:  # the same elements in every block
            position = position[0]
            if not mask.every or len(position) < new.shape[1]:
                lanes = mask.chosen(np.broadcast_shapes(position[None].shape, mask.lanes.shape, (1, new.shape[1])))
                position = position[lanes] if len(position) > 1 else position.repeat(len(lanes))
                new = new[:, lanes] if new.shape[1] > 1 else new
            self.data[:, position] = new
            if not self.complete:
                self.written[:, position] = True
        else:
            position, new = chosen(position + self.base, new, mask)
            self.flat[position] = new
            if not self.complete:
                self.written.reshape(-1)[position] = True
        self.complete = self.complete or bool(self.written.all())


class Local(Array):
    """One copy for each thread. Laid out so that one element of all lanes is contiguous."""

    space, owner = "local", "thread"

    def __init__(self, name: str, shape, dtype, geometry: Geometry):
        super().__init__(name, shape, dtype, geometry)
        self.flat = np.zeros(self.size * geometry.lanes, dtype)
        self.lane = np.arange(geometry.lanes, dtype=np.int64).reshape(geometry.shape)
        self.written = np.zeros(len(self.flat), bool)
        self.complete = False

    def gather(self, position: np.ndarray, mask: Mask) -> np.ndarray:
        place_of = self.lane + position.astype(np.int64) * self.geometry.lanes
        if not self.complete:
            require_written(self, self.written.take(place_of, mode="clip"), position, mask)
        return self.flat.take(place_of, mode="clip")

    def scatter(self, position: np.ndarray, new: np.ndarray, mask: Mask) -> None:
        position, new = chosen(self.lane + position.astype(np.int64) * self.geometry.lanes, new, mask)
        self.flat[position] = new
        if not self.complete:
            self.written[position] = True
            self.complete = bool(self.written.all())


def chosen(position: np.ndarray, new: np.ndarray, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """Positions and new values of the active lanes only, in the order of the lanes."""
    shape = np.broadcast_shapes(position.shape, new.shape, mask.lanes.shape)
    if mask.every:
        return np.broadcast_to(position, shape), np.broadcast_to(new, shape)
    lanes = mask.chosen(shape)
    position = position if position.shape == shape else np.broadcast_to(position, shape)
    if new.shape == shape:
        new = new.reshape(-1).take(lanes)
    elif new.size > 1:
        new = np.broadcast_to(new, shape).reshape(-1).take(lanes)
    else:
        new = new.reshape(-1)
    return position.reshape(-1).take(lanes), new


def require_written(array: Array, written: np.ndarray, position: np.ndarray, mask: Mask) -> None:
    """Raise UnsetRead if an active lane reads an element that nobody has written."""
    if mask.every and written.all():
        return
    bad = ~written & mask.lanes
    if not bad.any():
        return
    lane = array.geometry.first(bad)
    flat = int(np.broadcast_to(position, array.geometry.shape).ravel()[lane])
    index = [int(k) for k in np.unravel_index(flat, array.shape)]
    thread = array.geometry.thread(lane)
    raise UnsetRead(f"{place(thread)} reads {array.space} {array.name}{index}, which nobody has written.", thread)
