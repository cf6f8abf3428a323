"""Workloads: the kernels of one training step of a GPT, in the order in which they are launched.

Each kernel is counted (FLOPs, bytes of memory) from the shape of the model. Its time is the longer of arithmetic at
the best rate that somebody measured on the chip and traffic at a share of the data sheet's bandwidth, plus a floor.
`fused=True` is a step as a compiler with FlashAttention launches it, `fused=False` is eager: scores are stored, and
scale, mask, softmax, transposes, residual sums and bias gradients are kernels of their own.
FLOPs are those of `mlsys.transformer.counts.training_flops`; FlashAttention multiplies Q and K once more.
Left out: casts between formats, dropout, caches that keep a tensor between kernels (errs high), matrix products that
reach less than the best rate, as small and oddly shaped ones do (errs low). All in all times err low: a simulated
step on 8 A100 takes 73 to 81 % of what FlashAttention's authors published for five GPT-3 sizes (a test compares).
Lessons: reading a profiler.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..gpu.roofline import Work
from ..specs.accelerators import Accelerator
from ..specs.architecture import Architecture

MEMORY_SHARE = 0.85  # of the data sheet's bandwidth that a streaming kernel gets: an assumption
BEST_SHARE = 0.8  # of the peak, where no best measured matrix product is known: an assumption
FLOOR_S = 2e-6  # of a kernel that does next to nothing: an assumption
ADAM_BYTES = 30  # a parameter: reads weight, gradient and two moments, writes three of these in fp32 and a bf16 copy
LOOPED_ADAM = (("mul", 2), ("lerp", 3), ("mul", 2), ("addcmul", 3), ("sqrt", 2), ("div", 2), ("add", 2), ("addcdiv", 4))
GRADIENT_BYTES = 4  # a parameter; gradients are kept in fp32


@dataclass(frozen=True)
class Kernel:
    """One launch. phase: forward, backward or optimizer; gradients: parameters whose gradient is ready after it."""

    name: str
    work: Work
    phase: str
    gradients: int = 0


def kernel_s(kernel: Kernel, chip: Accelerator) -> float:
    """Seconds of one kernel on a chip that has nothing else to do.

    >>> from mlsys.specs import A100_80GB
    >>> f"{kernel_s(Kernel('gemm', Work(2 * 4096**3, 3 * 4096**2 * 2), 'forward'), A100_80GB) * 1e6:.0f} us"
    '509 us'
    """
    rate = chip.best_bf16 or BEST_SHARE * (chip.peak_bf16 or chip.peak("fp16"))
    return FLOOR_S + max(kernel.work.flops / rate, kernel.work.bytes_moved / (MEMORY_SHARE * chip.mem_bw))


def gpt_step(model: Architecture, batch: int, seq: int, fused: bool = True, fused_optimizer: bool = True) -> list[Kernel]:
    """Kernels of one step over batch x seq tokens: forward, backward from the last layer to the first, optimizer.

    Raises ValueError for a model that is no plain GPT, and for a batch or sequence below 1.

    >>> from mlsys.specs.models import GPT2_SMALL
    >>> len(gpt_step(GPT2_SMALL, 4, 1024)), len(gpt_step(GPT2_SMALL, 4, 1024, fused=False, fused_optimizer=False))
    (289, 1697)
    """
    m = model
    if m.gated or m.experts or m.kv_heads != m.heads or m.positions != "learned":
        raise ValueError(f"{m.name} is no plain GPT; this workload knows no other model")
    if batch < 1 or seq < 1:
        raise ValueError(f"batch={batch} and seq={seq} have to be at least 1")
    layer = _Layer(m, batch, seq, fused)
    forward = [layer.stream("embedding", 2)]
    for _ in range(m.layers):
        forward += layer.forward()
    forward += [layer.stream("norm", 2), layer.gemm("logits", m.vocab, m.d_model), layer.logits("loss", 1)]
    backward = [layer.logits("loss", 2), layer.gemm("logits dx", m.d_model, m.vocab), layer.dw("logits dw", m.d_model, m.vocab)]
    backward += [layer.stream("norm", 3)]
    each = m.d_model * (12 * m.d_model + 13)
    for _ in range(m.layers):
        backward += layer.backward()
        backward[-1] = Kernel(backward[-1].name, backward[-1].work, "backward", each)
    rest = 2 * m.d_model + (m.vocab + m.context) * m.d_model  # a tied table is complete at the very end
    backward += [layer.stream("embedding", 3)]
    backward[-1] = Kernel("embedding", backward[-1].work, "backward", rest)
    kernels = [Kernel(k.name, k.work, "forward") for k in forward] + [Kernel(k.name, k.work, "backward", k.gradients) for k in backward]
    return kernels + _optimizer(m, fused_optimizer)


class _Layer:
    """Kernels of one transformer layer, with bf16 activations of shape (batch, seq, d_model)."""

    def __init__(self, m: Architecture, batch: int, seq: int, fused: bool):
        self.m, self.fused, self.tokens = m, fused, batch * seq
        self.scores = batch * m.heads * seq * seq  # elements
        self.score_flops = 2 * batch * m.heads * seq * seq * m.head_dim  # of one of the two products

    def stream(self, name: str, passes: float, width: int | None = None) -> Kernel:
        """A kernel that only reads and writes: passes over a tensor of tokens x width."""
        return Kernel(name, Work(0, 2 * passes * self.tokens * (width or self.m.d_model)), "")

    def over_scores(self, name: str, passes: float) -> Kernel:
        return Kernel(name, Work(0, 2 * passes * self.scores), "")

    def logits(self, name: str, passes: float) -> Kernel:
        return self.stream(name, passes, self.m.vocab)

    def gemm(self, name: str, n: int, k: int) -> Kernel:
        """(tokens, k) times (k, n)."""
        return Kernel(name, Work(2 * self.tokens * n * k, 2 * (self.tokens * (n + k) + n * k)), "")

    def dw(self, name: str, n: int, k: int) -> Kernel:
        """(n, tokens) times (tokens, k): a weight's gradient, written in fp32."""
        return Kernel(name, Work(2 * self.tokens * n * k, 2 * self.tokens * (n + k) + GRADIENT_BYTES * n * k), "")

    def score_gemm(self, name: str) -> Kernel:
        return Kernel(name, Work(self.score_flops, 2 * (self.scores + 2 * self.tokens * self.m.d_model)), "")

    def forward(self) -> list[Kernel]:
        d, ff = self.m.d_model, self.m.d_ff
        if self.fused:
            attention = [Kernel("flash attention", Work(2 * self.score_flops, 8 * self.tokens * d), "")]
            joins = [self.stream("add, norm", 4)], [self.stream("add", 3)]
        else:
            attention = [self.stream("split heads", 6), self.score_gemm("scores"), self.over_scores("scale", 2),
                         self.over_scores("mask", 2), self.over_scores("softmax", 2), self.score_gemm("values"),
                         self.stream("join heads", 2)]
            joins = [self.stream("add", 3), self.stream("norm", 2)], [self.stream("add", 3)]
        return [self.stream("norm", 2), self.gemm("qkv", 3 * d, d), *attention, self.gemm("projection", d, d), *joins[0],
                self.gemm("mlp up", ff, d), self.stream("gelu", 2, ff), self.gemm("mlp down", d, ff), *joins[1]]

    def backward(self) -> list[Kernel]:
        d, ff = self.m.d_model, self.m.d_ff
        if self.fused:
            attention = [Kernel("flash attention", Work(5 * self.score_flops, 16 * self.tokens * d), "")]
        else:
            attention = [self.stream("join heads", 2), self.score_gemm("values dx"), self.score_gemm("values dw"),
                         self.over_scores("softmax", 3), self.over_scores("mask", 2), self.over_scores("scale", 2),
                         self.score_gemm("scores dq"), self.score_gemm("scores dk"), self.stream("split heads", 6)]
        bias = (lambda name, width: []) if self.fused else (lambda name, width: [self.stream(f"{name} bias", 1, width)])
        return [
            *bias("mlp down", d), self.gemm("mlp down dx", ff, d), self.dw("mlp down dw", ff, d), self.stream("gelu", 3, ff),
            *bias("mlp up", ff), self.gemm("mlp up dx", d, ff), self.dw("mlp up dw", d, ff), self.stream("norm", 3), self.stream("add", 3),
            *bias("projection", d), self.gemm("projection dx", d, d), self.dw("projection dw", d, d), *attention,
            *bias("qkv", 3 * d), self.gemm("qkv dx", d, 3 * d), self.dw("qkv dw", d, 3 * d), self.stream("norm", 3), self.stream("add", 3),
        ]  # fmt: skip


def tensor_sizes(m: Architecture) -> list[int]:
    """Elements of each parameter tensor: 12 a layer, two tables, the last norm.

    >>> from mlsys.specs.models import GPT2_SMALL
    >>> len(tensor_sizes(GPT2_SMALL)), sum(tensor_sizes(GPT2_SMALL))
    (148, 124439808)
    """
    d, ff = m.d_model, m.d_ff
    layer = [d, d, 3 * d * d, 3 * d, d * d, d, d, d, d * ff, ff, ff * d, d]
    return [m.vocab * d, m.context * d, *layer * m.layers, d, d]


def _optimizer(m: Architecture, fused: bool) -> list[Kernel]:
    """AdamW: four launches over everything, or eight for each tensor."""
    if fused:
        return [Kernel("adamw", Work(0, ADAM_BYTES * sum(tensor_sizes(m)) / 4), "optimizer")] * 4
    return [Kernel(f"adamw {name}", Work(0, 4 * passes * size), "optimizer") for size in tensor_sizes(m) for name, passes in LOOPED_ADAM]
