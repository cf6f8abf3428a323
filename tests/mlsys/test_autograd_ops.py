"""Every operation: its gradient against central differences, its value and gradient against PyTorch."""

import numpy as np
import pytest

from mlsys.autograd import (
    Tensor,
    concat,
    cross_entropy,
    embedding,
    gelu,
    layer_norm,
    linear,
    log_softmax,
    mse_loss,
    softmax,
    stack,
    where,
)
from mlsys.gradcheck import gradcheck

LABELS, IDS = np.array([[0, 2, 1], [4, 4, 0]]), np.array([[0, 2], [2, 1], [2, 2]])
MASK = np.array([[True, False, True]])

# name: (function of tensors, shapes of its inputs)
OPS = {
    "add": (lambda a, b: a + b, [(2, 3), (2, 3)]),
    "add row": (lambda a, b: a + b, [(2, 3), (3,)]),
    "add column": (lambda a, b: a + b, [(2, 1), (4, 2, 3)]),
    "add scalar": (lambda a, b: a + b, [(), (2, 3)]),
    "add both grow": (lambda a, b: a + b, [(3, 1), (1, 4)]),
    "add constant": (lambda a: 2.0 + a + [1.0, 2.0], [(3, 2)]),
    "add constant grows": (lambda a: a + np.ones((3, 2)), [(2,)]),
    "sub": (lambda a, b: a - b, [(2, 3), (3,)]),
    "sub constants": (lambda a: (1 - a) - 2.0, [(3,)]),
    "neg": (lambda a: -a, [(3,)]),
    "mul": (lambda a, b: a * b, [(2, 3), (2, 1)]),
    "mul itself": (lambda a: a * a * a, [(3,)]),
    "mul constant": (lambda a: np.arange(6.0).reshape(2, 3) * a * 3, [(3,)]),
    "div": (lambda a, b: a / (b * b + 1), [(2, 3), (3,)]),
    "div constants": (lambda a: 1 / (a * a + 1) / 3.0, [(3,)]),
    "pow 0": (lambda a: a**0, [(3,)]),
    "pow 1": (lambda a: a**1, [(3,)]),
    "pow 2": (lambda a: a**2, [(3,)]),
    "pow 3": (lambda a: a**3.0, [(3,)]),
    "pow 8": (lambda a: a**8, [(3,)]),
    "pow 11": (lambda a: a**11, [(3,)]),
    "pow -1": (lambda a: (a * a + 1) ** -1, [(3,)]),
    "pow -2.5": (lambda a: (a * a + 1) ** -2.5, [(3,)]),
    "pow half": (lambda a: (a * a + 1) ** 0.5, [(3,)]),
    "matmul": (lambda a, b: a @ b, [(2, 3), (3, 4)]),
    "matmul vectors": (lambda a, b: a @ b, [(3,), (3,)]),
    "matmul row": (lambda a, b: a @ b, [(3,), (3, 4)]),
    "matmul column": (lambda a, b: a @ b, [(2, 3), (3,)]),
    "matmul row, batch": (lambda a, b: a @ b, [(3,), (5, 3, 4)]),
    "matmul batch, column": (lambda a, b: a @ b, [(5, 2, 3), (3,)]),
    "matmul batch": (lambda a, b: a @ b, [(5, 2, 3), (5, 3, 4)]),
    "matmul batch, matrix": (lambda a, b: a @ b, [(5, 2, 3), (3, 4)]),
    "matmul matrix, batch": (lambda a, b: a @ b, [(2, 3), (5, 3, 4)]),
    "matmul batches grow": (lambda a, b: a @ b, [(5, 1, 2, 3), (6, 3, 4)]),
    "matmul views": (lambda a, b: a.transpose(0, 2, 1) @ b.T, [(5, 3, 2), (4, 3)]),
    "matmul itself": (lambda a: a @ a, [(3, 3)]),
    "matmul constant": (lambda a: np.ones((4, 2)) @ a @ np.ones((3, 2)), [(2, 3)]),
    "exp": (lambda a: a.exp(), [(3,)]),
    "log": (lambda a: (a * a + 1).log(), [(3,)]),
    "sqrt": (lambda a: (a * a + 1).sqrt(), [(3,)]),
    "tanh": (lambda a: a.tanh(), [(3,)]),
    "sigmoid": (lambda a: a.sigmoid(), [(3,)]),
    "relu": (lambda a: a.relu(), [(4, 5)]),
    "abs": (lambda a: abs(a), [(4, 5)]),
    "gelu": (lambda a: gelu(a.T), [(4, 5)]),
    "sum": (lambda a: a.sum(), [(2, 3, 4)]),
    "sum first": (lambda a: a.sum(0), [(2, 3, 4)]),
    "sum middle": (lambda a: a.sum(1, keepdims=True), [(2, 3, 4)]),
    "sum last": (lambda a: a.sum(-1), [(2, 3, 4)]),
    "sum two": (lambda a: a.sum((0, -1)), [(2, 3, 4)]),
    "sum all, kept": (lambda a: a.sum(keepdims=True), [(2, 3)]),
    "mean": (lambda a: a.mean(), [(2, 3, 4)]),
    "mean first two": (lambda a: a.mean((1, 0)), [(2, 3, 4)]),
    "mean last": (lambda a: a.mean(-1, keepdims=True), [(2, 3, 4)]),
    "max": (lambda a: a.max(), [(3, 4)]),
    "max axis": (lambda a: a.max(1), [(3, 4, 2)]),
    "max kept": (lambda a: a.max((0, 2), keepdims=True), [(3, 4, 2)]),
    "softmax": (lambda a: a.softmax(), [(3, 4)]),
    "softmax first": (lambda a: softmax(a * 40, 0), [(3, 4)]),
    "log_softmax": (lambda a: a.log_softmax(1), [(2, 3, 4)]),
    "log_softmax large": (lambda a: log_softmax(a * 90), [(3, 4)]),
    "reshape": (lambda a: a.reshape(3, 2) * a.reshape((-1, 2)), [(2, 3)]),
    "transpose": (lambda a: a.transpose(2, 0, 1).exp(), [(2, 3, 4)]),
    "transpose tuple": (lambda a: a.transpose((1, -1, 0)).exp(), [(2, 3, 4)]),
    "transpose all": (lambda a: a.transpose() * a.T, [(2, 3)]),
    "broadcast_to": (lambda a: a.broadcast_to((4, 2, 3)).exp(), [(2, 1)]),
    "index": (lambda a: a[1], [(3, 4)]),
    "slice": (lambda a: a[1:, ::-2] * a[:-1, None, 0], [(3, 4)]),
    "index ellipsis": (lambda a: a[..., 1], [(3, 4, 2)]),
    "gather": (lambda a: a[IDS], [(3, 4)]),
    "gather negative": (lambda a: a[[-1, 0, -1]], [(3, 4)]),
    "gather pairs": (lambda a: a[[0, 1, 0], [2, 2, 2]], [(3, 4)]),
    "gather mixed": (lambda a: a[:, [1, 1, 0]], [(3, 4)]),
    "gather mask": (lambda a: a[np.array([True, False, True])], [(3, 4)]),
    "concat": (lambda a, b: concat([a, b, np.ones((2, 1))], axis=1), [(2, 3), (2, 1)]),
    "concat last": (lambda a, b: concat([a, b], axis=-1), [(2, 3), (2, 1)]),
    "stack": (lambda a, b: stack([a, np.ones(3), b], axis=1), [(3,), (3,)]),
    "stack last": (lambda a, b: stack([a, b, a], axis=-1), [(2, 3), (2, 3)]),
    "where": (lambda a, b: where(MASK, a, b), [(2, 3), (3,)]),
    "where constant": (lambda a: where(MASK, 0.0, a), [(2, 3)]),
    "linear": (linear, [(4, 3), (3, 2), (2,)]),
    "linear, no bias": (linear, [(4, 3), (3, 2)]),
    "linear, vector": (linear, [(3,), (3, 2), (2,)]),
    "linear, batch": (linear, [(2, 4, 3), (3, 2), (2,)]),
    "linear, view": (lambda x, w, b: linear(x.transpose(1, 0, 2), w, b), [(2, 4, 3), (3, 2), (2,)]),
    "linear, computed weight": (lambda x, u, v: linear(x, u @ v), [(4, 3), (3, 1), (1, 2)]),
    "linear, constant": (lambda w, b: linear(np.ones((4, 3)), w, b), [(3, 2), (2,)]),
    "linear, itself": (lambda w: linear(w, w), [(3, 3)]),
    "cross_entropy": (lambda z: cross_entropy(z, LABELS[0]), [(3, 5)]),
    "cross_entropy, batch": (lambda z: cross_entropy(z, LABELS) * 3.0, [(2, 3, 5)]),
    "cross_entropy, large": (lambda z: cross_entropy(z * 70, LABELS[1]), [(3, 5)]),
    "layer_norm": (layer_norm, [(4, 6), (6,), (6,)]),
    "layer_norm, batch": (layer_norm, [(2, 3, 5), (5,), (5,)]),
    "layer_norm, same": (lambda x, g: layer_norm(x, g, g), [(2, 5), (5,)]),
    "embedding": (lambda t: embedding(t, IDS), [(3, 4)]),
    "embedding, one": (lambda t: embedding(t, np.int64(1)), [(3, 4)]),
    "mse_loss": (lambda a: mse_loss(a, np.ones((2, 3))), [(2, 3)]),
    "mse_loss, two": (mse_loss, [(2, 3), (2, 3)]),
}


