"""Units: numbers as texts and pictures say them, and an estimate beside what was published.

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
    value = float(f"{value:.{digits}g}")  # first, so that 999.9 kB with three digits is 1 MB
    scale, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), PREFIXES[-1])
    return f"{value / scale:.{max(digits, 3)}g} {prefix}{unit}".strip()


def count(value: float) -> str:
    """A number of parameters or tokens with three digits, as papers write it.

    >>> count(72.36e9), count(1.33e12), count(1e14)
    ('72.4B', '1.33T', '100T')
    """
    value = float(f"{value:.3g}")
    scale, letter = next(((s, c) for s, c in ((1e12, "T"), (1e9, "B")) if value >= s), (1e6, "M"))
    return f"{value / scale:g}{letter}"


def number(value: float) -> str:
    """A number with three digits; from 100 on, all that stand before the point.

    >>> number(0.5), number(99.62), number(31_622.8)
    ('0.5', '99.6', '31,623')
    """
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def percent(share: float, form: str = ".0f") -> str:
    """A share in per cent: a whole number, or in another form.

    >>> percent(0.256), percent(0.875, ".3g"), percent(0.003386, ".2g"), percent(0.996, ".2g")
    ('26 %', '87.5 %', '0.34 %', '99.6 %')
    """
    text = f"{100 * share:{form}}"
    return f"{100 * share:.3g} %" if "e+" in text else f"{text} %"  # two digits of 99.6 would be 1e+02


def kib(size_bytes: float) -> str:
    """A size in KiB with at most one decimal.

    >>> kib(1024), kib(1536), kib(167_936)
    ('1', '1.5', '164')
    """
    return f"{round(size_bytes / KIB, 1):g}"


def plural(n: int, word: str) -> str:
    """So many of something.

    >>> plural(1, "warp"), plural(1024, "thread")
    ('1 warp', '1,024 threads')
    """
    return f"{n:,} {word}{'s' * (n != 1)}"


def compare(what: str, ours: float, published: float, unit: str = "") -> str:
    """One line: our estimate, the published value and their ratio.

    >>> print(compare("GPT-3 parameters", ours=174.6e9, published=175e9))
    GPT-3 parameters: ours 174.6 G, published 175 G, ratio 0.998
    """
    if published == 0:
        raise ValueError(f"{what}: the published value is 0, so there is no ratio")
    return f"{what}: ours {si(ours, unit)}, published {si(published, unit)}, ratio {ours / published:.3f}"
