"""The transformer without PyTorch: invariants, finite differences, and fused against composed."""

import copy
import math
from functools import partial

import numpy as np
import pytest

from mlsys import nn, optim
from mlsys.autograd import Tensor, checkpoint, saved_bytes
from mlsys.gradcheck import gradcheck
from mlsys.transformer import (
    GPT2_SMALL,
    KVCache,
    Transformer,
    TransformerConfig,
    causal_mask,
    composed,
    fused,
    generate,
    padding_mask,
    prefix_mask,
    sliding_mask,
)
from mlsys.transformer.generate import choose
from mlsys.transformer.moe import MoE, route
from mlsys.transformer.rope import rope_table

GPT2 = TransformerConfig(vocab=23, context=16, d_model=16, layers=2, heads=4)
LLAMA = TransformerConfig(
    vocab=23, context=16, d_model=16, layers=2, heads=4, kv_heads=2, norm="rms", mlp="swiglu",
    positions="rope", tied=False, bias=False,
)
MOE = TransformerConfig(vocab=23, context=16, d_model=16, layers=2, heads=4, experts=4, top_k=2)
SHAPES = {"GPT-2": GPT2, "Llama": LLAMA, "MoE": MOE}
EMPTY_ROWS = causal_mask(5) & (np.arange(5) != 2)[:, None]
MASKS = {
    "none": None,
    "causal": causal_mask(5),
    "sliding": sliding_mask(5, 2),
    "prefix": prefix_mask(5, 3),
    "padding": causal_mask(5) & padding_mask([5, 2], 5),
    "empty rows": EMPTY_ROWS,
    "one a head": np.stack([causal_mask(5), sliding_mask(5, 2), prefix_mask(5, 3), EMPTY_ROWS]),
}


def rng(seed=0):
    return np.random.default_rng(seed)


def wide(model):
    """The model in float64, with weights large enough to make attention uneven."""
    for name, p in model.named_parameters():
        p.data = p.data.astype(np.float64) + 0.3 * rng(len(name)).standard_normal(p.shape)
    return model


def both_ways(fn, *arrays):
    """(output, gradients) of a function of tensors, in float64."""
    leaves = [Tensor(np.array(a, np.float64), requires_grad=True) for a in arrays]
    out = fn(*leaves)
    out.backward(np.cos(np.arange(out.size)).reshape(out.shape))
    return out.data, [leaf.grad for leaf in leaves]


def call_part(ops, name, eps, *tensors):
    return getattr(ops, name)(*tensors, *eps)


# Parts: fused against composed, composed against finite differences.


