"""Sizing with a scaling law: how many parameters and tokens for a budget, and for whom.

The idea: training costs 6 FLOPs for each parameter and token, so a budget fixes their product, and
the law says where along that curve the loss is least. If the model is then served, each token costs
2 FLOPs for each parameter again, and a smaller model trained longer is cheaper over its life.
6ND and 2ND leave attention scores out, so costs err low, more for long sequences; serving is limited by
memory more often than by FLOPs, so its cost in time errs low too.
Published laws: `laws`; isoFLOP valleys: `isoflop`; fitting: `scaling_fit`; all are repeated here.
Lessons: scaling laws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mlsys.transformer.isoflop import Valley, growth, growth_samples, isoflop_valleys
from mlsys.transformer.laws import (
    CHINCHILLA_TABLE_3,
    EPOCH_REFIT,
    HOFFMANN_PRINTED,
    HOFFMANN_UNROUNDED,
    KAPLAN,
    KAPLAN_C,
    KAPLAN_D,
    KAPLAN_N,
    LAWS,
    PUBLISHED_EXPONENTS,
    KaplanLaw,
    ParametricLaw,
    Runs,
)
from mlsys.transformer.scaling_fit import Bootstrap, Fit, bootstrap, fit_law, start_grid

__all__ = [
    "CHINCHILLA_TABLE_3", "EPOCH_REFIT", "HOFFMANN_PRINTED", "HOFFMANN_UNROUNDED", "KAPLAN", "KAPLAN_C", "KAPLAN_D",
    "KAPLAN_N", "LAWS", "PUBLISHED_EXPONENTS", "Allocation", "Bootstrap", "Fit", "KaplanLaw", "ParametricLaw", "Runs",
    "Sizing", "Valley", "bootstrap", "cheapest", "exponent", "fit_law", "growth", "growth_samples", "isoflop_valleys", "optimum",
    "optimum_numerically", "start_grid", "synthetic_runs", "tokens_needed",
]  # fmt: skip

Law = ParametricLaw | KaplanLaw


@dataclass(frozen=True)
class Allocation:
    """A model size and a number of training tokens, with the loss that a law expects of them."""

    parameters: float
    tokens: float
    loss: float

    @property
    def flops(self) -> float:
        """Training FLOPs: 6ND."""
        return 6 * self.parameters * self.tokens

    @property
    def tokens_per_parameter(self) -> float:
        return self.tokens / self.parameters


def exponent(law: Law) -> float:
    """a in N_opt ~ C^a, from the law alone; tokens grow as C^(1-a).

    >>> round(exponent(HOFFMANN_PRINTED), 3), round(exponent(EPOCH_REFIT), 3)
    (0.452, 0.513)
    """
    _, alpha, _, beta = law.powers()
    return beta / (alpha + beta)


def optimum(law: Law, flops: float) -> Allocation:
    """The allocation of least loss for a training budget of 6ND = flops, in closed form.

    At the optimum a percent more parameters helps as much as a percent more tokens:
    alpha A / N^alpha = beta B / D^beta.

    >>> for law in (HOFFMANN_PRINTED, EPOCH_REFIT):  # one budget, two fits to the same runs
    ...     best = optimum(law, flops=5.76e23)
    ...     print(f"{best.parameters / 1e9:.0f}B parameters, {best.tokens_per_parameter:.1f} tokens each")
    32B parameters, 92.6 tokens each
    72B parameters, 18.3 tokens each
    """
    A, alpha, B, beta = law.powers()
    product = flops / 6
    parameters = (alpha * A / (beta * B) * product**beta) ** (1 / (alpha + beta))
    tokens = product / parameters
    return Allocation(parameters, tokens, law.loss(parameters, tokens))


def optimum_numerically(law: Law, flops: float) -> Allocation:
    """The same by search along the budget's curve; needs nothing but `law.loss`, so any law will do."""
    product = flops / 6
    parameters = np.exp(_lowest(lambda u: law.loss(np.exp(u), product / np.exp(u)), 0.0, np.log(product)))
    return Allocation(float(parameters), float(product / parameters), float(law.loss(parameters, product / parameters)))


