"""The transformer against PyTorch: scores and every gradient, on random weights, for every choice of parts."""

import numpy as np
import pytest

from mlsys.transformer import Transformer, TransformerConfig, causal_mask, padding_mask, prefix_mask, sliding_mask

torch = pytest.importorskip("torch", reason="PyTorch is not installed; it is needed only to compare with")
F = torch.nn.functional

TOLERANCE = 1e-5  # of the largest entry of an array, or of 1 if that is smaller
BATCH, T = 2, 24
GPT2 = dict(vocab=37, context=T, d_model=32, layers=2, heads=4)
LLAMA = dict(GPT2, kv_heads=2, norm="rms", mlp="swiglu", positions="rope", tied=False, bias=False)
MASKED = causal_mask(T) & padding_mask([T, 9], T)
LONELY = np.where(np.arange(T)[:, None] % 5 == 2, False, MASKED)  # some queries may look at nothing

CASES = {
    "GPT-2": (GPT2, None),
    "GPT-2, output layer of its own": (dict(GPT2, tied=False), None),
    "Llama": (LLAMA, None),
    "Llama, one key-value head": (dict(LLAMA, kv_heads=1), None),
    "Llama, tied, wide heads": (dict(LLAMA, tied=True, d_head=12), None),
    "window": (dict(LLAMA, window=5), sliding_mask(T, 5)),
    "prefix": (GPT2, prefix_mask(T, 7)),
    "padding": (GPT2, MASKED),
    "rows without keys": (dict(LLAMA, kv_heads=4), LONELY),
    "experts": (dict(LLAMA, experts=4, top_k=2), None),
    "RMS norm with GELU and RoPE": (dict(GPT2, norm="rms", positions="rope"), None),
}


def random_weights(model, scale):
    """Weights that make attention uneven, and no two layers alike."""
    rng = np.random.default_rng(5)
    return {
        name: (scale * rng.standard_normal(p.shape) + (name.endswith("gamma"))).astype(np.float32)
        for name, p in model.named_parameters()
    }


def torch_scores(p, config, ids, mask):
    """The model of `config`, written with PyTorch's own functions; p: weights by our names."""
    batch, t = ids.shape
    heads, kv_heads, d = config.heads, config.kv_heads, config.d_head

    def norm(x, name):
        if config.norm == "layer":
            return F.layer_norm(x, x.shape[-1:], p[name + ".gamma"], p[name + ".beta"], config.eps)
        return F.rms_norm(x, x.shape[-1:], p[name + ".gamma"], config.eps)

    def linear(x, name):
        return F.linear(x, p[name + ".w"].T, p.get(name + ".b"))

    def rotate(x):  # complex numbers: pair i is x[i] + j x[i + d/2]
        angle = torch.arange(t, dtype=torch.float64)[:, None] * config.rope_base ** (-torch.arange(0, d, 2) / d)
        pairs = torch.complex(x[..., : d // 2], x[..., d // 2 :]) * torch.polar(torch.ones_like(angle), angle)
        return torch.cat([pairs.real, pairs.imag], -1).to(x.dtype)

    def feed_forward(x, name):
        if config.mlp == "gelu":
            return linear(F.gelu(linear(x, name + ".up"), approximate="tanh"), name + ".down")
        return linear(F.silu(linear(x, name + ".gate")) * linear(x, name + ".up"), name + ".down")

    def experts(x, name):
        best, chosen = (x @ p[name + ".router"]).topk(config.top_k)
        weight = torch.zeros(*x.shape[:-1], config.experts).scatter(-1, chosen, best.softmax(-1))
        return sum(weight[..., [e]] * feed_forward(x, f"{name}.experts.{e}") for e in range(config.experts))

    x = F.embedding(ids, p["tokens.table"])
    if config.positions == "learned":
        x = x + p["positions"][:t]
    for i in range(config.layers):
        at = f"blocks.{i}."
        qkv = linear(norm(x, at + "norm1"), at + "attention.qkv").view(batch, t, -1, d).transpose(1, 2)
        q, k, v = qkv.split([heads, kv_heads, kv_heads], dim=1)
        if config.positions == "rope":
            q, k = rotate(q), rotate(k)
        k, v = (y.repeat_interleave(heads // kv_heads, dim=1) for y in (k, v))
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        a = torch.where(mask.any(-1, keepdim=True), a, 0)  # for a row without keys PyTorch has had nan and zeros
        x = x + linear(a.transpose(1, 2).reshape(batch, t, heads * d), at + "attention.out")
        x = x + (experts if config.experts else feed_forward)(norm(x, at + "norm2"), at + "feed_forward")
    x = norm(x, "norm")
    return x @ (p["tokens.table"].T if config.tied else p["head.w"])


def difference(ours, theirs):
    theirs = theirs.detach().numpy()
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "composed"])
@pytest.mark.parametrize("scale", [0.02, 0.3])
@pytest.mark.parametrize("case", CASES)
def test_scores_and_gradients_equal_pytorch(case, scale, fused):
    shape, mask = CASES[case]
    config = TransformerConfig(**shape)
    model = Transformer(config, np.random.default_rng(0), fused)
    weights = random_weights(model, scale)
    model.load_state_dict(weights)
    rng = np.random.default_rng(6)
    ids, targets = rng.integers(0, config.vocab, (2, BATCH, T))
    given = None if config.window or mask is None else mask

    p = {name: torch.from_numpy(w.copy()).requires_grad_() for name, w in weights.items()}
    scores = torch_scores(p, config, torch.from_numpy(ids), torch.from_numpy((causal_mask(T) if mask is None else mask).copy()))
    loss = F.cross_entropy(scores.view(-1, config.vocab), torch.from_numpy(targets).view(-1))
    loss.backward()

    assert difference(model(ids, given).data, scores) < TOLERANCE
    ours = model.loss(ids, targets, given)
    assert abs(ours.item() - loss.item()) < TOLERANCE * max(1.0, loss.item())
    ours.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == np.float32
        assert difference(parameter.grad, p[name].grad) < TOLERANCE, name


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "composed"])
def test_twenty_steps_of_the_benchmark_have_pytorchs_losses(fused):
    from tests.benchmarks import transformer as benchmark

    ours, theirs = benchmark.ours(fused), benchmark.torch()
    for i in range(benchmark.CHECK_STEPS):
        assert abs(ours(i) - theirs(i)) < 1e-5
