"""Mixture of experts (MoE): many feed-forward parts, of which every token visits a few.

A router gives each token a score for each expert. The top_k highest are visited, and their outputs
are added with weights from a softmax over these top_k scores (Mixtral's rule; Switch takes the
softmax over all experts, and its weights sum to less than 1). Parameters grow with the number of
experts, FLOPs with top_k.
The work: bring the (token, choice) pairs into the order of their experts, let each expert see its
rows in one product, bring the results back.
Left out: capacity limits, dropped tokens and communication; here no expert is ever too full, so that
an unbalanced router costs nothing, which on real machines it does. An expert that no token visited
has no gradient in that step (None), and an optimizer leaves it as it is.
Lessons: the block and its counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlsys import nn
from mlsys.autograd import Tensor, concat


@dataclass(frozen=True)
class Routing:
    """Where the tokens of one call went.

    chosen: (tokens, top_k) experts, best first; weights: (tokens, top_k) of their outputs;
    probabilities: (tokens, experts) softmax over all experts.
    """

    chosen: np.ndarray
    weights: Tensor
    probabilities: Tensor

    @property
    def load(self) -> np.ndarray:
        """(experts,) share of the visits that each expert gets; sums to 1."""
        experts = self.probabilities.shape[-1]
        return np.bincount(self.chosen.reshape(-1), minlength=experts) / self.chosen.size

    def balance_loss(self) -> Tensor:
        """experts * sum of load * mean probability: 1 if balanced, up to `experts` if all go to one.

        The load has no gradient; the probabilities do, and are pushed away from busy experts.
        """
        return (self.probabilities.mean(0) * self.load).sum() * len(self.load)


def route(scores: Tensor, top_k: int) -> Routing:
    """The top_k experts for each token: scores (tokens, experts).

    >>> routing = route(Tensor([[0.0, 2.0, 2.0], [9.0, 0.0, 1.0]]), top_k=2)
    >>> routing.chosen.tolist(), routing.weights.data[0].tolist()
    ([[1, 2], [0, 2]], [0.5, 0.5])
    >>> routing.load.tolist()
    [0.25, 0.25, 0.5]
    """
    chosen = np.argsort(-scores.data, axis=-1, kind="stable")[:, :top_k]  # of equals, the first
    picked = scores[np.arange(len(chosen))[:, None], chosen]
    return Routing(chosen, picked.softmax(), scores.softmax())


class MoE(nn.Module):
    """Experts behind a router: (..., d_model) -> (..., d_model).

    experts: modules; top_k: of which each token visits this many. After a call `routing` says
    where its tokens went.
    """

    def __init__(self, experts: list[nn.Module], d_model: int, top_k: int, rng: np.random.Generator):
        w = rng.standard_normal((d_model, len(experts)), np.float32) * np.float32(0.02)
        self.router = nn.Parameter(w, name="router")
        self.experts, self.top_k = experts, top_k
        self.routing: Routing | None = None

    def __call__(self, x: Tensor) -> Tensor:
        shape, k = x.shape, self.top_k
        x = x.reshape(-1, shape[-1])
        routing = self.routing = route(x @ self.router, k)
        pairs = routing.chosen.reshape(-1)  # pair p is token p // k at its choice p % k
        order = np.argsort(pairs, kind="stable")
        rows = x[order // k]
        ends = np.cumsum(np.bincount(pairs, minlength=len(self.experts)))
        visits = [
            expert(rows[end - n : end])
            for expert, end, n in zip(self.experts, ends, np.diff(ends, prepend=0), strict=True) if n
        ]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        y = concat(visits)[back].reshape(-1, k, shape[-1])
        return (y * routing.weights.reshape(-1, k, 1)).sum(1).reshape(shape)
