"""A transformer on one page: everything that parameters, FLOPs and bytes follow from.

The idea: one frozen description, read by every count. Families are short functions that fill in
what all their members share, so that a model is its table row and nothing else.
Left out: encoder-decoder models, latent attention (DeepSeek), layers that differ from each other.
Lessons: the block and its counts, scaling laws.
"""

from __future__ import annotations

from dataclasses import dataclass

POSITIONS = ("learned", "rotary", "relative", "none")
NORMS = ("layer", "rms", "none")
BIASES = ("all", "qkv", "none")


@dataclass(frozen=True)
class Architecture:
    """Shape of a decoder-only or encoder-only transformer.

    Widths are counted in elements: d_ff is the inner width of one MLP (or of one expert), head_dim
    the width of one head; heads x head_dim need not equal d_model. kv_heads=None means as many as
    heads, head_dim=None means d_model / heads.

    >>> gpt2(d_model=768, layers=12, heads=12).head_dim
    64
    """

    name: str
    layers: int
    d_model: int
    heads: int
    d_ff: int
    vocab: int
    context: int  # tokens that a sequence holds at most
    kv_heads: int | None = None
    head_dim: int | None = None
    causal: bool = True  # False: an encoder, every token sees every other
    window: int | None = None  # sliding window, in tokens
    positions: str = "learned"  # one of POSITIONS; "rotary" has no parameters
    extra_positions: int = 0  # rows of the learned table beyond `context` (OPT, RoBERTa: 2)
    token_types: int = 0  # rows of the segment table (BERT: 2)
    embedding_dim: int | None = None  # width of the token table, where it differs from d_model
    tied: bool = True  # the output layer is the token table
    head: bool = True  # False: the model ends with the last layer (BERT as it is shipped)
    norm: str = "layer"  # one of NORMS: gain and bias, gain alone, or no parameters counted
    norms_per_layer: int = 2
    embedding_norm: bool = False
    final_norm: bool = True
    qk_norm: bool = False  # a gain of head_dim for queries and one for keys
    attention_bias: str = "all"  # one of BIASES
    mlp_bias: bool = True
    head_bias: bool = False
    gated: bool = False  # three matrices (SwiGLU) instead of two
    experts: int = 0  # 0: a dense MLP
    experts_per_token: int = 0
    shared_experts: int = 0  # of width d_ff, used by every token beside the chosen ones
    pooler: bool = False  # BERT's dense layer on the first token
    source: str = ""  # where the row is from

    def __post_init__(self):
        if self.head_dim is None:
            if self.d_model % self.heads:
                raise ValueError(
                    f"{self.name}: heads={self.heads} does not divide d_model={self.d_model}: give head_dim"
                )
            object.__setattr__(self, "head_dim", self.d_model // self.heads)
        for field, default in (("kv_heads", self.heads), ("embedding_dim", self.d_model)):
            if getattr(self, field) is None:
                object.__setattr__(self, field, default)
        self._check()

    def _check(self) -> None:
        for field in ("layers", "d_model", "heads", "d_ff", "vocab", "context", "kv_heads", "head_dim"):
            if getattr(self, field) < 1:
                raise ValueError(f"{self.name}: {field}={getattr(self, field)} is less than 1")
        for field, allowed in (("positions", POSITIONS), ("norm", NORMS), ("attention_bias", BIASES)):
            if getattr(self, field) not in allowed:
                raise ValueError(f"{self.name}: {field}={getattr(self, field)!r} is not one of {', '.join(allowed)}")
        if self.heads % self.kv_heads:
            raise ValueError(f"{self.name}: kv_heads={self.kv_heads} does not divide heads={self.heads}")
        if bool(self.experts) != bool(self.experts_per_token) or self.experts_per_token > self.experts:
            raise ValueError(f"{self.name}: {self.experts_per_token} of {self.experts} experts per token")

    @property
    def q_width(self) -> int:
        """Width of all queries of one token: heads x head_dim."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all keys (or all values) of one token."""
        return self.kv_heads * self.head_dim


def gpt2(d_model: int, layers: int, heads: int, name: str = "GPT-2", **other) -> Architecture:
    """GPT-2 and GPT-3: learned positions, LayerNorm, biases everywhere, MLP 4 times as wide, tied."""
    shape = dict(d_ff=4 * d_model, vocab=50257, context=1024)
    return Architecture(name, layers, d_model, heads, **{**shape, **other})


def opt(d_model: int, layers: int, heads: int, name: str = "OPT", **other) -> Architecture:
    """OPT: as GPT-2, with 2 more position rows than tokens.

    The 350M alone normalises after each sublayer, so has no last norm, and squeezes its token table
    to 512: say final_norm=False, embedding_dim=512.
    """
    shape = dict(vocab=50272, context=2048, extra_positions=2)
    return gpt2(d_model, layers, heads, name, **{**shape, **other})


def bert(d_model: int, layers: int, heads: int, name: str = "BERT", **other) -> Architecture:
    """BERT without its pre-training heads: segments, a norm on the embeddings, a pooler, no last norm."""
    shape = dict(d_ff=4 * d_model, vocab=30522, context=512, token_types=2, causal=False, pooler=True, head=False)
    return Architecture(name, layers, d_model, heads, **{**shape, "embedding_norm": True, "final_norm": False, **other})


def llama(d_model: int, layers: int, heads: int, d_ff: int, name: str = "LLaMA", **other) -> Architecture:
    """LLaMA, Mistral, Mixtral: rotary positions, RMSNorm, SwiGLU, no biases; untied unless said."""
    shape = dict(vocab=32000, context=2048, positions="rotary", norm="rms", tied=False)
    plain = dict(attention_bias="none", mlp_bias=False, gated=True)
    return Architecture(name, layers, d_model, heads, d_ff, **{**shape, **plain, **other})


def chinchilla(d_model: int, layers: int, heads: int, head_dim: int, name: str = "Chinchilla", **other) -> Architecture:
    """Gopher and Chinchilla: relative positions with a projection in each layer, tied, 32,000 tokens.

    The paper prints sizes and totals, not which tensors they count. That the totals hold one more
    d_model x heads·head_dim matrix and two vectors a layer, and no gains of the layers' norms, is
    inferred: with it Table A9 agrees to the nearest million.
    """
    shape = dict(d_ff=4 * d_model, vocab=32000, context=2048, positions="relative", norm="rms", norms_per_layer=0)
    return Architecture(name, layers, d_model, heads, head_dim=head_dim, **{**shape, **other})
