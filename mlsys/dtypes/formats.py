"""Number formats: a sign, an exponent and a mantissa, and which codes are kept for infinity and NaN.

A code with exponent field E and mantissa field M stands for

    (1 + M / 2**m) * 2**(E - bias)      if E > 0  (normal)
    (M / 2**m) * 2**(1 - bias)          if E = 0  (subnormal: the same spacing as the lowest normals)

Formats differ in four numbers and in the codes at the top that are no numbers. That is all that a
`Format` says; `encode` and `decode` know no format by name.
Left out: what a chip does with subnormals. Some flush them to zero, so small values here are kept
more exactly than there.
Lessons: tensor cores and number formats, numerical stability.
"""

from __future__ import annotations

from dataclasses import dataclass

SPECIALS = {
    "ieee": "The top exponent is kept: mantissa 0 is infinity, the rest is NaN.",
    "nan": "Only the top code is kept: it is NaN. There is no infinity.",
    "fnuz": "Only the code of -0 is kept: it is NaN. There is neither infinity nor a negative zero.",
    "none": "Every code is a number.",
}


@dataclass(frozen=True)
class Format:
    """A floating point format. `specials` is a key of SPECIALS.

    scale_only: no sign, no zero and no subnormals, so that E = 0 is a power of two like any other (e8m0).

    >>> e4m3 = find("e4m3fn")
    >>> e4m3.max, e4m3.smallest_normal, e4m3.smallest_subnormal, e4m3.eps
    (448.0, 0.015625, 0.001953125, 0.125)
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str = "ieee"
    scale_only: bool = False

    @property
    def bits(self) -> int:
        """Width of a code."""
        return (not self.scale_only) + self.exponent_bits + self.mantissa_bits

    @property
    def sign_code(self) -> int:
        """The code of the sign bit; 0 where there is none."""
        return 0 if self.scale_only else 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number; subnormals are spaced as if they had it too."""
        return -self.bias if self.scale_only else 1 - self.bias

    @property
    def max_code(self) -> int:
        """Code of the largest finite number."""
        top = (1 << (self.exponent_bits + self.mantissa_bits)) - 1
        return {"ieee": top - (1 << self.mantissa_bits), "nan": top - 1}.get(self.specials, top)

    @property
    def max_exponent(self) -> int:
        """Exponent of the largest finite number."""
        return (self.max_code >> self.mantissa_bits) - self.bias

    @property
    def max(self) -> float:
        """The largest finite number."""
        fraction = self.max_code & ((1 << self.mantissa_bits) - 1)
        return 2.0**self.max_exponent * (1 + fraction / 2**self.mantissa_bits)

    @property
    def smallest_normal(self) -> float:
        """The smallest number with full precision."""
        return 2.0**self.min_exponent

    @property
    def smallest_subnormal(self) -> float:
        """The smallest number above zero."""
        return self.smallest_normal if self.scale_only else 2.0 ** (self.min_exponent - self.mantissa_bits)

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number. A value that is rounded to nearest is off by at most eps/2 of itself."""
        return 2.0**-self.mantissa_bits

    @property
    def has_inf(self) -> bool:
        """Whether a code stands for infinity."""
        return self.specials == "ieee"

    @property
    def has_nan(self) -> bool:
        """Whether a code stands for NaN."""
        return self.specials != "none"


# name, exponent bits, mantissa bits, bias, specials. Layouts: IEEE 754 (fp16, fp32), the NVIDIA A100
# white paper (bf16, tf32), OCP 8-bit floating point 1.0 and OCP microscaling formats 1.0 (the rest);
# limits of all but tf32 equal those that ml_dtypes 0.6.0 prints.
FORMATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("fp32", 8, 23, 127),
        Format("tf32", 8, 10, 127),
        Format("bf16", 8, 7, 127),
        Format("fp16", 5, 10, 15),
        Format("e5m2", 5, 2, 15),
        Format("e4m3fn", 4, 3, 7, "nan"),
        Format("e3m2", 3, 2, 3, "none"),
        Format("e2m3", 2, 3, 1, "none"),
        Format("e2m1", 2, 1, 1, "none"),
        Format("e8m0", 8, 0, 127, "nan", scale_only=True),
        Format("e4m3", 4, 3, 7),
        Format("e3m4", 3, 4, 3),
        Format("e4m3fnuz", 4, 3, 8, "fnuz"),
        Format("e5m2fnuz", 5, 2, 16, "fnuz"),
        Format("e4m3b11fnuz", 4, 3, 11, "fnuz"),
    )
}
OTHER_NAMES = {
    "float32": "fp32", "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float8_e8m0fnu": "e8m0", "e8m0fnu": "e8m0",
    "e2m1fn": "e2m1", "e2m3fn": "e2m3", "e3m2fn": "e3m2", "fp4": "e2m1",
}


def find(name: str | Format) -> Format:
    """The format of that name; the names of NumPy, PyTorch and ml_dtypes are known too.

    `e4m3` is the format with infinities (largest number 240), `e4m3fn` the one that GPUs compute in (448).

    >>> find("float8_e4m3fn").name, find("bfloat16").name, find("e4m3").max
    ('e4m3fn', 'bf16', 240.0)
    """
    if isinstance(name, Format):
        return name
    short = OTHER_NAMES.get(name, name)
    for start in ("float8_", "float6_", "float4_"):
        short = short.removeprefix(start)
    short = OTHER_NAMES.get(short, short)
    if short not in FORMATS:
        raise ValueError(f"{name!r} is no known format; known are {', '.join(FORMATS)}")
    return FORMATS[short]
