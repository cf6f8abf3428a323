"""The bowl: an optimizer walks down a quadratic, and the sliders decide whether it arrives.

The bowl has a steep direction of curvature 10 and a flat one of curvature 10 / kappa; kappa is the
condition number. In each direction the heavy ball is a recurrence of two terms, so the factor by
which the error grows a step is the size of the larger root of z^2 - (1 + beta - lr h) z + beta.
Left out: real losses curve differently from place to place and are seen through noisy samples, so
the limit shown here is what a real run has at best.
Lessons: optimizers.
"""

from __future__ import annotations

import math

from ..viz.picture import INK, Axes, Picture
from ..viz.style import COLOUR
from .base import Explorer, choice, float_slider, log_slider

STEEP = 10.0  # curvature of the steep direction
START = (-1.0, 0.7)  # flat, steep
STEPS = 200
FAR, NEAR = 1e6, 1e-9  # a walk ends when its distance to the minimum leaves this range
GD, MOMENTUM, ADAM = "gradient descent", "momentum", "Adam"


class BowlExplorer(Explorer):
    """Three optimizers on one bowl: the path, the loss, and the learning rate at which it tips over."""

    def __init__(self):
        self.optimizer = choice("optimizer", [GD, MOMENTUM, ADAM])
        self.lr = float_slider("learning rate", 0.15, 0.005, 0.5, 0.005, ".3f")
        self.beta = float_slider("momentum", 0.9, 0.0, 0.98, 0.01)
        self.kappa = log_slider("condition number", 10, 0, 3)
        super().__init__([self.optimizer, self.lr, self.beta, self.kappa])

    def update(self, _change=None) -> None:
        self.beta.disabled = self.optimizer.value == GD
        super().update()

    def model(self) -> tuple[list[tuple[float, float]], tuple[float, float], float]:
        """The path, the two curvatures (flat, steep) and the momentum in use."""
        curvatures = (STEEP / self.kappa.value, STEEP)
        beta = 0.0 if self.optimizer.value == GD else self.beta.value
        step = adam if self.optimizer.value == ADAM else heavy_ball
        return step(curvatures, self.lr.value, beta), curvatures, beta

    def finding(self) -> str:
        """The title: arrives or not, and how fast."""
        path, curvatures, beta = self.model()
        if self.optimizer.value == ADAM:
            return f"Adam: distance {distance(path[0]):.2f} at the start, {distance(path[-1]):.2g} after {len(path) - 1} steps"
        factor = max(growth(self.lr.value, h, beta) for h in curvatures)
        if factor < 1:
            return f"Stable: the error is multiplied by {factor:.3f} a step"
        return f"Unstable: the learning rate is not below the limit, {limit(STEEP, beta):.3f}"

    def sentence(self) -> str:
        path, curvatures, beta = self.model()
        lr = self.lr.value
        set_up = f"{self.optimizer.value}, curvatures {curvatures[0]:.3g} and {STEEP:g}, learning rate {lr:.3f}"
        set_up += f", momentum {beta:.2f}: " if self.optimizer.value != GD else ": "
        if self.optimizer.value == ADAM:
            first = [abs(b - a) for a, b in zip(path[0], path[1])]
            return (set_up + f"the first step is {first[0]:.3f} in the flat and {first[1]:.3f} in the steep direction. "
                    f"No fixed limit; after {len(path) - 1} steps the distance is {distance(path[-1]):.2g}.")
        factor = max(growth(lr, h, beta) for h in curvatures)
        seen = seen_factor(path)
        return (set_up + f"{'stable' if factor < 1 else 'unstable'}, the limit is {limit(STEEP, beta):.3f}. "
                f"Predicted factor of the error a step {factor:.3f}, "
                f"{f'seen {seen:.3f}' if seen is not None else 'seen: it arrives at once'}.")

    def draw(self) -> Picture:
        path, curvatures, beta = self.model()
        picture = Picture(680, 362, f"A bowl, the path of the optimizer and its loss. {self.sentence()}")
        picture.text(20, 20, self.finding(), 14, bold=True)
        draw_path(picture, (50, 58, 262, 262), path, curvatures)
        draw_loss(picture, (392, 58, 226, 96), path, curvatures)
        box = (392, 222, 226, 98)
        if self.optimizer.value == ADAM:
            draw_steps(picture, box, path, self.lr.value)
        else:
            draw_growth(picture, box, self.lr.value, curvatures, beta)
        return picture


