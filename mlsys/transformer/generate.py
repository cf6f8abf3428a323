"""Generation: draw a token, append it, ask again.

Prefill runs the prompt through the model once; each decode step then runs one token and reads
the cache. At temperature 0 the likeliest token is taken; above, scores are divided by it first,
so that a low one sharpens the distribution. top_k forgets all but the k likeliest.
Left out: nucleus (top-p) sampling, beams, stopping some sequences of a batch early.
Lessons: the block and its counts.
"""

from __future__ import annotations

import numpy as np

from mlsys.autograd import no_grad
from mlsys.transformer.cache import KVCache
from mlsys.transformer.model import Transformer


def generate(
    model: Transformer, ids, new: int, rng: np.random.Generator | None = None, temperature: float = 1.0,
    top_k: int | None = None, use_cache: bool = True,
) -> np.ndarray:
    """The prompt and `new` tokens after it: ids (batch, t) -> (batch, t + new).

    rng: needed where the temperature is above 0; use_cache=False runs the whole text for each token.

    >>> from mlsys.transformer.config import TransformerConfig
    >>> config = TransformerConfig(vocab=16, context=32, d_model=8, layers=1, heads=2)
    >>> model = Transformer(config, np.random.default_rng(0))
    >>> fast = generate(model, [[1, 2, 3]], new=5, temperature=0.0)
    >>> fast.shape, (fast == generate(model, [[1, 2, 3]], new=5, temperature=0.0, use_cache=False)).all()
    ((1, 8), np.True_)
    """
    ids = np.asarray(ids)
    if temperature > 0 and rng is None:
        raise ValueError(f"temperature={temperature} draws at random: pass rng, or temperature=0")
    cache = KVCache(model.config, len(ids), ids.shape[1] + new, model.tokens.table.dtype) if use_cache else None
    with no_grad():
        for _ in range(new):
            unseen = ids[:, cache.length :] if cache else ids
            scores = model(unseen, cache=cache).data[:, -1]
            ids = np.concatenate([ids, choose(scores, rng, temperature, top_k)[:, None]], axis=1)
    return ids


def choose(scores: np.ndarray, rng: np.random.Generator | None, temperature: float, top_k: int | None) -> np.ndarray:
    """A token for each row of scores (batch, vocab)."""
    if temperature <= 0:
        return scores.argmax(-1)
    scores = scores / temperature
    if top_k is not None and top_k < scores.shape[-1]:
        kth = np.partition(scores, -top_k, axis=-1)[:, [-top_k]]
        scores = np.where(scores >= kth, scores, -np.inf)
    # the largest of score + Gumbel noise is a draw from softmax(scores)
    return (scores + rng.gumbel(size=scores.shape)).argmax(-1)
