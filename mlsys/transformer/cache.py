"""The KV cache: keys and values of past tokens, kept so that they are computed once.

Without it each new token runs the model over the whole text again: T tokens cost T^2 / 2 token
passes instead of T. With it the price is memory, `size_bytes`, which grows with every sequence and
every token, and at long contexts exceeds the weights.
Simplification: room for the longest text is taken at once. Servers hand it out in pages as texts
grow, and waste less. A window does not free old keys here.
Lessons: the block and its counts.
"""

from __future__ import annotations

import numpy as np

from mlsys.transformer.config import TransformerConfig


class LayerCache:
    """Keys and values of one layer, (batch, kv_heads, capacity, d_head) each."""

    def __init__(self, batch: int, kv_heads: int, capacity: int, d_head: int, dtype=np.float32):
        self.keys = np.empty((batch, kv_heads, capacity, d_head), dtype)
        self.values = np.empty_like(self.keys)
        self.length = 0  # tokens

    def append(self, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add (batch, kv_heads, new, d_head) each; gives views of everything so far.

        >>> cache = LayerCache(batch=1, kv_heads=1, capacity=4, d_head=2)
        >>> k = np.ones((1, 1, 3, 2))
        >>> cache.append(k, k)[0].shape, cache.append(k[:, :, :1], k[:, :, :1])[0].shape
        ((1, 1, 3, 2), (1, 1, 4, 2))
        """
        start, end = self.length, self.length + k.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError(f"{end} tokens do not fit into a cache for {self.keys.shape[2]}")
        self.keys[:, :, start:end], self.values[:, :, start:end] = k, v
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]


class KVCache:
    """A `LayerCache` for each layer of a model.

    >>> from mlsys.transformer.config import LLAMA3_8B
    >>> shape = LLAMA3_8B
    >>> 2 * shape.layers * shape.kv_heads * shape.d_head * 4  # bytes a token, as float32
    262144
    """

    def __init__(self, config: TransformerConfig, batch: int, capacity: int | None = None, dtype=np.float32):
        shape = batch, config.kv_heads, capacity or config.context, config.d_head
        self.layers = [LayerCache(*shape, dtype) for _ in range(config.layers)]

    @property
    def length(self) -> int:
        """Tokens of each sequence so far."""
        return self.layers[0].length

    @property
    def size_bytes(self) -> int:
        """Memory taken, used or not."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.layers)
