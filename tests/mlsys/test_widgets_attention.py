"""The attention explorer and its figure: weights are a softmax, masks hold, and the lesson's numbers are seen."""

import numpy as np
import pytest

from mlsys.autograd import Tensor
from mlsys.transformer import composed
from mlsys.transformer.rope import rope_table
from mlsys.widgets.attention import BACK, MASKS, MOST, OWN, RANDOM, REACHES, AttentionExplorer, entropy, vectors

HEADS = (OWN, BACK, RANDOM)
RAW = "as they are"


def set_up(**values) -> AttentionExplorer:
    box = AttentionExplorer()
    for name, value in values.items():
        getattr(box, name).value = value
    return box


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("rope", ["off", "on"])
def test_weights_are_those_of_the_library(head, mask, rope):
    box = set_up(head=head, mask=mask, rope=rope, tokens=20, width=16)
    p, allowed, _ = box.model()
    q, k = (Tensor(x[None, None, :20]) for x in vectors(head, 16))
    if rope == "on":
        q, k = (composed.rotate(x, *rope_table(20, 16, dtype="float64")) for x in (q, k))
    want = composed.attention_weights(q, k, allowed).data[0, 0]
    np.testing.assert_allclose(p, want, atol=1e-12)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("tokens", [2, 13, MOST])
@pytest.mark.parametrize("reach", [1, 6, MOST])
def test_rows_add_up_to_one_over_the_allowed_keys(mask, tokens, reach):
    p, allowed, row = set_up(mask=mask, tokens=tokens, reach=reach, query=MOST).model()
    assert p.shape == allowed.shape == (tokens, tokens) and row == tokens - 1
    np.testing.assert_allclose(p.sum(1), 1)
    assert allowed.any(1).all() and not p[~allowed].any()


def test_entropy_lies_between_none_and_all_alike():
    for head in HEADS:
        p, allowed, _ = set_up(head=head, mask="sliding window").model()
        assert np.all(entropy(p) >= 0) and np.all(entropy(p) <= np.log2(allowed.sum(1)) + 1e-12)


def test_temperature_flattens_and_leaving_out_the_scale_sharpens():
    means = [entropy(set_up(head=RANDOM, temperature=t).model()[0]).mean() for t in (0.1, 0.5, 1.0, 2.0, 4.0)]
    assert means == sorted(means)
    for width in (16, 64, 256):
        raw, scaled = (entropy(set_up(head=RANDOM, width=width, scale=s).model()[0]).mean() for s in (RAW, "divided by √d"))
        assert raw < scaled / 2


def test_one_back_needs_positions():
    p, allowed, _ = set_up(head=BACK).model()
    np.testing.assert_allclose(p, allowed / allowed.sum(1, keepdims=True))
    for width in (16, 64, 256):
        p, _, _ = set_up(head=BACK, rope="on", width=width).model()
        assert p[1:].argmax(1).tolist() == list(range(len(p) - 1))


def test_own_letter_reads_its_own_letter():
    p, _, _ = set_up(mask="none", tokens=MOST).model()
    same = np.equal.outer(*[np.array(list("the whale, the sea, the "))] * 2)
    assert (p * same).sum(1).min() > 0.98


def test_numbers_that_the_lesson_names():
    assert "8 % of t (1), 8 % of h (2)" in set_up(head=BACK).sentence()
    assert "41 % of ␣ (11)" in set_up(head=BACK, rope="on").sentence()
    assert set_up(head=RANDOM, width=256).finding().startswith("A query reads as if it had 4.6 keys")
    assert set_up(head=RANDOM, width=256, scale=RAW).finding().startswith("A query reads as if it had 1.1 keys")


@pytest.mark.parametrize("mask", MASKS)
def test_reach_is_free_where_it_acts(mask):
    assert set_up(mask=mask).reach.disabled == (mask not in REACHES)


def test_what_the_mask_hides_is_hatched():
    box = set_up(mask="causal", tokens=5)
    hatched = [shape for shape in box.draw().shapes if shape[0] == "rect" and shape[7] == "/" and shape[1] < 400]
    assert [round(shape[3] / shape[4]) for shape in hatched] == [4, 3, 2, 1]


def test_the_figure_has_a_panel_a_map():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from mlsys.viz import use_style
    from mlsys.viz.attention import maps

    use_style()
    panels = {"a": np.eye(3), "b": np.ones((3, 3)) / 3}
    axes = maps(panels, "Two maps", "abc")
    assert [ax.get_title(loc="left") for ax in axes] == ["Two maps\na", "b"]
    assert [label.get_text() for label in axes[0].get_xticklabels()] == list("abc")
