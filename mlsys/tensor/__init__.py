"""Tensors as memory: where each element lies, and which cache lines a walk over them needs."""

from .cache import fetches, lines_touched
from .layout import Layout, layout_of, offsets

__all__ = ["Layout", "fetches", "layout_of", "lines_touched", "offsets"]
