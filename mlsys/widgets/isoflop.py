"""The isoFLOP explorer: a budget's valley, its best size, and the cheapest size once the model is served.

Above: loss against size for one budget of 6ND and for ten times less and more, by a published law.
Below: what it takes to reach the best loss of that budget with another size, trained as long as it
needs, if it also serves some tokens at 2N FLOPs each.
Left out: attention scores, memory and the price of a chip-hour, so serving is dearer than shown here;
and a law far from its runs is a guess whose error nobody knows.
Lessons: scaling laws.
"""

from __future__ import annotations

import math

import numpy as np

from ..transformer.scaling_laws import (
    EPOCH_REFIT,
    HOFFMANN_PRINTED,
    HOFFMANN_UNROUNDED,
    Allocation,
    Sizing,
    cheapest,
    optimum,
    tokens_needed,
)
from ..units import count, number, percent
from ..viz.picture import INK, Axes, Picture
from ..viz.style import COLOUR
from .base import Explorer, choice, log_slider, stops

LAWS = {law.name: law for law in (EPOCH_REFIT, HOFFMANN_PRINTED, HOFFMANN_UNROUNDED)}
SERVED = [("none", 0.0), ("100 G", 1e11), ("1 T", 1e12), ("10 T", 1e13), ("100 T", 1e14), ("1000 T", 1e15)]
SIZES = (1e8, 1e13)  # of both size axes
LOSSES = (1.7, 2.7)
KNOWN = (("GPT-3", 175e9, 300e9), ("Chinchilla", 70e9, 1.4e12), ("Llama 3 8B", 8.03e9, 15e12))
COST = (0.1, 1000.0)  # of the cost axis, in budgets
GRID = np.geomspace(*SIZES, 251)


class IsoflopExplorer(Explorer):
    """Valleys of a published law, the least loss of a budget, and the least cost over a model's life."""

    def __init__(self):
        self.law = choice("fit", list(LAWS))
        self.budget = log_slider("training budget, FLOP", 5.76e23, 20, 26, 0.02, ".2e")
        self.served = stops("tokens served", SERVED, 0.0)
        super().__init__([self.law, self.budget, self.served])

    def model(self) -> tuple[Allocation, Sizing]:
        """The best use of the budget, and the cheapest way to its loss when the model is served."""
        law = LAWS[self.law.value]
        best = optimum(law, self.budget.value)
        return best, cheapest(law, float(best.loss), self.served.value)

    def sentence(self) -> str:
        best, life = self.model()
        text = (f"{self.law.value}, {self.budget.value:.3g} FLOP: least loss {best.loss:.3f} with {count(best.parameters)} parameters "
                f"and {count(best.tokens)} tokens, {ratio(best)} tokens per parameter.")
        if not life.served:
            return text
        share = life.total_flops / (best.flops + 2 * best.parameters * life.served)
        return (f"{text} With {count(life.served)} tokens served, the cheapest model of that loss has {count(life.parameters)} parameters "
                f"and {ratio(life)} tokens per parameter; its life costs {percent(share)} of what the first one's would.")

    def draw(self) -> Picture:
        best, life = self.model()
        picture = Picture(680, 560, f"Loss and cost against model size. {self.sentence()}")
        picture.text(16, 20, finding(best, life), 14, bold=True)
        draw_valleys(picture, (56, 62, 520, 208), LAWS[self.law.value], best)
        draw_cost(picture, (56, 346, 520, 164), LAWS[self.law.value], best, life)
        return picture


def finding(best: Allocation, life: Sizing) -> str:
    """The title: the two answers, or the one.

    >>> finding(optimum(EPOCH_REFIT, 5.76e23), cheapest(EPOCH_REFIT, 1.974, 0))
    'This budget is best spent on 72.4B parameters with 18.3 tokens each'
    """
    if not life.served:
        return f"This budget is best spent on {count(best.parameters)} parameters with {ratio(best)} tokens each"
    return f"To train: {ratio(best)} tokens per parameter. To train and serve {count(life.served)} tokens: {ratio(life)}"


def ratio(sizing: Allocation) -> str:
    """Tokens per parameter with three digits."""
    return number(sizing.tokens_per_parameter)


def draw_valleys(picture: Picture, box, law, best: Allocation) -> None:
    """The chosen budget between ten times less and ten times more, and where three known models stand."""
    axes = Axes(picture, box, SIZES, LOSSES, "parameters (log)", "loss, nats per token, as the fit expects it", "x",
                yticks=[1.8, 2.0, 2.2, 2.4, 2.6])
    for factor, dash, width in ((0.1, "--", 1.2), (10, ":", 1.8), (1, "", 2.6)):
        product = best.flops * factor / 6
        losses = law.loss(GRID, product / GRID)
        axes.plot(GRID, losses, COLOUR["compute"], width, dash)
        lowest = optimum(law, best.flops * factor)
        if factor != 1 and inside(lowest):
            axes.dot(lowest.parameters, lowest.loss, "none", 4, INK)
    for name, parameters, tokens in KNOWN:
        loss = law.loss(parameters, tokens)
        axes.dot(parameters, loss, COLOUR["idle"], 3.5, INK)
        dx, dy, anchor = (7, -6, "start") if name == "GPT-3" else (-5, 16, "end")
        picture.text(axes.x(parameters) + dx, axes.y(loss) + dy, name, 10, anchor)
    if inside(best):
        axes.dot(best.parameters, best.loss, COLOUR["compute"], 6, INK)
    picture.text(box[0] + box[2] + 8, box[1] + 14, "dashed: a tenth", 10)
    picture.text(box[0] + box[2] + 8, box[1] + 28, "dotted: ten times", 10)


def inside(point: Allocation) -> bool:
    """Whether a point lies in the upper plot."""
    return SIZES[0] <= point.parameters <= SIZES[1] and LOSSES[0] <= point.loss <= LOSSES[1]


def draw_cost(picture: Picture, box, law, best: Allocation, life: Sizing) -> None:
    """Training, serving and their sum for every size that reaches the best loss, in budgets."""
    top = 10 ** math.ceil(math.log10(max(life.total_flops / best.flops * 10, COST[1])))
    name = f"cost of reaching loss {best.loss:.3f}, in training budgets"
    axes = Axes(picture, box, SIZES, (COST[0], top), "parameters (log)", name, "xy")
    training = 6 * GRID * tokens_needed(law, GRID, float(best.loss)) / best.flops
    axes.plot(GRID, training, INK, 1.5, "--")
    if life.served:
        serving = 2 * GRID * life.served / best.flops
        axes.plot(GRID, serving, INK, 1.5, ":")
        axes.plot(GRID, training + serving, COLOUR["compute"], 2.6)
    x = life.parameters
    axes.plot([x, x], [COST[0], life.total_flops / best.flops], COLOUR["limiter"], 1.5, "-.")
    axes.dot(best.parameters, min((best.flops + 2 * best.parameters * life.served) / best.flops, top), COLOUR["compute"], 6, INK)
    axes.dot(x, life.total_flops / best.flops, COLOUR["limiter"], 6, INK)
    for line, text in enumerate(("dashed: training", "dotted: serving", "solid: both", "red: cheapest")):
        picture.text(box[0] + box[2] + 8, box[1] + 14 + 14 * line, text, 10)
