"""How fast does a small GPT train, next to PyTorch?

    python -m tests.benchmarks.transformer [--rounds 15] [--only PyTorch mlsys ...]

A character GPT: 2 layers, d_model 64, 4 heads, 64 tokens, batch 16, vocabulary 65, learned
positions, pre-norm, tanh-GELU, output layer of its own, AdamW; 112,512 parameters, float32. All
begin with the same weights and see the same batches. PyTorch uses its fused attention (SDPA) and its
fused AdamW; "as tutorials write it" composes the attention and leaves AdamW at its default.

Workers, slices and ratios are those of `engine`: one core and one thread each, processor time, the
ratio taken inside each round; above 1 is faster than the first. After CHECK_STEPS steps the losses of
all steps are compared with the first framework's. Peak memory is that of a process of its own which
imports, builds and trains CHECK_STEPS steps, less what it held after the import.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

VOCAB, CONTEXT, BATCH, D_MODEL, HEADS, LAYERS = 65, 64, 16, 64, 4, 2
LR, BETAS, EPS, WEIGHT_DECAY = 3e-4, (0.9, 0.999), 1e-8, 0.01
BATCHES, CHECK_STEPS = 8, 20
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def weights() -> dict[str, np.ndarray]:
    """Start values by the names that `mlsys.transformer` gives them; matrices (d_in, d_out)."""
    rng = np.random.default_rng(3)
    d, ones, zeros = D_MODEL, np.ones(D_MODEL, np.float32), np.zeros

    def normal(*shape):
        return (0.02 * rng.standard_normal(shape)).astype(np.float32)

    out = {"tokens.table": normal(VOCAB, d), "positions": normal(CONTEXT, d)}
    for i in range(LAYERS):
        layer = {"norm1.gamma": ones, "norm1.beta": zeros(d, np.float32)}
        layer |= {"attention.qkv.w": normal(d, 3 * d), "attention.qkv.b": zeros(3 * d, np.float32)}
        layer |= {"attention.out.w": normal(d, d), "attention.out.b": zeros(d, np.float32)}
        layer |= {"norm2.gamma": ones, "norm2.beta": zeros(d, np.float32)}
        layer |= {"feed_forward.up.w": normal(d, 4 * d), "feed_forward.up.b": zeros(4 * d, np.float32)}
        layer |= {"feed_forward.down.w": normal(4 * d, d), "feed_forward.down.b": zeros(d, np.float32)}
        out |= {f"blocks.{i}.{name}": value for name, value in layer.items()}
    return out | {"norm.gamma": ones, "norm.beta": zeros(d, np.float32), "head.w": normal(d, VOCAB)}


def data() -> list[tuple[np.ndarray, np.ndarray]]:
    """(ids, next ids), each (batch, context), from a random Markov chain that can be learned."""
    rng = np.random.default_rng(4)
    chain = rng.dirichlet(np.full(VOCAB, 0.05), size=VOCAB).cumsum(1)
    out = []
    for _ in range(BATCHES):
        ids = np.empty((BATCH, CONTEXT + 1), np.int64)
        ids[:, 0] = rng.integers(0, VOCAB, BATCH)
        for t in range(CONTEXT):
            ids[:, t + 1] = np.minimum((chain[ids[:, t]] < rng.random((BATCH, 1))).sum(1), VOCAB - 1)
        out.append((np.ascontiguousarray(ids[:, :-1]), np.ascontiguousarray(ids[:, 1:])))
    return out


def ours(fused=True):
    """mlsys.transformer."""
    from mlsys import optim
    from mlsys.transformer import Transformer, TransformerConfig

    config = TransformerConfig(VOCAB, CONTEXT, D_MODEL, LAYERS, HEADS, tied=False)
    model = Transformer(config, np.random.default_rng(0), fused)
    model.load_state_dict(weights())
    optimizer = optim.AdamW(model.parameters(), LR, BETAS, EPS, WEIGHT_DECAY)
    batches = data()

    def step(i):
        loss = model.loss(*batches[i % BATCHES])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch(tutorial=False):
    """PyTorch eager on bare parameters, which saves the cost of modules."""
    import torch
    import torch.nn.functional as F

    torch.set_num_threads(1)
    p = {name: torch.nn.Parameter(torch.from_numpy(w.copy())) for name, w in weights().items()}
    optimizer = torch.optim.AdamW(
        p.values(), lr=LR, betas=BETAS, eps=EPS, weight_decay=WEIGHT_DECAY, **({} if tutorial else {"fused": True})
    )
    batches = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in data()]
    hidden = torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1)

    def attention(q, k, v):
        if not tutorial:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v

    def loss_of(ids, targets):
        x = F.embedding(ids, p["tokens.table"]) + p["positions"]
        for i in range(LAYERS):
            w = {name: p[f"blocks.{i}.{name}"] for name in LAYER_NAMES}
            h = F.layer_norm(x, (D_MODEL,), w["norm1.gamma"], w["norm1.beta"])
            qkv = h @ w["attention.qkv.w"] + w["attention.qkv.b"]
            q, k, v = qkv.view(BATCH, CONTEXT, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
            a = attention(q, k, v).transpose(1, 2).reshape(BATCH, CONTEXT, D_MODEL)
            x = x + a @ w["attention.out.w"] + w["attention.out.b"]
            h = F.layer_norm(x, (D_MODEL,), w["norm2.gamma"], w["norm2.beta"])
            h = F.gelu(h @ w["feed_forward.up.w"] + w["feed_forward.up.b"], approximate="tanh")
            x = x + h @ w["feed_forward.down.w"] + w["feed_forward.down.b"]
        x = F.layer_norm(x, (D_MODEL,), p["norm.gamma"], p["norm.beta"])
        return F.cross_entropy((x @ p["head.w"]).view(-1, VOCAB), targets.view(-1))

    def step(i):
        loss = loss_of(*batches[i % BATCHES])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


LAYER_NAMES = [name.removeprefix("blocks.0.") for name in weights() if name.startswith("blocks.0.")]


def loss_in(xp):
    """The loss as a function of (weights, ids, targets), written with the functions of a NumPy-like module."""
    future = np.triu(np.full((CONTEXT, CONTEXT), -1e30, np.float32), 1)

    def norm(x, gamma, beta):
        x = x - xp.mean(x, axis=-1, keepdims=True)
        return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * gamma + beta

    def softmax(x):
        e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return e / xp.sum(e, axis=-1, keepdims=True)

    def gelu(x):
        return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def loss_of(p, ids, targets):
        x = p["tokens.table"][ids] + p["positions"]
        for i in range(LAYERS):
            w = {name: p[f"blocks.{i}.{name}"] for name in LAYER_NAMES}
            h = norm(x, w["norm1.gamma"], w["norm1.beta"])
            qkv = xp.reshape(h @ w["attention.qkv.w"] + w["attention.qkv.b"], (BATCH, CONTEXT, 3, HEADS, -1))
            q, k, v = (xp.transpose(qkv[:, :, j], (0, 2, 1, 3)) for j in range(3))
            scores = xp.matmul(q, xp.transpose(k, (0, 1, 3, 2))) * (D_MODEL // HEADS) ** -0.5 + future
            a = xp.reshape(xp.transpose(xp.matmul(softmax(scores), v), (0, 2, 1, 3)), (BATCH, CONTEXT, D_MODEL))
            x = x + a @ w["attention.out.w"] + w["attention.out.b"]
            h = norm(x, w["norm2.gamma"], w["norm2.beta"])
            h = gelu(h @ w["feed_forward.up.w"] + w["feed_forward.up.b"])
            x = x + h @ w["feed_forward.down.w"] + w["feed_forward.down.b"]
        z = xp.reshape(norm(x, p["norm.gamma"], p["norm.beta"]) @ p["head.w"], (-1, VOCAB))
        z = z - xp.max(z, axis=-1, keepdims=True)
        return xp.mean(xp.log(xp.sum(xp.exp(z), axis=-1)) - z[np.arange(BATCH * CONTEXT), xp.reshape(targets, (-1,))])

    return loss_of


def adamw(p, m, v, g, t):
    """One step on one parameter: the new p, m, v."""
    m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
    move = LR * (m / (1 - BETAS[0] ** t)) / ((v / (1 - BETAS[1] ** t)) ** 0.5 + EPS)
    return p * (1 - LR * WEIGHT_DECAY) - move, m, v


def jax():
    """JAX on the CPU: the whole step compiled, state donated."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
    import jax
    import jax.numpy as jnp

    gradient = jax.value_and_grad(loss_in(jnp))

    def update(state, t, ids, targets):
        loss, g = gradient({name: s[0] for name, s in state.items()}, ids, targets)
        return {name: adamw(*s, g[name], t) for name, s in state.items()}, loss

    update = jax.jit(update, donate_argnums=0)
    state = {name: tuple(jnp.array(a) for a in (w, 0 * w, 0 * w)) for name, w in weights().items()}
    batches = data()

    def step(i):
        nonlocal state
        state, loss = update(state, jnp.float32(i + 1), *batches[i % BATCHES])
        return float(loss)

    return step


