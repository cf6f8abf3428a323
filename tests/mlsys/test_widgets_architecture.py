"""The architecture explorer: published sizes exactly, parts that add up, sliders that always give a model."""

import time

import pytest

from mlsys.specs.models import GPT2_SMALL, GPT3_175B, LLAMA3_8B, LLAMA3_70B
from mlsys.transformer import counts
from mlsys.widgets.architecture import KEEP, LLAMA, OWN, PRESETS, ArchitectureExplorer, chips, divisor, finding, sizes

PUBLISHED = {
    "GPT-2 small": (GPT2_SMALL, 124_439_808, 36),
    "GPT-3": (GPT3_175B, 174_604_259_328, 4608),
    "Llama 3 8B": (LLAMA3_8B, 8_030_261_248, 128),
    "Llama 3 70B": (LLAMA3_70B, 70_553_706_496, 320),
}


@pytest.fixture
def box():
    return ArchitectureExplorer()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_the_published_models(box, name):
    sheet, n, kib = PUBLISHED[name]
    box.preset.value = name
    s = box.model()
    assert sum(s.parameters.values()) == n == counts.parameters(sheet)
    assert f"{n:,} parameters" in box.sentence() and f"{n:,} parameters" in box.picture.value
    assert f"{kib} KiB of KV cache a token" in box.sentence()
    assert sum(s.flops.values()) == counts.forward_flops(sheet, 1, s.model.context) / s.model.context
    assert box.preset.value == name


def test_a_moved_slider_makes_it_your_own_and_back(box):
    box.layers.value = 13
    assert box.preset.value == OWN and box.sentence().startswith(OWN)
    assert box.layers.value == 13, "the other controls stay"
    box.layers.value = 12
    assert box.preset.value == "GPT-2 small"


def test_preset_sets_all_controls_at_once(box):
    pictures = []
    box.picture.observe(lambda change: pictures.append(change["new"]), names="value")
    box.preset.value = "Llama 3 70B"
    assert len(pictures) == 1, "one picture, not one for each control"
    assert box.parts.value == LLAMA and box.kv_heads.value == 8


def test_heads_step_down_until_they_divide(box):
    box.heads.value = 13
    assert box.model().model.heads == 12 == divisor(768, 13)
    box.kv_heads.value = 5
    assert box.model().model.kv_heads == 4
    box.heads.value = 1
    assert box.model().model.kv_heads == 1


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("name", PRESETS)
def test_memory_is_what_the_counts_say(box, name, keep):
    box.preset.value, box.keep.value, box.batch.value = name, keep, 3
    s, n = box.model(), PUBLISHED[name][1]
    seq = s.model.context
    assert s.training["weights"] + s.training["gradients"] + s.training["optimizer"] == 16 * n
    want = counts.activation_bytes(PUBLISHED[name][0], 3, seq, recompute=KEEP[keep], dropout=False)
    assert s.training["activations"] == want
    assert s.serving == {"weights": 2 * n, "KV cache": 3 * seq * counts.kv_cache_bytes(PUBLISHED[name][0])}


def test_more_of_anything_is_never_less(box):
    """Parameters, FLOPs a token and bytes grow with every slider."""
    def totals():
        s = box.model()
        return [sum(part.values()) for part in (s.parameters, s.flops, s.training, s.serving)]

    larger = {box.layers: 24, box.d_model: 1536, box.ratio: 5.0, box.vocab: 100_000, box.context: 8192, box.batch: 8}
    for control, value in larger.items():
        before = totals()
        control.value = value
        assert all(b <= a for b, a in zip(before, totals())), control.description


def test_what_the_lesson_says_is_seen(box):
    box.preset.value = "Llama 3 8B"
    train = box.model().training
    assert round(train["activations"] / 1e9) == 186 and round(sum(train.values()) / 1e9) == 314
    box.keep.value = "all but the scores"
    assert round(box.model().training["activations"] / 1e9) == 48
    box.kv_heads.value = 32
    assert box.model().serving["KV cache"] == 4 * 2**30
    box.preset.value, box.context.value = "Llama 3 8B", 131072
    flops = box.model().flops
    assert round(100 * flops["scores"] / sum(flops.values())) == 82


def test_finding_and_chips():
    assert finding(sizes(LLAMA3_8B, 1, 8192)).endswith("Most memory in training: activations.")
    assert [chips(n) for n in (1, 80e9, 80e9 + 1)] == [1, 1, 2]


def test_answers_fast(box):
    start = time.process_time()
    for layers in range(1, 51):
        box.layers.value = layers
    assert (time.process_time() - start) / 50 < 0.01
