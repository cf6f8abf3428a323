"""The roofline explorer: a kernel, a chip, a precision, and which ceiling the kernel meets first.

Above: the roof of each level whose bandwidth is known, and the kernel's FLOP per byte at each level for which it is
known. Below: seconds that each part takes at its peak rate; the longest is what bounds the kernel.
Left out: start-up, waves that are not full, latency, peaks that nobody reaches. So every time shown is too short and
every rate too high. A matrix product is taken to read each matrix from memory once, which takes a large L2 or good tiles.
Lessons: memory hierarchy and roofline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..gpu.roofline import Work, bandwidths, product
from ..specs.accelerators import ACCELERATORS, Accelerator
from ..specs.models import LLAMA3_8B
from ..transformer.counts import kv_cache_bytes, parameters
from ..units import number, percent, si
from ..viz.picture import INK, Axes, Picture, bars
from ..viz.style import COLOUR
from .base import Explorer, choice, log_slider, stops

CHIPS = ("H100 SXM", "A100 80GB SXM", "V100 SXM2", "T4", "L4", "H200 SXM", "MI300X", "TPU v5e")
ITEMSIZE = {"bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "tf32": 4, "fp32": 4}
KERNELS = ("decode step of Llama-3 8B", "matrix product", "any FLOP per byte")
X, Y = (0.01, 1e5), (1e9, 1e16)  # of the plot: FLOP per byte, FLOP/s
GRID = np.geomspace(*X, 141)
DASH = {"memory": "", "L2": ":", "shared memory": "--"}
DASH_NAME = {"memory": "solid", "L2": "dotted", "shared memory": "dashed"}
LETTER = {"memory": "M", "L2": "L2", "shared memory": "S"}
HATCH = {"compute": "", "memory": "/", "L2": "-", "shared memory": "x"}
N, QUERY_WIDTH = parameters(LLAMA3_8B), LLAMA3_8B.layers * LLAMA3_8B.q_width
POWERS = [(f"{2**e:,}", 2**e) for e in range(15)]
CONTEXTS = [("none", 0), *((f"{2**e:,}", 2**e) for e in range(8, 18))]


@dataclass(frozen=True)
class Placed:
    """A kernel on a chip: its work, FLOP per byte at each level, bytes that have to lie in memory, and what decides."""

    chip: Accelerator
    precision: str
    work: Work
    intensities: dict[str, float]
    resident_bytes: float = 0

    @property
    def parts_s(self) -> dict[str, float]:
        """Seconds of the arithmetic and of each level's traffic, each at its peak."""
        bw = bandwidths(self.chip)
        traffic = {level: self.work.flops / (intensity * bw[level]) for level, intensity in self.intensities.items()}
        return {"compute": self.work.flops / self.chip.peak(self.precision), **traffic}

    @property
    def limiter(self) -> str:
        return max(self.parts_s, key=self.parts_s.get)

    @property
    def time_s(self) -> float:
        """The longest part: all others hide behind it."""
        return max(self.parts_s.values())

    @property
    def fits(self) -> bool:
        return self.resident_bytes <= self.chip.mem_bytes

    @property
    def share(self) -> float:
        """Of the chip's peak, at most."""
        return self.parts_s["compute"] / self.time_s


