"""Scaling laws as they were published: loss as a function of parameters and tokens.

The idea: loss falls as a power of model size and a power of data, towards a floor. Several groups
fitted such a form, and their numbers do not agree, not even within one paper: each law here is
apart, with its source, and nothing mixes them.
A law says nothing outside the runs that it was fitted to (up to 1.6e10 parameters for Hoffmann
et al.); beyond them it errs in a direction that nobody knows in advance.
Losses are in nats per token, of each paper's own text and tokenizer: never compare across papers.
Lessons: scaling laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ParametricLaw:
    """loss = E + A / N^alpha + B / D^beta, with N parameters and D tokens.

    errors: standard errors of A, B, E, alpha, beta, where published.

    >>> round(float(HOFFMANN_PRINTED.loss(70e9, 1.4e12)), 3)
    1.937
    """

    name: str
    A: float
    B: float
    E: float
    alpha: float
    beta: float
    source: str = ""
    errors: tuple[float, ...] = ()

    def loss(self, parameters, tokens):
        """Loss in nats per token; numbers or arrays."""
        return self.E + self.A * parameters**-self.alpha + self.B * tokens**-self.beta

    def powers(self) -> tuple[float, float, float, float]:
        """(A, alpha, B, beta) of the sum A/N^alpha + B/D^beta that the loss rises with."""
        return self.A, self.alpha, self.B, self.beta

    def level(self, loss: float) -> float:
        """The value of that sum at a given loss."""
        if loss <= self.E:
            raise ValueError(f"loss={loss} is not above the floor {self.E:.4g} of {self.name}: no run reaches it")
        return loss - self.E


@dataclass(frozen=True)
class KaplanLaw:
    """loss = ((N_c / N)^(alpha_N / alpha_D) + D_c / D)^alpha_D, with N non-embedding parameters, no floor.

    >>> round(float(KAPLAN.loss(1e9, 22e9)), 2)
    2.43
    """

    name: str
    alpha_n: float
    n_c: float
    alpha_d: float
    d_c: float
    source: str = ""

    def loss(self, parameters, tokens):
        """Loss in nats per token; numbers or arrays."""
        A, alpha, B, beta = self.powers()
        return (A * parameters**-alpha + B * tokens**-beta) ** self.alpha_d

    def powers(self) -> tuple[float, float, float, float]:
        """(A, alpha, B, beta) of the sum A/N^alpha + B/D^beta that the loss rises with."""
        alpha = self.alpha_n / self.alpha_d
        return self.n_c**alpha, alpha, self.d_c, 1.0

    def level(self, loss: float) -> float:
        """The value of that sum at a given loss."""
        if loss <= 0:
            raise ValueError(f"loss={loss} is not above 0: no run reaches it")
        return loss ** (1 / self.alpha_d)


@dataclass(frozen=True)
class PowerLaw:
    """loss = (scale / x)^exponent: one quantity limits, all others are ample.

    >>> round(KAPLAN_N.loss(1.5e9), 2)
    2.3
    """

    name: str
    scale: float
    exponent: float
    unit: str
    source: str = ""

    def loss(self, x):
        """Loss in nats per token at x units; a number or an array."""
        return (self.scale / x) ** self.exponent


_HOFFMANN = "Hoffmann et al. 2022 (arXiv 2203.15556)"
_EPOCH = "epoch-research/analyzing-chinchilla, data_analysis.ipynb"
_KAPLAN = "Kaplan et al. 2020 (arXiv 2001.08361)"

HOFFMANN_PRINTED = ParametricLaw("Hoffmann 2022, printed", 406.4, 410.7, 1.69, 0.34, 0.28, _HOFFMANN + ", equation 10")
HOFFMANN_UNROUNDED = ParametricLaw(
    "Hoffmann 2022, unrounded",
    math.exp(6.0073404),
    math.exp(6.0179186),
    math.exp(0.5267228),
    0.33917084,
    0.2849083,
    _EPOCH,
)
EPOCH_REFIT = ParametricLaw(
    "Epoch 2024 refit", 482.00572, 2085.4342, 1.81686, 0.34781, 0.36585, _EPOCH + " (240 runs)",
    errors=(124.52232, 1293.28410, 0.02566, 0.01540, 0.02060),
)  # fmt: skip
KAPLAN = KaplanLaw("Kaplan 2020, joint", 0.076, 8.8e13, 0.095, 5.4e13, _KAPLAN + ", equations 1.1, 1.2 and 1.5")
KAPLAN_N = PowerLaw("Kaplan 2020, L(N)", 8.8e13, 0.076, "non-embedding parameters", _KAPLAN + ", equation 1.1")
KAPLAN_D = PowerLaw("Kaplan 2020, L(D)", 5.4e13, 0.095, "tokens", _KAPLAN + ", equation 1.2")
KAPLAN_C = PowerLaw("Kaplan 2020, L(C_min)", 3.1e8, 0.050, "PF-days", _KAPLAN + ", equation 1.3")

LAWS = (HOFFMANN_PRINTED, HOFFMANN_UNROUNDED, EPOCH_REFIT, KAPLAN)


@dataclass(frozen=True)
class Exponents:
    """Published growth with compute C: N_opt as C^a and D_opt as C^b; intervals as printed."""

    name: str
    a: float
    b: float
    a_interval: tuple[float, float] | None = None
    b_interval: tuple[float, float] | None = None
    source: str = _HOFFMANN + ", Table 2"


PUBLISHED_EXPONENTS = (
    Exponents("approach 1: envelope of training curves", 0.50, 0.50, (0.488, 0.502), (0.501, 0.512)),
    Exponents("approach 2: isoFLOP valleys", 0.49, 0.51, (0.462, 0.534), (0.483, 0.529)),
    Exponents("approach 3: parametric fit", 0.46, 0.54, (0.454, 0.455), (0.542, 0.543)),
    Exponents("Kaplan et al.", 0.73, 0.27),
)

# Parameters, FLOPs and tokens by approach 1 (Hoffmann et al. 2022, Table 3); tokens by approach 2
# (the same paper, as transcribed in karpathy/nanoGPT, scaling_laws.ipynb).
CHINCHILLA_TABLE_3 = (
    (400e6, 1.92e19, 8.0e9, 7.7e9),
    (1e9, 1.21e20, 20.2e9, 20.0e9),
    (10e9, 1.23e22, 205.1e9, 219.5e9),
    (67e9, 5.76e23, 1.5e12, 1.7e12),
    (175e9, 3.85e24, 3.7e12, 4.3e12),
    (280e9, 9.90e24, 5.9e12, 7.1e12),
    (520e9, 3.43e25, 11.0e12, 13.4e12),
    (1e12, 1.27e26, 21.2e12, 26.5e12),
    (10e12, 1.30e28, 216.2e12, 292.0e12),
)


@dataclass(frozen=True, eq=False)
class Runs:
    """Training runs to fit: arrays of parameters, tokens and final losses, one entry a run."""

    parameters: np.ndarray
    tokens: np.ndarray
    losses: np.ndarray

    def __post_init__(self):
        for field in ("parameters", "tokens", "losses"):
            values = np.asarray(getattr(self, field), float).ravel()
            if not (np.isfinite(values).all() and (values > 0).all()):
                raise ValueError(f"{field} has an entry that is not a positive number: {values.min()}")
            object.__setattr__(self, field, values)
        if not len(self.parameters) == len(self.tokens) == len(self.losses):
            raise ValueError(
                f"{len(self.parameters)} sizes, {len(self.tokens)} token counts, {len(self.losses)} losses"
            )

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def flops(self) -> np.ndarray:
        """Training FLOPs of each run, as 6ND."""
        return 6 * self.parameters * self.tokens

    def take(self, which) -> Runs:
        """The runs that an index array or a mask picks."""
        return Runs(self.parameters[which], self.tokens[which], self.losses[which])
