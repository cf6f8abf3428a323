"""Optimizers, learning-rate schedules and gradient clipping.

Making an optimizer moves its parameters: their data become views of one flat array, and so do
their gradients. A step is then a handful of operations on two long arrays, however many
parameters there are. Two things follow. `p.grad` is overwritten by the next step's gradient:
copy it to keep it. And `p.data = something` still works, at the price of a copy in the next step.

Numbers equal PyTorch's, which counts steps for each parameter: one that has no gradient in a
step is skipped, state and all.
Left out: parameter groups with learning rates of their own, AMSGrad, dampening.
Lessons: optimizers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from mlsys.autograd import Tensor
from mlsys.autograd.engine import Leaf, Node

CHUNK = 64 * 1024  # elements: keeps the temporaries of a step small beside large models


class Optimizer:
    """Parameters and gradients in two flat arrays, updated chunk by chunk.

    params: leaf tensors of one float type; lr: the learning rate, which may be set before any step.
    """

    def __init__(self, params: Iterable[Tensor], lr: float):
        self.lr = lr
        self.params = list({id(p): p for p in self._order(params)}.values())
        _check(self.params)
        sizes = [p.size for p in self.params]
        dtype = self.params[0].dtype
        self.flat, self.flat_grad = np.empty(sum(sizes), dtype), np.zeros(sum(sizes), dtype)
        self.starts = [0, *np.cumsum(sizes).tolist()]
        self.steps = 0
        self._skipped = [0] * len(sizes)  # steps in which a parameter had no gradient
        self._homes = list(zip(self.params, self._views(self.flat), self._views(self.flat_grad), strict=True))
        for p, data, grad in self._homes:
            data[...] = p.data
            p.data = data
            if type(p._node) is Leaf:
                p._node.home = grad
        self._all = self._runs(range(len(sizes)))

    def _order(self, params: Iterable[Tensor]) -> Iterable[Tensor]:
        return params

    def _views(self, flat: np.ndarray) -> list[np.ndarray]:
        """One view of `flat` for each parameter, in its shape."""
        return [flat[a : a + p.size].reshape(p.shape) for a, p in zip(self.starts, self.params, strict=False)]

    def zero_grad(self) -> None:
        """Forget all gradients: the next backward stores instead of adding."""
        for p in self.params:
            p.zero_grad()

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        self.steps += 1
        for start, stop, skipped, decays in self._ready():
            for a in range(start, stop, CHUNK):
                part = slice(a, min(a + CHUNK, stop))
                self._update(part, self.flat[part], self.flat_grad[part], self.steps - skipped, decays)

    def _ready(self) -> list[tuple[int, int, int, bool]]:
        """The runs of parameters that have a gradient, all data and gradients at home."""
        for p, data, grad in self._homes:
            if p.data is not data or p._node is None or p._node.grad is not grad:
                return self._bring_home()
        return self._runs(range(len(self.params))) if any(self._skipped) else self._all

    def _bring_home(self) -> list[tuple[int, int, int, bool]]:
        """Copy what was assigned to p.data or p.grad into the flat arrays; note who has no gradient."""
        present = []
        for i, (p, data, grad) in enumerate(self._homes):
            if p.data is not data:
                data[...] = p.data
                p.data = data
            if p.grad is None:
                self._skipped[i] += 1
                continue
            if p.grad is not grad:
                grad[...] = p.grad
                p._node.grad = p._node.home = grad
            present.append(i)
        return self._runs(present)

    def _update(self, part: slice, p: np.ndarray, g: np.ndarray, t: int, decays: bool) -> None:
        """Change p in place. part: where it lies in the flat arrays; t: number of this step, from 1."""
        raise NotImplementedError

    def _decays(self, p: Tensor) -> bool:
        return True

    def _runs(self, present: Iterable[int]) -> list[tuple[int, int, int, bool]]:
        """(start, stop, steps skipped, decays) of neighbouring parameters that are treated alike."""
        runs: list[tuple[int, int, int, bool]] = []
        for i in present:
            start, stop = self.starts[i : i + 2]
            kind = (self._skipped[i], self._decays(self.params[i]))
            if runs and runs[-1][1:] == (start, *kind):
                start = runs.pop()[0]
            runs.append((start, stop, *kind))
        return runs

    def state_bytes(self) -> int:
        """Bytes that the optimizer keeps beside parameters and gradients."""
        return 0


def _check(params: list[Tensor]) -> None:
    if not params:
        raise ValueError("an optimizer needs at least one parameter")
    for p in params:
        if not isinstance(p, Tensor) or type(p._node) is Node:
            raise ValueError(f"an optimizer takes leaf tensors, not {p!r}")
        if p.dtype != params[0].dtype:
            raise ValueError(f"parameters of different types, {params[0].dtype} and {p.dtype}")


class SGD(Optimizer):
    """p -= lr g, with momentum: v = momentum v + g, p -= lr v.

    nesterov: look ahead, p -= lr (g + momentum v); weight_decay: adds weight_decay * p to g.

    >>> w = Tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> w.data
    array([0., 0.], dtype=float32)
    """

    def __init__(self, params, lr: float, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0):
        if nesterov and not momentum:
            raise ValueError("nesterov=True needs momentum above 0")
        super().__init__(params, lr)
        self.momentum, self.nesterov, self.weight_decay = momentum, nesterov, weight_decay
        self.velocity = np.zeros_like(self.flat) if momentum else None

    def _update(self, part, p, g, t, decays):
        if self.weight_decay:
            g = g + p * self.weight_decay
        if self.momentum:
            v = self.velocity[part]
            v *= self.momentum
            v += g
            g = g + v * self.momentum if self.nesterov else v
        p -= g * self.lr

    def state_bytes(self) -> int:
        return self.velocity.nbytes if self.momentum else 0


class Adam(Optimizer):
    """p -= lr m^ / (sqrt(v^) + eps), with running means m of g and v of g^2.

    m^ = m / (1 - b1^t) and v^ = v / (1 - b2^t) undo the start from zero.
    weight_decay adds to the gradient, and so is divided by sqrt(v^) too; see AdamW.
    """

    def __init__(self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.0):
        super().__init__(params, lr)
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.m, self.v = np.zeros_like(self.flat), np.zeros_like(self.flat)

    def _update(self, part, p, g, t, decays):
        if self.weight_decay:
            g = g + p * self.weight_decay
        self._adam(part, p, g, t)

    def _adam(self, part, p, g, t):
        b1, b2 = self.betas
        m, v = self.m[part], self.v[part]
        m *= b1
        m += g * (1 - b1)
        v *= b2
        g = g * g
        g *= 1 - b2
        v += g
        change = np.sqrt(v)
        change /= math.sqrt(1 - b2**t)
        change += self.eps
        np.divide(m, change, out=change)
        change *= self.lr / (1 - b1**t)
        p -= change

    def state_bytes(self) -> int:
        return self.m.nbytes + self.v.nbytes


class AdamW(Adam):
    """Adam with decoupled weight decay: p *= 1 - lr weight_decay, before and beside the Adam step.

    decay_1d: whether parameters of one dimension (biases, layer norms) decay as well. True is
    PyTorch's behaviour; most language models are trained with False.
    """

    def __init__(
        self, params, lr: float = 1e-3, betas=(0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0.01,
        decay_1d: bool = True,
    ):
        self.decay_1d = decay_1d
        super().__init__(params, lr, betas, eps, weight_decay)

    def _order(self, params):
        """Those that decay first, so that they are one stretch of the flat array."""
        return sorted(params, key=self._decays, reverse=True)

    def _decays(self, p):
        return self.decay_1d or p.ndim > 1

    def _update(self, part, p, g, t, decays):
        if decays and self.weight_decay:
            p *= 1 - self.lr * self.weight_decay
        self._adam(part, p, g, t)


def clip_by_global_norm(params: Iterable[Tensor] | Optimizer, max_norm: float) -> float:
    """Scale all gradients by one factor if their joint norm exceeds `max_norm`; gives the norm before.

    One factor for all keeps the direction of the step. params: tensors, or an optimizer.
    """
    tensors = params.params if isinstance(params, Optimizer) else params
    grads = [p.grad for p in tensors if p.grad is not None]
    norm = math.sqrt(sum(float(np.vdot(g, g)) for g in grads))
    if norm > max_norm:
        for g in grads:
            g *= max_norm / norm
    return norm


def linear_warmup(step: int, peak: float, warmup: int) -> float:
    """Learning rate of step 0, 1, ...: rises to `peak` within `warmup` steps, then stays.

    >>> [linear_warmup(step, peak=0.4, warmup=4) for step in (0, 1, 3, 100)]
    [0.1, 0.2, 0.4, 0.4]
    """
    return peak * min(1.0, (step + 1) / warmup) if warmup else peak


def warmup_cosine(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """Linear warm-up to `peak`, then half a cosine down to `floor` at step `total`, then `floor`.

    >>> [round(warmup_cosine(step, 1.0, warmup=10, total=110, floor=0.1), 3) for step in (0, 9, 10, 60, 110, 200)]
    [0.1, 1.0, 1.0, 0.55, 0.1, 0.1]
    """
    if step < warmup:
        return linear_warmup(step, peak, warmup)
    if step >= total:
        return floor
    progress = (step - warmup) / (total - warmup)  # 0 to 1
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2


def step_decay(step: int, lr: float, every: int, factor: float = 0.1) -> float:
    """`lr`, multiplied by `factor` once every `every` steps.

    >>> [step_decay(step, lr=1.0, every=10, factor=0.5) for step in (0, 9, 10, 25)]
    [1.0, 1.0, 0.5, 0.25]
    """
    if every < 1:
        raise ValueError(f"every={every}: the rate changes every so many steps, at least 1")
    return lr * factor ** (step // every)
