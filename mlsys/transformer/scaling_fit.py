"""Fitting a scaling law to runs, and how far to trust the fit.

The idea (Hoffmann et al. 2022, section 3.3): predict log loss as a log-sum-exp of three straight lines
in log N and log D, forgive outliers with the Huber loss, and start from many points, since some
starts end where one of the three terms has vanished. Here all starts, and all bootstrap
resamples, are one stack of small Levenberg-Marquardt problems in NumPy.
Simplifications: a resample starts from the best fit alone, so an interval errs narrow where a resample has
two minima; and runs are taken as independent, which points along one training curve are not, so intervals
err narrow for those.
Lessons: scaling laws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlsys.transformer.laws import ParametricLaw, Runs

DELTA = 1e-3  # of the Huber loss, in log loss: as in the paper
FIELDS = ("A", "B", "E", "alpha", "beta")


def start_grid() -> np.ndarray:
    """The 324 starts, (324, 5): log A, log B, log E, alpha, beta."""
    axes = ([0, 10, 20], [0, 10, 20], [-0.5, 0, 0.5, 1], [0.2, 0.7, 1.5], [0.2, 0.7, 1.5])
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 5).astype(float)


@dataclass(frozen=True)
class Fit:
    """A fitted law; objective: its summed Huber loss; agreeing: how many of `starts` came within 0.1 % of it."""

    law: ParametricLaw
    objective: float
    agreeing: int
    starts: int


def fit_law(runs: Runs, starts: np.ndarray | None = None, delta: float = DELTA, name: str = "fit") -> Fit:
    """The parametric law that fits the runs best, from every start of the grid.

    >>> from mlsys.transformer.laws import EPOCH_REFIT
    >>> from mlsys.transformer.scaling_laws import synthetic_runs
    >>> runs = synthetic_runs(EPOCH_REFIT, np.random.default_rng(0), noise=0)
    >>> fit = fit_law(runs)
    >>> round(fit.law.alpha, 4), round(fit.law.E, 4)
    (0.3478, 1.8169)
    """
    if len(runs) < 6:
        raise ValueError(f"{len(runs)} runs cannot fix five numbers with something left to judge them by")
    starts = start_grid() if starts is None else np.asarray(starts, float)
    ends, objectives = minimise(runs, starts, np.ones((1, len(runs))), delta)
    best = int(np.argmin(objectives))
    agreeing = int((objectives <= objectives[best] * 1.001 + 1e-15).sum())
    source = f"fitted to {len(runs)} runs from {len(starts)} starts"
    return Fit(law_of(ends[best], name, source), float(objectives[best]), agreeing, len(starts))


def law_of(theta: np.ndarray, name: str = "fit", source: str = "") -> ParametricLaw:
    """The law of one row (log A, log B, log E, alpha, beta)."""
    A, B, E = np.exp(np.clip(theta[:3], -700, 700))
    return ParametricLaw(name, float(A), float(B), float(E), float(theta[3]), float(theta[4]), source)


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Laws fitted to resampled runs: rows of log A, log B, log E, alpha, beta."""

    thetas: np.ndarray

    def values(self, quantity: str | Callable[[ParametricLaw], float]) -> np.ndarray:
        """One value a resample: a field of the law, or any function of it."""
        laws = [law_of(theta) for theta in self.thetas]
        return np.array([getattr(law, quantity) if isinstance(quantity, str) else quantity(law) for law in laws])

    def interval(self, quantity: str | Callable[[ParametricLaw], float], level: float = 0.9) -> tuple[float, float]:
        """Percentile interval that holds `level` of the resamples."""
        low, high = np.quantile(self.values(quantity), [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def bootstrap(runs: Runs, fit: Fit, rng: np.random.Generator, resamples: int = 200, delta: float = DELTA) -> Bootstrap:
    """Fit again to `resamples` draws of the runs with replacement, each from the best fit."""
    law = fit.law
    start = np.array([np.log(law.A), np.log(law.B), np.log(max(law.E, 1e-300)), law.alpha, law.beta])
    weights = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), resamples).astype(float)
    return Bootstrap(minimise(runs, np.tile(start, (resamples, 1)), weights, delta)[0])


