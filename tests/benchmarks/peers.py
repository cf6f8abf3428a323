"""The same two training steps in several frameworks.

moons: 2-16-16-1 ReLU network, batch 32, hinge loss, SGD: nearly all overhead of the framework.
mlp:   784-128-64-10 ReLU network, batch 64, softmax cross-entropy, SGD: small matrix products.
Every function gives `step(i) -> loss`; weights and data are the same for all, in float32.
A framework that is not installed raises ImportError when its function is called.
"""

import numpy as np

BATCHES = 8  # different ones, used in turn
SIZES = {"moons": (2, 16, 16, 1), "mlp": (784, 128, 64, 10)}
LR = 0.05


def weights(task):
    """[w, b, w, b, ...], w (d_in, d_out) from He's rule, b zero."""
    rng = np.random.default_rng(10)
    out = []
    for d_in, d_out in zip(SIZES[task][:-1], SIZES[task][1:], strict=True):
        out.append((rng.standard_normal((d_in, d_out)) * np.sqrt(2 / d_in)).astype(np.float32))
        out.append(np.zeros(d_out, np.float32))
    return out


def data(task):
    """(list of x, list of y): y are -1 and 1 as (32, 1) float32 for moons, class numbers (64,) for mlp."""
    rng = np.random.default_rng(1)
    xs, ys = [], []
    centres = rng.standard_normal((10, 784)) * 0.5
    for _ in range(BATCHES):
        if task == "moons":
            angle, y = rng.uniform(0, np.pi, 32), rng.integers(0, 2, 32)
            upper = np.c_[np.cos(angle), np.sin(angle)]
            x = np.where(y[:, None] == 0, upper, [1, 0.5] - upper) + 0.1 * rng.standard_normal((32, 2))
            ys.append((2.0 * y - 1.0).astype(np.float32)[:, None])
        else:
            y = rng.integers(0, 10, 64)
            x = centres[y] + rng.standard_normal((64, 784))
            ys.append(y)
        xs.append(x.astype(np.float32))
    return xs, ys


