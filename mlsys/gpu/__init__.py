"""Inside a GPU: what fits on a multiprocessor, how a warp's accesses become traffic, and what bounds the time."""

from .banks import SharedTraffic, conflicts, passes_per_request
from .cache import Cache, Misses, hits, miss_curve, misses, stack_distances
from .coalescing import Traffic, coalesce, units_per_request
from .occupancy import Launch, Occupancy, fit, largest_dynamic_smem, suggest_block
from .roofline import Work, attainable_flops, bandwidths, bounds_s, limiter

__all__ = [
    "Cache", "Launch", "Misses", "Occupancy", "SharedTraffic", "Traffic", "Work", "attainable_flops", "bandwidths", "bounds_s",
    "coalesce", "conflicts", "fit", "hits", "largest_dynamic_smem", "limiter", "miss_curve", "misses", "passes_per_request",
    "stack_distances", "suggest_block", "units_per_request",
]
