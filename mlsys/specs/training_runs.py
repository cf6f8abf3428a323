"""Published training runs: how large, how many tokens, and what was said to have been spent.

Numbers are as printed, also where they contradict each other: Table D.1 counts 355M parameters
for BERT large, which has 335M; 6ND of Chinchilla's 70B and 1.4T tokens is 2 % more than the budget
that its paper names.
Lessons: the block and its counts, scaling laws.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlsys.specs import models
from mlsys.specs.accelerators import A100_80GB, H100_SXM
from mlsys.specs.architecture import Architecture

PF_DAY = 8.64e19  # FLOP: 1e15 FLOP/s for a day


@dataclass(frozen=True)
class TrainingRun:
    """One run. parameters and tokens are counts; active is the share of the parameters that a token uses.

    flops: training FLOPs as published; chip_hours with peak_flops (FLOP/s of one chip, dense bf16).
    """

    name: str
    parameters: float
    tokens: float
    active: float = 1.0
    flops: float | None = None
    chip_hours: float | None = None
    peak_flops: float | None = None
    source: str = ""


_D1 = "Brown et al. 2020 (arXiv 2005.14165), Table D.1"


def _row(name: str, millions: float, billions: float, flops: float, active: float = 1.0) -> TrainingRun:
    return TrainingRun(name, millions * 1e6, billions * 1e9, active, flops, source=_D1)


# An encoder-decoder's token goes through one half of the parameters: T5's share is 0.5.
GPT3_TABLE_D1 = (
    _row("T5-Small", 60, 1000, 1.80e20, 0.5),
    _row("T5-Base", 220, 1000, 6.60e20, 0.5),
    _row("T5-Large", 770, 1000, 2.31e21, 0.5),
    _row("T5-3B", 3000, 1000, 9.00e21, 0.5),
    _row("T5-11B", 11000, 1000, 3.30e22, 0.5),
    _row("BERT-Base", 109, 250, 1.64e20),
    _row("BERT-Large", 355, 250, 5.33e20),
    _row("RoBERTa-Base", 125, 2000, 1.50e21),
    _row("RoBERTa-Large", 355, 2000, 4.26e21),
    _row("GPT-3 Small", 125, 300, 2.25e20),
    _row("GPT-3 Medium", 356, 300, 6.41e20),
    _row("GPT-3 Large", 760, 300, 1.37e21),
    _row("GPT-3 XL", 1320, 300, 2.38e21),
    _row("GPT-3 2.7B", 2650, 300, 4.77e21),
    _row("GPT-3 6.7B", 6660, 300, 1.20e22),
    _row("GPT-3 13B", 12850, 300, 2.31e22),
    _row("GPT-3 175B", 174600, 300, 3.14e23),
)

_A100, _H100 = A100_80GB.peak_bf16, H100_SXM.peak_bf16
_CARD = "model card in meta-llama/llama-models"

RUNS = (
    TrainingRun("PaLM 540B", 540e9, 780e9, flops=2.53e24, source="Chowdhery et al. 2022 (arXiv 2204.02311)"),
    TrainingRun("Chinchilla 70B", 70e9, 1.4e12, flops=5.76e23, source="Hoffmann et al. 2022 (arXiv 2203.15556), Table 3"),
    TrainingRun("Llama 2 7B", 6738415616, 2e12, 1.0, None, 184320, _A100, _CARD),
    TrainingRun("Llama 2 13B", 13015864320, 2e12, 1.0, None, 368640, _A100, _CARD),
    TrainingRun("Llama 2 70B", 68976648192, 2e12, 1.0, None, 1720320, _A100, _CARD),
    TrainingRun("Llama 3 8B", 8030261248, 15e12, 1.0, None, 1.3e6, _H100, _CARD),
    TrainingRun("Llama 3 70B", 70553706496, 15e12, 1.0, None, 6.4e6, _H100, _CARD),
    TrainingRun("Llama 3.1 8B", 8030261248, 15e12, 1.0, None, 1.46e6, _H100, _CARD),
    TrainingRun("Llama 3.1 70B", 70553706496, 15e12, 1.0, None, 7.0e6, _H100, _CARD),
    TrainingRun(
        "Llama 3.1 405B", 405853388800, 15.6e12, 1.0, 3.8e25, 30.84e6, _H100,
        _CARD + "; FLOPs and tokens: Llama Team 2024 (arXiv 2407.21783)",
    ),
    TrainingRun(  # 37B of 671B active; the H800's dense bf16 peak is the H100's
        "DeepSeek-V3", 671e9, 14.8e12, 37 / 671, None, 2.664e6, _H100, "deepseek-ai/DeepSeek-V3 README: pre-training alone"
    ),
)  # fmt: skip


@dataclass(frozen=True)
class MeasuredStep:
    """A training step of `sequences` x `seq` tokens in step_s seconds on `chips` of peak_flops each.

    recompute: "none", "selective" or "full"; mfu and hfu: fractions, as published.
    """

    model: Architecture
    sequences: int
    seq: int
    step_s: float
    chips: int
    peak_flops: float
    recompute: str = "none"
    mfu: float | None = None
    hfu: float | None = None
    source: str = ""


_TABLE5 = "Korthikanti et al. 2022 (arXiv 2205.05198), Tables 3 and 5"
KORTHIKANTI_STEPS = (
    MeasuredStep(models.KORTHIKANTI_22B, 4, 2048, 1.10, 8, _A100, "selective", 0.415, 0.437, _TABLE5),
    MeasuredStep(models.KORTHIKANTI_175B, 64, 2048, 13.75, 64, _A100, "selective", 0.514, 0.528, _TABLE5),
    MeasuredStep(models.KORTHIKANTI_530B, 280, 2048, 37.83, 280, _A100, "selective", 0.560, 0.570, _TABLE5),
    MeasuredStep(models.KORTHIKANTI_1T, 512, 2048, 71.49, 512, _A100, "selective", 0.563, 0.570, _TABLE5),
)
# Printed: 238,300 tokens/s. Any number of sequences a step gives the same rate; the seconds follow. The
# published HFU counts recomputation that the paper does not spell out, so the step names none.
PALM_STEP = MeasuredStep(
    models.PALM_540B, 2048, 2048, 2048 * 2048 / 238.3e3, 6144, 275e12, "none", 0.462, 0.578,
    "Chowdhery et al. 2022 (arXiv 2204.02311), Table 3 and section 4.1",
)  # fmt: skip
