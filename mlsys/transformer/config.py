"""The shape of a transformer, in one frozen description.

GPT-2 and Llama are the same machine with different parts chosen: layer norm or RMS norm, GELU or
SwiGLU, learned positions or RoPE, one key-value head for each head or for a group of them, the
embedding table used again as output layer or not. Each choice is one field here; the model
(`model.Transformer`) reads nothing else.
Left out: dropout, parallel attention and feed-forward, norms on queries and keys, expert
capacity: a published model that has one of these is close to, but not, what is described here.
Lessons: the block and its counts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

CHOICES = {"norm": ("layer", "rms"), "mlp": ("gelu", "swiglu"), "positions": ("learned", "rope")}


@dataclass(frozen=True)
class TransformerConfig:
    """A decoder-only, pre-norm transformer.

    vocab: rows of the embedding table; context: longest sequence in tokens; layers: blocks;
    kv_heads: key-value heads, None for one a head; d_head: numbers a head, None for d_model / heads;
    d_ff: width of the feed-forward part, None for 4 d_model (GELU) or 8/3 d_model rounded up to a
    multiple of 64 (SwiGLU, which has three matrices); norm: "layer" or "rms"; mlp: "gelu" or "swiglu";
    positions: "learned" or "rope"; tied: the output layer is the embedding table; bias: linear layers
    add one; window: a token sees this many, itself included, None for all before it;
    experts: feed-forward parts a layer, 0 for a dense model; top_k: of which a token visits this many.

    >>> small = TransformerConfig(vocab=65, context=64, d_model=64, layers=2, heads=4)
    >>> small.d_head, small.group, small.d_ff
    (16, 1, 256)
    >>> LLAMA3_8B.d_head, LLAMA3_8B.group
    (128, 4)

    Change one with `but`, not with `dataclasses.replace`: what follows from other fields follows again.

    >>> small.but(d_model=128).d_head, small.but(d_model=128).d_ff
    (32, 512)
    """

    vocab: int
    context: int
    d_model: int
    layers: int
    heads: int
    kv_heads: int | None = None
    d_head: int | None = None
    d_ff: int | None = None
    norm: str = "layer"
    mlp: str = "gelu"
    positions: str = "learned"
    tied: bool = True
    bias: bool = True
    eps: float = 1e-5
    rope_base: float = 10_000.0
    window: int | None = None
    experts: int = 0
    top_k: int = 2

    def __post_init__(self):
        fill = object.__setattr__  # frozen for everybody else
        fill(self, "_derived", [name for name in ("kv_heads", "d_head", "d_ff") if getattr(self, name) is None])
        if self.d_head is None:
            if self.d_model % self.heads:
                raise ValueError(f"heads={self.heads} does not divide d_model={self.d_model}; give d_head")
            fill(self, "d_head", self.d_model // self.heads)
        if self.kv_heads is None:
            fill(self, "kv_heads", self.heads)
        if self.d_ff is None:
            fill(self, "d_ff", 4 * self.d_model if self.mlp == "gelu" else -(-8 * self.d_model // (3 * 64)) * 64)
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field}={getattr(self, field)!r} is none of {', '.join(choices)}")
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads={self.kv_heads} does not divide heads={self.heads}")
        if self.positions == "rope" and self.d_head % 2:
            raise ValueError(f"RoPE turns pairs of numbers: d_head={self.d_head} is odd")
        if self.experts and not 1 <= self.top_k <= self.experts:
            raise ValueError(f"top_k={self.top_k} of experts={self.experts}")

    def but(self, **changes) -> TransformerConfig:
        """A copy with some fields changed."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in self._derived}
        return TransformerConfig(**given | changes)

    @property
    def group(self) -> int:
        """Query heads that share one key-value head."""
        return self.heads // self.kv_heads


GPT2_SMALL = TransformerConfig(vocab=50_257, context=1024, d_model=768, layers=12, heads=12)
LLAMA2_7B = TransformerConfig(
    vocab=32_000, context=4096, d_model=4096, layers=32, heads=32, d_ff=11_008,
    norm="rms", mlp="swiglu", positions="rope", tied=False, bias=False,
)
LLAMA3_8B = TransformerConfig(
    vocab=128_256, context=8192, d_model=4096, layers=32, heads=32, kv_heads=8, d_ff=14_336,
    norm="rms", mlp="swiglu", positions="rope", tied=False, bias=False, rope_base=500_000.0,
)
