"""Optimizers against recorded PyTorch runs, and what the flat arrays must not change."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from mlsys import nn, optim
from mlsys.autograd import Tensor, cross_entropy
from tests.benchmarks import peers

DATA = Path(__file__).parent / "data"


def rows(name):
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file))


RECORDED = {
    ("SGD", "lr=0.1"): lambda p: optim.SGD(p, lr=0.1),
    ("SGD", "lr=0.1 momentum=0.9"): lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    ("Adam", "lr=0.01"): lambda p: optim.Adam(p, lr=0.01),
    ("Adam", "lr=0.01 weight_decay=0.1"): lambda p: optim.Adam(p, lr=0.01, weight_decay=0.1),
    ("AdamW", "lr=0.01 weight_decay=0.1 betas=(0.9, 0.95)"): lambda p: optim.AdamW(
        p, lr=0.01, weight_decay=0.1, betas=(0.9, 0.95)
    ),
}


def recorded_gradient(t):
    """As the `source` column of the recording says."""
    return np.array([(i + 1) * math.sin(0.7 * t + 1.3 * i) for i in range(4)])


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("case", RECORDED, ids=" ".join)
def test_twenty_steps_equal_the_recording(case, split):
    """Once as one parameter of four numbers, once as four parameters."""
    start = np.array([1.0, -2.0, 0.5, 3.0])
    ps = [Tensor(a, requires_grad=True) for a in (np.split(start, 4) if split else [start])]
    optimizer = RECORDED[case](ps)
    recorded = [r for r in rows("optimizer_reference.csv") if (r["optimizer"], r["hyperparameters"]) == case]
    assert len(recorded) == 20
    for row in recorded:
        optimizer.zero_grad()
        g = recorded_gradient(int(row["step"]))
        for p, part in zip(ps, np.split(g, 4) if split else [g], strict=True):
            p.backward(part)
        optimizer.step()
        want = [float(row[f"param{i}"]) for i in range(4)]
        assert np.allclose(np.concatenate([p.data for p in ps]), want, rtol=1e-12, atol=1e-12)


VARIANTS = {
    "SGD": dict(lr=0.1),
    "SGD decay": dict(lr=0.1, weight_decay=0.05),
    "SGD momentum decay": dict(lr=0.1, momentum=0.8, weight_decay=0.05),
    "SGD nesterov": dict(lr=0.1, momentum=0.9, nesterov=True),
    "SGD nesterov decay": dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.05),
    "Adam": dict(lr=0.02, betas=(0.8, 0.99), eps=1e-6),
    "Adam decay": dict(lr=0.02, weight_decay=0.1),
    "AdamW": dict(lr=0.02),
    "AdamW betas": dict(lr=0.02, betas=(0.5, 0.9), weight_decay=0.3),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_pytorch_with_gradients_missing_now_and_then(variant):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: a peer to compare with, not a requirement")
    rng, name = np.random.default_rng(0), variant.split()[0]
    arrays = [rng.standard_normal(s) for s in ((3, 4), (4,), (), (2, 2))]
    ours = [Tensor(a.copy(), requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    mine, other = (getattr(m, name)(ps, **VARIANTS[variant]) for m, ps in ((optim, ours), (torch.optim, theirs)))
    for t in range(12):
        if t == 6:
            mine.lr = other.param_groups[0]["lr"] = 0.005
        for i, (p, q) in enumerate(zip(ours, theirs, strict=True)):
            missing = (t == 0 and i == 1) or (t in (3, 4) and i != 2) or i == 3
            g = rng.standard_normal(p.shape)
            p.grad, q.grad = (None, None) if missing else (g, torch.tensor(g))
        mine.step()
        other.step()
        for p, q in zip(ours, theirs, strict=True):
            assert np.allclose(p.data, q.detach().numpy(), rtol=1e-12, atol=1e-12)
    assert (ours[3].data == arrays[3]).all()


def test_nesterov_looks_one_step_ahead():
    p = Tensor(np.array([1.0]), requires_grad=True)
    optimizer, x, v = optim.SGD([p], lr=0.1, momentum=0.5, nesterov=True), 1.0, 0.0
    for t in range(1, 5):
        p.grad = np.array([float(t)])
        optimizer.step()
        v = 0.5 * v + t
        x -= 0.1 * (t + 0.5 * v)
        assert np.isclose(p.data[0], x, rtol=1e-14)
    with pytest.raises(ValueError, match="needs momentum"):
        optim.SGD([p], lr=0.1, nesterov=True)


def test_adam_moves_by_lr_whatever_the_size_of_the_gradient():
    for size in (1e-3, 1.0, 1e3):
        p = Tensor(np.zeros(3), requires_grad=True)
        optimizer = optim.Adam([p], lr=0.01)
        p.grad = np.full(3, size)
        optimizer.step()
        assert np.allclose(p.data, -0.01, rtol=1e-4)


def test_chunks_change_nothing(monkeypatch):
    results = []
    for chunk in (5, 1000):
        monkeypatch.setattr(optim, "CHUNK", chunk)
        ps = [Tensor(np.random.default_rng(i).standard_normal(7), requires_grad=True) for i in range(3)]
        optimizer = optim.AdamW(ps)
        for t in range(3):
            for p in ps:
                p.grad = np.sin(np.arange(7.0) + t)
            optimizer.step()
        results.append(np.concatenate([p.data for p in ps]))
    assert (results[0] == results[1]).all()


def test_decay_of_matrices_only():
    w, b = nn.Parameter(np.ones((2, 2))), nn.Parameter(np.ones(2))
    optimizer = optim.AdamW([b, w], lr=0.1, weight_decay=0.5, decay_1d=False)
    w.grad, b.grad = np.zeros((2, 2)), np.zeros(2)
    optimizer.step()
    assert np.allclose(w.data, 0.95) and np.allclose(b.data, 1.0)
    optimizer.zero_grad()
    optimizer.step()  # no gradient, no decay either
    assert np.allclose(w.data, 0.95) and np.allclose(b.data, 1.0)
    optimizer = optim.AdamW([b, w], lr=0.1, weight_decay=0.5)
    w.grad, b.grad = np.zeros((2, 2)), np.zeros(2)
    optimizer.step()
    assert np.allclose(w.data, 0.95**2) and np.allclose(b.data, 0.95)


# The flat arrays


def test_parameters_and_gradients_live_in_two_arrays():
    net = nn.MLP([3, 4, 2], np.random.default_rng(0))
    before = net.state_dict()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    assert all((p.data == before[name]).all() for name, p in net.named_parameters())
    net(np.ones((5, 3), np.float32)).sum().backward()
    for p in net.parameters():
        assert np.shares_memory(p.data, optimizer.flat) and np.shares_memory(p.grad, optimizer.flat_grad)
    assert optimizer.flat.size == nn.n_params(net)


def test_assigned_data_and_gradients_are_picked_up():
    p, q = nn.Parameter(np.zeros(2)), nn.Parameter(np.zeros(3))
    optimizer = optim.SGD([p, q], lr=1.0)
    p.data = np.array([5.0, 6.0])
    p.grad, q.grad = np.array([1.0, 1.0]), np.array([2.0, 2.0, 2.0])
    optimizer.step()
    assert p.data.tolist() == [4, 5] and q.data.tolist() == [-2, -2, -2]
    assert np.shares_memory(p.data, optimizer.flat)


def test_gradients_accumulate_over_micro_batches():
    net = nn.MLP([3, 4, 2], np.random.default_rng(0))
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    x, y = np.random.default_rng(1).standard_normal((8, 3)), np.arange(8) % 2
    cross_entropy(net(x), y).backward()
    whole = optimizer.flat_grad.copy()
    optimizer.zero_grad()
    for half in (slice(0, 4), slice(4, 8)):
        (cross_entropy(net(x[half]), y[half]) * 0.5).backward()
    assert np.allclose(optimizer.flat_grad, whole, atol=1e-6)


def test_two_optimizers_may_take_turns_on_one_parameter():
    p = nn.Parameter(np.array([1.0]))
    first, second = optim.SGD([p], lr=1.0), optim.SGD([p], lr=10.0)
    for optimizer in (first, second, first):
        p.grad = np.array([1.0])
        optimizer.step()
    assert p.data.tolist() == [1 - 1 - 10 - 1]


def test_a_frozen_parameter_stays_and_thaws():
    w = nn.Parameter(np.array([1.0]))
    v = nn.Parameter(np.array([1.0]))
    optimizer = optim.SGD([w, v], lr=0.5)
    for frozen, want in ((True, 1.0), (False, 0.5)):
        optimizer.zero_grad()
        w.requires_grad = not frozen
        (w * 1.0 + v).backward()
        optimizer.step()
        assert w.data == [want]
    optimizer.zero_grad()
    (w * 1.0).backward()
    assert np.shares_memory(w.grad, optimizer.flat_grad)


def test_a_shared_parameter_is_updated_once():
    w = nn.Parameter(np.array([1.0]))
    optimizer = optim.SGD([w, w], lr=0.5)
    (w * 3.0).backward()
    optimizer.step()
    assert w.data == [-0.5] and optimizer.flat.size == 1


def test_state_bytes():
    ps = [nn.Parameter(np.zeros((3, 4), np.float32)), nn.Parameter(np.zeros(8, np.float32))]
    assert optim.SGD(ps, lr=0.1).state_bytes() == 0
    assert optim.SGD(ps, lr=0.1, momentum=0.9).state_bytes() == 20 * 4
    assert optim.Adam(ps).state_bytes() == optim.AdamW(ps).state_bytes() == 2 * 20 * 4


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (lambda: [], "at least one"),
        (lambda: [np.ones(3)], "takes leaf tensors, not array"),
        (lambda: [nn.Parameter([1.0]) * 2], "takes leaf tensors"),
        (lambda: [nn.Parameter(np.ones(1)), nn.Parameter([1.0])], "float64 and float32"),
    ],
)
def test_errors_are_sentences(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        optim.SGD(params(), lr=0.1)


@pytest.mark.parametrize("peer", ["NumPy by hand", "PyTorch"])
@pytest.mark.parametrize("task", peers.SIZES)
def test_twenty_float32_steps_end_at_the_loss_of_others(task, peer):
    if peer == "PyTorch":
        pytest.importorskip("torch", reason="PyTorch is not installed: a peer to compare with, not a requirement")
    ours, composed, theirs = peers.ours(task), peers.ours_composed(task), peers.PEERS[peer](task)
    losses = [(ours(i), composed(i), float(theirs(i))) for i in range(20)]
    assert np.ptp(losses[-1]) < 1e-5 and losses[-1][0] < losses[0][0]


# Clipping and schedules


def test_clipping_scales_all_gradients_by_one_factor():
    a, b, c = (nn.Parameter(np.zeros(2)) for _ in range(3))
    a.grad, b.grad = np.array([3.0, 0.0]), np.array([0.0, 4.0])
    assert optim.clip_by_global_norm([a, b, c], max_norm=10.0) == 5.0
    assert a.grad.tolist() == [3.0, 0.0]
    assert optim.clip_by_global_norm([a, b, c], max_norm=1.0) == 5.0
    assert np.allclose(a.grad, [0.6, 0.0]) and np.allclose(b.grad, [0.0, 0.8]) and c.grad is None


def test_clipping_takes_an_optimizer():
    p = nn.Parameter(np.zeros(4, np.float32))
    optimizer = optim.SGD([p], lr=1.0)
    (p * 10.0).sum().backward()
    assert np.isclose(optim.clip_by_global_norm(optimizer, 2.0), 20.0)
    optimizer.step()
    assert np.allclose(p.data, -1.0) and p.data.dtype == np.float32
    optimizer.zero_grad()
    assert optim.clip_by_global_norm(optimizer, 2.0) == 0.0


def test_schedules_equal_the_recording():
    recorded = rows("lr_schedule_reference.csv")
    cosine = [r for r in recorded if r["scheduler"].startswith("Cosine")]
    decay = [r for r in recorded if r["scheduler"].startswith("StepLR")]
    assert len(cosine) == len(decay) == 51
    for row in cosine:
        got = optim.warmup_cosine(int(row["step"]), peak=1.0, warmup=0, total=50, floor=0.1)
        assert np.isclose(got, float(row["lr_base_1.0"]), rtol=1e-12)
    for row in decay:
        got = optim.step_decay(int(row["step"]), lr=1.0, every=10, factor=0.5)
        assert np.isclose(got, float(row["lr_base_1.0"]), rtol=1e-12)


def test_warmup_rises_to_the_peak_and_the_cosine_never_rises():
    rates = [optim.warmup_cosine(t, peak=0.3, warmup=5, total=50, floor=0.03) for t in range(60)]
    assert np.allclose(rates[:6], [0.06, 0.12, 0.18, 0.24, 0.3, 0.3])
    assert all(a >= b for a, b in zip(rates[5:], rates[6:], strict=False)) and rates[50] == rates[59] == 0.03
    assert optim.linear_warmup(0, peak=0.5, warmup=0) == 0.5
