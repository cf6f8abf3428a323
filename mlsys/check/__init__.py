"""Checks that say which mistake was made.

A check calls a function by its name with plain data, gets plain data back and compares by
value. When the answer is wrong it tries the *named mistakes*: if a wrong model gives exactly
this answer, its hint is printed. There are no answers in here, only tools and hints.

Every lesson and problem set uses `function`; `call`, `that`, `close` and `raises` are for properties, `launch` is for kernels.
"""

from .compare import difference, show
from .hints import hint_text
from .kernels import launch
from .run import CheckFailed, call, close, function, raises, that

__all__ = ["CheckFailed", "call", "close", "difference", "function", "hint_text", "launch", "raises", "show", "that"]
