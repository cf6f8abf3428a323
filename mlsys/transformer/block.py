"""The block: attention, then a feed-forward part, each behind a norm and added to the stream.

    x = x + attention(norm1(x))
    x = x + feed_forward(norm2(x))

Norm first ("pre-norm") leaves a path from the loss to the embedding that nothing scales, and deep
stacks train without warm-up tricks. Every part works with the functions of `fused` or, with
`fused=False`, with those of `composed`: the same parameters, the same numbers up to rounding.
Lessons: the block and its counts.
"""

from __future__ import annotations

import numpy as np

from mlsys import nn
from mlsys.autograd import Tensor
from mlsys.transformer import composed, fused
from mlsys.transformer.cache import LayerCache
from mlsys.transformer.config import TransformerConfig
from mlsys.transformer.moe import MoE

INIT_STD = 0.02  # GPT-2's: small enough that the first logits are near zero


class Part(nn.Module):
    """A module that knows its path: `self.ops` is the file `fused` or the file `composed`."""

    fused: bool

    @property
    def ops(self):
        return fused if self.fused else composed


class Linear(Part):
    """x @ w + b, weights normal with deviation `std`: (..., d_in) -> (..., d_out)."""

    def __init__(self, d_in: int, d_out: int, rng: np.random.Generator, bias: bool, fused: bool, std: float = INIT_STD):
        self.w = nn.Parameter(rng.standard_normal((d_in, d_out), np.float32) * np.float32(std), name="w")
        self.b = nn.Parameter(np.zeros(d_out, np.float32), name="b") if bias else None
        self.fused = fused

    def __call__(self, x: Tensor) -> Tensor:
        return self.ops.linear(x, self.w, self.b)


class Norm(Part):
    """Layer norm or RMS norm, as the config says: (..., d_model) -> (..., d_model)."""

    def __init__(self, config: TransformerConfig, fused: bool):
        self.gamma = nn.Parameter(np.ones(config.d_model, np.float32), name="gamma")
        layer = config.norm == "layer"
        self.beta = nn.Parameter(np.zeros(config.d_model, np.float32), name="beta") if layer else None
        self.eps, self.fused = config.eps, fused

    def __call__(self, x: Tensor) -> Tensor:
        if self.beta is None:
            return self.ops.rms_norm(x, self.gamma, self.eps)
        return self.ops.layer_norm(x, self.gamma, self.beta, self.eps)


class Attention(Part):
    """Queries, keys and values from one product, attention, and a mix of the heads.

    `qkv.w` has the columns of all query heads, then of all key heads, then of all value heads.
    """

    def __init__(self, config: TransformerConfig, rng: np.random.Generator, fused: bool):
        self.heads, self.kv_heads, self.fused = config.heads, config.kv_heads, fused
        width = (config.heads + 2 * config.kv_heads) * config.d_head
        self.qkv = Linear(config.d_model, width, rng, config.bias, fused)
        std = INIT_STD / (2 * config.layers) ** 0.5
        self.out = Linear(config.heads * config.d_head, config.d_model, rng, config.bias, fused, std)

    def __call__(self, x: Tensor, mask=None, rope=None, cache: LayerCache | None = None) -> Tensor:
        """x (batch, t, d_model) -> the same shape; a cache adds the keys and values of earlier tokens."""
        qkv = self.qkv(x)
        if cache is None:
            return self.out(self.ops.self_attention(qkv, self.heads, self.kv_heads, mask, rope))
        q, k, v = composed.split_heads(qkv, self.heads, self.kv_heads, rope)
        k, v = cache.append(k.data, v.data)
        return self.out(composed.merge_heads(composed.attention(q, Tensor(k), Tensor(v), mask)))


class FeedForward(Part):
    """Two layers with GELU between them, or three with SwiGLU: (..., d_model) -> (..., d_model)."""

    def __init__(self, config: TransformerConfig, rng: np.random.Generator, fused: bool):
        d, d_ff = config.d_model, config.d_ff
        self.gate = Linear(d, d_ff, rng, config.bias, fused) if config.mlp == "swiglu" else None
        self.up = Linear(d, d_ff, rng, config.bias, fused)
        self.down = Linear(d_ff, d, rng, config.bias, fused, INIT_STD / (2 * config.layers) ** 0.5)
        self.fused = fused

    def __call__(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(self.ops.gelu(self.up(x)))
        return self.down(self.ops.swiglu(self.gate(x), self.up(x)))


class Block(Part):
    """One layer: (batch, t, d_model) -> (batch, t, d_model)."""

    def __init__(self, config: TransformerConfig, rng: np.random.Generator, fused: bool):
        self.norm1 = Norm(config, fused)
        self.attention = Attention(config, rng, fused)
        self.norm2 = Norm(config, fused)
        if config.experts:
            parts = [FeedForward(config, rng, fused) for _ in range(config.experts)]
            self.feed_forward = MoE(parts, config.d_model, config.top_k, rng)
        else:
            self.feed_forward = FeedForward(config, rng, fused)

    def __call__(self, x: Tensor, mask=None, rope=None, cache: LayerCache | None = None) -> Tensor:
        x = x + self.attention(self.norm1(x), mask, rope, cache)
        return x + self.feed_forward(self.norm2(x))
