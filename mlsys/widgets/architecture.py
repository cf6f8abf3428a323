"""The architecture explorer: a dozen numbers describe a model; its size, FLOPs and bytes follow.

Four stacked bars. Parameters and forward FLOPs are shown as shares of their totals; the memory of a
training step and of serving share one scale, cut at the memory of an H100.
All numbers are those of `mlsys.transformer.counts`: scores are counted for all pairs, training
state is 16 bytes a parameter, activations and caches take 2 bytes a number, dropout is off.
Left out: temporary buffers and fragmentation, so the true need is higher.
Lessons: the block and its counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import ipywidgets as w

from ..specs import H100_SXM
from ..specs.architecture import Architecture, gpt2, llama
from ..transformer import counts
from ..units import percent, si
from ..viz.picture import INK, Picture
from ..viz.style import COLOUR
from .base import LONG, Explorer, choice, float_slider, slider, stops

GPT, LLAMA = "GPT-2: two matrices, biases, tied", "Llama: gated, no biases, untied"
OWN = "your own"
PRESETS = {  # layers, d_model, heads, key-value heads, d_ff / d_model, vocabulary, context, parts
    "GPT-2 small": (12, 768, 12, 12, 4.0, 50257, 1024, GPT),
    "GPT-3": (96, 12288, 96, 96, 4.0, 50257, 2048, GPT),
    "Llama 3 8B": (32, 4096, 32, 8, 3.5, 128256, 8192, LLAMA),
    "Llama 3 70B": (80, 8192, 64, 8, 3.5, 128256, 8192, LLAMA),
}
KEEP = {"all tensors": "none", "all but the scores": "selective", "the input of each layer": "full"}
CONTEXTS = [(f"{n:,} tokens", n) for n in (512, 1024, 2048, 4096, 8192, 32768, 131072)]
STATE = {"weights": 2, "gradients": 2, "optimizer": 12}  # bytes a parameter, mixed-precision Adam
NAMES = {"token embedding": "tokens", "position embedding": "positions", "attention projections": "attention",
         "attention scores": "scores", "mlp": "MLP", "output layer": "output"}  # fmt: skip
HATCH = {"tokens": "-", "positions": "x", "MLP": "/", "scores": "x", "output": "|", "gradients": "/",
         "optimizer": "x", "activations": "\\", "KV cache": "x"}  # fmt: skip
WIDTH = 684


@dataclass(frozen=True)
class Sizes:
    """Counts of one shape: each a dictionary of parts. Bytes of training and serving; FLOPs a token."""

    model: Architecture
    parameters: dict[str, float]
    flops: dict[str, float]
    training: dict[str, float]
    serving: dict[str, float]


def divisor(number: int, most: int) -> int:
    """The largest divisor of a number that is not above `most`.

    >>> divisor(768, 13), divisor(12, 100)
    (12, 12)
    """
    return next(d for d in range(min(number, most), 0, -1) if number % d == 0)


def sizes(model: Architecture, batch: int, seq: int, keep: str = "none") -> Sizes:
    """All that the picture shows, for `batch` sequences of `seq` tokens.

    keep: which activations are dropped and computed again, as `recompute` in `counts.activation_parts`.

    >>> from mlsys.specs.models import LLAMA3_8B
    >>> {part: round(n / 1e9, 1) for part, n in sizes(LLAMA3_8B, 1, 8192).training.items()}
    {'weights': 16.1, 'gradients': 16.1, 'optimizer': 96.4, 'activations': 185.8}
    """
    n = counts.parameters(model)
    flops = counts.forward_flop_parts(model, batch, seq)
    training = {part: each * n for part, each in STATE.items()}
    training["activations"] = counts.activation_bytes(model, batch, seq, recompute=keep, dropout=False)
    serving = {"weights": 2 * n, "KV cache": counts.kv_cache_bytes(model, seq, batch)}
    each_token = {part: count / (batch * seq) for part, count in flops.items()}
    return Sizes(model, _named(counts.parameter_parts(model)), _named(each_token), training, serving)


def _named(parts: dict[str, float]) -> dict[str, float]:
    return {NAMES.get(part, part): count for part, count in parts.items() if count}


def chips(n_bytes: float) -> int:
    """H100s whose memory holds this many bytes."""
    return math.ceil(n_bytes / H100_SXM.mem_bytes)


class ArchitectureExplorer(Explorer):
    """Choose a published shape or make your own; heads and key-value heads step down until they divide."""

    def __init__(self):
        self.preset = choice("model", [*PRESETS, OWN])
        layers, d_model, heads, kv_heads, ratio, vocab, context, parts = PRESETS["GPT-2 small"]
        self.layers = slider("layers", layers, 1, 128)
        self.d_model = slider("d_model", d_model, 128, 16384, 128)
        self.heads = slider("heads", heads, 1, 128)
        self.kv_heads = slider("key-value heads", kv_heads, 1, 128)
        self.ratio = float_slider("d_ff / d_model", ratio, 1.0, 8.0, 0.125, ".3f")
        self.vocab = slider("vocabulary", vocab, 257, 262144)
        self.context = stops("context", CONTEXTS, context)
        self.parts = w.Dropdown(options=[GPT, LLAMA], value=parts, description="parts", style=LONG, layout=w.Layout(width="34em"))
        self.batch = slider("sequences", 1, 1, 64)
        self.keep = choice("kept for backward", list(KEEP))
        self.busy = False
        shape = [self.layers, self.d_model, self.heads, self.kv_heads, self.ratio, self.vocab, self.context, self.parts]
        self.shape = shape
        super().__init__([self.preset, *shape, self.batch, self.keep])

    def update(self, change=None) -> None:
        """A chosen model moves the sliders; a moved slider names the model again, or calls it your own."""
        if self.busy:
            return
        self.busy = True
        if change is not None and change["owner"] is self.preset and self.preset.value in PRESETS:
            for control, value in zip(self.shape, PRESETS[self.preset.value], strict=True):
                control.value = value
        now = tuple(control.value for control in self.shape)
        self.preset.value = next((name for name, row in PRESETS.items() if row == now), OWN)
        self.busy = False
        super().update()

    def model(self) -> Sizes:
        heads = divisor(self.d_model.value, self.heads.value)
        kv_heads = divisor(heads, self.kv_heads.value)
        more = dict(kv_heads=kv_heads, vocab=self.vocab.value, context=self.context.value)
        d_model, d_ff = self.d_model.value, round(self.ratio.value * self.d_model.value)
        if self.parts.value == GPT:
            shape = gpt2(d_model, self.layers.value, heads, self.preset.value, d_ff=d_ff, **more)
        else:
            shape = llama(d_model, self.layers.value, heads, d_ff, self.preset.value, **more)
        return sizes(shape, self.batch.value, self.context.value, KEEP[self.keep.value])

    def sentence(self) -> str:
        s = self.model()
        m, n = s.model, sum(s.parameters.values())
        return (
            f"{m.name}: {m.layers} layers, width {m.d_model}, {m.heads} heads on {m.kv_heads} key-value heads: {n:,} parameters, "
            f"{si(sum(s.flops.values()), 'FLOP')} forward a token, {si(sum(s.training.values()), 'B')} to train, "
            f"{counts.kv_cache_bytes(m) / 1024:g} KiB of KV cache a token."
        )

    def draw(self) -> Picture:
        s = self.model()
        n, flops = sum(s.parameters.values()), sum(s.flops.values())
        picture = Picture(700, 400, f"Parameters, FLOPs and memory as stacked bars. {self.sentence()}")
        picture.text(8, 18, finding(s), 14, bold=True)
        stack(picture, 44, f"{n:,} parameters", s.parameters, n, "memory")
        stack(picture, 134, f"{si(flops, 'FLOP')} forward for a token, {flops / (2 * n):.2f} × 2N", s.flops, flops, "compute")
        train, serve = sum(s.training.values()), sum(s.serving.values())
        most = max(train, serve)
        for y, what, parts, total in ((224, "to train", s.training, train), (314, "to serve", s.serving, serve)):
            stack(picture, y, f"{si(total, 'B')} {what}: at least {chips(total)} × H100", parts, most, "memory", share=False)
            every = math.ceil(total / H100_SXM.mem_bytes / 40) * H100_SXM.mem_bytes
            for mark in range(1, int(total // every) + 1):
                x = 8 + WIDTH * mark * every / most
                picture.line([(x, y + 4), (x, y + 40)], INK, 1.5)
        return picture


def stack(picture: Picture, y: float, title: str, parts: dict[str, float], most: float, meaning: str, share: bool = True) -> None:
    """A heading, one bar cut into parts, and its key with shares in per cent, or with bytes.

    most: the value of a full bar; meaning: colour of the parts that have none of their own.
    """
    picture.text(8, y, title, 12, bold=True)
    total, x, key = sum(parts.values()), 8.0, 8.0
    for name, value in parts.items():
        colour, hatch = COLOUR.get(name, COLOUR[meaning]), HATCH.get(name, "")
        if name == "gradients":
            colour = COLOUR["memory"]
        wide = WIDTH * value / most
        picture.rect(x, y + 8, wide, 28, colour, INK, hatch)
        x += wide
        if share and value < 0.001 * total:
            continue
        text = f"{name} {percent(value / total, '.1f')}" if share else f"{name} {si(value, 'B', 3)}"
        picture.rect(key, y + 44, 13, 13, colour, INK, hatch)
        picture.text(key + 18, y + 55, text, 11)
        key += 34 + 6.3 * len(text)


def finding(s: Sizes) -> str:
    """What the chosen shape shows, as a title.

    >>> from mlsys.specs.models import GPT2_SMALL
    >>> finding(sizes(GPT2_SMALL, 1, 1024))
    'Most parameters: MLP. Most FLOPs: MLP. Most memory in training: optimizer.'
    """
    holds, takes, fills = (max(parts, key=parts.get) for parts in (s.parameters, s.flops, s.training))
    return f"Most parameters: {holds}. Most FLOPs: {takes}. Most memory in training: {fills}."