def arrays_of(shapes, seed=0):
    """Numbers that stay away from kinks and ties."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s) for s in shapes]
    return [np.where(np.abs(a) < 0.05, 0.5, a) for a in arrays]


@pytest.mark.parametrize("name", OPS)
def test_gradient_is_the_slope(name):
    fn, shapes = OPS[name]
    report = gradcheck(fn, *arrays_of(shapes))
    assert report.ok, f"{name}: {report}"


@pytest.mark.parametrize("name", OPS)
def test_float32_follows_float64(name):
    """Same operation, both types: equal to rounding, and the gradient lands in an optimizer's place."""
    fn, shapes = OPS[name]
    grads = []
    for dtype in (np.float64, np.float32):
        leaves = [Tensor(a.astype(dtype), requires_grad=True) for a in arrays_of(shapes)]
        for t in leaves:
            t._node.home = np.full(t.shape, np.nan, dtype)
        out = fn(*leaves)
        assert out.dtype == dtype
        out.backward(np.cos(np.arange(out.size)).reshape(out.shape))
        assert all(t.grad is t._node.home for t in leaves if t.grad is not None)
        grads.append([out.data, *(t.grad for t in leaves)])
    for exact, single in zip(*grads, strict=True):
        scale = np.abs(exact).max() + 1
        assert np.allclose(single, exact, rtol=0, atol=3e-5 * scale)