def heavy_ball(curvatures, lr: float, beta: float) -> list[tuple[float, float]]:
    """Positions of w <- w - lr v with v <- beta v + gradient; beta = 0 is gradient descent."""
    path, w, v = [START], list(START), [0.0, 0.0]
    while len(path) <= STEPS and NEAR < distance(path[-1]) < FAR:
        v = [beta * a + h * x for a, h, x in zip(v, curvatures, w)]
        w = [x - lr * a for x, a in zip(w, v)]
        path.append(tuple(w))
    return path


def adam(curvatures, lr: float, beta: float, beta2: float = 0.999) -> list[tuple[float, float]]:
    """Positions of Adam; its two running means are kept as weighted sums with their total weights."""
    path, w = [START], list(START)
    m, v, m_weight, v_weight = [0.0, 0.0], [0.0, 0.0], 0.0, 0.0
    while len(path) <= STEPS and NEAR < distance(path[-1]):
        g = [h * x for h, x in zip(curvatures, w)]
        m, v = [beta * a + x for a, x in zip(m, g)], [beta2 * a + x * x for a, x in zip(v, g)]
        m_weight, v_weight = beta * m_weight + 1, beta2 * v_weight + 1
        w = [x - lr * (a / m_weight) / (math.sqrt(b / v_weight) + 1e-8) for x, a, b in zip(w, m, v)]
        path.append(tuple(w))
    return path


def distance(w: tuple[float, float]) -> float:
    """Distance to the minimum, which lies at (0, 0)."""
    return math.hypot(*w)


def growth(lr: float, curvature: float, beta: float = 0.0) -> float:
    """Factor of the error a step in one direction, in the long run: below 1 it shrinks.

    >>> round(growth(lr=0.05, curvature=10), 6), round(growth(lr=0.25, curvature=10), 6)
    (0.5, 1.5)
    """
    half = (1 + beta - lr * curvature) / 2
    inside = half * half - beta
    return math.sqrt(beta) if inside < 0 else abs(half) + math.sqrt(inside)


def limit(curvature: float, beta: float = 0.0) -> float:
    """The learning rate at which the error begins to grow, found by halving an interval.

    >>> round(limit(curvature=10), 6)
    0.2
    """
    low, high = 0.0, 100 / curvature
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if growth(middle, curvature, beta) < 1 else (low, middle)
    return low


