"""Data sheets: each number about real hardware stands once, with where it is from."""

from .accelerators import A100_80GB, ACCELERATORS, H100_SXM, Accelerator
from .sm import SM, SMS, sm

__all__ = ["A100_80GB", "ACCELERATORS", "Accelerator", "H100_SXM", "SM", "SMS", "sm"]
