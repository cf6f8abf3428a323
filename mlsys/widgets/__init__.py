"""Things to slide. Each widget is a class in a file of its own; showing it in a cell is one line."""

from .model_memory import ModelMemory
from .strides import StrideExplorer

__all__ = ["ModelMemory", "StrideExplorer"]
