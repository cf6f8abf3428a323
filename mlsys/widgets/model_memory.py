"""How many accelerators does it take to hold a model? The first widget of the course.

Left out: activations, key-value caches and fragmentation, so the true count is higher.
Lessons: the start page.
"""

from __future__ import annotations

import math

from ..specs import H100_SXM
from ..units import plural, si
from ..viz.picture import INK, Picture
from ..viz.style import COLOUR
from .base import Explorer, choice, stops

# bytes a parameter takes, in the order they are stacked: (what, colour, bytes to serve, bytes to train)
PARTS = [
    ("weights", "compute", {"serve, 4-bit": 0.5, "serve, 8-bit": 1, "serve, bf16": 2, "train with Adam": 2}),
    ("gradients", "activations", {"train with Adam": 2}),
    ("optimizer", "optimizer", {"train with Adam": 12}),
]
HATCH = {"weights": "", "gradients": "/", "optimizer": "x"}
MODELS = [  # text, parameters: exact counts of the published configurations, rounded to three digits
    ("0.124 billion, GPT-2 small", 0.124e9),
    ("1.24 billion, Llama 3.2 1B", 1.24e9),
    ("3.21 billion, Llama 3.2 3B", 3.21e9),
    ("8.03 billion, Llama 3.1 8B", 8.03e9),
    ("46.7 billion, Mixtral 8x7B", 46.7e9),
    ("70.6 billion, Llama 3.1 70B", 70.6e9),
    ("175 billion, GPT-3", 175e9),
    ("406 billion, Llama 3.1 405B", 406e9),
    ("1,000 billion", 1000e9),
]
MODES = list(PARTS[0][2])


def parts_bytes(n_params: float, mode: str) -> dict[str, float]:
    """Bytes of each part of a model's state. Training is mixed-precision Adam, 16 bytes a parameter.

    >>> parts_bytes(1e9, "train with Adam")
    {'weights': 2000000000.0, 'gradients': 2000000000.0, 'optimizer': 12000000000.0}
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is none of {MODES}")
    return {name: n_params * per_param.get(mode, 0) for name, _, per_param in PARTS if mode in per_param}


class ModelMemory(Explorer):
    """A model's bytes laid over accelerators of 80 GB each."""

    def __init__(self):
        self.params = stops("parameters", MODELS, 8.03e9)
        self.mode = choice("use", MODES, "serve, bf16")
        super().__init__([self.params, self.mode])

    def model(self):
        parts = parts_bytes(self.params.value, self.mode.value)
        return parts, math.ceil(sum(parts.values()) / H100_SXM.mem_bytes)

    def sentence(self) -> str:
        parts, chips = self.model()
        each = si(H100_SXM.mem_bytes, "B", 2)
        return f"{si(sum(parts.values()), 'B', 3)} of state: at least {chips} × {H100_SXM.name} with {each} each."

    def draw(self) -> Picture:
        parts, chips = self.model()
        picture = Picture(640, 150, self.sentence())
        picture.text(0, 18, f"{plural(chips, 'accelerator')} to hold {self.params.value / 1e9:,.4g} billion parameters", 14, bold=True)
        scale = 630 / max(chips, 1) / H100_SXM.mem_bytes
        x = 0.0
        for name, colour, _ in PARTS:
            width = parts.get(name, 0) * scale
            if width:
                picture.rect(x, 40, width, 44, COLOUR[colour], INK, HATCH[name])
                x += width
        step = math.ceil(chips / 40)
        for n in range(0, chips + 1, step):
            picture.line([(n * 630 / chips, 34), (n * 630 / chips, 90)], INK, 1.5 if step == 1 else 0.8)
        key = 0.0
        for name, colour, _ in PARTS:
            if name in parts:
                picture.rect(key, 112, 14, 14, COLOUR[colour], INK, HATCH[name])
                picture.text(key + 20, 124, f"{name} {si(parts[name], 'B', 3)}", 12)
                key += 210
        return picture
