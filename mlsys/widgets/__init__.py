"""Things to slide. Each widget is a class in a file of its own; showing it in a cell is one line."""

from .bowl import BowlExplorer
from .capacity import CapacityExplorer
from .checkpointing import CheckpointExplorer
from .graph_stepper import GraphStepper
from .model_memory import ModelMemory
from .strides import StrideExplorer

__all__ = ["BowlExplorer", "CapacityExplorer", "CheckpointExplorer", "GraphStepper", "ModelMemory", "StrideExplorer"]