@pytest.mark.parametrize("rope", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("block", [128, 2])
@pytest.mark.parametrize("mask", MASKS)
def test_attention(mask, block, kv_heads, rope, monkeypatch):
    monkeypatch.setattr(fused, "BLOCK", block)
    mask, d = MASKS[mask], 6
    table = rope_table(5, d, dtype="float64") if rope else None
    qkv = rng().standard_normal((2, 5, (4 + 2 * kv_heads) * d))
    for size in (1.0, 1e-3, 30.0):  # 30: scores in the thousands, where exp needs the row maxima
        calls = [partial(ops.self_attention, heads=4, kv_heads=kv_heads, mask=mask, rope=table) for ops in (fused, composed)]
        ways = [both_ways(call, size * qkv) for call in calls]
        np.testing.assert_allclose(ways[0][0], ways[1][0], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(ways[0][1][0], ways[1][1][0], rtol=1e-8, atol=1e-11)
    if block == 2:
        assert gradcheck(calls[0], qkv).ok


def test_blocks_read_what_the_mask_allows_and_little_more():
    t = 1000
    whole = np.zeros((t, t), bool)
    for mask, share in ((causal_mask(t), 0.57), (sliding_mask(t, 64), 0.19), (prefix_mask(t, 500), 0.8), (None, 1.0)):
        covered = whole.copy()
        for rows, keys in fused._blocks(mask, t):
            covered[rows, keys] = True
        assert mask is None or not (mask & ~covered).any()
        assert covered.mean() <= share


def test_elementwise_parts_and_norms():
    x, y, gamma, beta = rng().standard_normal((4, 3, 5, 8))
    gamma, beta = gamma[0, 0], beta[0, 0]
    parts = {
        "gelu": (x,), "swiglu": (x, y), "rms_norm": (x, gamma), "layer_norm": (x, gamma, beta),
        "linear": (x, y[0].T, beta[:5]),
    }
    for name, arrays in parts.items():
        eps = (1e-5,) if "norm" in name else ()
        calls = [partial(call_part, ops, name, eps) for ops in (fused, composed)]
        (a, da), (b, db) = (both_ways(call, *arrays) for call in calls)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
        for one, other in zip(da, db, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12, err_msg=name)
        assert all(gradcheck(call, *arrays).ok for call in calls), name


def test_rows_without_keys_are_zero_and_pass_no_gradient():
    nothing = np.zeros((5, 5), bool)
    for ops in (fused, composed):
        y, (dx,) = both_ways(lambda x, ops=ops: ops.self_attention(x, 4, 2, nothing), rng().standard_normal((2, 5, 48)))
        assert not y.any() and not dx.any()


def test_an_output_depends_on_allowed_keys_only():
    qkv = rng().standard_normal((1, 5, 48))
    for ops in (fused, composed):
        for name in ("causal", "sliding", "prefix"):
            mask = MASKS[name]
            before = ops.self_attention(Tensor(qkv), 4, 2, mask).data
            for key in range(5):
                changed = qkv.copy()
                changed[:, key, 4 * 6 :] += 1.0  # keys and values of one token
                moved = (ops.self_attention(Tensor(changed), 4, 2, mask).data != before).any((0, 2))
                assert (moved == mask[:, key]).all(), (ops.__name__, name, key)


def test_attention_does_not_care_about_the_order_of_keys():
    q, k, v = rng().standard_normal((3, 2, 4, 5, 6))
    order = rng(1).permutation(5)
    shuffled = composed.attention(Tensor(q), Tensor(k[:, :, order]), Tensor(v[:, :, order]))
    np.testing.assert_allclose(composed.attention(Tensor(q), Tensor(k), Tensor(v)).data, shuffled.data, rtol=1e-12)


def test_weights_sum_to_one_where_something_is_seen():
    q, k = rng().standard_normal((2, 2, 4, 5, 6))
    for mask in MASKS.values():
        weights = composed.attention_weights(Tensor(q), Tensor(k), mask).data
        sees = np.ones((5, 5), bool) if mask is None else mask
        np.testing.assert_allclose(weights.sum(-1), np.broadcast_to(sees, weights.shape).any(-1), atol=1e-12)
        assert not weights[~np.broadcast_to(sees, weights.shape)].any()


def test_rope_keeps_lengths_and_scores_know_distances_only():
    q, k = rng().standard_normal((2, 1, 1, 1, 8))
    table = rope_table(40, 8, dtype="float64")
    q, k = (composed.rotate(Tensor(np.repeat(x, 40, 2)), *table).data[0, 0] for x in (q, k))
    np.testing.assert_allclose((q * q).sum(-1), (q[0] * q[0]).sum(), rtol=1e-12)
    scores = q @ k.T
    for distance in (-7, 0, 3):
        diagonal = np.diagonal(scores, distance)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-9)
    later = rope_table(10, 8, start=30, dtype="float64")
    np.testing.assert_array_equal(later[0], table[0][30:])


# Whole models.


@pytest.mark.parametrize("shape", SHAPES)
def test_both_paths_give_one_answer(shape):
    ids = rng().integers(0, 23, (3, 11))
    models = [wide(Transformer(SHAPES[shape], rng(), path)) for path in (True, False)]
    losses = [model.loss(ids[:, :-1], ids[:, 1:]) for model in models]
    assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-12)
    for loss in losses:
        loss.backward()
    for (name, a), (_, b) in zip(*(model.named_parameters() for model in models), strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=1e-8, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("path", [True, False], ids=["fused", "composed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_equal_slopes(shape, path):
    ids = rng().integers(0, 23, (2, 7))
    model = wide(Transformer(SHAPES[shape], rng(), path))
    model.loss(ids[:, :-1], ids[:, 1:]).backward()
    direction = {name: rng(7).standard_normal(p.shape) for name, p in model.named_parameters()}
    visited = [(name, p) for name, p in model.named_parameters() if p.grad is not None]  # an expert may have had no token
    slope = sum((p.grad * direction[name]).sum() for name, p in visited)
    values = []
    for step in (1e-6, -2e-6):
        for name, p in model.named_parameters():
            p.data = p.data + step * direction[name]
        values.append(model.loss(ids[:, :-1], ids[:, 1:]).item())
    assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_composed_keeps_more_than_fused(shape):
    ids = rng().integers(0, 23, (2, 8))
    kept = [saved_bytes(Transformer(SHAPES[shape], rng(), path).loss(ids, ids)) for path in (True, False)]
    assert kept[0] < kept[1]


def test_everything_stays_float32():
    for shape in SHAPES.values():
        for path in (True, False):
            model = Transformer(shape, rng(), path)
            ids = rng().integers(0, 23, (2, 8))
            assert model(ids).dtype == np.float32
            model.loss(ids, ids).backward()
            assert {p.grad.dtype for p in model.parameters()} == {np.dtype("float32")}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_past_does_not_see_the_future(shape):
    model = Transformer(SHAPES[shape], rng())
    ids = rng().integers(0, 23, (2, 10))
    changed = ids.copy()
    changed[:, 6] = (changed[:, 6] + 1) % 23
    same = np.isclose(model(ids).data, model(changed).data, rtol=0, atol=1e-6).all((0, 2))
    assert same[:6].all() and not same[6]


def test_the_window_of_the_config_is_the_sliding_mask():
    model = Transformer(LLAMA.but(window=3), rng())
    ids = rng().integers(0, 23, (2, 10))
    np.testing.assert_array_equal(model(ids).data, model(ids, sliding_mask(10, 3)).data)


def test_padding_changes_nothing_for_the_others():
    model = Transformer(LLAMA, rng())
    ids = rng().integers(0, 23, (2, 10))
    mask = causal_mask(10) & padding_mask([10, 4], 10)
    alone = model(ids[1:, :4]).data
    np.testing.assert_allclose(model(ids, mask).data[1:, :4], alone, atol=1e-6)


def test_parameters_of_gpt2_shape():
    """124,439,808 for GPT-2 small: counted on a narrow model by the same formula, tied and untied."""
    def count(c):
        block = 4 * c.d_model**2 + 2 * c.d_model * c.d_ff + 9 * c.d_model + c.d_ff
        return c.vocab * c.d_model * (1 if c.tied else 2) + c.context * c.d_model + c.layers * block + 2 * c.d_model

    assert count(GPT2_SMALL) == 124_439_808
    for tied in (True, False):
        config = GPT2.but(tied=tied)
        assert nn.n_params(Transformer(config, rng())) == count(config)


def test_a_changed_config_derives_anew():
    assert GPT2.but(d_model=32) == TransformerConfig(vocab=23, context=16, d_model=32, layers=2, heads=4)
    assert GPT2.but(heads=2).kv_heads == 2 and LLAMA.but(heads=2).kv_heads == 2  # derived; given
    assert GPT2.but(mlp="swiglu").d_ff == 64 and GPT2.but(d_ff=40).but(d_model=32).d_ff == 40
    assert hash(GPT2) == hash(GPT2.but())


def test_a_checkpointed_block_has_the_same_gradients():
    model = wide(Transformer(LLAMA, rng()))
    block, mask, table = model.blocks[0], causal_mask(6), rope_table(6, 4, dtype="float64")
    x = rng(3).standard_normal((2, 6, 16))
    grads = []
    for run in (lambda x: block(x, mask, table), lambda x: checkpoint(lambda x: block(x, mask, table), x)):
        model.zero_grad()
        grads.append([both_ways(run, x)[1][0], *(p.grad for p in block.parameters())])
    for one, other in zip(*grads, strict=True):
        np.testing.assert_array_equal(one, other)


def test_attention_maps_are_the_weights_that_the_model_uses():
    model = Transformer(LLAMA, rng())
    ids = rng().integers(0, 23, (2, 7))
    maps = model.attention_maps(ids)
    assert maps.shape == (2, 2, 4, 7, 7)
    np.testing.assert_allclose(maps.sum(-1), 1.0, rtol=1e-5)
    assert not maps[..., ~causal_mask(7)].any()
    x = model.tokens(ids)
    q, k, v = composed.split_heads(model.blocks[0].attention.qkv(model.blocks[0].norm1(x)), 4, 2, rope_table(7, 4))
    want = composed.merge_heads(Tensor(maps[0]) @ composed.share_heads(v, 2))
    got = fused.self_attention(model.blocks[0].attention.qkv(model.blocks[0].norm1(x)), 4, 2, causal_mask(7), rope_table(7, 4))
    np.testing.assert_allclose(got.data, want.data, atol=1e-6)


def test_a_model_can_be_copied():
    model = Transformer(LLAMA, rng())
    twin = copy.deepcopy(model)
    ids = np.arange(8)[None]
    np.testing.assert_array_equal(model(ids).data, twin(ids).data)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_learns_a_sequence_by_heart(shape):
    model = Transformer(SHAPES[shape], rng())
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    ids = rng().integers(0, 23, (1, 13))
    for _ in range(60):
        loss = model.loss(ids[:, :-1], ids[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    out = generate(model, ids[:, :3], new=10, temperature=0.0)
    np.testing.assert_array_equal(out, ids)


# Cache and generation.


@pytest.mark.parametrize("window", [None, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_cache_changes_no_score(shape, window):
    model = Transformer(SHAPES[shape].but(window=window), rng())
    ids = rng().integers(0, 23, (2, 12))
    cache, pieces = KVCache(model.config, 2), []
    for start, end in ((0, 5), (5, 6), (6, 10), (10, 12)):
        pieces.append(model(ids[:, start:end], cache=cache).data)
    assert cache.length == 12
    np.testing.assert_allclose(np.concatenate(pieces, 1), model(ids).data, atol=1e-6)


def test_cache_size():
    cache = KVCache(LLAMA, batch=3, capacity=10)
    assert cache.size_bytes == 2 * LLAMA.layers * 3 * LLAMA.kv_heads * 10 * LLAMA.d_head * 4


def test_generation_is_drawn_from_the_softmax():
    scores = np.tile(np.log([0.5, 0.3, 0.2]), (20_000, 1))
    drawn = np.bincount(choose(scores, rng(), 1.0, None), minlength=3) / 20_000
    np.testing.assert_allclose(drawn, [0.5, 0.3, 0.2], atol=0.015)
    drawn = np.bincount(choose(scores, rng(), 1.0, 2), minlength=3) / 20_000
    np.testing.assert_allclose(drawn, [0.625, 0.375, 0], atol=0.015)
    drawn = np.bincount(choose(scores, rng(), 0.5, None), minlength=3) / 20_000  # p^2, normalised
    np.testing.assert_allclose(drawn, np.array([25, 9, 4]) / 38, atol=0.015)


def test_generation_with_and_without_cache_draws_the_same():
    model = Transformer(LLAMA, rng())
    texts = [generate(model, [[1, 2], [3, 4]], 9, rng(3), use_cache=use) for use in (True, False)]
    np.testing.assert_array_equal(*texts)


# Experts.


def test_routing_counts_every_visit_once():
    scores = Tensor(rng().standard_normal((50, 6)))
    routing = route(scores, 3)
    assert routing.load.sum() == pytest.approx(1.0)
    assert (np.diff(np.take_along_axis(scores.data, routing.chosen, 1)) <= 0).all()
    np.testing.assert_allclose(routing.weights.data.sum(-1), 1.0)


def test_all_experts_chosen_is_a_weighted_sum():
    parts = [nn.Linear(4, 4, rng(i)) for i in range(3)]
    moe = MoE(parts, 4, 3, rng(9))
    x = Tensor(rng(8).standard_normal((5, 2, 4)))
    weights = (x @ moe.router).softmax().data
    want = sum(weights[..., [i]] * part(x).data for i, part in enumerate(parts))
    np.testing.assert_allclose(moe(x).data, want, rtol=1e-6)


def test_equal_experts_are_one_expert():
    part = nn.Linear(4, 4, rng())
    x = Tensor(rng(8).standard_normal((5, 2, 4)))
    np.testing.assert_allclose(MoE([part] * 4, 4, 2, rng(9))(x).data, part(x).data, rtol=1e-6)


def test_balance_loss_is_one_when_balanced_and_largest_when_not():
    even = route(Tensor(np.eye(4) * 1e-9), 1)
    assert even.balance_loss().item() == pytest.approx(1.0)
    greedy = route(Tensor(np.tile([50.0, 0, 0, 0], (9, 1))), 1)
    assert greedy.balance_loss().item() == pytest.approx(4.0)
    model = Transformer(MOE, rng())
    ids = rng().integers(0, 23, (2, 8))
    loss = model.loss(ids, ids) + 0.01 * model.balance_loss()
    loss.backward()
    assert model.blocks[0].feed_forward.router.grad.any()


# What is refused, and in which words.


@pytest.mark.parametrize(
    "changes, says",
    [
        (dict(heads=3), "heads=3 does not divide d_model=16"),
        (dict(kv_heads=3), "kv_heads=3 does not divide heads=4"),
        (dict(norm="batch"), "norm='batch' is none of layer, rms"),
        (dict(positions="rope", d_head=5), "d_head=5 is odd"),
        (dict(experts=2, top_k=3), "top_k=3 of experts=2"),
    ],
)
def test_impossible_shapes(changes, says):
    with pytest.raises(ValueError, match=says):
        TransformerConfig(**{**dict(vocab=8, context=8, d_model=16, layers=1, heads=4), **changes})


def test_too_many_tokens():
    model = Transformer(GPT2, rng())
    with pytest.raises(ValueError, match="17 tokens for a context of 16"):
        model(np.zeros((1, 17), int))
    with pytest.raises(ValueError, match="do not fit into a cache for 4"):
        model(np.zeros((1, 5), int), cache=KVCache(GPT2, 1, capacity=4))
    with pytest.raises(ValueError, match="pass rng"):
        generate(model, [[1]], 1)
    with pytest.raises(ValueError, match="nothing to balance"):
        model.balance_loss()


def test_first_loss_is_about_the_log_of_the_vocabulary():
    model = Transformer(GPT2.but(tied=False), rng())
    ids = rng().integers(0, 23, (4, 16))
    assert model.loss(ids, rng(1).integers(0, 23, (4, 16))).item() == pytest.approx(math.log(23), abs=0.1)