@pytest.mark.parametrize("name", OPS)
def test_no_rule_writes_into_its_gradient_or_returns_what_a_tensor_holds(name):
    fn, shapes = OPS[name]
    leaves = [Tensor(a, requires_grad=True) for a in arrays_of(shapes)]
    out = fn(*leaves)
    g = np.ones(out.shape)
    g.flags.writeable = False  # the last operation would raise on writing
    held = [out.data.copy(), *(t.data.copy() for t in leaves)]
    for arrived in out._node.vjp(g):
        for t in (out, *leaves):
            assert arrived is None or not np.shares_memory(arrived, t.data)
    for before, t in zip(held, (out, *leaves), strict=True):
        assert (before == t.data).all()


@pytest.mark.parametrize("seed", range(12))
def test_broadcasting_of_random_shapes(seed):
    """The adjoint of broadcasting: shapes drawn so that axes are missing, 1 or full."""
    rng = np.random.default_rng(seed)
    full = rng.integers(1, 4, rng.integers(0, 5))

    def cut():
        kept = full[rng.integers(0, len(full) + 1) :]
        return tuple(int(n) if rng.random() < 0.6 else 1 for n in kept)

    report = gradcheck(lambda a, b, c: (a * b - c) / (b * b + 2), *arrays_of([cut(), cut(), cut()], seed))
    assert report.ok, report


