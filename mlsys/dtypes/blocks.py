"""Block formats: few bits for each number, and one scale for a block of neighbours.

MX (OCP microscaling 1.0): 32 elements share a power of two (e8m0). NVFP4: 16 elements of e2m1 share an e4m3fn number,
and the whole tensor a float32 one. A power of two wastes up to a factor of 2 of the element's range; a scale with
a mantissa fits closer but rounds itself.
Simplified: blocks lie along the last axis, and the last block is filled up with zeros. Elements that leave
the range of their block saturate, as the MX text prescribes.
Lessons: tensor cores and number formats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .codec import decode, encode
from .formats import find

MX_BLOCK, NVFP4_BLOCK = 32, 16


@dataclass(frozen=True)
class Blocks:
    """A tensor in a block format.

    codes (..., blocks, block size) of `element`; scales (..., blocks), codes of `scale`; tensor_scale, one float32;
    length: elements of the last axis before it was filled up.
    """

    codes: np.ndarray
    scales: np.ndarray
    element: str
    scale: str
    length: int
    tensor_scale: float = 1.0

    def values(self) -> np.ndarray:
        """What the tensor stands for, as float32, in the shape that it had."""
        wide = decode(self.codes, self.element).astype(np.float64) * decode(self.scales, self.scale)[..., None]
        flat = wide.reshape(*wide.shape[:-2], -1)[..., : self.length]
        return (flat * self.tensor_scale).astype(np.float32)

    @property
    def size_bits(self) -> int:
        """Bits of all codes and scales, the filling included and the one tensor scale left out."""
        return self.codes.size * find(self.element).bits + self.scales.size * find(self.scale).bits


def mx(x, element: str = "e4m3fn", rounding: str = "nearest", rng: np.random.Generator | None = None) -> Blocks:
    """x in an MX format: each block of 32 is divided by 2**(floor(log2(largest)) - the element's largest exponent).

    A block whose largest number has more mantissa than the element can hold at that exponent saturates: with e4m3fn,
    whatever lies between 448 and 512 times the scale becomes 448.

    >>> t = mx(np.linspace(-3, 3, 32), "e2m1")
    >>> t.scales.tolist(), t.values()[-3:].tolist()
    ([126], [3.0, 3.0, 3.0])
    """
    x = _in_blocks(x, MX_BLOCK)
    largest = np.abs(x.values).max(-1)
    usable = np.isfinite(largest) & (largest > 0)
    exponent = np.frexp(np.where(usable, largest, 1.0))[1] - 1 - find(element).max_exponent
    scales = np.where(usable, np.clip(exponent, -127, 127) + 127, np.where(largest == 0, 0, 255)).astype(np.uint8)
    return _divided(x, scales, element, "e8m0", 1.0, rounding, rng)


def nvfp4(x, rounding: str = "nearest", rng: np.random.Generator | None = None) -> Blocks:
    """x in NVFP4: the tensor's scale maps its largest number to 448 x 6; each block's, its largest number to 6.

    Raises ValueError for infinities and NaN: they leave the tensor without a scale.

    >>> t = nvfp4(np.arange(16.0))
    >>> t.values().tolist()
    [0.0, 1.25, 2.5, 2.5, 3.75, 5.0, 5.0, 7.5, 7.5, 10.0, 10.0, 10.0, 10.0, 15.0, 15.0, 15.0]
    """
    x = _in_blocks(x, NVFP4_BLOCK)
    largest = np.abs(x.values).max(-1)
    if not np.isfinite(largest).all():
        raise ValueError(f"the largest number of a block is {largest.max()}: NVFP4 scales finite numbers")
    element, scale = find("e2m1"), find("e4m3fn")
    whole = float(np.float32(largest.max(initial=0.0) / (element.max * scale.max))) or 1.0
    scales = encode(largest / element.max / whole, scale, saturate=True)
    return _divided(x, scales, "e2m1", "e4m3fn", whole, rounding, rng)


@dataclass(frozen=True)
class _Padded:
    values: np.ndarray
    length: int


def _in_blocks(x, block: int) -> _Padded:
    x = np.asarray(x, np.float64)
    if x.ndim == 0 or x.size == 0:
        raise ValueError(f"a tensor of shape {x.shape} has no last axis to cut into blocks of {block}")
    length = x.shape[-1]
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -length % block)])
    return _Padded(x.reshape(*x.shape[:-1], -1, block), length)


def _divided(x: _Padded, scales, element, scale, whole, rounding, rng) -> Blocks:
    divisor = decode(scales, scale).astype(np.float64)[..., None] * whole
    ratio = np.divide(x.values, divisor, out=np.zeros_like(x.values), where=(divisor != 0) & ~np.isnan(divisor))
    return Blocks(encode(ratio, element, True, rounding, rng), scales, element, scale, x.length, whole)
