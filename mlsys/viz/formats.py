"""Pictures of number formats: where their numbers lie, when a running sum stops, what a bit buys.

Here too is `running_sum`, a sum that is rounded after every addition, as an accumulator of that format would hold it.
Left out: real tensor cores add several products at once before they round, so their sums stop later than these.
Lessons: tensor cores and number formats.
"""

from __future__ import annotations

import math

import numpy as np

from ..dtypes import Format, decode, find, rounded
from ..dtypes.codec import ROUNDINGS
from .style import COLOUR

INK = "#222222"


def running_sum(
    addend: float, steps: int, name: str | Format, rounding: str = "nearest", rng: np.random.Generator | None = None
) -> np.ndarray:
    """The sum after each of `steps` additions of one positive number, rounded to the format every time.

    The addend is rounded to the format first. What is too large saturates in 8 bits and fewer, and is infinite above.
    Raises ValueError for an addend that is not positive, and for stochastic rounding without an rng.

    >>> running_sum(1, 300, "bf16")[[0, 254, 255, 299]].tolist()
    [1.0, 255.0, 256.0, 256.0]
    """
    fmt = find(name)
    if not 0 < addend < math.inf:
        raise ValueError(f"addend={addend} is no positive number")
    if rounding not in ROUNDINGS:
        raise ValueError(f"rounding={rounding!r}: choose one of {', '.join(ROUNDINGS)}")
    if rounding == "stochastic" and rng is None:
        raise ValueError('rounding="stochastic" draws random numbers: hand in rng=np.random.default_rng(seed)')
    draws = rng.random(steps).tolist() if rounding == "stochastic" else ()
    stored, largest = float(rounded(addend, fmt)), fmt.max
    total, sums = 0.0, []
    for step in range(steps):
        before, total = total, total + stored
        spacing = 2.0 ** (max(math.frexp(total)[1] - 1, fmt.min_exponent) - fmt.mantissa_bits)
        units = total / spacing
        total = spacing * (round(units) if rounding == "nearest" else math.floor(units + draws[step]) if draws else math.floor(units))
        if total > largest:
            total = largest if fmt.bits <= 8 or rounding == "truncate" else math.inf
        if total == math.inf or (total == before and not draws):
            return np.array(sums + [total] * (steps - step))  # nothing changes any more
        sums.append(total)
    return np.array(sums)


def chunked_sum(
    addend: float, steps: int, chunk: int, name: str | Format, rounding: str = "nearest", rng: np.random.Generator | None = None
) -> np.ndarray:
    """As `running_sum`, with a fresh sum after each `chunk` additions; the sums of whole chunks are added exactly.

    >>> float(chunked_sum(1, 4096, 64, "bf16")[-1])
    4096.0
    """
    if chunk < 1:
        raise ValueError(f"chunk={chunk} is less than one addition")
    rows = 1 if rounding != "stochastic" else -(-steps // chunk)
    inner = np.array([running_sum(addend, chunk, name, rounding, rng) for _ in range(rows)])
    inner = np.broadcast_to(inner, (-(-steps // chunk), chunk))
    start = np.concatenate([[0.0], np.cumsum(inner[:, -1])[:-1]])
    return (start[:, None] + inner).ravel()[:steps]


def positive_numbers(name: str | Format, low: float, high: float) -> np.ndarray:
    """All numbers of a format of at most 16 bits that lie in low..high, both at least 0.

    >>> positive_numbers("e2m1", 0, 8).tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """
    fmt = find(name)
    if fmt.bits > 16:
        raise ValueError(f"{fmt.name} has too many numbers to list")
    values = decode(np.arange(fmt.max_code + 1), fmt).astype(float)
    return values[(values >= low) & (values <= high)]


def number_rows(names, low: float, high: float, title: str, ax=None):
    """One row a format, a stroke for each of its numbers in low..high."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(7, 0.5 * len(names) + 1.3))[1]
    for row, name in enumerate(names):
        values = positive_numbers(name, low, high)
        ax.vlines(values, row - 0.3, row + 0.3, color=INK, linewidth=1)
        ax.annotate(f"{len(values)} numbers", (high, row), xytext=(8, 0), textcoords="offset points", va="center")
    ax.set(xlim=(low - 0.01 * (high - low), high * 1.005), ylim=(len(names) - 0.4, -0.6), xlabel="value", title=title)
    ax.set_yticks(range(len(names)), names)
    ax.grid(False)
    return ax


def sum_drift(sums, exact: float, title: str, ax=None):
    """Running sums against the number of additions. sums: {name: sum after each}; exact: what each addition should add."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    count = np.arange(1, max(len(s) for s in sums.values()) + 1)
    ax.plot(count, exact * count, ":", color=INK, zorder=5)
    early = len(count) ** 0.3
    ax.annotate("dotted: exact", (early, exact * early), xytext=(-14, 14), textcoords="offset points", ha="right")
    styles = (("-", "compute"), ("--", "memory"), ("-.", "limiter"), ((0, (6, 1, 1, 1)), "activations"))
    for (name, values), (dash, colour) in zip(sums.items(), styles):
        ax.plot(count[: len(values)], values, linestyle=dash, color=COLOUR[colour])
        ax.annotate(f"{name}: {values[-1]:,.6g}", (len(values), values[-1]), xytext=(6, 0), textcoords="offset points", va="center")
    ax.set(xscale="log", yscale="log", xlabel="additions (log)", ylabel="running sum (log)", title=title)
    return ax


def bits_against_snr(points, title: str, ax=None):
    """Signal-to-noise ratio against bits per number, scales counted. points: {name: (bits, SNR in dB)}."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots()[1]
    for name, (bits, snr) in points.items():
        blocks = "block" in name or name.startswith(("MX", "NV"))
        ax.plot(bits, snr, "D" if blocks else "o", color=COLOUR["compute" if blocks else "idle"], markeredgecolor=INK, markersize=8)
        ax.annotate(name, (bits, snr), xytext=(8, 0), textcoords="offset points", va="center")
    right = max(bits for bits, _ in points.values())
    ax.set(xlabel="bits per number, scales counted", ylabel="signal to noise, dB", title=title, xlim=(3.7, right + 1.6))
    ax.margins(y=0.12)
    return ax