@pytest.mark.parametrize("seed", range(8))
def test_sums_over_random_axes(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 4, 4).tolist())
    axes = tuple(np.flatnonzero(rng.random(4) < 0.5).tolist())
    x = rng.standard_normal(shape)
    assert np.allclose(Tensor(x).sum(axes).data, x.sum(axes)) and Tensor(x).sum(axes).shape == x.sum(axes).shape
    assert np.allclose(Tensor(x).mean(axes, keepdims=True).data, x.mean(axes, keepdims=True))
    assert gradcheck(lambda t: t.mean(axes), x).ok


def test_equal_maxima_share_the_gradient():
    x = Tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]], requires_grad=True)
    x.max(1).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]


def test_kinks():
    x = Tensor([0.0], requires_grad=True)
    (x.relu() + abs(x)).backward()
    assert x.grad == [0.0]


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_softmax_family_is_stable(shift):
    z = np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    e = np.exp(z)
    p = e / e.sum(1, keepdims=True)
    rows = Tensor((z + shift).astype(np.float32), requires_grad=True)
    assert np.allclose(rows.softmax().data, p, atol=1e-6)
    assert np.allclose(rows.log_softmax().data, np.log(p), atol=1e-3 if shift else 1e-6)
    loss = cross_entropy(rows, [2, 0])
    assert np.isclose(loss.item(), -(np.log(p[0, 2]) + np.log(p[1, 0])) / 2, atol=1e-3 if shift else 1e-6)
    loss.backward()
    assert np.allclose(rows.grad, (p - [[0, 0, 1], [1, 0, 0]]) / 2, atol=1e-6)


def test_softmax_takes_masked_scores_and_rows_far_apart():
    z = Tensor(np.array([[0.0, -np.inf, 0.0], [-500.0, -500.0, -np.inf], [50.0, 0.0, 0.0]], np.float32))
    assert np.allclose(z.softmax().data, [[0.5, 0, 0.5], [0.5, 0.5, 0], [1, 0, 0]])


def test_fused_operations_equal_composed_ones():
    rng = np.random.default_rng(0)
    x, w, b, g = (rng.standard_normal(s) for s in ((6, 5), (5, 4), (4,), (4,)))
    labels = rng.integers(0, 4, 6)

    def fused(x, w, b, g):
        return cross_entropy(gelu(layer_norm(linear(x, w, b), g, b)), labels)

    def composed(x, w, b, g):
        h = x @ w + b
        c = h - h.mean(1, keepdims=True)
        u = c / ((c * c).mean(1, keepdims=True) + 1e-5).sqrt() * g + b
        u = u * 0.5 * (1 + ((u + u**3 * 0.044715) * (2 / np.pi) ** 0.5).tanh())
        return -(u.exp() / u.exp().sum(1, keepdims=True)).log()[np.arange(6), labels].mean()

    results = []
    for fn in (fused, composed):
        leaves = [Tensor(a, requires_grad=True) for a in (x, w, b, g)]
        loss = fn(*leaves)
        loss.backward()
        results.append([loss.item(), *(t.grad for t in leaves)])
    for a, c in zip(*results, strict=True):
        assert np.allclose(a, c, rtol=1e-10, atol=1e-12)


