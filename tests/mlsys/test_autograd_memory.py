"""Saved bytes, the graph for reading, checkpointing, and the C library's settings."""

import gc
import subprocess
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

from mlsys import nn
from mlsys.autograd import Tensor, checkpoint, cross_entropy, embedding, graph, linear, malloc, no_grad, saved_bytes


def leaf(*shape, name=None):
    return Tensor(np.full(shape, 0.5, np.float32), requires_grad=True, name=name)


X = 4 * 1000  # bytes of a float32 vector of 1000


@pytest.mark.parametrize(
    ("fn", "want"),
    [
        (lambda x: x + 1.0, 0),
        (lambda x: (x * 3.0).reshape(10, 100).T, 0),
        (lambda x: x.exp(), X),
        (lambda x: x.exp().exp(), 2 * X),
        (lambda x: x.exp().relu(), 2 * X),  # two outputs, each read by its own rule
        (lambda x: (x + 1.0) * (x + 2.0), 2 * X),
        (lambda x: x * np.ones(1000, np.float32), X),  # the constant; x gets g times it
        (lambda x: x * x, 0),  # a parameter: it stays anyway
        (lambda x: x.exp() * x.exp().detach(), 2 * X),
        (lambda x: x.relu()[10:20].exp(), X + 40),
        (lambda x: x.tanh().reshape(10, 100).exp(), 2 * X),
    ],
)
def test_what_rules_keep(fn, want):
    assert saved_bytes(fn(leaf(1000)).sum()) == want


def test_a_buffer_counts_once_however_many_keep_it():
    h = leaf(1000).exp()
    assert saved_bytes((h * h + h.T * 2.0 + h.reshape(10, 100).reshape(1000) * h).sum()) == X


def test_an_mlp_keeps_its_input_one_activation_a_layer_and_the_exponentials():
    batch, sizes = 64, [784, 128, 64, 10]
    net = nn.MLP(sizes, np.random.default_rng(0))
    loss = cross_entropy(net(np.zeros((batch, 784), np.float32)), np.zeros(batch, int))
    exponentials, row_sums, labels = 4 * batch * 10, 4 * batch, 8 * batch
    assert saved_bytes(loss) == 4 * batch * (784 + 128 + 64) + exponentials + row_sums + labels


def test_saved_bytes_is_what_the_process_holds():
    net = nn.MLP([256, 256, 512, 10], np.random.default_rng(0), activation="gelu")
    x, labels = np.ones((500, 256), np.float32), np.zeros(500, int)
    tracemalloc.start()
    try:
        loss = cross_entropy(net(x), labels)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert abs(held / (saved_bytes(loss) - x.nbytes - labels.nbytes) - 1) < 0.01


def test_nothing_is_kept_without_gradients():
    with no_grad():
        assert saved_bytes(leaf(1000).exp().sum()) == 0
    assert saved_bytes(Tensor([1.0]).exp()) == 0 and graph(Tensor([1.0])) == []


def test_parameters_in_an_optimizers_flat_array_do_not_count():
    from mlsys import optim

    net = nn.MLP([8, 4, 2], np.random.default_rng(0))
    x = np.ones((3, 8), np.float32)
    before = saved_bytes(net(x).sum())
    optim.SGD(net.parameters(), lr=0.1)
    assert saved_bytes(net(x).sum()) == before


def test_graph_is_topological_and_adds_up():
    w, b = leaf(3, 2, name="w"), leaf(2, name="b")
    loss = linear(np.ones((4, 3), np.float32), w, b).relu().mean()
    records = graph(loss)
    assert [(r.op, r.name) for r in records[:2]] == [("leaf", "w"), ("leaf", "b")]
    assert [r.op for r in records[2:]] == ["linear", "relu", "mean"]
    assert records[2].inputs == (0, 1) and records[3].inputs == (2,) and records[4].shape == ()
    assert all(i < n for n, r in enumerate(records) for i in r.inputs)
    assert sum(r.saved_bytes for r in records) == saved_bytes(loss)
    assert [r.saved_bytes for r in records] == [0, 0, 48, 32, 0]
    with pytest.raises(AttributeError):
        records[0].op = "other"


def test_graph_of_a_walked_loss_says_so():
    loss = leaf(3).exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="already walked"):
        graph(loss)


# Checkpointing


def block(w, b):
    return lambda x: (x @ w + b).tanh().exp().relu()