def minimise(
    runs: Runs, starts: np.ndarray, weights: np.ndarray, delta: float, steps: int = 400, gain: float = 1e-8
) -> tuple[np.ndarray, np.ndarray]:
    """Levenberg-Marquardt from every row of `starts` (S, 5) at once: (ends, objectives).

    weights: (S or 1, runs), how often each run counts. The Huber loss enters as a weight that is
    renewed in each step. A row is done when a step gains less than `gain` of its objective.
    """
    x, y, target = np.log(runs.parameters), np.log(runs.tokens), np.log(runs.losses)
    center = np.array([x.mean(), y.mean()])
    theta = starts.copy()
    theta[:, :2] -= theta[:, 3:] * center  # lines through the middle of the runs: no long narrow valley
    x, y = x - center[0], y - center[1]
    weights = np.broadcast_to(weights, (len(theta), len(x)))
    objective = huber(predict(theta, x, y)[0] - target, weights, delta)
    damping, active = np.full(len(theta), 1e-2), np.arange(len(theta))
    for _ in range(steps):
        here, w = theta[active], weights[active]
        step = _step(here, x, y, target, w, delta, damping[active])
        tried = huber(predict(here + step, x, y)[0] - target, w, delta)
        better = tried < objective[active]
        small = better & (objective[active] - tried < gain * objective[active])
        done = small | (~better & (damping[active] > 1e8)) | (objective[active] < 1e-20)
        theta[active[better]] = (here + step)[better]
        objective[active[better]] = tried[better]
        damping[active] = np.clip(damping[active] * np.where(better, 0.3, 4.0), 1e-12, 1e12)
        active = active[~done]
        if not len(active):
            break
    theta[:, :2] += theta[:, 3:] * center
    return theta, objective


def predict(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log loss (S, runs), and the share of the loss that each of the three terms has (3, S, runs)."""
    a, b, e, alpha, beta = theta.T[:, :, None]
    lines = np.stack([a - alpha * x, b - beta * y, e + 0 * x])
    top = lines.max(0)
    terms = np.exp(lines - top)
    total = terms.sum(0)
    return top + np.log(total), terms / total


def huber(residuals: np.ndarray, weights: np.ndarray, delta: float) -> np.ndarray:
    """Sum over the runs: half the square up to delta, straight beyond.

    >>> huber(np.array([[0.5, -3.0]]), np.ones((1, 2)), delta=1.0).tolist()
    [2.625]
    """
    size = np.abs(residuals)
    inner = np.minimum(size, delta)
    return (weights * inner * (size - inner / 2)).sum(-1)


def _step(theta, x, y, target, weights, delta, damping) -> np.ndarray:
    """One damped Gauss-Newton step for each row, (S, 5)."""
    log_loss, shares = predict(theta, x, y)
    residuals = log_loss - target
    weights = weights * np.minimum(1, delta / np.maximum(np.abs(residuals), 1e-300))
    slopes = np.stack([shares[0], shares[1], shares[2], -shares[0] * x, -shares[1] * y], 1)  # (S, 5, runs)
    weighted = slopes * weights[:, None]
    curvature = weighted @ slopes.swapaxes(1, 2)
    gradient = (weighted @ residuals[:, :, None])[..., 0]
    diagonal = np.einsum("sii->si", curvature)  # a view
    # The share of the trace holds back the numbers of a term that has all but vanished: no curvature of their own.
    diagonal += damping[:, None] * (diagonal + 1e-3 * diagonal.sum(1, keepdims=True)) + 1e-14
    return -np.linalg.solve(curvature, gradient[..., None])[..., 0]