class RooflineExplorer(Explorer):
    """A movable kernel under the roofs of a chip."""

    settled = True

    def __init__(self):
        self.chip = choice("chip", CHIPS)
        self.precision = choice("precision", precisions(ACCELERATORS["H100 SXM"]), "bf16")
        self.kernel = choice("kernel", KERNELS)
        self.batch = stops("sequences", POWERS[:13], 1)
        self.context = stops("tokens in each cache", CONTEXTS, 0)
        self.m = stops("m", POWERS, 128)
        self.n = stops("n = k", POWERS[5:], 8192)
        self.tile = stops("tile, registers", POWERS[:8], 64)
        self.intensity = log_slider("FLOP per byte", 10, -1.5, 4.5, 0.05)
        self.level = choice("bytes come from", list(bandwidths(ACCELERATORS["H100 SXM"])))
        self.chip.observe(self.offer, names="value")  # before the picture is drawn
        first = [self.chip, self.precision, self.kernel, self.batch, self.context]
        super().__init__([*first, self.m, self.n, self.tile, self.intensity, self.level])

    def offer(self, _change=None) -> None:
        """Offer what the chosen chip has, and stay with the choice where it can be kept."""
        chip, self.settled = ACCELERATORS[self.chip.value], False
        for control, options in ((self.precision, precisions(chip)), (self.level, tuple(bandwidths(chip)))):
            kept = control.value if control.value in options else options[0]
            control.options, control.value = options, kept
        self.settled = True

    def update(self, _change=None) -> None:
        """Hide what the chosen kernel does not ask for, then draw; not while one change of chip changes other controls."""
        if not self.settled:
            return
        groups = ((self.batch, self.context), (self.m, self.n, self.tile), (self.intensity, self.level))
        for kernel, controls in zip(KERNELS, groups):
            for control in controls:
                control.disabled = kernel != self.kernel.value
                control.layout.display = "none" if control.disabled else None
        super().update()

    def model(self) -> Placed:
        chip, precision = ACCELERATORS[self.chip.value], self.precision.value
        itemsize = ITEMSIZE[precision]
        if self.kernel.value == KERNELS[0]:
            work = decode(self.batch.value, self.context.value, itemsize)
            found = {"memory": work.intensity}
        elif self.kernel.value == KERNELS[1]:
            work = product(self.m.value, self.n.value, self.n.value, itemsize)
            found = {"memory": work.intensity}
            if "shared memory" in bandwidths(chip):
                found["shared memory"] = min(self.tile.value, self.m.value) / itemsize
        else:
            found = {self.level.value: self.intensity.value}
            work = Work(1e12, 1e12 / self.intensity.value)
        return Placed(chip, precision, work, found, 0 if self.kernel.value == KERNELS[2] else work.bytes_moved)

    def sentence(self) -> str:
        placed = self.model()
        rate, least = placed.work.flops / placed.time_s, si(placed.time_s, "s", 3)
        per_byte = ", ".join(f"{number(i)} FLOP for each byte from {level}" for level, i in placed.intensities.items())
        text = (f"{self.kernel.value} on {placed.chip.name} in {placed.precision}: {per_byte}. {finding(placed)}. "
                f"At most {si(rate, 'FLOP/s', 3)}")
        if self.kernel.value == KERNELS[0]:
            tokens = f"{self.batch.value / placed.time_s:,.0f} tokens per second at most"
            return f"{text}; a step takes at least {least}, {tokens}."
        if self.kernel.value == KERNELS[1]:
            return f"{text}; it takes at least {least}."
        return f"{text}; 1 TFLOP takes at least {least}."

    def draw(self) -> Picture:
        placed = self.model()
        picture = Picture(740, 505, f"Roofline. {self.sentence()}")
        picture.text(16, 20, finding(placed), 14, bold=True)
        draw_roofs(picture, (62, 58, 430, 280), placed)
        parts = placed.parts_s
        picture.text(16, 398, "time of each part at its peak rate: the longest decides", 12)
        rows = [(name, s, si(s, "s", 3) + ", decides" * (name == placed.limiter)) for name, s in parts.items()]
        fill = {name: COLOUR["compute" if name == "compute" else "memory"] for name in parts}
        bars(picture, (16, 406, 708, 30 * len(rows)), rows, placed.time_s, fill.get, HATCH.get)
        return picture


def precisions(chip: Accelerator) -> tuple[str, ...]:
    """Precisions in which the chip's peak is known."""
    return tuple(name for name in ITEMSIZE if getattr(chip, f"peak_{name}"))


