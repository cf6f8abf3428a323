"""isoFLOP valleys: for each budget, the size at which the loss is least, read off a parabola.

The idea (Hoffmann et al. 2022, section 3.2): train several sizes on one budget; in log N their losses lie
near a parabola. Its lowest point is that budget's best size, and a line through these points in logs
says how the best size grows with compute.
A parabola is symmetric, the curve of a law is not: its minimum errs to smaller models where alpha < beta
and to larger ones where alpha > beta (1 % and 3 % for the Epoch and the Hoffmann law when sizes span a
factor of 100). The exponent is spared, as long as all budgets span the same factor.
Lessons: scaling laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlsys.transformer.laws import Runs


@dataclass(frozen=True)
class Valley:
    """The parabola in log N through the losses of one budget.

    flops: geometric mean of the runs' budgets; parameters, tokens, loss: at the parabola's lowest point, not
    a number where it opens downward; inside: whether that point lies between the sizes that were tried.
    """

    flops: float
    parameters: float
    tokens: float
    loss: float
    inside: bool
    coefficients: tuple[float, float, float]  # of log(N)², log(N), 1

    def curve(self, parameters):
        """Loss of the parabola at these sizes."""
        return np.polyval(self.coefficients, np.log(parameters))


def isoflop_valleys(runs: Runs, gap: float = 0.1) -> list[Valley]:
    """One valley for each budget, smallest first; runs whose budgets lie closer than `gap` (0.1: 10 %) share one."""
    return [_valley(group) for group in by_budget(runs, gap)]


def by_budget(runs: Runs, gap: float = 0.1) -> list[Runs]:
    """The runs in groups of one budget each, smallest first."""
    order = np.argsort(runs.flops, kind="stable")
    cuts = np.flatnonzero(np.diff(np.log(runs.flops[order])) > np.log1p(gap)) + 1
    return [runs.take(group) for group in np.split(order, cuts)]


def _valley(runs: Runs) -> Valley:
    flops, u = _budget(runs), np.log(runs.parameters)
    middle = u.mean()
    c2, c1, c0 = (float(c) for c in np.polyfit(u - middle, runs.losses, 2))
    coefficients = (c2, c1 - 2 * c2 * middle, c0 - c1 * middle + c2 * middle**2)
    bottom = -c1 / (2 * c2) if c2 > 0 else np.nan
    parameters = float(np.exp(middle + bottom))
    inside = bool(u.min() <= middle + bottom <= u.max())
    return Valley(flops, parameters, flops / 6 / parameters, float(c0 + bottom * c1 / 2), inside, coefficients)


def _budget(runs: Runs) -> float:
    flops, sizes = float(np.exp(np.log(runs.flops).mean())), len(np.unique(np.log(runs.parameters).round(6)))
    if sizes < 3:
        raise ValueError(f"a parabola needs three sizes; the budget {flops:.3g} FLOP has {sizes}")
    return flops


def growth(valleys: Sequence[Valley]) -> tuple[float, float]:
    """(a, k) of N_opt = k C^a through the valleys that have their minimum inside; a line in logs.

    >>> from mlsys.transformer.scaling_laws import EPOCH_REFIT, synthetic_runs
    >>> runs = synthetic_runs(EPOCH_REFIT, np.random.default_rng(0), noise=0)
    >>> a, k = growth(isoflop_valleys(runs))
    >>> round(a, 3)  # beta / (alpha + beta) of the law
    0.513
    """
    points = [(np.log(valley.flops), np.log(valley.parameters)) for valley in valleys if valley.inside]
    if len(points) < 2:
        raise ValueError(f"a line needs two minima inside the sizes that were tried; there are {len(points)}")
    a, log_k = np.polyfit(*np.transpose(points), 1)
    return float(a), float(np.exp(log_k))


def growth_samples(runs: Runs, rng: np.random.Generator, resamples: int = 200, gap: float = 0.1) -> np.ndarray:
    """The exponent a of `growth`, once for each bootstrap sample; take quantiles for an interval.

    Residuals are drawn, not runs: five sizes a budget would often leave fewer than three. They are those of
    each budget's own parabola, widened by sqrt(n / (n - 3)) for the three coefficients. Samples in which
    fewer than two valleys keep a minimum inside are not numbers. What the parabola misses of the curve counts as
    noise, so intervals err wide where sizes spread far.
    """
    groups = by_budget(runs, gap)
    log_flops = np.log([_budget(group) for group in groups])
    bottoms = np.array([_resampled_bottoms(group, rng, resamples) for group in groups])  # (budgets, resamples)
    a = np.full(resamples, np.nan)
    for i, column in enumerate(bottoms.T):
        kept = np.isfinite(column)
        if kept.sum() >= 2:
            a[i] = np.polyfit(log_flops[kept], column[kept], 1)[0]
    return a


def _resampled_bottoms(runs: Runs, rng: np.random.Generator, resamples: int) -> np.ndarray:
    """log N of the minimum in each resample; not a number where it is not inside."""
    u, n = np.log(runs.parameters), len(runs)
    if n < 4:
        raise ValueError(
            f"{n} sizes fix a parabola and leave nothing to judge it by; the bootstrap needs four a budget"
        )
    middle = u.mean()
    fitted = np.polyval(np.polyfit(u - middle, runs.losses, 2), u - middle)
    residuals = (runs.losses - fitted) * np.sqrt(n / (n - 3))
    drawn = fitted[:, None] + rng.choice(residuals, (n, resamples))
    c2, c1, _ = np.polyfit(u - middle, drawn, 2)
    bottom = middle - c1 / np.where(c2 > 0, 2 * c2, np.nan)
    return np.where((u.min() <= bottom) & (bottom <= u.max()), bottom, np.nan)
