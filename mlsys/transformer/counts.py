"""Counts: parameters, FLOPs, KV-cache bytes and utilisation of a transformer, from its description.

The idea: a model is a handful of matrices, repeated. Parameters add up their sizes, and a token
costs one multiplication and one addition for each weight that it meets, plus the attention scores,
which grow with the sequence.
Parameter counts are exact. FLOPs are of matrix products alone: norms, softmax, activations and
the optimizer are left out, so the true count is higher (by well under 1 % for large models).
Lessons: the block and its counts, scaling laws. Activation memory: `activations`, repeated here.
"""

from __future__ import annotations

from mlsys.specs.architecture import Architecture
from mlsys.specs.training_runs import PF_DAY, MeasuredStep, TrainingRun
from mlsys.transformer.activations import activation_bytes, activation_parts, layer_activation_bytes
from mlsys.transformer.config import TransformerConfig

__all__ = [
    "Architecture", "activation_bytes", "activation_parts", "attended_pairs", "describe", "forward_flop_parts",
    "forward_flops", "hfu", "kv_cache_bytes", "layer_activation_bytes", "mfu", "parameter_parts", "parameters", "run_flops", "run_mfu",
    "run_pf_days", "training_flops", "training_flops_6n",
]  # fmt: skip

EMBEDDINGS = ("token embedding", "position embedding", "token types", "output layer")


def describe(config: TransformerConfig, name: str = "this model") -> Architecture:
    """The description of a model that `mlsys.transformer.Transformer` builds.

    >>> from mlsys.transformer.config import LLAMA3_8B
    >>> parameters(describe(LLAMA3_8B))
    8030261248
    """
    c = config
    return Architecture(
        name, c.layers, c.d_model, c.heads, c.d_ff, c.vocab, c.context, c.kv_heads, c.d_head, window=c.window,
        positions="rotary" if c.positions == "rope" else "learned", tied=c.tied, norm=c.norm,
        attention_bias="all" if c.bias else "none", mlp_bias=c.bias, gated=c.mlp == "swiglu",
        experts=c.experts, experts_per_token=c.top_k if c.experts else 0, source="mlsys.transformer.config",
    )  # fmt: skip


def parameter_parts(model: Architecture, active: bool = False) -> dict[str, int]:
    """Parameters by part; their sum is the model's size. A tied output layer counts once, as embedding.

    active: of the experts, only those that one token uses.

    >>> from mlsys.specs.models import GPT2_SMALL
    >>> {part: n for part, n in parameter_parts(GPT2_SMALL).items() if n}
    {'token embedding': 38597376, 'position embedding': 786432, 'attention': 28348416, 'mlp': 56669184, 'norms': 38400}
    """
    m = model
    experts = (m.experts_per_token if active else m.experts) + m.shared_experts if m.experts else 1
    return {
        "token embedding": m.vocab * m.embedding_dim,
        "position embedding": (m.context + m.extra_positions) * m.d_model if m.positions == "learned" else 0,
        "token types": m.token_types * m.d_model,
        "embedding projections": _embedding_projections(m),
        "attention": m.layers * _attention(m),
        "relative positions": m.layers * (m.d_model + 2) * m.q_width if m.positions == "relative" else 0,
        "mlp": m.layers * experts * _mlp(m),
        "router": m.layers * m.d_model * m.experts,
        "norms": _norms(m),
        "output layer": (0 if m.tied or not m.head else m.vocab * m.embedding_dim) + m.vocab * m.head_bias,
        "pooler": (m.d_model + 1) * m.d_model if m.pooler else 0,
    }


def _embedding_projections(m: Architecture) -> int:
    """From a narrow token table to d_model, and back before the output layer; no biases."""
    return (1 + m.head) * m.embedding_dim * m.d_model if m.embedding_dim != m.d_model else 0


def _attention(m: Architecture) -> int:
    """One layer's queries, keys, values and output projection."""
    weights = 2 * m.d_model * (m.q_width + m.kv_width)
    biases = {"none": 0, "qkv": m.q_width + 2 * m.kv_width, "all": m.q_width + 2 * m.kv_width + m.d_model}
    return weights + biases[m.attention_bias] + 2 * m.head_dim * m.qk_norm


def _mlp(m: Architecture) -> int:
    """One MLP, or one expert: two matrices, three where it is gated."""
    inner = 2 if m.gated else 1
    return (inner + 1) * m.d_model * m.d_ff + (inner * m.d_ff + m.d_model) * m.mlp_bias


