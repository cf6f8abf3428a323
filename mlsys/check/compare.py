"""Compare an answer with the truth, by value, and say where they differ.

Only plain data takes part: numbers, text, None, lists, tuples, dicts, sets and NumPy arrays.
A list equals a tuple with the same items, a NumPy scalar equals the Python number, and an
object of any other type is reported as such: its own `==` is never asked.
"""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import numpy as np

LONGEST = 76


def show(value: Any, digits: int = 6) -> str:
    """A value in at most one line, as a message can carry it; floats with so many digits.

    >>> show(np.float32(0.1)), show(np.zeros((4, 300)))
    ('0.1', 'array of shape (4, 300)')
    """
    if isinstance(value, np.ndarray) and value.ndim and value.size > 8:
        return f"array of shape {value.shape}"
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, float):
        text = f"{value:.{digits}g}"
    elif isinstance(value, (list, tuple)) and value:
        text = ", ".join(show(item, digits) for item in value)
        text = f"[{text}]" if isinstance(value, list) else f"({text}{',' if len(value) == 1 else ''})"
    elif isinstance(value, dict):
        text = "{" + ", ".join(f"{key!r}: {show(item, digits)}" for key, item in value.items()) + "}"
    else:
        text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."


def beside(got: Any, want: Any) -> str:
    """'GOT, expected WANT', with more digits where six of them are the same.

    >>> beside(2.5, 3), beside(0.12345678, 0.12345679)
    ('2.5, expected 3', '0.12345678, expected 0.12345679')
    """
    digits = 6 if show(got) != show(want) else 15
    return f"{show(got, digits)}, expected {show(want, digits)}"


def difference(got: Any, want: Any, rtol: float = 1e-9, atol: float = 0.0) -> str | None:
    """None if got equals want within |got - want| <= atol + rtol |want|, else a phrase for 'it gave ...'.

    >>> difference([1, 2.0], (1, 2))
    >>> difference([1, 3], (1, 2))
    '[1, 3], expected (1, 2)'
    >>> difference(np.ones((2, 3)), np.ones((3, 2)))
    'shape (2, 3), expected shape (3, 2)'
    """
    if isinstance(want, np.ndarray) and want.ndim:
        return _array_difference(got, want, rtol, atol)
    if _same(got, want, rtol, atol):
        return None
    return beside(got, want) if _plain(got) else f"an object of type {type(got).__name__}, expected {show(want)}"


def _same(got: Any, want: Any, rtol: float, atol: float) -> bool:
    """Equality by value of plain data, item by item."""
    if isinstance(want, np.ndarray) and want.ndim:
        return _array_difference(got, want, rtol, atol) is None
    got, want = _unwrap(got), _unwrap(want)
    if isinstance(want, (list, tuple)):
        return isinstance(got, (list, tuple)) and len(got) == len(want) and all(
            _same(g, w, rtol, atol) for g, w in zip(got, want))
    if isinstance(want, dict):
        return isinstance(got, dict) and {str(k) for k in got} == {str(k) for k in want} and all(
            _same(got.get(key), item, rtol, atol) for key, item in want.items())
    if isinstance(want, (set, frozenset)):
        return isinstance(got, (set, frozenset)) and {repr(_unwrap(g)) for g in got} == {repr(_unwrap(w)) for w in want}
    if isinstance(want, bool) or want is None or isinstance(want, (str, bytes)):
        return type(got) is type(want) and got == want
    if not isinstance(got, (int, float, complex)) or isinstance(got, bool) or not isinstance(want, Number):
        return False
    if isinstance(want, float) and math.isnan(want):
        return isinstance(got, float) and math.isnan(got)
    if isinstance(want, float) and math.isinf(want):  # a tolerance that is relative to infinity allows everything
        return got == want
    return got == want or abs(got - want) <= atol + rtol * abs(want)


def _array_difference(got: Any, want: np.ndarray, rtol: float, atol: float) -> str | None:
    """As `difference`, for a wanted array: the shape first, then the worst element."""
    if not _plain(got):
        return f"an object of type {type(got).__name__}, expected an array of shape {want.shape}"
    try:
        array = np.asarray(got)
    except ValueError:
        array = np.asarray(None)
    if array.shape != want.shape:
        shape = f"shape {array.shape}" if array.dtype != object else show(got)
        return f"{shape}, expected shape {want.shape}"
    if array.dtype == object or array.dtype.kind in "US":
        return None if array.tolist() == want.tolist() else f"{show(got)}, expected {show(want)}"
    with np.errstate(all="ignore"):
        wide = np.promote_types(np.promote_types(array.dtype, want.dtype), np.float64)
        gap = np.abs(array.astype(wide) - want.astype(wide))
        near = np.isfinite(want) & (gap <= atol + rtol * np.abs(want.astype(wide)))
        good = near | (array == want) | (np.isnan(array) & np.isnan(want))
    if good.all():
        return None
    if want.size <= 8:
        return beside(array, want)
    index = np.unravel_index(int(np.argmax(np.where(good, -1.0, np.nan_to_num(gap, nan=np.inf)))), want.shape)
    place = ", ".join(str(int(i)) for i in index)
    wrong = want.size - int(good.sum())
    return f"{beside(array[index], want[index]).replace(', expected', f' at [{place}], expected')} ({wrong} of {want.size} elements differ)"


def _unwrap(value: Any) -> Any:
    """NumPy scalars and 0-d arrays as Python numbers, arrays as lists; an extended float becomes a float."""
    if isinstance(value, np.longdouble):
        return float(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return value


def _plain(value: Any) -> bool:
    """Whether a value is plain data all the way down."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_plain(item) for item in value)
    if isinstance(value, dict):
        return all(_plain(item) for item in value.values())
    return value is None or isinstance(value, (bool, Number, str, bytes, np.ndarray, np.generic))
