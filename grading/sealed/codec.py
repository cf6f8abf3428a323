"""Plain data between two processes that do not trust each other: JSON and raw arrays, no pickle.

Numbers, text, bytes, lists, tuples, dicts, sets, slices and NumPy arrays travel as they are; a
subclass of one of these travels as its base. Anything else stays where it is and a numbered
`Handle` travels in its place. Decoding trusts nothing: sizes, depth and types are checked first.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_BYTES = 64 << 20  # one message
MAX_DEPTH = 32
MAX_VALUES = 1_000_000
MAX_INT_BITS = 4096
ARRAY_KINDS = "biufcSU"  # exact numbers and fixed-width text; no objects, records or dates


class Refused(ValueError):
    """Something that is no plain data, or more of it than fits."""


@dataclass(frozen=True)
class Handle:
    """An object that stays in the other process; kind is 'callable' or 'object', name its type's or its own."""

    number: int
    kind: str
    name: str


def dumps(value: Any, keep: Callable[[Any], Handle] | None = None) -> bytes:
    """The message for a value. `keep` gives a handle to whatever is not plain; without it that is Refused.

    >>> loads(dumps({"a": (1, 2.5, float("inf")), 3: [b"x", None, True]}))
    {'a': (1, 2.5, inf), 3: [b'x', None, True]}
    """
    encoder = _Encoder(keep)
    try:
        text = json.dumps(encoder.encode(value, 0), allow_nan=False).encode()
    except RecursionError:
        raise Refused("nested too deeply") from None
    blocks = encoder.blocks
    if len(text) + sum(map(len, blocks)) > MAX_BYTES:
        raise Refused(f"more than {MAX_BYTES >> 20} MB")
    parts = [struct.pack("<II", len(text), len(blocks)), text]
    for block in blocks:
        parts += [struct.pack("<Q", len(block)), block]
    return b"".join(parts)


class _Encoder:
    """One message under way: the binary blocks and the count of values so far."""

    def __init__(self, keep):
        self.keep, self.blocks, self.values, self.bytes = keep, [], 0, 0

    def block(self, data: bytes) -> int:
        self.bytes += len(data)
        if self.bytes > MAX_BYTES:
            raise Refused(f"more than {MAX_BYTES >> 20} MB")
        self.blocks.append(data)
        return len(self.blocks) - 1

    def encode(self, value: Any, depth: int) -> Any:
        self.values += 1
        if depth > MAX_DEPTH:
            raise Refused(f"nested more than {MAX_DEPTH} deep")
        if self.values > MAX_VALUES:
            raise Refused(f"more than {MAX_VALUES} values")
        if value is None or value is True or value is False:
            return value
        if isinstance(value, np.ndarray) or isinstance(value, np.generic):
            return self.array(value, depth)
        for base, encode in _BASES:
            if isinstance(value, base):
                return encode(self, value, depth + 1)
        return self.stand_in(value)

    def stand_in(self, value: Any) -> Any:
        handle = value if type(value) is Handle else self.keep(value) if self.keep else None
        if handle is None:
            raise Refused(f"an object of type {type(value).__name__} is no plain data")
        return {"handle": [handle.number, handle.kind, handle.name]}

    def array(self, value: Any, depth: int) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            return self.stand_in(value)
        scalar, array = isinstance(value, np.generic), np.asarray(value)
        if array.dtype.kind == "O" and not scalar:
            return {"objects": [list(array.shape), [self.encode(item, depth + 1) for item in array.flat]]}
        if array.dtype.kind not in ARRAY_KINDS:
            return self.stand_in(value)
        if array.nbytes > MAX_BYTES:
            raise Refused(f"an array of {array.nbytes >> 20} MB")
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        return {"array": [self.block(array.tobytes()), array.dtype.str, list(array.shape), scalar]}

    def integer(self, value: int, _: int) -> Any:
        value = int.__index__(value)
        if value.bit_length() > MAX_INT_BITS:
            raise Refused(f"an integer of {value.bit_length()} bits")
        return value if abs(value) < 2**53 else {"int": hex(value)}

    def real(self, value: float, _: int) -> Any:
        value = float.__add__(value, 0.0) if value else float.__float__(value)  # -0.0 stays
        return value if math.isfinite(value) else {"float": repr(value)}

    def complex(self, value: complex, depth: int) -> Any:
        return {"complex": [self.real(value.real, depth), self.real(value.imag, depth)]}

    def text(self, value: str, _: int) -> str:
        return str.__str__(value)

    def raw(self, value: bytes, _: int) -> Any:
        return {"bytes": self.block(bytes(value))}

    def items(self, value: Any, depth: int) -> list:
        return [self.encode(item, depth) for item in value]

    def slice(self, value: slice, depth: int) -> Any:
        return {"slice": self.items((value.start, value.stop, value.step), depth)}


_BASES = (
    (int, _Encoder.integer),
    (float, _Encoder.real),
    (complex, _Encoder.complex),
    (str, _Encoder.text),
    ((bytes, bytearray), _Encoder.raw),
    (list, lambda self, value, depth: {"list": self.items(list.__iter__(value), depth)}),
    (tuple, lambda self, value, depth: {"tuple": self.items(tuple.__iter__(value), depth)}),
    (dict, lambda self, value, depth: {"dict": [self.items(pair, depth) for pair in dict.items(value)]}),
    (set, lambda self, value, depth: {"set": self.items(set.__iter__(value), depth)}),
    (frozenset, lambda self, value, depth: {"frozenset": self.items(frozenset.__iter__(value), depth)}),
    (slice, _Encoder.slice),
)


