"""The transformer, from masks to generated text.

Read in this order: `config` (a shape), `masks`, `rope`, `composed` (every part as a formula),
`block` and `model` (the parts put together), `moe`, `cache` and `generate`; `fused` has the parts
of `composed` again, each as one fast operation.
"""

from mlsys.transformer.cache import KVCache
from mlsys.transformer.config import GPT2_SMALL, LLAMA2_7B, LLAMA3_8B, TransformerConfig
from mlsys.transformer.generate import generate
from mlsys.transformer.masks import causal_mask, padding_mask, prefix_mask, sliding_mask
from mlsys.transformer.model import Transformer

__all__ = [
    "GPT2_SMALL", "KVCache", "LLAMA2_7B", "LLAMA3_8B", "Transformer", "TransformerConfig", "causal_mask",
    "generate", "padding_mask", "prefix_mask", "sliding_mask",
]
