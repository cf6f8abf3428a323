"""The format inspector: a value, what is stored of it, where its neighbours lie, and when a running sum stops.

Above: the fields of the stored code. In the middle: the format's numbers around the value, to scale.
Below: 4,096 additions of one number, each sum rounded to the format, and the same in chunks whose sums are kept exactly.
Left out: tensor cores add several products before they round and keep wider sums than their inputs, so real sums stop later.
Lessons: tensor cores and number formats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import ipywidgets as w
import numpy as np

from ..dtypes import Format, bit_fields, decode, encode, find
from ..dtypes.codec import ROUNDINGS
from ..units import percent
from ..viz.formats import chunked_sum, running_sum
from ..viz.picture import INK, Axes, Picture
from ..viz.style import COLOUR, blend
from .base import LONG, Explorer, choice, stops

NAMES = ("bf16", "fp16", "tf32", "fp32", "e5m2", "e4m3fn", "e3m2", "e2m3", "e2m1")
VALUES = (1e-40, 1e-8, 6e-8, 1e-5, 0.001, 0.01, 0.1, 1 / 3, 0.9, 0.99, 1.0, 1.0625, 1.2, math.pi, 4.5, 6.5, 17.0, 100.0, 257.0, 300.0,
          448.0, 465.0, 2049.0, 57_000.0, 65_519.0, 65_520.0, 70_000.0, 1e10, 1e38, 3.4e38)
ADDENDS = (0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 100.0)
STEPS = 4096
FILLS = {"sign": blend(COLOUR["limiter"], 0.25), "exponent": blend(COLOUR["memory"], 0.35), "mantissa": blend(COLOUR["compute"], 0.35)}


@dataclass(frozen=True)
class Stored:
    """What a format keeps of x: the code, its value, and the spacing of numbers at x (of the highest binade, beyond the largest)."""

    x: float
    code: int
    value: float
    spacing: float

    @property
    def error(self) -> float:
        """Relative to x; infinite where the value is."""
        return abs(self.value - self.x) / abs(self.x)


class FormatExplorer(Explorer):
    """One value in one format, bit by bit, and a sum that is rounded after every addition."""

    def __init__(self):
        self.format = choice("format", list(NAMES))
        self.value = stops("value", [(number(v), v) for v in VALUES], 0.1)
        self.negative = w.Checkbox(False, description="negative", style=LONG, indent=True)
        self.rounding = choice("rounding", list(ROUNDINGS))
        self.addend = stops("add 4,096 times", [(number(v), v) for v in ADDENDS], 1.0)
        self.chunk = stops("chunk", [(str(v), v) for v in (8, 16, 32, 64, 128, 256, 512)], 64)
        super().__init__([self.format, self.value, self.negative, self.rounding, self.addend, self.chunk])

    def model(self) -> tuple[Stored, np.ndarray, np.ndarray]:
        """The stored value, the running sums, and the running sums in chunks."""
        how, x = self.rounding.value, -self.value.value if self.negative.value else self.value.value
        stored = store(x, find(self.format.value), how, np.random.default_rng(0))
        return stored, *drift(self.addend.value, self.chunk.value, self.format.value, how)

    def sentence(self) -> str:
        return spoken(self.format.value, self.addend.value, self.chunk.value, *self.model())

    def draw(self) -> Picture:
        stored, sums, chunks = self.model()
        name, fmt = self.format.value, find(self.format.value)
        said = spoken(name, self.addend.value, self.chunk.value, stored, sums, chunks)
        picture = Picture(700, 570, f"Bits, neighbours and running sums of {name}. {said}")
        picture.text(16, 22, finding(name, stored), 14, bold=True)
        draw_bits(picture, 16, 52, stored, fmt)
        picture.text(16, 136, f"numbers of {name} around x, to scale", 12)
        draw_neighbours(picture, (40, 188, 620), stored, fmt)
        picture.text(16, 286, sum_finding(name, self.addend.value, sums), 14, bold=True)
        draw_sums(picture, (64, 322, 470, 196), self.addend.value, sums, chunks, self.chunk.value)
        return picture


@lru_cache(maxsize=8)
def drift(addend: float, chunk: int, name: str, rounding: str) -> tuple[np.ndarray, np.ndarray]:
    """The running sums after each of 4,096 additions, in one go and in chunks."""
    rng = np.random.default_rng(0)
    return running_sum(addend, STEPS, name, rounding, rng), chunked_sum(addend, STEPS, chunk, name, rounding, rng)


def store(x: float, fmt: Format, rounding: str = "nearest", rng: np.random.Generator | None = None) -> Stored:
    """x in a format, as a GPU stores it unasked.

    >>> store(300.0, find("e4m3fn"))
    Stored(x=300.0, code=121, value=288.0, spacing=32.0)
    """
    code = int(encode(x, fmt, rounding=rounding, rng=rng))
    exponent = min(max(math.frexp(x)[1] - 1, fmt.min_exponent), fmt.max_exponent)
    return Stored(x, code, float(decode(code, fmt)), 2.0 ** (exponent - fmt.mantissa_bits))


def number(value: float) -> str:
    """A number as it stands in texts.

    >>> number(65504.0), number(1e-8), number(0.10009765625), number(3.4e38), number(1 / 3)
    ('65,504', '1e-8', '0.100098', '3.4e38', '0.333333')
    """
    if math.isinf(value):
        return "infinity" if value > 0 else "-infinity"
    if value and not 1e-4 <= abs(value) < 1e7:
        digits, _, power = f"{value:.4e}".partition("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"
    text = f"{value:,.6f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.10g}"
    return text if len(text) <= 9 or abs(value) >= 1000 else f"{value:.6g}"


def finding(name: str, stored: Stored) -> str:
    """The title: what became of the value.

    >>> finding("e4m3fn", store(300.0, find("e4m3fn")))
    '300 becomes 288 in e4m3fn: 4 % off, where numbers are 32 apart'
    """
    x, value = number(stored.x), number(stored.value)
    largest = find(name).max
    if math.isinf(stored.value):
        return f"{x} overflows to {value} in {name}: the largest number is {number(largest)}"
    if abs(stored.x) > largest:
        return f"{x} becomes {value} in {name}, the largest number: {lost(stored.error)} is lost"
    if stored.value == 0:
        return f"{x} becomes 0 in {name}: its smallest number is {number(find(name).smallest_subnormal)}"
    if stored.value == stored.x:
        return f"{x} is a number of {name}: nothing is lost, and its neighbour is {number(stored.spacing)} away"
    off = number(float(f"{100 * stored.error:.2g}"))
    return f"{x} becomes {value} in {name}: {off} % off, where numbers are {number(stored.spacing)} apart"


def lost(share: float) -> str:
    """A share below 1 in per cent, never rounded up to all.

    >>> lost(0.04), lost(0.0366), lost(1 - 1e-12)
    ('4 %', '3.7 %', 'nearly all')
    """
    return "nearly all" if share > 0.995 else percent(share, ".2g")


def sum_finding(name: str, addend: float, sums: np.ndarray) -> str:
    """The second title: where the running sum ends, and when it stopped."""
    exact, last = addend * len(sums), sums[-1]
    if last == 0:
        return f"{number(addend)} is 0 in {name}: {len(sums):,} additions of it end at 0, exact is {number(exact)}"
    reached = int(np.argmax(sums == last)) + 1
    text = f"{len(sums):,} additions of {number(addend)} in {name} end at {number(last)}, exact {number(exact)}"
    if reached > 0.9 * len(sums):
        return text
    return f"{text}: {'infinite' if math.isinf(last) else 'stuck'} after {reached:,}"


def spoken(name: str, addend: float, chunk: int, stored: Stored, sums: np.ndarray, chunks: np.ndarray) -> str:
    """What the picture shows, in two sentences."""
    fields = " ".join(part for part in bit_fields(stored.code, name) if part)
    return (f"{finding(name, stored)}. Code 0x{stored.code:x}, bits {fields}. "
            f"{sum_finding(name, addend, sums)}; in chunks of {chunk} the sum ends at {number(chunks[-1])}.")


def draw_bits(picture: Picture, left: float, top: float, stored: Stored, fmt: Format) -> None:
    """The code as boxes, field by field, and what each field says."""
    fields = bit_fields(stored.code, fmt)
    wide = min(26.0, 620 / fmt.bits)
    x = left
    for name, bits in zip(FILLS, fields):
        picture.text(x, top, name, 11)
        start = x + (12 if name == "sign" and wide < 26 else 0)
        for bit in bits:
            picture.rect(start, top + 7, wide, 26, FILLS[name], INK)
            picture.text(start + wide / 2, top + 25, bit, 12, "middle", "#000000")
            start += wide
        x = max(start, x + 20) + 12
    picture.text(left, top + 54, meaning(stored, fmt, fields), 12)


def meaning(stored: Stored, fmt: Format, fields: tuple[str, str, str]) -> str:
    """The fields in words: exponent and mantissa, and how they make the value."""
    field, m = int(fields[1], 2), fmt.mantissa_bits
    fraction = int(fields[2], 2)
    if math.isinf(stored.value):
        return f"exponent field {field}, all ones, with mantissa 0: kept for infinity"
    if field == 0:
        return f"exponent field 0: subnormal, no leading one: {fraction}/{2**m} x 2^{fmt.min_exponent} = {number(abs(stored.value))}"
    power = field - fmt.bias
    return f"exponent field {field} - bias {fmt.bias} = {power}; 1 + {fraction:,}/{2**m:,}, times 2^{power} = {number(abs(stored.value))}"


def around(stored: Stored, fmt: Format) -> list[float]:
    """Six numbers of the format around x, in order; at the end of the range the last six."""
    inner = int(encode(abs(stored.x), fmt, saturate=True, rounding="truncate"))
    first = min(inner - 2, fmt.max_code - 5)
    codes = np.arange(first, first + 6)
    values = np.sign(codes) * decode(np.abs(codes), fmt).astype(np.float64)
    return sorted((-values if stored.x < 0 else values).tolist())


def draw_neighbours(picture: Picture, place: tuple[float, float, float], stored: Stored, fmt: Format) -> None:
    """The numbers of the format around x on a line, to scale; x and what is stored."""
    left, y, width = place
    values = around(stored, fmt)
    low, high = values[0], values[-1]
    outside = not low <= stored.x <= high
    kept = next((v for v in values if v == stored.value), None)
    names = [number(v + 0.0) for v in values]
    if len(set(names)) < len(names):  # too close together for their digits
        names = [number(v) if v == kept else f"{'+' if v > stored.value else ''}{number(v - stored.value)}" for v in values]
    at = {v: left + width * (0.06 + 0.84 * (v / high - low / high) / (1 - low / high) if high else 0.9) for v in values}
    picture.line([(left, y), (left + width, y)], INK, 1)
    for i, v in enumerate(values):
        picture.line([(at[v], y - 7), (at[v], y + 7)], INK, 1.5)
        picture.text(at[v], y + (24 if i % 2 == 0 else 38), names[i], 11, "middle")
    if outside:
        end, sign = (left + width, 1) if stored.x > high else (left, -1)
        picture.line([(end - 9 * sign, y - 5), (end, y), (end - 9 * sign, y + 5)], COLOUR["limiter"], 2)
        picture.text(end, y - 32, f"x = {number(stored.x)} lies beyond", 12, "end" if sign > 0 else "start")
    else:
        share = (stored.x / high - low / high) / (1 - low / high) if high else 1 - stored.x / low
        x = left + width * (0.06 + 0.84 * share)
        picture.line([(x, y - 26), (x, y + 10)], COLOUR["limiter"], 2, "--")
        picture.text(x, y - 32, f"x = {number(stored.x)}", 12, "middle")
    if kept is not None:
        picture.circle(at[kept], y, 6, COLOUR["compute"], INK)
        picture.text(at[kept], y + 56, "stored", 12, "middle")


def draw_sums(picture: Picture, box, addend: float, sums: np.ndarray, chunks: np.ndarray, chunk: int) -> None:
    """Running sums against additions: exact, in the format, in chunks."""
    top = addend * len(sums) * 2
    lowest = min([addend, *(line[0] for line in (sums, chunks) if line[0] > 0)])  # a saturated sum lies below its addend
    axes = Axes(picture, box, (1, len(sums)), (lowest / 2, top), "additions (log)", "running sum (log)", "xy",
                xticks=[1, 4, 16, 64, 256, 1000, 4000])
    picks = np.unique(np.geomspace(1, len(sums), 160).astype(int))
    axes.plot(picks, addend * picks, INK, 1.2, "--")
    axes.plot(picks, chunks[picks - 1], INK, 2.4, ":")
    axes.plot(picks, sums[picks - 1], COLOUR["compute"], 2.6)
    if math.isinf(sums[-1]):
        last = int(np.argmax(np.isinf(sums)))
        axes.dot(last, sums[last - 1], COLOUR["limiter"], 5, INK)
        picture.text(axes.x(last) - 4, axes.y(sums[last - 1]) - 10, "then infinity", 11, "end")
    for line, text in enumerate(("dashed: exact", f"dotted: chunks of {chunk}", "solid: one running sum")):
        picture.text(box[0] + box[2] + 12, box[1] + 14 + 16 * line, text, 11)
