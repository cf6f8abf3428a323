"""Data sheets: each number about real hardware stands once, with where it is from."""

from .accelerators import A100_80GB, H100_SXM, Accelerator

__all__ = ["A100_80GB", "Accelerator", "H100_SXM"]
