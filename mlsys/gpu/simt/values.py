"""Numbers in a kernel behave as in CUDA C: 32 bits wide, wrapping around, float wins over int.

A literal or an argument that is a Python int counts as int32 (int64 where it does not fit), a
Python float as float32. `int32 + float32` is float32 (NumPy alone would say float64), small
integers and bools widen to int32 first, and `/` of integers gives float32.
Different from C: `//` and `%` round down as in Python, not towards zero (the same for operands
that are not negative).
Lessons: CUDA programming model.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mlsys.gpu.simt.errors import KernelError, UnsetRead

INT32, INT64, FLOAT32 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.float32)
BOOL = np.dtype(bool)
PLAIN = {np.dtype(t) for t in (np.int32, np.int64, np.float32, np.float64)}  # NumPy's own rules are right for these


@cache
def common(a: np.dtype, b: np.dtype) -> np.dtype:
    """The type in which two operands meet.

    >>> common(np.dtype("int64"), np.dtype("float32")), common(np.dtype("uint8"), np.dtype("bool"))
    (dtype('float32'), dtype('int32'))
    """
    floats = [t for t in (a, b) if t.kind == "f"]
    if floats:
        return max(floats, key=lambda t: t.itemsize)
    a, b = (t if t.itemsize >= 4 else INT32 for t in (a, b))
    return max((a, b), key=lambda t: (t.itemsize, t.kind == "u"))


def value(x) -> np.ndarray:
    """Any number as a (1, 1) array of a kernel type; arrays of lanes pass."""
    kind = x.__class__
    if kind is np.ndarray:
        return x
    if kind is int:
        return np.array([[x]], INT32 if -(2**31) <= x < 2**31 else INT64)
    if kind is float:
        return np.array([[x]], FLOAT32)
    if kind is bool or isinstance(x, np.bool_ | np.integer | np.floating):
        return np.array([[x]])
    if x is None:
        raise UnsetRead("no value here: the function that was called has returned none.")
    raise KernelError(f"a {kind.__name__} stands where a number is needed.")


def meet(a, b) -> tuple:
    """Both operands in their common type, numbers of Python included."""
    if b.__class__ in (int, float) and a.__class__ is np.ndarray and a.dtype in PLAIN:
        if b.__class__ is int and -(2**31) <= b < 2**31:
            return a, b
        if b.__class__ is float and a.dtype.kind == "f":
            return a, b
    if a.__class__ in (int, float) and b.__class__ is np.ndarray:
        b, a = meet(b, a)
        return a, b
    a, b = value(a), value(b)
    kind = common(a.dtype, b.dtype)
    return a.astype(kind, copy=False), b.astype(kind, copy=False)


def binary(ufunc):
    """A ufunc of two operands under the kernel's rules."""

    def run(a, b):
        if not (a.__class__ is np.ndarray and b.__class__ is np.ndarray and a.dtype is b.dtype and a.dtype is not BOOL):
            a, b = meet(a, b)
        return ufunc(a, b)

    return run


def _divide(a, b):
    a, b = value(a), value(b)
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        a, b = a.astype(np.float32), b.astype(np.float32)
    else:
        a, b = meet(a, b)
    return a / b


def _bitwise(ufunc):
    arithmetic = binary(ufunc)

    def run(a, b):
        a, b = value(a), value(b)
        for x in (a, b):
            if x.dtype.kind == "f":
                raise KernelError(f"{ufunc.__name__} works on integers; an operand is {x.dtype}.")
        return ufunc(a, b) if a.dtype == b.dtype == bool else arithmetic(a, b)

    return run


def _power(a, b):
    if b.__class__ is int and b == 2:
        return OPERATORS["Mult"](a, a)
    a, b = meet(value(a), value(b))
    if a.dtype.kind in "iu" and (b < 0).any():
        raise KernelError("an integer to a negative power is no integer; make the base a float.")
    return a**b


def _negative(x):
    x = value(x)
    return -(x.astype(INT32) if x.dtype.itemsize < 4 and x.dtype.kind != "f" else x)


def _invert(x):
    x = value(x)
    return ~(x.astype(INT32) if x.dtype == bool else x)


def truth(x) -> np.ndarray:
    """A condition as bools."""
    if x.__class__ is np.ndarray and x.dtype is BOOL:
        return x
    x = value(x)
    return x if x.dtype == bool else x != 0


def cast(x, kind) -> np.ndarray:
    """Conversion as in C: a float loses its fraction, an integer its high bits.

    >>> cast(3.9, "int32"), cast(300, "uint8")
    (array([[3]], dtype=int32), array([[44]], dtype=uint8))
    """
    return value(x).astype(kind)


# Names that the rewritten source calls, from the names of Python's syntax tree.
OPERATORS = {
    "Add": binary(np.add), "Sub": binary(np.subtract), "Mult": binary(np.multiply),
    "Div": _divide, "Pow": _power,
    "LShift": _bitwise(np.left_shift), "RShift": _bitwise(np.right_shift),
    "BitAnd": _bitwise(np.bitwise_and), "BitOr": _bitwise(np.bitwise_or), "BitXor": _bitwise(np.bitwise_xor),
    "Lt": binary(np.less), "LtE": binary(np.less_equal), "Gt": binary(np.greater), "GtE": binary(np.greater_equal),
    "Eq": binary(np.equal), "NotEq": binary(np.not_equal),
    "USub": _negative, "UAdd": value, "Invert": _invert, "Not": lambda x: ~truth(x),
    "And": lambda a, b: truth(a) & truth(b), "Or": lambda a, b: truth(a) | truth(b),
}  # fmt: skip
