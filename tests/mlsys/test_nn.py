"""Layers: shapes, names, starting values, saving, and dropout."""

import numpy as np
import pytest

from mlsys import nn
from mlsys.autograd import Tensor, cross_entropy, no_grad


def rng(seed=0):
    return np.random.default_rng(seed)


def test_layers_compute_what_they_say():
    x = rng(1).standard_normal((5, 3)).astype(np.float32)
    layer = nn.Linear(3, 2, rng())
    layer.b.data[...] = [1, 2]
    assert np.allclose(layer(x).data, x @ layer.w.data + [1, 2], atol=1e-6)
    assert nn.Linear(3, 2, rng(), bias=False).b is None
    h = nn.LayerNorm(3)(Tensor(x)).data
    assert np.allclose(h.mean(1), 0, atol=1e-6) and np.allclose(h.std(1), 1, atol=1e-3)
    table = nn.Embedding(7, 4, rng())
    assert table(np.array([[1, 6]])).shape == (1, 2, 4)


def test_an_mlp_is_its_layers():
    net, x = nn.MLP([3, 8, 2], rng(), activation="tanh"), rng(1).standard_normal((5, 3)).astype(np.float32)
    first, tanh, last = net.layers
    assert np.allclose(net(x).data, last(tanh(first(x))).data)
    assert nn.n_params(net) == 3 * 8 + 8 + 8 * 2 + 2
    with pytest.raises(ValueError, match="activation 'step' is none of relu, gelu"):
        nn.MLP([3, 2], rng(), activation="step")


def test_he_start_keeps_the_size_of_activations():
    net = nn.MLP([256] * 12, rng())
    with no_grad():
        out = net(rng(1).standard_normal((200, 256)).astype(np.float32)).data
    assert 0.5 < out.std() < 3  # each of 11 layers multiplies the variance by about 1 after its ReLU
    assert abs(net.layers[0].w.data.var() * 256 / 2 - 1) < 0.02 and not net.layers[0].b.data.any()


class Twice(nn.Module):
    def __init__(self):
        self.shared = nn.Linear(3, 3, rng())
        self.blocks = [self.shared, nn.LayerNorm(3)]
        self.heads = {"a": nn.Linear(3, 1, rng(), bias=False)}
        self.scale = nn.Parameter([1, 2, 3])
        self.note = "no parameter"


def test_names_follow_the_attributes_and_shared_parameters_count_once():
    net = Twice()
    names = [name for name, _ in net.named_parameters()]
    assert names == [
        "shared.w", "shared.b", "blocks.0.w", "blocks.0.b", "blocks.1.gamma", "blocks.1.beta", "heads.a.w", "scale",
    ]
    assert len(net.parameters()) == 6 and nn.n_params(net) == 9 + 3 + 3 + 3 + 3 + 3
    with pytest.raises(NotImplementedError, match="Twice has no __call__"):
        net(1)


def test_a_parameter_owns_its_data():
    a = np.ones(3, np.float64)
    p = nn.Parameter(a, name="p")
    p.data += 1
    assert a.tolist() == [1, 1, 1] and p.dtype == np.float64 and p.requires_grad
    assert nn.Parameter([1, 2]).dtype == np.float32 and type(p * 1) is Tensor


def test_state_goes_out_and_back_in():
    a, b = nn.MLP([3, 4, 2], rng(0)), nn.MLP([3, 4, 2], rng(1))
    state = a.state_dict()
    b.load_state_dict(state)
    x = np.ones((1, 3), np.float32)
    assert (a(x).data == b(x).data).all()
    a.layers[0].w.data += 1
    assert (a(x).data != b(x).data).any() and (b.layers[0].w.data == state["layers.0.w"]).all()
    with pytest.raises(KeyError, match=r"lacks \['layers.2.b'\] and has unknown \['x'\]"):
        b.load_state_dict({("x" if k == "layers.2.b" else k): v for k, v in state.items()})
    with pytest.raises(ValueError, match=r"layers.0.b: saved shape \(1,\), parameter \(4,\)"):
        b.load_state_dict(state | {"layers.0.b": np.zeros(1)})


def test_zero_grad():
    net = nn.MLP([3, 2], rng())
    net(np.ones((1, 3), np.float32)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_everything_stays_float32():
    net = nn.Sequential(nn.Linear(3, 4, rng()), nn.LayerNorm(4), nn.ACTIVATIONS["gelu"], nn.Linear(4, 2, rng()))
    loss = cross_entropy(net(rng().standard_normal((5, 3))), np.zeros(5, int))  # float64 data
    loss.backward()
    assert loss.dtype == np.float32
    assert all(p.dtype == np.float32 and p.grad.dtype == np.float32 for p in net.parameters())


def test_dropout_keeps_the_mean_and_scales_gradients_alike():
    x = Tensor(np.ones(100_000, np.float32), requires_grad=True)
    y = nn.dropout(x, 0.25, rng())
    y.sum().backward()
    kept = y.data != 0
    assert y.dtype == np.float32 and abs(kept.mean() - 0.75) < 0.01 and abs(y.data.mean() - 1) < 0.01
    assert np.allclose(y.data[kept], 4 / 3) and (x.grad == y.data).all()
    assert nn.dropout(x, 0.0, rng()) is x
    with pytest.raises(ValueError, match="p=1.0"):
        nn.dropout(x, 1.0, rng())
