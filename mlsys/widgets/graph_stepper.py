"""The graph stepper: one step forward or backward through a small graph at a time.

A node shows its value once the forward pass has reached it, and its adjoint, the slope of the
loss with respect to it, once the way back has. The bars below count the numbers that are kept
for the way back: an operation keeps what its slopes read and lets go after its turn. Parameters
stay anyway and are not counted, as in `mlsys.autograd.memory`.
The order of the way back is part of each example, so that a wrong one can be watched too.
Lessons: backpropagation.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..units import plural
from ..viz.picture import INK, Picture
from ..viz.style import COLOUR, blend, ink_on
from .base import Explorer, choice, slider

OPS = {  # name: (value, slopes toward the inputs), both of the inputs' values
    "mul": (lambda a, b: a * b, lambda a, b: (b, a)),
    "add": (lambda a, b: a + b, lambda a, b: (1.0, 1.0)),
    "square": (lambda a: a * a, lambda a: (2 * a,)),
}
WAIT, EARLY = "wait for all users of a value", "go on at once (depth first)"
BOX_W, BOX_H = 110, 62


@dataclass(frozen=True)
class Operation:
    """One node that is computed. keeps: names of the values that its slopes read."""

    name: str
    op: str
    inputs: tuple[str, ...]
    text: str
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Example:
    """A graph: its given values, operations in the order of the forward pass, and two ways back.

    places: column and row of each box; walks: for each choice the order in which nodes send.
    """

    given: dict[str, float]
    operations: tuple[Operation, ...]
    places: dict[str, tuple[float, float]]
    walks: dict[str, tuple[str, ...]]

    @property
    def steps(self) -> int:
        return 2 * len(self.operations)


EXAMPLES = {
    "the graph from above": Example(
        given={"x": 3.0, "w": 2.0, "b": -4.0},
        operations=(
            Operation("u", "mul", ("x", "w"), "x · w", ("x",)),
            Operation("v", "add", ("u", "b"), "u + b"),
            Operation("loss", "mul", ("u", "v"), "u · v", ("u", "v")),
        ),
        places={"x": (0, 0), "w": (0, 1), "b": (1.8, 2), "u": (1.8, 0.5), "v": (3.6, 1.5), "loss": (5.4, 0.75)},
        walks={WAIT: ("loss", "v", "u"), EARLY: ("loss", "u", "v")},
    ),
    "a layer with a skip connection": Example(
        given={"x": 2.0, "w1": 3.0, "w2": -0.5},
        operations=(
            Operation("h", "mul", ("x", "w1"), "x · w1", ("x",)),
            Operation("s", "mul", ("h", "w2"), "h · w2", ("h",)),
            Operation("r", "add", ("h", "s"), "h + s"),
            Operation("loss", "square", ("r",), "r²", ("r",)),
        ),
        places={"x": (0, 0), "w1": (0, 1), "w2": (1.5, 2), "h": (1.5, 0.5), "s": (3.1, 1.5), "r": (4.6, 0.75), "loss": (6.0, 0.75)},
        walks={WAIT: ("loss", "r", "s", "h"), EARLY: ("loss", "r", "h", "s")},
    ),
}


@dataclass(frozen=True)
class Moment:
    """What is known after some steps: values, adjoints, names kept, and the node at work (or "")."""

    values: dict[str, float]
    adjoints: dict[str, float]
    kept: tuple[str, ...]
    at: str
    backward: bool


def moment(example: Example, order: str, step: int) -> Moment:
    """The state after `step` steps: first one for each operation forward, then one for each backward.

    >>> moment(EXAMPLES["the graph from above"], WAIT, 4).adjoints
    {'loss': 1.0, 'u': 2.0, 'v': 6.0}
    """
    count = len(example.operations)
    done, walk = example.operations[:step], example.walks[order][: max(step - count, 0)]
    values, adjoints = dict(example.given), {}
    for o in done:
        values[o.name] = OPS[o.op][0](*(values[i] for i in o.inputs))
    by_name = {o.name: o for o in example.operations}
    for name in walk:
        o = by_name[name]
        adjoint = adjoints.setdefault(name, 1.0)  # only the loss comes here without one
        for i, slope in zip(o.inputs, slopes(o, values)):
            adjoints[i] = adjoints.get(i, 0.0) + adjoint * slope
    open_ = [o for o in done if o.name not in walk]
    kept = tuple(dict.fromkeys(k for o in open_ for k in o.keeps))
    at = walk[-1] if walk else done[-1].name if done else ""
    return Moment(values, adjoints, kept, at, bool(walk))


def slopes(operation: Operation, values: dict[str, float]) -> tuple[float, ...]:
    """Slope of an operation toward each of its inputs."""
    return OPS[operation.op][1](*(values[i] for i in operation.inputs))


class GraphStepper(Explorer):
    """Choose a graph and an order for the way back, and slide through the steps."""

    def __init__(self):
        self.graph = choice("graph", list(EXAMPLES))
        self.order = choice("on the way back", [WAIT, EARLY])
        self.step = slider("step", 5, 0, EXAMPLES[self.graph.value].steps)
        super().__init__([self.graph, self.order, self.step])

    @property
    def example(self) -> Example:
        return EXAMPLES[self.graph.value]

    def update(self, _change=None) -> None:
        self.step.max = self.example.steps  # lowers the value too, if it lies beyond
        super().update()

    def missed(self) -> str:
        """An input whose adjoint ends up wrong in this order, or ""."""
        end, right = (moment(self.example, order, self.example.steps).adjoints for order in (self.order.value, WAIT))
        return next((name for name in self.example.given if end[name] != right[name]), "")

    def sentence(self) -> str:
        now, last = moment(self.example, self.order.value, self.step.value), self.example.steps
        kept = f"{plural(len(now.kept), 'number')} kept for the way back"
        if not now.at:
            return f"Step 0 of {last}: only the inputs are known."
        operation = next(o for o in self.example.operations if o.name == now.at)
        head = f"Step {self.step.value} of {last}, {'backward' if now.backward else 'forward'} through {now.at} = {operation.text}: "
        if not now.backward:
            return f"{head}{now.at} is {number(now.values[now.at])}; {kept}."
        sent = [f"{number(now.adjoints[now.at] * s)} to {i}" for i, s in zip(operation.inputs, slopes(operation, now.values))]
        wrong = self.missed() if self.step.value == last else ""
        right = moment(self.example, WAIT, last).adjoints
        end = f" {wrong} ends at {number(now.adjoints[wrong])} instead of {number(right[wrong])}: it was served too early." if wrong else ""
        return f"{head}it sends {' and '.join(sent)}; {kept}.{end}"

    def title(self, now: Moment) -> str:
        """The finding of this step, in a few words."""
        if self.step.value == self.example.steps:
            wrong = self.missed()
            return f"The slope toward {wrong} is wrong" if wrong else "Every slope in one walk"
        if not now.at:
            return "Nothing computed yet"
        return f"{'Backward' if now.backward else 'Forward'}: {now.at} at work, {len(now.kept)} kept"

    def draw(self) -> Picture:
        now = moment(self.example, self.order.value, self.step.value)
        picture = Picture(714, 396, f"Graph with values and adjoints. {self.sentence()}")
        picture.text(8, 18, self.title(now), 14, bold=True)
        picture.text(8, 38, "in a box: value, and below it the adjoint once the way back has reached it", 12)
        for operation in self.example.operations:
            self.draw_edges(picture, operation, now)
        for name in self.example.places:
            self.draw_node(picture, name, now)
        self.draw_memory(picture)
        return picture

    def corner(self, name: str) -> tuple[float, float]:
        """Top left corner of a node's box."""
        column, row = self.example.places[name]
        return 8 + 98 * column, 52 + 70 * row

    def draw_edges(self, picture: Picture, operation: Operation, now: Moment) -> None:
        """Lines from the inputs; on the way back the active ones are thick and carry their slope."""
        active = now.backward and now.at == operation.name
        x, y = self.corner(operation.name)
        for n, i in enumerate(operation.inputs):
            from_x, from_y = self.corner(i)
            start, end = (from_x + BOX_W, from_y + BOX_H / 2), (x, y + BOX_H * (n + 1) / (len(operation.inputs) + 1))
            picture.line([start, end], COLOUR["compute"] if active else INK, 4 if active else 1)
            if active:
                slope = slopes(operation, now.values)[n]
                picture.text((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 - 7, f"× {number(slope)}", 12, "middle", bold=True)

    def draw_node(self, picture: Picture, name: str, now: Moment) -> None:
        """A box: name, value, adjoint. The node at work is blue, framed twice; a kept value has a purple foot."""
        x, y = self.corner(name)
        at_work = name == now.at
        fill = blend(COLOUR["compute"], 0.55) if at_work else "#ffffff" if name in now.values else "#ececec"
        picture.rect(x, y, BOX_W, BOX_H, fill, INK)
        if at_work:
            picture.rect(x - 3, y - 3, BOX_W + 6, BOX_H + 6, "none", INK)
        ink = ink_on(fill)
        text = next((f"{o.name} = {o.text}" for o in self.example.operations if o.name == name), name)
        picture.text(x + 5, y + 15, text, 12, fill=ink, bold=True)
        if name in now.values:
            picture.text(x + 5, y + 32, f"value {number(now.values[name])}", 12, fill=ink)
        if name in now.adjoints:
            picture.text(x + 5, y + 48, f"adjoint {number(now.adjoints[name])}{self.instead_of(name, now)}", 12, fill=ink)
        if name in now.kept:
            picture.rect(x, y + BOX_H - 8, BOX_W, 8, COLOUR["activations"], INK, "/")

    def instead_of(self, name: str, now: Moment) -> str:
        """After the last step: the right adjoint, if this order has led to another one."""
        right = moment(self.example, WAIT, self.example.steps).adjoints[name]
        return f", not {number(right)}" if self.step.value == self.example.steps and now.adjoints[name] != right else ""

    def draw_memory(self, picture: Picture) -> None:
        """A bar a step: numbers kept after it; the bar of this step is hatched and marked."""
        example, top, base = self.example, 286, 366
        picture.text(8, top - 8, "numbers kept for the way back, after each step (in the graph: purple foot)", 12)
        wide = 680 / (example.steps + 1)
        most = max(len(moment(example, self.order.value, t).kept) for t in range(example.steps + 1))
        for t in range(example.steps + 1):
            count, now = len(moment(example, self.order.value, t).kept), t == self.step.value
            height = (base - top - 18) * count / most
            fill = COLOUR["activations"] if t <= self.step.value else "none"
            picture.rect(8 + t * wide, base - height, wide - 8, height, fill, INK, "/" if now else "")
            picture.text(8 + t * wide + (wide - 8) / 2, base - height - 4, str(count), 12, "middle", bold=now)
            name = "start" if t == 0 else "forward" if t <= example.steps // 2 else "back"
            picture.text(8 + t * wide + (wide - 8) / 2, base + 14, name, 11, "middle", bold=now)
            if now:
                picture.text(8 + t * wide + (wide - 8) / 2, base + 27, "▲ now", 11, "middle", bold=True)


def number(value: float) -> str:
    """A value with at most three digits after the point and a real minus sign.

    >>> number(-4.0), number(0.7615941)
    ('−4', '0.762')
    """
    return f"{round(value, 3) + 0.0:g}".replace("-", "−")