def ours(task):
    """mlsys: nn.MLP, fused linear and cross-entropy, optim.SGD."""
    from mlsys import nn, optim
    from mlsys.autograd import cross_entropy

    net = nn.MLP(SIZES[task], np.random.default_rng(0))
    for p, w in zip(net.parameters(), weights(task), strict=True):
        p.data[...] = w
    optimizer = optim.SGD(net.parameters(), lr=LR)
    xs, ys = data(task)

    def step(i):
        out, y = net(xs[i % BATCHES]), ys[i % BATCHES]
        loss = (1 - y * out).relu().mean() if task == "moons" else cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def ours_composed(task):
    """mlsys without fused operations: h @ w + b, cross-entropy from exp, sum and log."""
    from mlsys import optim
    from mlsys.autograd import Tensor

    ps = [Tensor(w, requires_grad=True) for w in weights(task)]
    optimizer = optim.SGD(ps, lr=LR)
    xs, ys = data(task)

    def cross_entropy(z, y):
        z = z - z.data.max(-1, keepdims=True)
        return (z.exp().sum(-1).log() - z[np.arange(len(y)), y]).mean()

    def step(i):
        h, y = Tensor(xs[i % BATCHES]), ys[i % BATCHES]
        for k in range(0, len(ps), 2):
            h = h @ ps[k] + ps[k + 1]
            if k + 2 < len(ps):
                h = h.relu()
        loss = (1 - y * h).relu().mean() if task == "moons" else cross_entropy(h, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def by_hand(task):
    """NumPy with the backward pass written out, in textbook style."""
    ps = weights(task)
    xs, ys = data(task)

    def hinge(h, y):
        margin = 1 - y * h
        return np.maximum(margin, 0).mean(), np.where(margin > 0, -y, 0).astype(np.float32) / np.float32(len(y))

    def cross_entropy(z, y):
        n = len(y)
        z = z - z.max(-1, keepdims=True)
        e = np.exp(z)
        s = e.sum(-1, keepdims=True)
        loss = (np.log(s)[:, 0] - z[np.arange(n), y]).mean()
        d = e / s
        d[np.arange(n), y] -= 1
        return loss, d / np.float32(n)

    def step(i):
        kept, h = [], xs[i % BATCHES]
        for k in range(0, len(ps), 2):
            kept.append(h)
            h = h @ ps[k] + ps[k + 1]
            if k + 2 < len(ps):
                h = np.maximum(h, 0)
        loss, d = (hinge if task == "moons" else cross_entropy)(h, ys[i % BATCHES])
        for k in range(len(ps) - 2, -1, -2):
            x = kept.pop()
            dw, db = x.T @ d, d.sum(0)
            if k:
                d = (d @ ps[k].T) * (x > 0)
            ps[k] -= np.float32(LR) * dw
            ps[k + 1] -= np.float32(LR) * db
        return loss

    return step


def torch(task):
    """PyTorch eager: nn.Sequential and optim.SGD."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(1)
    ws = weights(task)
    layers = []
    for k in range(0, len(ws), 2):
        layer = torch.nn.Linear(*ws[k].shape)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(ws[k].T))
            layer.bias.copy_(torch.from_numpy(ws[k + 1]))
        layers += [layer, torch.nn.ReLU()]
    net = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(net.parameters(), lr=LR)
    xs, ys = ([torch.from_numpy(a) for a in arrays] for arrays in data(task))

    def step(i):
        out, y = net(xs[i % BATCHES]), ys[i % BATCHES]
        loss = torch.relu(1 - y * out).mean() if task == "moons" else F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch_bare(task):
    """PyTorch eager without modules: addmm on bare parameters, as fast as eager gets."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(1)
    ps = [torch.nn.Parameter(torch.from_numpy(w)) for w in weights(task)]
    optimizer = torch.optim.SGD(ps, lr=LR)
    xs, ys = ([torch.from_numpy(a) for a in arrays] for arrays in data(task))

    def step(i):
        h, y = xs[i % BATCHES], ys[i % BATCHES]
        for k in range(0, len(ps), 2):
            h = torch.addmm(ps[k + 1], h, ps[k])
            if k + 2 < len(ps):
                h = torch.relu(h)
        loss = torch.relu(1 - y * h).mean() if task == "moons" else F.cross_entropy(h, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def hips_autograd(task):
    """HIPS autograd: NumPy traced, gradients of a function of the parameters."""
    import autograd.numpy as anp
    from autograd import value_and_grad

    ps = weights(task)
    xs, ys = data(task)

    def loss_of(ps, x, y):
        h = x
        for k in range(0, len(ps), 2):
            h = anp.dot(h, ps[k]) + ps[k + 1]
            if k + 2 < len(ps):
                h = anp.maximum(h, 0)
        if task == "moons":
            return anp.mean(anp.maximum(1 - y * h, 0))
        h = h - anp.max(h, -1, keepdims=True)
        return anp.mean(anp.log(anp.sum(anp.exp(h), -1)) - h[np.arange(len(y)), y])

    gradient = value_and_grad(loss_of)

    def step(i):
        loss, grads = gradient(ps, xs[i % BATCHES], ys[i % BATCHES])
        for k, g in enumerate(grads):
            ps[k] = ps[k] - np.float32(LR) * g
        return loss

    return step


def jax(task):
    """JAX on the CPU: the whole step compiled, state donated."""
    import os

    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    import jax
    import jax.numpy as jnp

    xs, ys = ([jnp.asarray(a) for a in arrays] for arrays in data(task))

    def loss_of(ps, x, y):
        h = x
        for k in range(0, len(ps), 2):
            h = h @ ps[k] + ps[k + 1]
            if k + 2 < len(ps):
                h = jnp.maximum(h, 0)
        if task == "moons":
            return jnp.mean(jnp.maximum(1 - y * h, 0))
        return jnp.mean(jax.nn.logsumexp(h, axis=-1) - jnp.take_along_axis(h, y[:, None], 1)[:, 0])

    def update(ps, x, y):
        loss, grads = jax.value_and_grad(loss_of)(ps, x, y)
        return [p - LR * g for p, g in zip(ps, grads, strict=True)], loss

    update = jax.jit(update, donate_argnums=0)
    ps = [jnp.asarray(w) for w in weights(task)]

    def step(i):
        nonlocal ps
        ps, loss = update(ps, xs[i % BATCHES], ys[i % BATCHES])
        return float(loss)

    return step


def tinygrad(task):
    """tinygrad on its CPU backend (which needs clang), the whole step under TinyJit."""
    import os

    os.environ.setdefault("DEV", "CPU")
    os.environ.setdefault("TRAINING", "1")
    from tinygrad import Tensor, TinyJit
    from tinygrad.nn.optim import SGD

    ps = [Tensor(w).realize() for w in weights(task)]
    optimizer = SGD(ps, lr=LR)
    xs, ys = data(task)
    batches = [(Tensor(x).realize(), Tensor(y if y.ndim == 2 else y.astype(np.int32)).realize()) for x, y in zip(xs, ys, strict=True)]

    @TinyJit
    def update(x, y):
        h = x
        for k in range(0, len(ps), 2):
            h = h @ ps[k] + ps[k + 1]
            if k + 2 < len(ps):
                h = h.relu()
        loss = (1 - y * h).relu().mean() if task == "moons" else h.sparse_categorical_crossentropy(y)
        optimizer.zero_grad()
        loss.backward()
        return loss.realize(*optimizer.schedule_step())

    return lambda i: update(*batches[i % BATCHES]).item()


def micrograd(task):
    """micrograd: one object for every number; the large network is out of its reach."""
    if task != "moons":
        raise ImportError("one object for every number: out of reach")
    from micrograd.engine import Value
    from micrograd.nn import MLP

    net = MLP(2, [16, 16, 1])
    ws = weights(task)
    for k, layer in enumerate(net.layers):
        for j, neuron in enumerate(layer.neurons):
            neuron.b.data = float(ws[2 * k + 1][j])
            for i, v in enumerate(neuron.w):
                v.data = float(ws[2 * k][i, j])
    xs, ys = data(task)

    def step(i):
        outs = [net([Value(float(v)) for v in row]) for row in xs[i % BATCHES]]
        loss = sum((1 + -float(y[0]) * out).relu() for y, out in zip(ys[i % BATCHES], outs, strict=True)) * (1 / 32)
        net.zero_grad()
        loss.backward()
        for p in net.parameters():
            p.data -= LR * p.grad
        return loss.data

    return step


PEERS = {
    "PyTorch": torch,
    "PyTorch, bare": torch_bare,
    "NumPy by hand": by_hand,
    "mlsys": ours,
    "mlsys, composed": ours_composed,
    "HIPS autograd": hips_autograd,
    "JAX, jit": jax,
    "tinygrad": tinygrad,
    "micrograd": micrograd,
}