def test_gelu_in_chunks_equals_gelu_in_one(monkeypatch):
    from mlsys.autograd import fused

    x = np.random.default_rng(0).standard_normal((7, 11))
    whole = gelu(Tensor(x)).data
    monkeypatch.setattr(fused, "CHUNK", 10)
    assert (gelu(Tensor(x)).data == whole).all()
    assert gradcheck(gelu, x).ok


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (lambda: linear(np.ones((2, 3)), Tensor(np.ones((4, 2)))), r"\(2, 3\) does not fit w of shape \(4, 2\)"),
        (lambda: cross_entropy(Tensor(np.ones((2, 3))), [0, 3]), "labels from 0 to 3 for 3 classes"),
        (lambda: cross_entropy(Tensor(np.ones((2, 3))), [0, -1]), "labels from -1"),
        (lambda: cross_entropy(Tensor(np.ones((2, 3))), [0.0, 1.0]), "not float64 of shape"),
        (lambda: cross_entropy(Tensor(np.ones((2, 3))), [0]), r"labels of shape \(2,\)"),
        (lambda: embedding(Tensor(np.ones((2, 3))), [2]), "from 0 to 1"),
        (lambda: mse_loss(Tensor(np.ones((2, 1))), np.ones(2)), "differ in shape"),
        (lambda: Tensor(np.ones((2, 3))).sum(2), "axis=2 does not fit"),
    ],
)
def test_errors_are_sentences(act, sentence):
    with pytest.raises(ValueError, match=sentence):
        act()


def test_where_needs_a_tensor():
    with pytest.raises(TypeError, match="needs a tensor"):
        where([True], 1.0, 2.0)


# Against PyTorch, where it is installed


def torch_ops(torch):
    F = torch.nn.functional
    labels, ids, mask = map(torch.from_numpy, (LABELS, IDS, MASK))
    return {
        "add column": lambda a, b: a + b,
        "div": lambda a, b: a / (b * b + 1),
        "pow 11": lambda a: a**11,
        "matmul batches grow": lambda a, b: a @ b,
        "matmul row, batch": lambda a, b: a @ b,
        "sigmoid": torch.sigmoid,
        "abs": torch.abs,
        "gelu": lambda a: F.gelu(a.T, approximate="tanh"),
        "sum two": lambda a: a.sum((0, -1)),
        "max kept": lambda a: a.amax((0, 2), keepdim=True),
        "softmax first": lambda a: torch.softmax(a * 40, 0),
        "log_softmax large": lambda a: torch.log_softmax(a * 90, -1),
        "gather": lambda a: a[ids],
        "gather mixed": lambda a: a[:, [1, 1, 0]],
        "where": lambda a, b: torch.where(mask, a, b),
        "linear, batch": lambda x, w, b: x @ w + b,
        "cross_entropy": lambda z: F.cross_entropy(z, labels[0]),
        "cross_entropy, batch": lambda z: F.cross_entropy(z.reshape(-1, 5), labels.reshape(-1)) * 3,
        "cross_entropy, large": lambda z: F.cross_entropy(z * 70, labels[1]),
        "layer_norm, batch": lambda x, g, b: F.layer_norm(x, (5,), g, b),
        "embedding": lambda t: F.embedding(ids, t),
        "mse_loss, two": F.mse_loss,
    }


def test_values_and_gradients_equal_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: a peer to compare with, not a requirement")
    for name, theirs in torch_ops(torch).items():
        fn, shapes = OPS[name]
        arrays = arrays_of(shapes, seed=3)
        ours = [Tensor(a, requires_grad=True) for a in arrays]
        others = [torch.tensor(a, requires_grad=True) for a in arrays]
        out, want = fn(*ours), theirs(*others)
        assert np.allclose(out.data, want.detach().numpy(), rtol=1e-12, atol=1e-12), name
        weights = np.cos(np.arange(out.size)).reshape(out.shape)
        out.backward(weights)
        want.backward(torch.from_numpy(weights))
        for a, b in zip(ours, others, strict=True):
            assert np.allclose(a.grad, b.grad.numpy(), rtol=1e-10, atol=1e-12), name
