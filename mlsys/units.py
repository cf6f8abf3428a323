"""Units: numbers with their prefix, and an estimate beside what was published.

Byte counts in this course are decimal (1 GB = 1e9 bytes) unless the name says GiB.
Lessons: all.
"""

from __future__ import annotations

KIB, MIB, GIB = 2**10, 2**20, 2**30
PREFIXES = [
    (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"),
    (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"),
]


def si(value: float, unit: str = "", digits: int = 4) -> str:
    """A number with the decimal prefix that suits it.

    >>> si(2 * 4096**3, "FLOP"), si(100_663_296, "B"), si(0)
    ('137.4 GFLOP', '100.7 MB', '0')
    """
    if value == 0:
        return f"0 {unit}".strip()
    scale, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), PREFIXES[-1])
    return f"{value / scale:.{digits}g} {prefix}{unit}".strip()


def compare(what: str, ours: float, published: float, unit: str = "") -> str:
    """One line: our estimate, the published value and their ratio.

    >>> print(compare("GPT-3 parameters", ours=174.6e9, published=175e9))
    GPT-3 parameters: ours 174.6 G, published 175 G, ratio 0.998
    """
    if published == 0:
        raise ValueError(f"{what}: the published value is 0, so there is no ratio")
    return f"{what}: ours {si(ours, unit)}, published {si(published, unit)}, ratio {ours / published:.3f}"
