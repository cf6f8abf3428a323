"""The transformer: embed, a stack of blocks, norm, and a score for every token of the vocabulary.

    >>> config = TransformerConfig(vocab=65, context=64, d_model=64, layers=2, heads=4)
    >>> model = Transformer(config, np.random.default_rng(0))
    >>> ids = np.arange(20).reshape(2, 10)
    >>> model(ids).shape
    (2, 10, 65)
    >>> round(model.loss(ids[:, :-1], ids[:, 1:]).item(), 1)  # before training: about log(65)
    4.2

`fused=True` trains; `fused=False` gives the same numbers, up to rounding, from operators that can
be read one by one (`composed`), in more time and memory.
Left out: dropout, mixed precision, sequences of different lengths packed into one row.
Lessons: the block and its counts.
"""

from __future__ import annotations

import numpy as np

from mlsys import nn
from mlsys.autograd import Tensor, no_grad
from mlsys.transformer import composed
from mlsys.transformer.block import INIT_STD, Block, Linear, Norm, Part
from mlsys.transformer.cache import KVCache
from mlsys.transformer.config import TransformerConfig
from mlsys.transformer.masks import causal_mask, sliding_mask
from mlsys.transformer.moe import MoE
from mlsys.transformer.rope import rope_table


class Transformer(Part):
    """A decoder-only language model of the given shape, float32, weights drawn as GPT-2's are."""

    def __init__(self, config: TransformerConfig, rng: np.random.Generator, fused: bool = True):
        self.config, self.fused = config, fused
        self.tokens = nn.Embedding(config.vocab, config.d_model, rng)
        self.positions = None
        if config.positions == "learned":
            start = rng.standard_normal((config.context, config.d_model), np.float32)
            self.positions = nn.Parameter(start * np.float32(INIT_STD / 2), name="positions")
        self.blocks = [Block(config, rng, fused) for _ in range(config.layers)]
        self.norm = Norm(config, fused)
        self.head = None if config.tied else Linear(config.d_model, config.vocab, rng, bias=False, fused=fused)

    def __call__(self, ids: np.ndarray, mask: np.ndarray | None = None, cache: KVCache | None = None) -> Tensor:
        """Scores of the next token after each token: ids (batch, t) -> (batch, t, vocab).

        mask: booleans that broadcast to (batch, heads, t, past + t), instead of the causal one (or
        the window of the config); cache: the ids follow those that it has seen, and no gradient
        reaches what it holds.
        """
        x, mask, rope = self._start(ids, mask, cache.length if cache else 0)
        for i, block in enumerate(self.blocks):
            x = block(x, mask, rope, cache.layers[i] if cache else None)
        x = self.norm(x)
        return self.head(x) if self.head else self.ops.linear(x, self.tokens.table.T)

    def _start(self, ids: np.ndarray, mask: np.ndarray | None, past: int):
        """(embedded tokens, mask, RoPE's table or None) for the first block."""
        ids = np.asarray(ids)
        t, config = ids.shape[-1], self.config
        if past + t > config.context:
            raise ValueError(f"{past + t} tokens for a context of {config.context}")
        if mask is None:
            mask = causal_mask(t, past) if config.window is None else sliding_mask(t, config.window, past)
        x = self.ops.embedding(self.tokens.table, ids)
        if self.positions is None:
            return x, mask, rope_table(t, config.d_head, config.rope_base, past, x.dtype)
        return x + self.positions[past : past + t], mask, None

    def loss(self, ids: np.ndarray, targets: np.ndarray, mask: np.ndarray | None = None) -> Tensor:
        """Mean over all tokens of -log(probability of the target), in nats: both (batch, t)."""
        return self.ops.cross_entropy(self(ids, mask), targets)

    def attention_maps(self, ids: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        """Who looks at whom: ids (batch, t) -> weights (layers, batch, heads, queries, keys)."""
        maps = []
        with no_grad():
            x, mask, rope = self._start(ids, mask, 0)
            for block in self.blocks:
                qkv = block.attention.qkv(block.norm1(x))
                q, k, _ = composed.split_heads(qkv, self.config.heads, self.config.kv_heads, rope)
                maps.append(composed.attention_weights(q, composed.share_heads(k, self.config.group), mask).data)
                x = block(x, mask, rope)
        return np.stack(maps)

    def balance_loss(self) -> Tensor:
        """Mean over the layers of `moe.Routing.balance_loss`, for the tokens of the last call."""
        parts = [block.feed_forward for block in self.blocks]
        losses = [part.routing.balance_loss() for part in parts if isinstance(part, MoE)]
        if not losses:
            raise ValueError("a model without experts has nothing to balance")
        return sum(losses[1:], losses[0]) * (1 / len(losses))
