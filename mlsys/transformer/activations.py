"""Activation memory: what the forward pass keeps for the backward pass.

The idea: write down every tensor that some operator's gradient needs, two bytes an element and
one for a dropout mask (Korthikanti et al. 2022, arXiv 2205.05198). For a plain GPT the list adds up to
their s·b·h·(34 + 5as/h) bytes a layer; here the list is read from the description, so that
grouped heads, gated MLPs and experts have their own sums.
Left out: norm statistics, allocator waste, communication buffers, padding of experts; so true use
is higher. Two sublayers with a norm each are assumed.
Lessons: the block and its counts.
"""

from __future__ import annotations

from mlsys.specs.architecture import Architecture

RECOMPUTE = ("none", "selective", "full")


def activation_parts(
    model: Architecture, batch: int, seq: int, tensor_parallel: int = 1, sequence_parallel: bool = False,
    recompute: str = "none", dropout: bool = True,
) -> dict[str, int]:  # fmt: skip
    """Bytes that one layer keeps on one device, by part, for a microbatch of batch x seq tokens.

    tensor_parallel: devices that share a layer; sequence_parallel: they also share what tensor
    parallelism leaves whole. recompute: "selective" drops what scores and softmax keep (as FlashAttention
    does), "full" keeps the layer's input alone. dropout=False: no masks, and no second copy of the scores.
    Where there are fewer key heads than devices, each device keeps one.

    >>> from mlsys.specs.models import GPT3_175B
    >>> {part: round(n / 1e9, 2) for part, n in activation_parts(GPT3_175B, batch=1, seq=2048).items()}
    {'norms': 0.1, 'attention': 0.28, 'scores': 2.01, 'mlp': 0.48}
    """
    m, t, tokens = model, tensor_parallel, batch * seq
    _check(m, seq, t, sequence_parallel, recompute)
    shared = t if sequence_parallel else 1
    if recompute == "full":
        return {"layer input": tokens * 2 * m.d_model // shared}
    mask = m.d_model if dropout else 0
    experts = m.experts_per_token + m.shared_experts if m.experts else 1
    queries, keys = m.heads // t * m.head_dim, max(1, m.kv_heads // t) * m.head_dim
    inner = (4 if m.gated else 2) * m.d_ff // t  # gate, its activation, up, product; or before and after GELU
    parts = {
        "norms": 4 * m.d_model // shared,
        "attention": (2 * m.d_model + mask) // shared + 2 * (2 * queries + 2 * keys),
        "scores": seq * (m.heads // t) * (5 if dropout else 2),  # softmax, its mask, and what dropout lets through
        "mlp": (2 * experts * m.d_model + mask) // shared + 2 * inner * experts,
    }
    if recompute == "selective":
        del parts["scores"]
    return {part: tokens * n for part, n in parts.items()}


def _check(m: Architecture, seq: int, t: int, sequence_parallel: bool, recompute: str) -> None:
    if recompute not in RECOMPUTE:
        raise ValueError(f"recompute={recompute!r} is not one of {', '.join(RECOMPUTE)}")
    if m.heads % t or m.d_ff % t or (m.kv_heads % t and t % m.kv_heads):
        raise ValueError(
            f"{m.name}: tensor_parallel={t} does not divide heads {m.heads}, {m.kv_heads} and d_ff={m.d_ff}"
        )
    if sequence_parallel and (seq % t or m.d_model % t):
        raise ValueError(f"{m.name}: tensor_parallel={t} does not divide seq={seq} and d_model={m.d_model}")


def layer_activation_bytes(model: Architecture, batch: int, seq: int, **how) -> int:
    """Bytes that one layer keeps on one device: the sum of `activation_parts`, with its options.

    >>> from mlsys.specs.models import GPT3_175B
    >>> layer_activation_bytes(GPT3_175B, 1, 2048) == 2048 * 12288 * (34 + 5 * 96 * 2048 // 12288)
    True
    """
    return sum(activation_parts(model, batch, seq, **how).values())


def activation_bytes(
    model: Architecture, batch: int, seq: int, pipeline_parallel: int = 1, interleave: int = 1, ends: bool = True, **how
) -> float:
    """Bytes on a device of the first pipeline stage, which keeps most; options as in `activation_parts`.

    batch: sequences in one microbatch. With 1F1B the first of p stages keeps p microbatches of 1/p of the
    layers each, so as much as all layers of one; interleaving m chunks keeps (p-1)/(p·m) more. Needs at
    least p microbatches in a step: with fewer, this errs high.
    ends: count also the embedding's dropout masks and, without a pipeline, the last norm, the output
    layer's input and 4-byte logits. Figures in the paper leave them out.
    """
    p, m, tokens = pipeline_parallel, model, batch * seq
    if m.layers % (p * interleave):
        raise ValueError(f"{m.name}: {p} stages of {interleave} chunks do not divide layers={m.layers}")
    in_flight = 1 + (p - 1) / (p * interleave) if interleave > 1 else 1
    layers = m.layers * in_flight * layer_activation_bytes(m, batch, seq, **how)
    if not ends:
        return layers
    t = how.get("tensor_parallel", 1)
    shared = t if how.get("sequence_parallel") else 1
    masks = p * tokens * m.d_model / shared if how.get("dropout", True) else 0
    last = tokens * (4 * m.d_model / shared + 4 * m.vocab * m.head / t) if p == 1 else 0
    return layers + masks + last