def _norms(m: Architecture) -> int:
    each = {"none": 0, "rms": m.d_model, "layer": 2 * m.d_model}[m.norm]
    return (m.layers * m.norms_per_layer + m.final_norm + m.embedding_norm) * each


def parameters(model: Architecture, kind: str = "total") -> int:
    """Number of parameters. kind: "total", "non_embedding", "active" or "active_non_embedding".

    Non-embedding leaves out the token, position and segment tables and an untied output layer, as
    Kaplan et al. count; Hoffmann et al. count all. Mixing the two shifts small models most.

    >>> from mlsys.specs.models import GPT2_SMALL, MIXTRAL_8X7B
    >>> parameters(GPT2_SMALL), parameters(GPT2_SMALL, "non_embedding"), parameters(MIXTRAL_8X7B, "active")
    (124439808, 85056000, 12879925248)
    """
    if kind not in ("total", "non_embedding", "active", "active_non_embedding"):
        raise ValueError(f"kind={kind!r} is not total, non_embedding, active or active_non_embedding")
    parts = parameter_parts(model, active=kind.startswith("active"))
    return sum(n for part, n in parts.items() if not (kind.endswith("non_embedding") and part in EMBEDDINGS))


def attended_pairs(model: Architecture, seq: int, skip_masked: bool = True) -> int:
    """Query-key pairs in one head over a sequence. skip_masked=False counts all seq x seq.

    >>> from mlsys.specs.models import GPT2_SMALL
    >>> attended_pairs(GPT2_SMALL, seq=4), attended_pairs(GPT2_SMALL, seq=4, skip_masked=False)
    (10, 16)
    """
    if not skip_masked or not (model.causal or model.window):
        return seq * seq
    width = min(model.window or seq, seq)
    one_sided = width * (width + 1) // 2 + (seq - width) * width  # the first `width` queries see fewer
    return one_sided if model.causal else 2 * one_sided - seq


def forward_flop_parts(model: Architecture, batch: int, seq: int, skip_masked: bool = False) -> dict[str, int]:
    """FLOPs of one forward pass over batch x seq tokens, by part; a multiply-add is 2.

    skip_masked: count only the scores that the mask lets through. Published formulas do not
    (skip_masked=False), so for causal models they err high, by half the score term.

    >>> from mlsys.specs.models import GPT2_SMALL
    >>> {part: n for part, n in forward_flop_parts(GPT2_SMALL, batch=1, seq=1024).items() if n}  # doctest: +ELLIPSIS
    {'attention projections': 57982058496, 'attention scores': 38654705664, 'mlp': 115964116992, 'output layer': 7904...}
    """
    m, tokens = model, batch * seq
    pairs = batch * attended_pairs(m, seq, skip_masked)
    relative = m.positions == "relative"
    experts = m.experts_per_token + m.shared_experts if m.experts else 1
    return {
        "attention projections": 4 * tokens * m.layers * m.d_model * (m.q_width + m.kv_width),
        "attention scores": 4 * pairs * m.layers * m.q_width,
        # queries times distances, and the distances' projection, once a batch
        "relative positions": 2 * m.layers * m.q_width * (pairs + seq * m.d_model) * relative,
        "mlp": 2 * tokens * m.layers * experts * (2 + m.gated) * m.d_model * m.d_ff,
        "router": 2 * tokens * m.layers * m.d_model * m.experts,
        "embedding projections": 2 * tokens * _embedding_projections(m),
        "output layer": 2 * tokens * m.vocab * m.embedding_dim * m.head,
        "pooler": 2 * batch * m.d_model**2 * m.pooler,
    }


IN_LAYERS = ("attention projections", "attention scores", "relative positions", "mlp", "router")
RECOMPUTED = {"none": (), "selective": ("attention scores",), "full": IN_LAYERS}


def forward_flops(model: Architecture, batch: int, seq: int, skip_masked: bool = False) -> int:
    """FLOPs of one forward pass: the sum of `forward_flop_parts`."""
    return sum(forward_flop_parts(model, batch, seq, skip_masked).values())


