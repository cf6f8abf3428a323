"""The checkpoint explorer: a chain of layers in segments, its memory and its time.

Each layer keeps one activation, its input. With segments, only the input of each segment is
kept on the way forward; the way back takes the segments from the last to the first and runs
each forward again, except the last, whose activations are still there.
Left out: gradients on their way and temporary arrays, so the true peak is a few activations
higher; layers are taken as equal, and a backward pass as twice a forward pass.
Lessons: backpropagation.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..units import percent
from ..viz.picture import INK, Axes, Picture, bars
from ..viz.style import COLOUR
from .base import Explorer, slider


@dataclass(frozen=True)
class ChainCost:
    """peak: activations alive at once, at the worst moment; again: layers that run forward twice;
    time: of a step, without checkpoints = 1."""

    peak: int
    again: int
    time: float


def chain_cost(layers: int, segments: int) -> ChainCost:
    """Cost of a chain of equal layers in segments as equal as they can be, longer ones first.

    At the end of the forward pass the inputs of all segments but the last are kept, and all
    activations of the last; no later moment needs more.

    >>> chain_cost(36, 6)
    ChainCost(peak=11, again=30, time=1.2777777777777777)
    """
    if not 1 <= segments <= layers:
        raise ValueError(f"segments={segments} is not between 1 and layers={layers}")
    last = layers // segments
    again = layers - last
    return ChainCost(segments - 1 + last, again, 1 + again / (3 * layers))


class CheckpointExplorer(Explorer):
    """Number of layers and of segments; the picture is the end of the forward pass and the trade."""

    def __init__(self):
        self.layers = slider("layers", 36, 4, 100)
        self.segments = slider("segments", 6, 1, 36)
        super().__init__([self.layers, self.segments])

    def update(self, _change=None) -> None:
        self.segments.max = self.layers.value  # lowers the value too, if it lies beyond
        super().update()

    def model(self) -> tuple[int, int, ChainCost]:
        layers, segments = self.layers.value, min(self.segments.value, self.layers.value)
        return layers, segments, chain_cost(layers, segments)

    def sentence(self) -> str:
        layers, segments, cost = self.model()
        least = min(chain_cost(layers, s).peak for s in range(1, layers + 1))
        if segments == 1:
            return f"{layers} layers without checkpoints: {layers} activations alive at once, no layer runs twice."
        return (
            f"{layers} layers in {segments} segments: {cost.peak} activations alive at once instead of {layers} "
            f"(equal segments can reach {least}); {cost.again} layers run forward twice, a step takes {cost.time:.2f} times as long."
        )

    def draw(self) -> Picture:
        layers, segments, cost = self.model()
        picture = Picture(700, 420, f"A chain of layers with checkpoints. {self.sentence()}")
        picture.text(8, 18, f"{percent(cost.peak / layers)} of the activations for {cost.time:.2f} times the time", 14, bold=True)
        self.draw_chain(picture, layers, segments)
        rows = [("alive, no segments", layers, f"{layers} activations"), ("alive at once", cost.peak, f"{cost.peak} activations")]
        bars(picture, (8, 116, 684, 48), rows, layers, lambda name: COLOUR["activations"], lambda name: "/" if "once" in name else "")
        rows = [("time, no segments", 1.0, "1.00"), ("time of a step", cost.time, f"{cost.time:.2f}")]
        bars(picture, (8, 164, 684, 48), rows, 4 / 3, lambda name: COLOUR["compute"], lambda name: "\\" if "step" in name else "")
        self.draw_trade(picture, layers, segments, cost)
        return picture

    def draw_chain(self, picture: Picture, layers: int, segments: int) -> None:
        """One box a layer at the end of the forward pass: kept, alive or dropped; gaps part the segments."""
        picture.text(8, 42, "end of the forward pass, a box for each layer's activation:", 12)
        gap = 4 if segments < 40 else 1
        wide = (684 - gap * (segments - 1)) / layers
        x, short, longer = 8.0, layers // segments, layers % segments
        for segment in range(segments):
            for n in range(short + (segment < longer)):
                last, kept = segment == segments - 1, n == 0
                fill, hatch = COLOUR["activations"] if last or kept else "none", "/" if last and segments > 1 else ""
                picture.rect(x, 54, max(wide - 1, 1), 24, fill, INK, hatch)
                x += wide
            x += gap
        for x, fill, hatch, text in ((8, COLOUR["activations"], "", "kept"), (84, COLOUR["activations"], "/", "last segment: all kept"),
                                     (266, "none", "", "dropped, computed again on the way back")):
            picture.rect(x, 87, 14, 14, fill, INK, hatch)
            picture.text(x + 20, 99, text, 12)

    def draw_trade(self, picture: Picture, layers: int, segments: int, cost: ChainCost) -> None:
        """Activations alive against the number of segments, with the least and the chosen point."""
        axes = Axes(picture, (50, 246, 560, 126), (1, layers), (0, layers), "segments", "activations alive at once")
        counts = range(1, layers + 1)
        peaks = [chain_cost(layers, s).peak for s in counts]
        axes.plot(counts, peaks, COLOUR["activations"])
        axes.dot(segments, cost.peak, COLOUR["activations"], 6, INK)
        aside, anchor = (-10, "end") if segments > 0.7 * layers else (8, "start")
        picture.text(axes.x(segments) + aside, axes.y(cost.peak) - 9, "you are here", 12, anchor, bold=True)
        best = [s for s in counts if peaks[s - 1] == min(peaks)]
        for s in (best[0], best[-1]):
            picture.line([(axes.x(s), axes.y(0)), (axes.x(s), axes.y(min(peaks)))], INK, 1, ":")
        where = f"{best[0]} to {best[-1]} segments" if len(best) > 1 else f"{best[0]} segments"
        picture.text(axes.x(best[-1]) + 6, axes.y(0) - 6, f"least: {min(peaks)}, {where}", 12)
