"""The literal numbers in the checks of problem set 2 are what they are said to be.

Decoder: the library's own transformer with the same weights. Tokenizer: the library's own, where nothing
depends on ties. Least excess: every allowed shape, counted one by one by the library.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from grading.cells import role_of
from mlsys.specs.architecture import llama
from mlsys.tokenizer import Tokenizer
from mlsys.transformer import Transformer, TransformerConfig
from mlsys.transformer.counts import kv_cache_bytes, parameters, training_flops
from mlsys.transformer.laws import EPOCH_REFIT

ROOT = Path(__file__).parents[2]
CELLS = nbformat.read(ROOT / "source/ps02_transformers/ps02_transformers.ipynb", 4).cells
SOURCES = {cell.id: cell.source for cell in CELLS}
NUMBER = re.compile(r"-?\d+\.\d{6,}")


@pytest.fixture(scope="module")
def space() -> dict:
    """Set-up, given cells and solutions."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in CELLS:
            if role_of(cell) in ("setup", "given", "answer"):
                exec(cell.source, names)
    return names


def library_logits(weights: dict, ids: list[int]) -> np.ndarray:
    """Logits of `mlsys.transformer` in float64 with the weights of the notebook."""
    d, heads, width = weights["layers"][0]["q"].shape
    kv_heads, ff = weights["layers"][0]["k"].shape[1], weights["layers"][0]["gate"].shape[1]
    config = TransformerConfig(
        vocab=len(weights["table"]), context=64, d_model=d, layers=len(weights["layers"]), heads=heads, kv_heads=kv_heads,
        d_head=width, d_ff=ff, norm="rms", mlp="swiglu", positions="rope", tied=True, bias=False,
    )  # fmt: skip
    model = Transformer(config, np.random.default_rng(0), fused=False)
    model.tokens.table.data, model.norm.gamma.data = weights["table"], weights["norm"]
    for block, layer in zip(model.blocks, weights["layers"]):
        block.norm1.gamma.data, block.norm2.gamma.data = layer["norm1"], layer["norm2"]
        block.attention.qkv.w.data = np.concatenate([layer[name].reshape(d, -1) for name in "qkv"], axis=1)
        block.attention.out.w.data = layer["out"].reshape(-1, d)
        for name in ("gate", "up", "down"):
            getattr(block.feed_forward, name).w.data = layer[name]
    return model(np.array([ids])).data[0]


def test_decoder_is_the_librarys(space):
    for seed, shape in enumerate([{}, {"layers": 1, "heads": 6, "kv_heads": 3}, {"kv_heads": 1}]):
        weights, ids = space["make_weights"](seed, **shape), [3, 14, 15, 9, 26, 5]
        assert np.allclose(space["decode"](weights, ids)[0], library_logits(weights, ids), rtol=1e-5, atol=1e-5)


def test_literal_logits_are_the_librarys(space):
    held = [float(n) for n in NUMBER.findall(SOURCES["six-faults-check-truth"].split("hints=")[0])]
    want = [library_logits(space["small"], space["text"][:n])[-1, :3] for n in (1, 3, 8)]
    assert np.allclose(held, np.concatenate(want), rtol=1e-5)


def test_reported_has_six_faults(space):
    weights, ids = space["small"], space["text"]
    assert not np.allclose(space["reported"](weights, ids)[0], space["decode"](weights, ids)[0], atol=0.1)
    logits, targets = np.zeros((3, 4)), np.array([1, -1, 2])
    logits[1, 0] = 5
    assert not math.isclose(space["reported_loss"](logits, targets), space["mean_loss"](logits, targets))


def test_tokenizer_is_the_librarys(space):
    for case in space["audit_texts"]():
        tokenizer = Tokenizer.train(case["train"], case["merges"], specials=case["specials"])
        text = case["text"] if isinstance(case["text"], str) else bytes(case["text"])
        assert tokenizer.pieces(text) == space["correct"](case), case


def test_tokenizer_of_the_task_example(space):
    case = {"train": "low low", "merges": 2, "specials": [], "text": "low"}
    assert space["correct"](case) == space["correct"](case, newest=True) == [b"low"]
    one = {**case, "merges": 1}
    assert space["correct"](one) != space["correct"](one, newest=True)


