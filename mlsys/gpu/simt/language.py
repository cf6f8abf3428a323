"""The words of the kernel language: what a kernel may name besides Python's own statements.

Each word is a marker; the machine knows what it does. Outside a kernel a word has no meaning
and says so. Numbers have NumPy's types: int32, float32 and so on, which also convert
(`float32(i)`).
Lessons: CUDA programming model.
"""

from __future__ import annotations

import math

import numpy as np

from mlsys.gpu.simt.values import FLOAT32, binary, cast, value


class Index:
    """`thread_idx`, `block_idx`, `block_dim`, `grid_dim`: triples with .x, .y and .z."""

    def __init__(self, name: str):
        self.name = name

    def __getattr__(self, axis):
        if axis in ("x", "y", "z"):
            raise RuntimeError(f"{self.name}.{axis} has a value only inside a kernel.")
        raise AttributeError(f"{self.name} has x, y and z; {axis!r} is not among them.")


class Word:
    """A function of the kernel language; `method` names what the machine does for it."""

    def __init__(self, name: str, method: str, doc: str, **settings):
        self.name, self.method, self.settings = name, method, settings
        self.__doc__ = doc

    def __call__(self, *_args, **_keywords):
        raise RuntimeError(f"{self.name}() has a meaning only inside a kernel.")

    def __repr__(self):
        return f"<kernel word {self.name}>"


thread_idx, block_idx = Index("thread_idx"), Index("block_idx")
block_dim, grid_dim = Index("block_dim"), Index("grid_dim")

shared = Word("shared", "shared", "shared(shape, dtype): an array that the threads of a block have in common.")
local = Word("local", "local", "local(shape, dtype): an array of each thread's own.")
sync_threads = Word("sync_threads", "sync_threads", "sync_threads(): every thread of the block waits for the others.")

atomic_add = Word("atomic_add", "atomic", "atomic_add(a, index, v): a[index] += v; gives the old value.", op="add")
atomic_max = Word("atomic_max", "atomic", "atomic_max(a, index, v): a[index] = max(a[index], v); the old value.", op="max")
atomic_min = Word("atomic_min", "atomic", "atomic_min(a, index, v): a[index] = min(a[index], v); the old value.", op="min")
atomic_exch = Word("atomic_exch", "atomic", "atomic_exch(a, index, v): a[index] = v; gives the old value.", op="exch")
atomic_cas = Word(
    "atomic_cas", "atomic", "atomic_cas(a, index, expected, v): a[index] = v where it is expected; the old value.",
    op="cas",
)  # fmt: skip

shfl_down = Word("shfl_down", "shuffle", "shfl_down(v, d, width=32): v of the lane d further on.", how="down")
shfl_up = Word("shfl_up", "shuffle", "shfl_up(v, d, width=32): v of the lane d before.", how="up")
shfl_xor = Word("shfl_xor", "shuffle", "shfl_xor(v, m, width=32): v of the lane with number lane ^ m.", how="xor")
shfl = Word("shfl", "shuffle", "shfl(v, lane, width=32): v of that lane.", how="from")

vote_any = Word("vote_any", "vote", "vote_any(c): whether c holds in some lane of the warp.", how="any")
vote_all = Word("vote_all", "vote", "vote_all(c): whether c holds in every active lane of the warp.", how="all")
ballot = Word("ballot", "vote", "ballot(c): uint32 whose bit k tells whether c holds in lane k.", how="ballot")


def _in_float(ufunc):
    """Elementwise in float32, or in the operand's own type where that is a float."""

    def run(x):
        x = value(x)
        return ufunc(x if x.dtype.kind == "f" else x.astype(FLOAT32))

    return run


def _all_of(ufunc):
    pair = binary(ufunc)

    def run(first, *others):
        for other in others:
            first = pair(first, other)
        return value(first)

    return run


FLOAT_FUNCTIONS = "sqrt exp exp2 log log2 sin cos tan tanh floor ceil"
CALLS = {
    abs: lambda x: np.abs(value(x)),
    np.abs: lambda x: np.abs(value(x)),
    math.fabs: _in_float(np.abs),
    min: _all_of(np.fmin),  # as fminf: a number wins over not-a-number
    max: _all_of(np.fmax),
    int: lambda x: cast(x, np.int32),
    float: lambda x: cast(x, np.float32),
    bool: lambda x: cast(x, bool),
    np.fmin: _all_of(np.fmin),
    np.fmax: _all_of(np.fmax),
    np.minimum: _all_of(np.minimum),
    np.maximum: _all_of(np.maximum),
    np.bitwise_count: lambda x: np.bitwise_count(value(x)).astype(np.int32),
}
for _name in FLOAT_FUNCTIONS.split():
    for _module in (math, np):
        if hasattr(_module, _name):  # math.exp2 came with Python 3.11
            CALLS[getattr(_module, _name)] = _in_float(getattr(np, _name))
