"""The machine: what the rewritten source calls while it runs, statement by statement, for all lanes.

All lanes of the grid go through the kernel together; `mask` says which of them take part in the
statement at hand. So every launch behaves as if all warps kept step. On hardware they do not:
a kernel that is right only because lanes keep step is wrong, and the race detector says so.
Lessons: SMs and warps, CUDA programming model.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np

from mlsys.gpu.simt import atomics, warps
from mlsys.gpu.simt.errors import BarrierError, EndlessLoop, KernelError, UnsetRead, place
from mlsys.gpu.simt.language import CALLS, Index, Word
from mlsys.gpu.simt.masks import Geometry, Mask, empty, full
from mlsys.gpu.simt.memory import Array, Local, Shared, chosen
from mlsys.gpu.simt.values import FLOAT32, INT32, cast, meet, truth, value

MAX_SHARED = 232_448  # bytes per block: 227 KiB on the H100, less on others
MAX_LOCAL = 512 << 10  # bytes per thread, on every GPU of the last ten years


class Loop:
    """A loop in progress: the lanes that came to it, those still in it, and the jumps of the loop outside."""

    __slots__ = ("arrived", "mask", "outer", "line", "rounds")

    def __init__(self, arrived: Mask, outer: tuple, line: int):
        self.arrived = self.mask = arrived
        self.outer, self.line, self.rounds = outer, line, 0


class Machine:
    """State of one launch."""

    def __init__(self, geometry: Geometry, tracer=None, max_rounds: int = 1_000_000):
        self.geometry, self.tracer, self.max_rounds = geometry, tracer, max_rounds
        self.mask, self.nobody = full(), empty()
        self.returned = self.broken = self.continued = None  # lanes that have jumped, where there are any
        self.result = self.answered = None  # of a device function: values, and the lanes that have returned one
        self.wanted = True  # whether somebody takes the result of the call
        self.arrays: dict[tuple, Array] = {}  # shared and local ones, by the place that declares them
        self.indices = indices(geometry)
        self.file = 0  # see Tracer.file

    # control flow -----------------------------------------------------------

    def step(self, line: int) -> None:
        self.tracer.slot(self.file + line, self.mask)

    test = staticmethod(truth)

    def enter(self, condition: np.ndarray) -> Mask:
        """Go on with those lanes for which the condition holds; gives the mask to come back to."""
        saved = self.mask
        self.mask = saved.narrow(condition)
        return saved

    def rejoin(self, mask: Mask) -> Mask:
        """A mask without the lanes that have jumped away meanwhile."""
        for gone in (self.returned, self.broken, self.continued):
            if gone is not None:
                mask = mask.without(gone)
        return mask

    def _jump(self, gone: np.ndarray | None) -> np.ndarray:
        lanes = self.mask.lanes
        self.mask = self.nobody
        return lanes if gone is None else gone | lanes

    def leave_loop(self) -> None:
        self.broken = self._jump(self.broken)

    def next_turn(self) -> None:
        self.continued = self._jump(self.continued)

    def leave(self, result) -> None:
        if result is not None:
            self.result = self.assign(self.result, result, "result")
            self.answered = self.given(self.answered)
        self.returned = self._jump(self.returned)

    def open_loop(self, line: int) -> Loop:
        loop = Loop(self.mask, (self.broken, self.continued), line)
        self.broken = self.continued = None
        return loop

    def next_round(self, loop: Loop) -> bool:
        """Bring back the lanes that said `continue`; whether any lane is left."""
        self.continued = None
        self.mask = self.rejoin(loop.mask)
        loop.rounds += 1
        if loop.rounds > self.max_rounds:
            raise EndlessLoop(
                f"the loop of line {loop.line} has gone through {self.max_rounds} rounds and does not end"
                " (a launch can allow more: max_rounds)."
            )
        return self.mask.some

    def stay(self, loop: Loop, condition) -> bool:
        """Lanes whose condition fails wait behind the loop; whether any lane goes on."""
        loop.mask = self.mask = self.mask.narrow(truth(condition))
        return self.mask.some

    def close_loop(self, loop: Loop) -> None:
        self.broken, self.continued = loop.outer
        self.mask = self.rejoin(loop.arrived)

    def rounds(self, line: int, bounds: tuple):
        """`for ... in range(*bounds)`: gives the loop variable, with the mask of each round set."""
        if not 1 <= len(bounds) <= 3:
            raise KernelError(f"range() takes one to three bounds, not {len(bounds)}.")
        start, stop, step = (value(b) for b in ((0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]))
        for bound in (start, stop, step):
            if bound.dtype.kind not in "iu":
                raise KernelError(f"a bound of range() is {bound.dtype}; it must be an integer.")
        if ((step == 0) & self.mask.lanes).any():
            raise KernelError("range() with step 0 does not end.")
        loop = self.open_loop(line)
        same = start.size == stop.size == step.size == 1
        turns = self._same_bounds(loop, start, stop, step) if same else self._own_bounds(loop, start, stop, step)
        yield from turns
        self.close_loop(loop)

    def _same_bounds(self, loop: Loop, start, stop, step):
        for k in range(start.item(), stop.item(), step.item()):
            if not self.next_round(loop):
                return
            if self.tracer:
                self.step(loop.line)
            loop.mask = self.mask
            yield value(k)
        if self.next_round(loop) and self.tracer:
            self.step(loop.line)  # the check that ends the loop

    def _own_bounds(self, loop: Loop, start, stop, step):
        k, stop = meet(start, stop)
        while self.next_round(loop):
            if self.tracer:
                self.step(loop.line)
            if not self.stay(loop, np.where(step > 0, k < stop, k > stop)):
                return
            yield k
            k = k + step.astype(k.dtype, copy=False)

    # values -----------------------------------------------------------------

    def assign(self, old, new, name: str):
        """What a variable holds after `name = new` in the active lanes."""
        if new.__class__ is not np.ndarray:
            if isinstance(new, Array):
                new.name = new.name or name
                return new
            new = value(new)
        if self.mask.every or old is None:
            return new
        if isinstance(old, Array):
            raise KernelError(f"{name} is an array for some threads and becomes a number for others.")
        if old.dtype is not new.dtype:
            old, new = meet(old, new)
        return np.where(self.mask.lanes, new, old)

    def given(self, lanes: np.ndarray | None) -> np.ndarray:
        """Lanes that have assigned a variable, after the active ones did."""
        return self.mask.lanes if lanes is None else lanes | self.mask.lanes

    def sure(self, variable, lanes: np.ndarray | None, name: str):
        """The variable, if every active lane has assigned it."""
        missing = self.mask.lanes if lanes is None else self.mask.lanes & ~lanes
        if missing.any():
            thread = self.geometry.thread(self.geometry.first(missing))
            raise UnsetRead(f"{place(thread)} uses {name}, which it has not been given.", thread)
        return variable

    def divide(self, name: str, a, b):
        """`//` and `%`; an integer divided by zero in an active lane is an error."""
        a, b = meet(value(a), b)
        if b.__class__ is not np.ndarray:
            b = value(b)
        if b.dtype.kind in "iu" and a.dtype.kind in "iu" and not b.all():
            bad = (b == 0) & self.mask.lanes
            if bad.any():
                thread = self.geometry.thread(self.geometry.first(bad))
                raise KernelError(f"{place(thread)} divides an integer by zero.", thread)
        return (np.floor_divide if name == "FloorDiv" else np.remainder)(a, b)

    def short(self, is_and: bool, first, rest) -> np.ndarray:
        """`first and rest()`, `first or rest()`: only lanes that `first` leaves open evaluate the rest."""
        first, saved = truth(first), self.mask
        self.mask = saved.narrow(first) if is_and else saved.without(first)
        if self.mask.some:
            then = truth(rest())
            first = first & then if is_and else first | then
        self.mask = saved
        return first

    def choose(self, condition, then, otherwise) -> np.ndarray:
        """`then() if condition else otherwise()`, each side in its own lanes."""
        condition, saved = truth(condition), self.mask
        sides = []
        for part, evaluate in ((saved.narrow(condition), then), (saved.without(condition), otherwise)):
            self.mask = part
            sides.append(value(evaluate()) if part.some else None)
        self.mask = saved
        if sides[0] is None or sides[1] is None:
            return sides[1] if sides[0] is None else sides[0]
        return np.where(condition, *meet(*sides))

    def attribute(self, thing, name: str):
        if thing.__class__ is Index:
            if (thing.name, name) in self.indices:
                return self.indices[thing.name, name]
            raise KernelError(f"{thing.name} has x, y and z, not {name}.")
        if isinstance(thing, ModuleType):
            return getattr(thing, name)
        if isinstance(thing, Array) and name in ("shape", "size", "dtype"):
            return getattr(thing, name)
        raise KernelError(f"a {type(thing).__name__} has no attribute {name} in a kernel.")

    # memory -----------------------------------------------------------------

    def load(self, array, index, line: int) -> np.ndarray:
        if not isinstance(array, Array):
            if isinstance(array, tuple) and isinstance(index, int) and all(isinstance(extent, int) for extent in array):
                if not -len(array) <= index < len(array):
                    raise KernelError(f"a shape of length {len(array)} is indexed with {index}.")
                return array[index]  # a.shape[0]
            raise KernelError(f"a {type(array).__name__} is indexed; only arrays are.")
        position = array.flat_index(index, self.mask, "reads")
        if self.tracer:
            self.tracer.access(array, "load", position, self.mask, self.file + line)
        return array.gather(position, self.mask)

    def store(self, array, index, new, line: int) -> None:
        if not isinstance(array, Array):
            raise KernelError(f"a {type(array).__name__} is indexed; only arrays are.")
        position = array.flat_index(index, self.mask, "writes")
        if self.tracer:
            self.tracer.access(array, "store", position, self.mask, self.file + line)
        array.scatter(position, value(new).astype(array.dtype, copy=False), self.mask)

    def _declare(self, kind, site: tuple, shape, dtype) -> Array:
        shape = shape if isinstance(shape, tuple) else (shape,)
        sizes = tuple(int(value(s).item()) if value(s).size == 1 else 0 for s in shape)
        if min(sizes) < 1:
            raise KernelError(f"the shape of a {kind.space} array must be positive and the same for all threads.")
        dtype = np.dtype({int: INT32, float: FLOAT32}.get(dtype, dtype) if isinstance(dtype, type) else dtype)
        if dtype.kind not in "biuf":
            raise KernelError(f"a {kind.space} array of {dtype}; a kernel works on bools, integers and floats.")
        key = (*site, sizes)
        if key not in self.arrays:
            size_bytes, most = math.prod(sizes) * dtype.itemsize, MAX_LOCAL
            if kind is Shared:
                size_bytes, most = size_bytes + self.shared_bytes(), MAX_SHARED
            if size_bytes > most:
                raise KernelError(f"{size_bytes} bytes of {kind.space} memory; a {kind.owner} has at most {most}.")
            self.arrays[key] = kind("", sizes, dtype, self.geometry)
        return self.arrays[key]

    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return sum(a.size * a.dtype.itemsize for a in self.arrays.values() if a.space == "shared")

    def shared(self, site, shape, dtype=FLOAT32) -> Array:
        return self._declare(Shared, site, shape, dtype)

    def local(self, site, shape, dtype=FLOAT32) -> Array:
        return self._declare(Local, site, shape, dtype)

    # words of the language --------------------------------------------------

    def do(self, function, site: tuple, *arguments, **keywords):
        """A call whose result nobody takes."""
        self.wanted = False
        result = self.call(function, site, *arguments, **keywords)
        self.wanted = True
        return result

    def call(self, function, site: tuple, *arguments, **keywords):
        if function.__class__ is Word:
            run = getattr(self, function.method)
            try:
                return run(site, *arguments, **function.settings, **keywords)
            except TypeError as reason:
                raise KernelError(f"the arguments do not fit {function.__doc__}") from reason
        wanted, self.wanted = self.wanted, True
        if hasattr(function, "run_on"):
            return self.device(function, arguments, keywords, wanted)
        if isinstance(function, np.ndarray | Array | Index):
            raise KernelError("a number, an array or an index is called like a function; elements are read with [ ].")
        if function is len or function in CALLS or isinstance(function, type) and issubclass(function, np.generic):
            return self.plain_call(function, arguments, keywords)
        name = getattr(function, "__name__", repr(function))
        raise KernelError(f"{name}() cannot be called in a kernel; a function of your own needs @device.")

    def plain_call(self, function, arguments: tuple, keywords: dict):
        """`len`, a number type, or a function of numbers."""
        try:
            if function is len:
                return arguments[0].shape[0]
            if function in CALLS:
                return CALLS[function](*arguments, **keywords)
            (given,) = arguments
            return cast(given, function, **keywords)
        except (TypeError, ValueError, AttributeError, IndexError):
            raise KernelError(f"{function.__name__}() cannot be called with these arguments in a kernel.") from None

    def device(self, function, arguments: tuple, keywords: dict, wanted: bool):
        """A device function: runs in the active lanes, and its jumps are its own."""
        saved = self.mask, self.returned, self.broken, self.continued, self.result, self.answered, self.file
        if self.tracer:
            self.file = self.tracer.file(function.filename)
        self.returned = self.broken = self.continued = self.result = self.answered = None
        function.run_on(self, tuple(a if isinstance(a, Array) else value(a) for a in arguments), keywords)
        result, answered = self.result, self.answered
        self.mask, self.returned, self.broken, self.continued, self.result, self.answered, self.file = saved
        return self.sure(result, answered, f"the result of {function.name}") if wanted else result

    def sync_threads(self, site: tuple) -> None:
        if not self.mask.every:
            self._require_whole_blocks()
        if self.tracer:
            self.tracer.barrier(self.mask)

    def _require_whole_blocks(self) -> None:
        lanes = np.broadcast_to(self.mask.lanes, (self.mask.lanes.shape[0], self.geometry.threads))
        part = lanes.any(1) & ~lanes.all(1)
        if not part.any():
            return
        block = int(part.argmax())
        missing = self.geometry.thread(block * self.geometry.threads + int(lanes[block].argmin()))
        raise BarrierError(
            f"sync_threads() is reached by {int(lanes[block].sum())} of the {self.geometry.threads} threads of block"
            f" {missing[0]}; thread {missing[1]} is not there, and the others would wait for ever.", missing,
        )  # fmt: skip

    def atomic(self, site: tuple, array, index, *operands, op: str):
        count = 2 if op == "cas" else 1
        if not isinstance(array, Array) or len(operands) != count:
            raise TypeError(f"atomic_{op} takes an array, an index and {count} operands")
        wanted, self.wanted = self.wanted, True
        position = array.flat_index(index, self.mask, "updates")
        if self.tracer:
            self.tracer.access(array, "atomic", position, self.mask, self.file + site[1])
        if array.space == "shared":
            array.gather(position, self.mask)  # refuses elements that nobody has written
            position = position + array.base
        elif array.space == "local":
            raise KernelError(f"{array.name} is local; an atomic needs memory that threads share.")
        shape = np.broadcast_shapes(self.geometry.shape, position.shape)
        position = np.broadcast_to(position, shape)
        lanes = [chosen(position, value(v).astype(array.dtype, copy=False), self.mask) for v in operands]
        old = atomics.apply(array.flat, lanes[0][0].ravel(), op, [v.ravel() for _, v in lanes], wanted)
        if not wanted:
            return None
        result = np.zeros(shape, array.dtype)
        result[np.broadcast_to(self.mask.lanes, shape)] = old
        return result

    def shuffle(self, site: tuple, of, distance, width=32, *, how: str):
        return warps.shuffle(self.geometry, self.mask, how, of, distance, int(value(width).item()))

    def vote(self, site: tuple, condition, *, how: str):
        return warps.vote(self.geometry, self.mask, how, condition)


def indices(geometry: Geometry) -> dict[tuple[str, str], np.ndarray]:
    """thread_idx and its sisters: (1, threads), (blocks, 1) or one number for all."""
    out = {}
    for k, axis in enumerate("xyz"):
        for name, count, size in (
            ("thread_idx", geometry.threads, geometry.block), ("block_idx", geometry.blocks, geometry.grid),
        ):  # fmt: skip
            number = np.arange(count, dtype=np.int32) // int(np.prod(size[:k])) % size[k]
            number = number if size[k] > 1 else number[:1]
            out[name, axis] = number[None, :] if name == "thread_idx" else number[:, None]
        out["block_dim", axis], out["grid_dim", axis] = value(geometry.block[k]), value(geometry.grid[k])
    return out
