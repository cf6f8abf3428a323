"""Layers: parameters and a call, nothing more.

A `Module` finds its parameters by looking at its own attributes, and names them by the path
that leads there: `layers.0.w`. Weights are stored (d_in, d_out), so that a layer reads
`x @ w + b`. (PyTorch stores the transpose.)
Weights start from He's rule, normal with variance 2 / d_in, which keeps the size of activations
through layers of ReLU; biases start from zero. Random numbers come from the generator that
you hand in.
Left out: buffers, hooks, training and evaluation modes (call `dropout` only while training).
Lessons: optimizers, learning or memorising.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mlsys.autograd import Tensor, embedding, gelu, layer_norm, linear


class Parameter(Tensor):
    """A tensor that is learned: wants a gradient, and has its own copy of the data."""

    __slots__ = ()

    def __init__(self, data, requires_grad: bool = True, name: str | None = None):
        super().__init__(data, requires_grad, name)
        self.data = self.data.copy()


class Module:
    """Something with parameters. A subclass assigns them in `__init__` and computes in `__call__`."""

    def __call__(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """(path, parameter), in the order in which the attributes were assigned."""
        yield from _walk(vars(self), prefix)

    def parameters(self) -> list[Parameter]:
        """Each parameter once, also where two layers share it."""
        return list({id(p): p for _, p in self.named_parameters()}.values())

    def zero_grad(self) -> None:
        for p in self.parameters():
            p.zero_grad()

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter by name."""
        return {name: p.data.copy() for name, p in self.named_parameters()}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Write saved values into the parameters; names and shapes have to agree exactly."""
        own = dict(self.named_parameters())
        if own.keys() != state.keys():
            missing, unknown = sorted(own.keys() - state.keys()), sorted(state.keys() - own.keys())
            raise KeyError(f"the saved state lacks {missing} and has unknown {unknown}")
        for name, p in own.items():
            if p.shape != np.shape(state[name]):
                raise ValueError(f"{name}: saved shape {np.shape(state[name])}, parameter {p.shape}")
        for name, p in own.items():
            p.data[...] = state[name]


def _walk(children: dict, prefix: str) -> Iterator[tuple[str, Parameter]]:
    for name, child in children.items():
        if isinstance(child, Parameter):
            yield prefix + name, child
        elif isinstance(child, Module):
            yield from child.named_parameters(f"{prefix}{name}.")
        elif isinstance(child, (list, tuple)):
            yield from _walk({str(i): c for i, c in enumerate(child)}, f"{prefix}{name}.")
        elif isinstance(child, dict):
            yield from _walk(child, f"{prefix}{name}.")


def n_params(module: Module) -> int:
    """Numbers that the module learns.

    >>> n_params(MLP([784, 128, 64, 10], np.random.default_rng(0)))
    109386
    """
    return sum(p.size for p in module.parameters())


def he_normal(d_in: int, d_out: int, rng: np.random.Generator) -> np.ndarray:
    """(d_in, d_out) normal numbers with variance 2 / d_in, in float32."""
    return rng.standard_normal((d_in, d_out), np.float32) * np.float32((2 / d_in) ** 0.5)


class Linear(Module):
    """x @ w + b: (..., d_in) -> (..., d_out)."""

    def __init__(self, d_in: int, d_out: int, rng: np.random.Generator, bias: bool = True):
        self.w = Parameter(he_normal(d_in, d_out, rng), name="w")
        self.b = Parameter(np.zeros(d_out, np.float32), name="b") if bias else None

    def __call__(self, x) -> Tensor:
        return linear(x, self.w, self.b)


class LayerNorm(Module):
    """Rows brought to mean 0 and variance 1, then scaled by gamma (from 1) and shifted by beta (from 0)."""

    def __init__(self, d: int, eps: float = 1e-5):
        if not isinstance(d, (int, np.integer)):
            raise TypeError(f"LayerNorm: the width d is a whole number, not {type(d).__name__}")
        self.gamma = Parameter(np.ones(d, np.float32), name="gamma")
        self.beta = Parameter(np.zeros(d, np.float32), name="beta")
        self.eps = eps

    def __call__(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.gamma, self.beta, self.eps)


class Embedding(Module):
    """A row of d numbers for each of n ids: (...) whole numbers -> (..., d). Starts normal with deviation 0.02."""

    def __init__(self, n: int, d: int, rng: np.random.Generator):
        self.table = Parameter(rng.standard_normal((n, d), np.float32) * np.float32(0.02), name="table")

    def __call__(self, ids: np.ndarray) -> Tensor:
        return embedding(self.table, ids)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": Tensor.relu,
    "gelu": gelu,
    "tanh": Tensor.tanh,
    "sigmoid": Tensor.sigmoid,
}


class Sequential(Module):
    """Calls one after another: modules, or plain functions from tensor to tensor.

    >>> rng = np.random.default_rng(0)
    >>> net = Sequential(Linear(2, 8, rng), Tensor.relu, Linear(8, 1, rng))
    >>> net(np.ones((5, 2))).shape
    (5, 1)
    """

    def __init__(self, *layers: Callable):
        self.layers = list(layers)

    def __call__(self, x) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class MLP(Sequential):
    """Linear layers with an activation between them, none after the last.

    sizes: numbers of features, input first; activation: a name in ACTIVATIONS.

    >>> [name for name, _ in MLP([2, 16, 1], np.random.default_rng(0)).named_parameters()]
    ['layers.0.w', 'layers.0.b', 'layers.2.w', 'layers.2.b']
    """

    def __init__(self, sizes, rng: np.random.Generator, activation: str = "relu"):
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation {activation!r} is none of {', '.join(ACTIVATIONS)}")
        layers = []
        for d_in, d_out in zip(sizes[:-1], sizes[1:], strict=True):
            layers += [Linear(d_in, d_out, rng), ACTIVATIONS[activation]]
        super().__init__(*layers[:-1])


def dropout(x: Tensor, p: float, rng: np.random.Generator) -> Tensor:
    """Each element becomes 0 with probability p, and is divided by 1 - p otherwise: the mean stays.

    For training only: leave it out when you predict.
    """
    if not 0 <= p < 1:
        raise ValueError(f"p={p} is not a probability below 1")
    if p == 0:
        return x
    keep = (rng.random(x.shape, np.float32) >= p).astype(x.dtype)
    keep /= 1 - p
    return x * keep
