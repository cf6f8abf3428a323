"""Run a check: call the function, compare, and name the mistake.

What a student sees on failure is the message alone: a `CheckFailed` renders itself in two or
three lines, without the traceback of this file.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from .compare import difference, show
from .hints import hint_text

WIDTH = 88  # of a message, so that JupyterLab does not break it in the middle of a word


class CheckFailed(AssertionError):
    """A check did not pass; the text says what was given, what was expected and, if known, why."""

    def _render_traceback_(self) -> list[str]:
        return [part for line in str(self).splitlines() for part in wrap(line, WIDTH) or [""]]


def function(
    fn: Callable,
    expected: Sequence[tuple[tuple, Any]],
    hints: Mapping[str, Callable | Sequence] | None = None,
    rtol: float = 1e-9,
    atol: float = 0.0,
) -> None:
    """Call `fn` on each case and compare; on a wrong answer name the mistake that explains it.

    expected: pairs of (arguments, wanted result).
    hints: hint name -> the wrong model, either as a function of the same arguments or as the
    list of values that it gives, one for each case (None where it says nothing, an exception class
    where it raises).
    Raises CheckFailed; of several mistakes that give the first wrong answer, the one that explains most cases is named.

    >>> function(lambda n: n * 2, [((3,), 6), ((5,), 10)])
    <lambda>: 2 of 2 visible cases pass.
    """
    name = getattr(fn, "__name__", "your function")
    results = [_call(fn, name, args) for args, _ in expected]
    failing = [i for i, (_, want) in enumerate(expected) if _differs(results[i], want, rtol, atol)]
    if not failing:
        print(f"{name}: {len(expected)} of {len(expected)} visible cases pass.")
        return
    args, want = expected[failing[0]]
    first = results[failing[0]]
    said = first.text if isinstance(first, _Raised) else f"gave {difference(first, want, rtol, atol)}"
    known = _explain(results, expected, failing, hints or {}, rtol, atol)
    raise CheckFailed(f"{name}({_arguments(args)}) {said}." + (f"\nHint: {hint_text(known)}" if known else ""))


def call(fn: Callable, *args: Any) -> Any:
    """fn(*args) on copies of the arguments, for a check that looks at the result itself.

    Raises CheckFailed with one clear sentence if the function is not written yet or fails.

    >>> call(len, [1, 2])
    2
    """
    name = getattr(fn, "__name__", "your function")
    result = _call(fn, name, args)
    if isinstance(result, _Raised):
        raise CheckFailed(f"{name}({_arguments(args)}) {result.text}.")
    return result


def that(condition: bool, message: str, hint: str | None = None) -> None:
    """Raise CheckFailed with the message (and the named hint) unless the condition holds."""
    if not condition:
        raise CheckFailed(message + (f"\nHint: {hint_text(hint)}" if hint else ""))


def close(got: Any, want: Any, what: str, hint: str | None = None, rtol: float = 1e-9, atol: float = 0.0) -> None:
    """Raise CheckFailed unless got equals want; `what` names the quantity in the message."""
    found = difference(got, want, rtol, atol)
    that(found is None, f"{what}: your code gave {found}.", hint)


def raises(fn: Callable, args: tuple, error: type[Exception], hint: str | None = None) -> None:
    """Raise CheckFailed unless fn(*args) raises this error."""
    name = getattr(fn, "__name__", "your function")
    try:
        result = fn(*deepcopy(args))
    except error:
        return
    except NotImplementedError:
        raise CheckFailed(f"{name} is not written yet.") from None
    except Exception as caught:
        raise CheckFailed(f"{name}({_arguments(args)}) {_what(caught)}; a {error.__name__} was expected.") from caught
    that(False, f"{name}({_arguments(args)}) gave {show(result)}; a {error.__name__} was expected.", hint)


@dataclass(frozen=True)
class _Raised:
    """What a call raised instead of giving a result."""

    error: type[Exception]
    text: str


def _call(fn: Callable, name: str, args: tuple) -> Any:
    """fn on its own copies of the arguments; an error of its own is a kind of answer."""
    try:
        return fn(*deepcopy(args))
    except NotImplementedError:
        raise CheckFailed(f"{name} is not written yet.") from None
    except CheckFailed:  # a driver function of the check called something that is not written
        raise
    except Exception as caught:
        return _Raised(type(caught), _what(caught))


def _differs(result: Any, want: Any, rtol: float, atol: float) -> bool:
    return isinstance(result, _Raised) or difference(result, want, rtol, atol) is not None


def _what(caught: Exception) -> str:
    """An error with the line of code that it came from."""
    frames = traceback.extract_tb(caught.__traceback__)
    line = frames[-1].line if frames else ""
    where = f", in the line `{line}`" if line else ""
    said = str(caught).rstrip(".")
    return f"raised {type(caught).__name__}{': ' if said else ''}{said}{where}"


def _arguments(args: tuple) -> str:
    text = ", ".join(show(arg) for arg in args)
    return text if len(text) <= 160 else text[:156] + " ..."


def _explain(results, expected, failing, hints, rtol, atol) -> str | None:
    """The hint whose wrong model tells the most: all failing cases, then as many others as it can."""
    best, known = (False, 0), None
    for hint, model in hints.items():
        hits = [_matches(result, model, i, args, rtol, atol) for i, (result, (args, _)) in enumerate(zip(results, expected))]
        score = (all(hits[i] for i in failing), sum(hits))
        if hits[failing[0]] and score > best:
            best, known = score, hint
    return known


def _matches(result: Any, model: Callable | Sequence, case: int, args: tuple, rtol: float, atol: float) -> bool:
    """Whether the wrong model gives (or raises) in this case what the student's function did."""
    try:
        wrong = model(*deepcopy(args)) if callable(model) else model[case]
    except Exception as caught:
        wrong = type(caught)
    if wrong is None:
        return False
    if isinstance(result, _Raised) or isinstance(wrong, type):
        return isinstance(result, _Raised) and result.error is wrong
    return difference(result, wrong, max(rtol, 1e-9), atol) is None