def _lowest(f: Callable[[float], float], low: float, high: float, tolerance: float = 1e-9) -> float:
    """Where a function with one valley between low and high is least, by golden section."""
    ratio = (5**0.5 - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    f_left, f_right = f(left), f(right)
    while high - low > tolerance:
        if f_left < f_right:
            high, right, f_right = right, left, f_left
            left = high - ratio * (high - low)
            f_left = f(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + ratio * (high - low)
            f_right = f(right)
    return (low + high) / 2


# Serving


def tokens_needed(law: Law, parameters, loss: float):
    """Training tokens with which models of these sizes reach a loss; infinite where they never do.

    >>> tokens_needed(EPOCH_REFIT, np.array([1e9, 70e9]), loss=2.0).round(-9).tolist()
    [inf, 611000000000.0]
    """
    A, alpha, B, beta = law.powers()
    left = law.level(loss) - A * np.asarray(parameters, float) ** -alpha
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(left > 0, (B / np.maximum(left, 1e-300)) ** (1 / beta), np.inf)


@dataclass(frozen=True)
class Sizing(Allocation):
    """An allocation that is going to be served: `served` tokens over its life, at 2 FLOPs a parameter."""

    served: float = 0.0

    @property
    def serving_flops(self) -> float:
        return 2 * self.parameters * self.served

    @property
    def total_flops(self) -> float:
        return self.flops + self.serving_flops


def cheapest(law: Law, loss: float, served: float) -> Sizing:
    """The model of a given loss for which training and serving `served` tokens take the fewest FLOPs.

    served=0 gives the compute-optimal model; the more is served, the smaller the model and the longer its
    training. Far from the optimum a law is extrapolated, and nobody knows in advance which way it errs.

    >>> chinchilla = optimum(EPOCH_REFIT, flops=5.76e23)
    >>> for served in (0, 1e13):
    ...     best = cheapest(EPOCH_REFIT, chinchilla.loss, served)
    ...     print(f"{best.parameters / 1e9:.0f}B, {best.tokens_per_parameter:.0f} tokens each")
    72B, 18 tokens each
    34B, 109 tokens each
    """
    if served < 0:
        raise ValueError(f"served={served} tokens is less than none")
    A, alpha, _, beta = law.powers()
    level = law.level(loss)
    smallest = np.log(A / level) / alpha  # log of a size that needs endless data
    largest = np.log(A * (alpha + beta) / (beta * level)) / alpha  # log of the compute-optimal size

    def cost(u: float) -> float:
        size = np.exp(u)
        return size * (6 * float(tokens_needed(law, size, loss)) + 2 * served)

    size = np.exp(largest if served == 0 else _lowest(cost, smallest, largest))
    return Sizing(float(size), float(tokens_needed(law, size, loss)), loss, served)


# Runs to practise on


def synthetic_runs(
    law: Law, rng: np.random.Generator, budgets: Sequence[float] = tuple(np.geomspace(6e18, 3e21, 7)), sizes: int = 35,
    span: float = 10.0, noise: float = 0.005, outliers: float = 0.0,
) -> Runs:  # fmt: skip
    """Runs as a law would have them, with noise: 7 budgets x 35 sizes = 245 unless said.

    Sizes are spread evenly in log N from 1/span to span times each budget's optimum. noise: standard
    deviation of log loss; outliers: the share of runs that went wrong and ended 5 to 30 % higher.
    """
    flops = np.repeat(np.asarray(budgets, float), sizes)
    around = np.tile(np.geomspace(1 / span, span, sizes), len(budgets))
    parameters = np.array([optimum(law, c).parameters for c in flops]) * around
    tokens = flops / 6 / parameters
    failed = rng.random(len(flops)) < outliers
    error = noise * rng.standard_normal(len(flops)) + failed * np.log(rng.uniform(1.05, 1.3, len(flops)))
    return Runs(parameters, tokens, law.loss(parameters, tokens) * np.exp(error))
