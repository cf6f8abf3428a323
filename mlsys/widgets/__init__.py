"""Things to slide. Each widget is a class in a file of its own; showing it in a cell is one line."""

from .architecture import ArchitectureExplorer
from .attention import AttentionExplorer
from .bowl import BowlExplorer
from .capacity import CapacityExplorer
from .checkpointing import CheckpointExplorer
from .graph_stepper import GraphStepper
from .isoflop import IsoflopExplorer
from .merges import MergesExplorer
from .model_memory import ModelMemory
from .strides import StrideExplorer

__all__ = [
    "ArchitectureExplorer",
    "AttentionExplorer",
    "BowlExplorer",
    "CapacityExplorer",
    "CheckpointExplorer",
    "GraphStepper",
    "IsoflopExplorer",
    "MergesExplorer",
    "ModelMemory",
    "StrideExplorer",
]
