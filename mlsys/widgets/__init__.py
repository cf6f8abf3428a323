"""Things to slide. Each widget is a class in a file of its own; showing it in a cell is one line."""

from .architecture import ArchitectureExplorer
from .attention import AttentionExplorer
from .attention_io import AttentionIOExplorer
from .bowl import BowlExplorer
from .capacity import CapacityExplorer
from .checkpointing import CheckpointExplorer
from .formats import FormatExplorer
from .graph_stepper import GraphStepper
from .indexing import IndexExplorer
from .isoflop import IsoflopExplorer
from .merges import MergesExplorer
from .model_memory import ModelMemory
from .occupancy import OccupancyExplorer
from .roofline import RooflineExplorer
from .sectors import SectorExplorer
from .strides import StrideExplorer
from .tiles import TileExplorer
from .timeline import TimelineExplorer
from .warps import WarpExplorer

__all__ = [
    "ArchitectureExplorer",
    "AttentionExplorer",
    "AttentionIOExplorer",
    "BowlExplorer",
    "CapacityExplorer",
    "CheckpointExplorer",
    "FormatExplorer",
    "GraphStepper",
    "IndexExplorer",
    "IsoflopExplorer",
    "MergesExplorer",
    "ModelMemory",
    "OccupancyExplorer",
    "RooflineExplorer",
    "SectorExplorer",
    "StrideExplorer",
    "TileExplorer",
    "TimelineExplorer",
    "WarpExplorer",
]