def test_cache_reduction_needs_six_bits(space):
    """DeepSeek-V2's 93.3 % less cache than DeepSeek 67B holds at 6 bits a number, not at 16."""
    v2, grouped = space["LATENT"]["DeepSeek-V2"], 2 * 95 * 8 * 128 * 2
    saved = {bits: 1 - space["latent_cache_bytes"](v2, 1, bits) / grouped for bits in (6, 16)}
    assert round(saved[6], 3) == 0.933 and round(saved[16], 3) == 0.822


@pytest.fixture(scope="module")
def shapes() -> list[np.ndarray]:
    """Of every allowed shape: parameters, those of the token table, FLOPs of a token, cache bytes of a token."""
    rows = []
    for d in range(512, 8193, 512):
        heads = d // 128
        for layers in range(1, 129):
            if not 64 * layers <= d <= 160 * layers:
                continue
            for d_ff in range(512, 4 * d + 1, 512):
                if d_ff < 2.5 * d:
                    continue
                for kv in (n for n in range(1, heads + 1) if heads % n == 0 and heads <= 8 * n):
                    model = llama(d, layers, heads, d_ff, kv_heads=kv, vocab=128_256, context=8192)
                    rows.append(
                        (parameters(model), 128_256 * d, training_flops(model, 1, 8192) / 8192, kv_cache_bytes(model))
                    )
    return list(np.array(rows).T)


def test_least_excesses_are_exhaustive(space, shapes):
    size, table, token_flops, cache_of_token = shapes
    source = SOURCES["four-limits-check-least"]
    visible = dict(re.findall(r'"([\w ]+)": (0\.\d{9})', source))
    hidden = re.findall(r'"([\w ]+)": \((job\([^)]*\)), (0\.\d{9})\)', source)
    jobs = [(space["JOBS"][name], float(least)) for name, least in visible.items()]
    jobs += [(eval(text, dict(space)), float(least)) for _, text, least in hidden]
    assert len(visible) == len(hidden) == 4
    for job, least in jobs:
        cache = cache_of_token * job["users"] * job["context"]
        keeps = 2 * size + cache <= 0.9 * job["mem_bytes"]
        keeps &= 2 * (size - table) + cache <= job["token_s"] * job["mem_bw"]
        tokens = np.minimum(job["text_tokens"], job["flops"] / token_flops)
        excess = EPOCH_REFIT.loss(size, tokens)[keeps].min() - EPOCH_REFIT.E
        assert math.isclose(excess, least, rel_tol=1e-7), (job, excess, least)


def test_least_excesses_are_the_same_in_all_checks():
    def held(name: str) -> list[str]:
        return re.findall(r"0\.\d{9}", SOURCES[f"four-limits-check-{name}"])

    assert held("limits") == held("near") == held("nearer") == held("least") and len(held("least")) == 8


def test_one_plan_for_all_jobs_is_wasteful(space):
    """One shape, with all the tokens that each job allows, is not within 1.5 times the least everywhere."""
    least = {name: float(n) for name, n in re.findall(r'"([\w ]+)": (0\.\d{9})', SOURCES["four-limits-check-limits"])}
    assert len(least) >= 4

    def excess(shape, name: str) -> float:
        layers, d, d_ff, kv = shape
        model, job = llama(d, layers, d // 128, d_ff, kv_heads=kv, vocab=128_256, context=8192), space["JOBS"][name]
        tokens = min(job["text_tokens"], job["flops"] / (training_flops(model, 1, 8192) / 8192))
        plan = dict(layers=layers, d_model=d, d_ff=d_ff, kv_heads=kv, tokens=tokens)
        return space["judge_size"](lambda job: plan, name, job)

    for shape in [(4, 512, 1536, 1), (8, 1024, 3072, 1), (16, 2048, 6144, 2)]:
        ratios = [excess(shape, name) / least[name] for name in space["JOBS"]]
        assert max(ratios) > 1.5 and min(ratios) > 1, (shape, ratios)


def test_truth_of_the_pieces_is_the_librarys(space):
    source = SOURCES["six-faults-check-pieces"]
    names = dict(space)
    exec(source[source.index("def one_by_one") : source.index("for seed in test_rng.integers")], names)
    weights, ids = space["make_weights"](3), [3, 14, 15, 9, 26]
    right = names["one_by_one"](weights, ids, False, False, False)
    assert np.allclose(right, library_logits(weights, ids), rtol=1e-5, atol=1e-5)
    shallow = {**weights, "layers": weights["layers"][:1]}  # in one layer the last token has no future to see
    faulty = names["one_by_one"](shallow, ids, True, True, True)[-1]
    assert np.allclose(faulty, space["reported"](shallow, ids)[0][-1], rtol=1e-9)