def seen_factor(path: list[tuple[float, float]]) -> float | None:
    """Factor a step by which the distance changed over the second half of a path; None if it is too short.

    The slope of a straight line through the logarithms, so that swings average out.
    """
    logs = [math.log(distance(w)) for w in path if distance(w) > 0]
    logs = logs[len(logs) // 2 :]
    if len(logs) < 2:
        return None
    middle, mean = (len(logs) - 1) / 2, sum(logs) / len(logs)
    slope = sum((t - middle) * (y - mean) for t, y in enumerate(logs))
    return math.exp(slope / sum((t - middle) ** 2 for t in range(len(logs))))


def loss(w: tuple[float, float], curvatures) -> float:
    return sum(h * x * x for h, x in zip(curvatures, w)) / 2


def draw_path(picture: Picture, box, path, curvatures) -> None:
    """Lines of equal loss and the walk over them."""
    edge = 1.3
    axes = Axes(picture, box, (-edge, edge), (-edge, edge), "flat direction", "steep direction", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    for share in (1.0, 0.5, 0.2, 0.05):
        level = 2 * share * loss(START, curvatures)
        half_width = min(edge, math.sqrt(level / curvatures[0]))
        xs = [half_width * math.sin(math.pi * (n / 48 - 0.5)) for n in range(49)]
        for side in (1, -1):
            ys = [side * math.sqrt(max(level - curvatures[0] * x * x, 0.0) / curvatures[1]) for x in xs]
            axes.plot(xs, ys, COLOUR["idle"], 1)
    axes.plot(*zip(*inside(path, edge)), COLOUR["optimizer"], 1.6)
    for w in path[:40]:
        if max(map(abs, w)) < edge:
            axes.dot(*w, COLOUR["optimizer"], 2.4)
    axes.dot(*START, "none", 6, INK)
    picture.text(axes.x(START[0]), axes.y(START[1]) - 10, "start", 12, "middle")


def inside(path, edge: float) -> list[tuple[float, float]]:
    """The path up to where it first leaves the square, cut there.

    >>> inside([(0.5, 0.0), (1.5, 0.0), (0.0, 0.0)], edge=1.0)
    [(0.5, 0.0), (1.0, 0.0)]
    """
    for n, (a, b) in enumerate(zip(path, path[1:])):
        if max(map(abs, b)) > edge:
            share = min(((edge if y > x else -edge) - x) / (y - x) for x, y in zip(a, b) if abs(y) > edge)
            return [*path[: n + 1], (a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]))]
    return path


def draw_loss(picture: Picture, box, path, curvatures) -> None:
    axes = Axes(picture, box, (0, STEPS), (1e-9, 1e3), "steps", "loss (log axis)", log="y", yticks=[1e-8, 1e-4, 1.0])
    axes.plot(range(len(path)), [max(loss(w, curvatures), 1e-9) for w in path], COLOUR["optimizer"], 2)


def draw_growth(picture: Picture, box, lr: float, curvatures, beta: float) -> None:
    """The factor of the error against the learning rate, in both directions, and where it passes 1."""
    axes = Axes(picture, box, (0, 0.5), (0, 1.6), "learning rate", "factor of the error a step", yticks=[0, 0.5, 1, 1.5])
    rates = [n / 160 for n in range(81)]
    for name, h, dash in (("flat", curvatures[0], "--"), ("steep", curvatures[1], "")):
        factors = [growth(rate, h, beta) for rate in rates]
        axes.plot(rates, factors, COLOUR["optimizer"], 1.8, dash)
        last = max(n for n, factor in enumerate(factors) if factor <= 1.6)
        if h < STEEP or name == "steep":  # in a round bowl the two lines are one
            picture.text(axes.x(rates[last]) + 5, axes.y(factors[last]) + 4, name, 12)
    edge = limit(STEEP, beta)
    axes.plot([0, 0.5], [1, 1], INK, 1)
    axes.plot([edge, edge], [0, 1.6], COLOUR["limiter"], 1.8, ":")
    picture.text(axes.x(edge) + 5, axes.y(0.12), f"limit {edge:.3f}", 12)
    axes.dot(lr, min(max(growth(lr, h, beta) for h in curvatures), 1.6), INK, 5)


def draw_steps(picture: Picture, box, path, lr: float) -> None:
    """How long each of Adam's steps is in both directions, in units of the learning rate."""
    axes = Axes(picture, box, (0, STEPS), (0, 1.5), "steps", "length of the step / learning rate", yticks=[0, 0.5, 1, 1.5])
    for direction, dash in ((0, "--"), (1, "")):
        lengths = [min(abs(b[direction] - a[direction]) / lr, 1.5) for a, b in zip(path, path[1:])]
        axes.plot(range(1, len(path)), lengths, COLOUR["optimizer"], 1.8, dash)
    picture.text(box[0] + box[2], box[1] + 12, "solid: steep, dashed: flat", 11, "end")