def decode(batch: int, context: int, itemsize: float) -> Work:
    """One token for each sequence: 2 FLOPs a weight, 4 a cached token, layer and query element; weights read once for all.

    >>> decode(1, 0, 2).bytes_moved, round(decode(64, 4096, 2).intensity, 1)
    (16060522496, 23.1)
    """
    flops = batch * (2 * N + 4 * QUERY_WIDTH * context)
    return Work(flops, itemsize * N + (kv_cache_bytes(LLAMA3_8B, context, batch, itemsize) if context else 0))


def finding(placed: Placed) -> str:
    """The title: what decides, and by how much; or that the chip cannot hold it."""
    if not placed.fits:
        needed, there = si(placed.resident_bytes, "B", 3), si(placed.chip.mem_bytes, "B", 3)
        return f"This does not fit: it needs {needed}, and {placed.chip.name} has {there}"
    parts = placed.parts_s
    others = sorted(s for name, s in parts.items() if name != placed.limiter)
    if placed.limiter == "compute":
        return f"Compute bounds it: the slowest traffic takes {percent(others[-1] / placed.time_s, '.2g')} of its time"
    name = placed.limiter if placed.limiter == "L2" else placed.limiter.capitalize()
    return f"{name} bounds it: at most {percent(placed.share, '.2g')} of the {si(placed.chip.peak(placed.precision), 'FLOP/s', 4)} peak"


def draw_roofs(picture: Picture, box, placed: Placed) -> None:
    """Roofs of all known levels, the ridge, and the kernel on each level's roof; the one that binds is red."""
    marks = {"xticks": [0.01, 1, 100, 1e4], "yticks": [1e9, 1e11, 1e13, 1e15]}
    axes = Axes(picture, box, X, Y, "FLOP per byte from the level (log)", "FLOP/s (log)", "xy", **marks)
    bw, peak = bandwidths(placed.chip), placed.chip.peak(placed.precision)
    ridge = peak / bw["memory"]
    for colour, width in ((COLOUR["memory"], 7), (INK, 1.6)):
        axes.plot([X[0], ridge], [X[0] * bw["memory"], peak], colour, width)
    for colour, width in ((COLOUR["compute"], 7), (INK, 1.6)):
        axes.plot([ridge, X[1]], [peak, peak], colour, width)
    for level, speed in list(bw.items())[1:]:
        axes.plot([X[0], peak / speed], [X[0] * speed, peak], INK, 1.6, DASH[level])
    axes.plot([ridge, ridge], [Y[0], peak], INK, 1, ":")
    lines = [f"peak {si(peak, 'FLOP/s', 4)}", f"ridge {number(ridge)} FLOP/B", "", "roofs"]
    lines += [f"{DASH_NAME[level]}: {level}, {si(speed, 'B/s', 3)}" for level, speed in bw.items()]
    lines += ["", "circles: FLOP for each byte; red: it binds"]
    lines += [f"{LETTER[level]}: {number(intensity)} from {level}" for level, intensity in placed.intensities.items()]
    for line, text in enumerate(lines):
        picture.text(box[0] + box[2] + 12, box[1] + 12 + 15 * line, text, 11)
    for level, intensity in placed.intensities.items():
        x = min(max(intensity, X[0]), X[1])
        y = min(max(min(peak, intensity * bw[level]), Y[0]), Y[1])
        binds = placed.limiter == level or placed.limiter == "compute" and level == list(placed.intensities)[0]
        axes.plot([x, x], [Y[0], y], INK, 1, "-.")
        axes.dot(x, y, COLOUR["limiter"] if binds else COLOUR["idle"], 6.5, INK)
        shared = level == "shared memory"
        place = axes.x(x) - 5 if shared else axes.x(x) + 5, box[1] + box[3] - (20 if shared else 6)
        picture.text(*place, LETTER[level], 11, "end" if shared else "start", bold=binds)