def loads(message: bytes, opened: Callable[[Handle], Any] | None = None) -> Any:
    """The value of a message, each handle replaced by opened(handle).

    Raises Refused for anything that `dumps` would not have written.
    """
    try:
        return _Decoder(message, opened).decode_all()
    except Refused:
        raise
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, struct.error) as error:
        raise Refused(f"a damaged message ({type(error).__name__})") from None


class _Decoder:
    """One message under way: its blocks and the count of values so far."""

    def __init__(self, message: bytes, opened: Callable[[Handle], Any] | None):
        self.opened = opened or (lambda handle: handle)
        if not 8 <= len(message) <= MAX_BYTES + (1 << 20):
            raise Refused(f"a message of {len(message)} bytes")
        length, count = struct.unpack_from("<II", message)
        if 8 + length + 8 * count > len(message):
            raise Refused("a message that is cut off")
        place, self.blocks, self.values = 8 + length, [], 0
        for _ in range(count):
            (size,) = struct.unpack_from("<Q", message, place)
            place += 8
            if size > len(message) - place:
                raise Refused("a message that is cut off")
            self.blocks.append(message[place : place + size])
            place += size
        if place != len(message):
            raise Refused("bytes after the end of a message")
        text = message[8 : 8 + length]
        if text.count(b"[") + text.count(b"{") > 4 * MAX_VALUES:
            raise Refused(f"more than {MAX_VALUES} values")
        self.tree = json.loads(text.decode("utf-8"), parse_constant=_no_constant)

    def decode_all(self) -> Any:
        return self.decode(self.tree, 0)

    def decode(self, tree: Any, depth: int) -> Any:
        self.values += 1
        if depth > MAX_DEPTH + 1 or self.values > MAX_VALUES + 1:
            raise Refused("nested too deeply, or too many values")
        if tree is None or type(tree) in (bool, int, float, str):
            return tree
        if type(tree) is not dict or len(tree) != 1:
            raise Refused("a damaged message")
        ((tag, body),) = tree.items()
        return getattr(self, f"_{tag}")(body, depth + 1) if tag in TAGS else self._refuse(tag)

    def _refuse(self, tag: str) -> None:
        raise Refused(f"an unknown kind of value, {tag[:20]!r}")

    def _list(self, body: Any, depth: int) -> list:
        if type(body) is not list:
            raise Refused("a damaged message")
        return [self.decode(item, depth) for item in body]

    def _tuple(self, body: Any, depth: int) -> tuple:
        return tuple(self._list(body, depth))

    def _set(self, body: Any, depth: int) -> set:
        return set(self._list(body, depth))

    def _frozenset(self, body: Any, depth: int) -> frozenset:
        return frozenset(self._list(body, depth))

    def _slice(self, body: Any, depth: int) -> slice:
        return slice(*self._list(body, depth))

    def _dict(self, body: Any, depth: int) -> dict:
        return dict(self._list(pair, depth) for pair in body)

    def _int(self, body: Any, depth: int) -> int:
        if type(body) is not str or len(body) > MAX_INT_BITS // 4 + 4:
            raise Refused("an integer that is too long")
        return int(body, 16)

    def _float(self, body: Any, depth: int) -> float:
        if body not in ("inf", "-inf", "nan"):
            raise Refused("a damaged number")
        return float(body)

    def _complex(self, body: Any, depth: int) -> complex:
        real, imag = (self.decode(part, depth) for part in body)
        return complex(real, imag)

    def _bytes(self, body: Any, depth: int) -> bytes:
        return self.blocks[_size(body)]

    def _handle(self, body: Any, depth: int) -> Handle:
        number, kind, name = body
        return self.opened(Handle(_size(number), "callable" if kind == "callable" else "object", str(name)[:80]))

    def _objects(self, body: Any, depth: int) -> np.ndarray:
        shape, items = body
        items = [self.decode(item, depth) for item in items]
        array = np.empty(len(items), object)
        array[:] = items if len(items) != 1 else [items[0]]
        return array.reshape([_size(n) for n in shape])

    def _array(self, body: Any, depth: int) -> Any:
        block, kind, shape, scalar = body
        dtype = np.dtype(str(kind))
        shape = [_size(n) for n in shape]
        if dtype.kind not in ARRAY_KINDS or not dtype.isnative or len(shape) > 32 or dtype.names:
            raise Refused("an array of a kind that does not travel")
        data = self.blocks[_size(block)]
        if math.prod(shape) * dtype.itemsize != len(data):
            raise Refused("an array whose size is not what it says")
        array = np.frombuffer(data, dtype).reshape(shape).copy() if dtype.itemsize else np.zeros(shape, dtype)
        return array[()] if scalar and not shape else array


TAGS = {name[1:] for name in vars(_Decoder) if name.startswith("_") and not name.startswith("__")} - {"refuse"}


def _size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise Refused(f"{value!r} is no size")
    return value


def _no_constant(name: str) -> None:
    raise Refused(f"{name} outside of its wrapping")