def gradients(use_checkpoint):
    rng = np.random.default_rng(0)
    x, w, b = (Tensor(rng.standard_normal(s), requires_grad=True) for s in ((6, 4), (4, 4), (4,)))
    f = block(w, b)
    h = x * 1.0
    for _ in range(3):
        h = (checkpoint(f, h) if use_checkpoint else f(h)) + h
    loss = (h * h).mean()
    kept = saved_bytes(loss)
    loss.backward()
    return loss.item(), [x.grad, w.grad, b.grad], kept


def test_checkpointing_changes_memory_and_nothing_else():
    loss, grads, kept = gradients(use_checkpoint=False)
    again, same, less = gradients(use_checkpoint=True)
    assert loss == again
    for a, b in zip(grads, same, strict=True):
        assert np.allclose(a, b, rtol=1e-12)
    size = 8 * 6 * 4
    # without: a block keeps its input, tanh, exp and relu; with: its input; both: the last h
    assert (kept, less) == (3 * 4 * size + size, 3 * size + size)


def test_checkpoint_frees_what_the_block_computed():
    arrays = []

    def f(x):
        h = x.exp()
        arrays.append(weakref.ref(h.data))
        return (h * h).relu()

    gc.disable()
    try:
        x = leaf(10)
        out = checkpoint(f, x * 1.0)
        assert arrays[0]() is None
        out.sum().backward()
        assert len(arrays) == 2 and arrays[1]() is None
    finally:
        gc.enable()
    assert np.allclose(x.grad, 2 * np.exp(1.0))


def test_checkpoint_reaches_parameters_when_no_input_wants_a_gradient():
    w = leaf(3, name="w")
    out = checkpoint(lambda x: x * w, Tensor([1.0, 2.0, 3.0]))
    assert [r.op for r in graph(out)] == ["leaf", "checkpoint"]
    out.sum().backward()
    assert w.grad.tolist() == [1.0, 2.0, 3.0]


def test_checkpoint_of_several_inputs_one_unused_one_constant():
    a, b, c = leaf(2), leaf(2), Tensor([3.0, 4.0])
    checkpoint(lambda a, b, c: a * c, a * 1.0, b * 1.0, c).sum().backward()
    assert a.grad.tolist() == [3.0, 4.0] and b.grad is None


def test_checkpoint_passes_on_what_is_no_tensor():
    table, ids = leaf(5, 2), np.array([1, 1])
    checkpoint(lambda table, ids, times: embedding(table, ids) * times, table * 1.0, ids, 3.0).sum().backward()
    assert table.grad[1].tolist() == [6.0, 6.0] and table.grad.sum() == 12.0
    w = leaf(3)
    checkpoint(lambda x: linear(x, w.reshape(3, 1)), np.ones((2, 3))).sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_checkpoints_nest():
    x = leaf(2)
    checkpoint(lambda x: checkpoint(lambda y: y * y, x * 2.0) + x, x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]  # d(4 x^2 + x) at 0.5


def test_checkpoint_without_recording_is_a_plain_call():
    x = leaf(2)
    with no_grad():
        out = checkpoint(lambda x: x * 2.0, x)
    assert out.data.tolist() == [1.0, 1.0] and not out.requires_grad


def test_checkpoint_refuses_a_computed_tensor_from_outside():
    x = leaf(2)
    h = x.exp()
    with pytest.raises(ValueError, match="the output of 'exp'.*pass it as an input"):
        checkpoint(lambda y: y * h, x)


# The C library, and the import


def test_malloc_settings_are_a_no_op_elsewhere(monkeypatch):
    def missing(_):
        raise OSError("no C library by that name")

    assert malloc.keep_freed_pages() in (True, False)
    monkeypatch.setattr(malloc.ctypes, "CDLL", missing)
    assert malloc.keep_freed_pages() is False


def test_import_brings_numpy_only_and_pins_blas():
    code = (
        "import os, sys; os.environ.pop('OMP_NUM_THREADS', None); os.environ['MKL_NUM_THREADS'] = '3'\n"
        "import mlsys\n"
        "assert os.environ['OMP_NUM_THREADS'] == '1' and os.environ['MKL_NUM_THREADS'] == '3'\n"
        "assert not any(m.startswith('mlsys.') for m in sys.modules)\n"
        "import mlsys.nn, mlsys.optim, mlsys.gradcheck\n"
        "print([m for m in ('matplotlib', 'ipywidgets', 'IPython', 'torch', 'numpy.testing') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