def training_flops(
    model: Architecture, batch: int, seq: int, recompute: str = "none", skip_masked: bool = False
) -> int:
    """FLOPs of forward and backward over batch x seq tokens: three forwards, and what is run again.

    Backward multiplies each matrix twice, for the gradient of its input and of its weights.
    recompute: "selective" runs the attention scores again, "full" every layer (the output layer's
    result is kept).

    With full recomputation a GPT's count is Megatron's 96 B s l h² (1 + s/(6h) + V/(16lh)):

    >>> from mlsys.specs.models import KORTHIKANTI_175B as m
    >>> s, l, h, v = 2048, m.layers, m.d_model, m.vocab
    >>> training_flops(m, 1, s, "full") == 96 * s * l * h**2 + 16 * s**2 * l * h + 6 * s * h * v
    True
    """
    if recompute not in RECOMPUTED:
        raise ValueError(f"recompute={recompute!r} is not one of {', '.join(RECOMPUTED)}")
    parts = forward_flop_parts(model, batch, seq, skip_masked)
    return 3 * sum(parts.values()) + sum(parts[part] for part in RECOMPUTED[recompute])


def training_flops_6n(model: Architecture, tokens: float, kind: str = "active", seq: int = 0) -> float:
    """The rule of thumb: 6 FLOPs for each parameter and token, and with seq the score term 12·layers·width·seq.

    kind: which parameters, as in `parameters`. An untied token table is looked up, not multiplied, so
    counting it errs high; leaving all embeddings out forgets the output layer, which errs low.
    seq=0 leaves the scores out, which errs low: by s/(6·d_model) for a plain GPT without embedding.

    >>> from mlsys.specs.models import GPT3_175B
    >>> f"{training_flops_6n(GPT3_175B, tokens=300e9):.3g}"
    '3.14e+23'
    """
    return tokens * (6 * parameters(model, kind) + 12 * model.layers * model.q_width * seq)


def run_flops(run: TrainingRun) -> float:
    """Training FLOPs of a published run by 6ND over the parameters that a token uses.

    >>> from mlsys.specs.training_runs import GPT3_TABLE_D1
    >>> f"{run_flops(GPT3_TABLE_D1[0]):.2e}"  # T5-Small: half of 60M parameters, 1,000B tokens
    '1.80e+20'
    """
    return 6 * run.active * run.parameters * run.tokens


def run_pf_days(run: TrainingRun) -> float:
    """The same in petaFLOP/s-days of 8.64e19 FLOP."""
    return run_flops(run) / PF_DAY


def run_mfu(run: TrainingRun) -> float:
    """Utilisation that 6ND and the published chip-hours imply, as a fraction of the peak.

    Hours include restarts and short phases, and scores are not counted: errs low against the MFU of
    a good step.
    """
    if not run.chip_hours or not run.peak_flops:
        raise ValueError(f"{run.name}: no chip hours or no peak were published, so no utilisation follows")
    return run_flops(run) / (run.chip_hours * 3600 * run.peak_flops)


def mfu(step: MeasuredStep) -> float:
    """Model FLOPs utilisation: the FLOPs that the model needs, over what the chips could do, as a fraction.

    Recomputation is not counted; masked scores are, as in PaLM and Megatron.

    >>> from mlsys.specs.training_runs import PALM_STEP
    >>> f"{mfu(PALM_STEP):.3f} of the peak; published {PALM_STEP.mfu}"
    '0.462 of the peak; published 0.462'
    """
    return _utilisation(step, "none")


def hfu(step: MeasuredStep) -> float:
    """Hardware FLOPs utilisation: as `mfu`, recomputed FLOPs included.

    Korthikanti et al. count three times as much for selective recomputation as running the two score
    products once more takes (s/(6h) instead of s/(18h) of the layer's FLOPs), so their HFU is higher.
    """
    return _utilisation(step, step.recompute)


def _utilisation(step: MeasuredStep, recompute: str) -> float:
    flops = training_flops(step.model, step.sequences, step.seq, recompute)
    return flops / (step.step_s * step.chips * step.peak_flops)


def kv_cache_bytes(model: Architecture, tokens: int = 1, batch: int = 1, bytes_per_value: float = 2) -> float:
    """Bytes of keys and values kept for `batch` sequences of `tokens` tokens, in all layers.

    A sliding window keeps its own width at most. Paging and padding are left out: errs low.

    >>> from mlsys.specs.models import LLAMA2_7B, LLAMA3_8B, MISTRAL_7B
    >>> [kv_cache_bytes(m) // 1024 for m in (LLAMA2_7B, LLAMA3_8B)]  # KiB a token
    [512, 128]
    >>> kv_cache_bytes(MISTRAL_7B, tokens=32768) == kv_cache_bytes(MISTRAL_7B, tokens=4096)
    True
    """
    kept = min(tokens, model.window or tokens)
    return 2 * batch * kept * model.layers * model.kv_width * bytes_per_value