def hips_autograd():
    """HIPS autograd: NumPy traced, gradients of a function of the parameters."""
    import autograd.numpy as anp
    from autograd import value_and_grad

    gradient = value_and_grad(loss_in(anp))
    state = {name: (w, 0 * w, 0 * w) for name, w in weights().items()}
    batches = data()

    def step(i):
        nonlocal state
        loss, g = gradient({name: s[0] for name, s in state.items()}, *batches[i % BATCHES])
        state = {name: adamw(*s, g[name].astype(np.float32), i + 1) for name, s in state.items()}
        return loss

    return step


PEERS = {
    "PyTorch": torch,
    "PyTorch, tutorial": lambda: torch(tutorial=True),
    "mlsys, fused": ours,
    "mlsys, composed": lambda: ours(fused=False),
    "JAX, jit": jax,
    "HIPS autograd": hips_autograd,
}
IMPORTS = {"PyTorch": "torch", "PyTorch, tutorial": "torch", "JAX, jit": "jax", "HIPS autograd": "autograd"}


def peak_bytes() -> int:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def serve(name: str) -> None:
    """Worker: answers with the losses of CHECK_STEPS steps and its peak memory, then times slices."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever a framework prints goes to stderr
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        __import__(IMPORTS.get(name, "mlsys.transformer"))
        before = peak_bytes()
        step = PEERS[name]()
        losses = [float(step(i)) for i in range(CHECK_STEPS)]
    except Exception as reason:  # the peer is missing
        answers.write(f"absent {type(reason).__name__}: {str(reason).splitlines()[0] if str(reason) else ''}\n")
        return
    answers.write(f"ready {peak_bytes() - before} {' '.join(map(repr, losses))}\n")
    i = CHECK_STEPS
    for line in sys.stdin:
        begin = time.process_time()
        for _ in range(int(line)):
            step(i)
            i += 1
        answers.write(f"{time.process_time() - begin!r}\n")


class Worker:
    """A framework in its own process."""

    def __init__(self, name: str):
        self.name = name
        command = [sys.executable, "-m", "tests.benchmarks.transformer", "--serve", name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | dict.fromkeys(THREADS, "1"),
        )
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        self.absent = None if kind == "ready" else rest or "failed to start"
        if not self.absent:
            peak, *losses = rest.split()
            self.peak_mb, self.losses = int(peak) / 1e6, np.array(losses, float)

    def run(self, steps: int) -> float:
        """Processor seconds a step."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline()) / steps

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(names: list[str], rounds: int, slice_s: float) -> str:
    """The table: one row a framework, ratios and losses against the first that is present."""
    workers = [Worker(name) for name in names]
    absent = [w for w in workers if w.absent]
    workers = [w for w in workers if not w.absent]
    steps = {w.name: max(1, round(slice_s / w.run(3))) for w in workers}
    times: dict[str, list[float]] = {w.name: [] for w in workers}
    for r in range(rounds):
        for w in workers if r % 2 == 0 else workers[::-1]:
            times[w.name].append(w.run(steps[w.name]))
    first = workers[0]
    rows = [f"{'':18} {'ms/step':>8} {'ratio':>6} {'quartiles':>12} {'peak MB':>8}  loss, largest difference"]
    for w in workers:
        ratios = [theirs / mine for theirs, mine in zip(times[first.name], times[w.name], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4) if rounds > 1 else ratios * 3
        apart = np.abs(w.losses - first.losses).max()
        ms = statistics.median(times[w.name]) * 1e3
        spread = f"{low:.2f}-{high:.2f}"
        rows.append(f"{w.name:18} {ms:8.2f} {middle:6.2f} {spread:>12} {w.peak_mb:8.1f}  {w.losses[-1]:.6f} {apart:.1e}")
        w.close()
    return "\n".join(rows + [f"{w.name:18} not measured: {w.absent}" for w in absent])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--slice-ms", type=float, default=150)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), metavar="PEER")
    parser.add_argument("--serve", metavar="PEER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
    else:
        print(measure(options.only, options.rounds, options.slice_ms / 1e3))


if __name__ == "__main__":
    main()
