"""Number formats, bit by bit: what fp16, bf16, fp8, fp6, fp4 and block formats can hold, and how values get there."""

from .blocks import Blocks, mx, nvfp4
from .codec import bit_fields, decode, encode, neighbours, rounded
from .formats import FORMATS, SPECIALS, Format, find

__all__ = [
    "Blocks", "FORMATS", "Format", "SPECIALS", "bit_fields", "decode", "encode", "find", "mx", "neighbours", "nvfp4", "rounded",
]
