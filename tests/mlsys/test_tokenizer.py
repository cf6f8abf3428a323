"""The tokenizer: nothing is lost, merges come in order, and training agrees with a slow and a known one."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlsys.data.text import languages
from mlsys.tokenizer import AGE, WORD, Tokenizer

TEXTS = languages()
ALL = "".join(TEXTS.values())
TRAINED = Tokenizer.train(ALL, merges=512, specials=["<|end|>", "<|end|>of", "<pad>"])


def slow_merges(text, merges):
    """Counts everything anew for each merge."""
    words = [list(word.encode()) for word in WORD.findall(text)]
    learned = []
    for token in range(256, 256 + merges):
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        a, b = min(counts, key=lambda p: (-counts[p], AGE.get(p[0], p[0]), AGE.get(p[1], p[1])))
        learned.append((a, b))
        for word in words:
            i = 0
            while i < len(word) - 1:
                if word[i : i + 2] == [a, b]:
                    word[i : i + 2] = [token]
                i += 1
    return learned


@given(st.binary(max_size=300))
def test_any_bytes_come_back(data):
    assert TRAINED.decode_bytes(TRAINED.encode(data)) == data


@given(st.text(max_size=200))
def test_any_text_comes_back(text):
    assert "".join(WORD.findall(text)) == text
    assert TRAINED.decode(TRAINED.encode(text)) == text


def test_every_byte_and_every_language_come_back():
    for data in (bytes(range(256)), *(text.encode() for text in TEXTS.values())):
        assert TRAINED.decode_bytes(TRAINED.encode(data)) == data


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="aab \n'1", max_size=80), st.integers(0, 12))
def test_training_equals_counting_anew(text, merges):
    assert Tokenizer.train(text, merges).merges == slow_merges(text, merges)


def test_training_equals_counting_anew_on_the_story():
    for name in ("English", "Hindi", "Python"):
        assert Tokenizer.train(TEXTS[name], 60).merges == slow_merges(TEXTS[name], 60)


def test_the_published_toy_corpus():
    """low x5, lower x2, newest x6, widest x3: the first merges of Sennrich, Haddow and Birch, `_` ends a word."""
    words = ["low_"] * 5 + ["lower_"] * 2 + ["newest_"] * 6 + ["widest_"] * 3
    joined = [(a + b).decode() for a, b in Tokenizer.train(words, merges=3).merge_bytes()]
    assert joined[:2] == ["es", "est"]


def test_merge_order_beats_length():
    """"abcd" with merges bc, cd, ab: the longest-match rule would take ab and cd."""
    ids = {c: ord(c) for c in "abcd"}
    tokenizer = Tokenizer([(ids["b"], ids["c"]), (ids["c"], ids["d"]), (ids["a"], ids["b"])])
    assert tokenizer.pieces("abcd") == [b"a", b"bc", b"d"]


def test_no_token_crosses_a_word():
    for token in TRAINED.tokens[256 : 256 + 512]:
        assert b" " not in token[1:] or not token.strip(), token


def test_more_merges_never_mean_more_tokens():
    counts = [len(TRAINED.first(n).encode(ALL)) for n in (0, 32, 128, 256, 512)]
    assert counts[0] == len(ALL.encode()) and counts == sorted(counts, reverse=True)
    assert TRAINED.first(100).merges == Tokenizer.train(ALL, 100).merges


def test_specials_are_one_token_and_can_be_switched_off():
    text = "a<|end|>of b<pad><|end|>"
    ids = TRAINED.encode(text)
    assert [TRAINED.tokens[i] for i in ids if i >= 256 + 512] == [b"<|end|>of", b"<pad>", b"<|end|>"]
    assert max(TRAINED.encode(text, specials=False)) < 256 + 512
    assert TRAINED.decode(ids) == text == TRAINED.decode(TRAINED.encode(text, specials=False))
    assert Tokenizer.train("<pad>" * 9 + "xy", 1, ["<pad>"]).merge_bytes() == [(b"x", b"y")]


def test_training_on_several_texts_is_training_on_all():
    assert Tokenizer.train(TEXTS.values(), 64).merges == Tokenizer.train(ALL, 64).merges
    assert Tokenizer.train(ALL.encode(), 64).merges == TRAINED.merges[:64]


def test_training_stops_when_no_pair_is_left():
    assert len(Tokenizer.train("abc", 100).merges) == 2
    assert Tokenizer.train("", 10).merges == []
    assert Tokenizer.train("aaaa aaaa", 100).pieces("aaaa") == [b"aaaa"]


def test_fertility_differs_between_scripts():
    english, hindi = (Tokenizer.train(TEXTS["English"], 400).fertility(TEXTS[name]) for name in ("English", "Hindi"))
    assert english.per_char < 0.6 < 2.0 < hindi.per_char  # bytes that no merge knows
    assert english.tokens / english.bytes == english.per_byte and english.words == len(TEXTS["English"].split())
    assert english.per_word < hindi.per_word


def test_a_long_word_is_no_problem():
    word = "ab" * 20_000
    assert TRAINED.decode(TRAINED.encode(word)) == word


@pytest.mark.parametrize("merges, says", [([(97, 256)], "only 256 tokens exist"), ([(-1, 5)], "joins -1 and 5")])
def test_impossible_merges(merges, says):
    with pytest.raises(ValueError, match=says):
        Tokenizer(merges)


def test_impossible_specials():
    with pytest.raises(ValueError, match="different and not empty"):
        Tokenizer(specials=["<a>", "<a>"])


def test_merges_and_tokens_equal_the_tokenizers_library():
    hf = pytest.importorskip("tokenizers", reason="`tokenizers` is not installed; it is needed only to compare with")
    theirs = hf.Tokenizer(hf.models.BPE())
    theirs.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = hf.pre_tokenizers.ByteLevel.alphabet()
    trainer = hf.trainers.BpeTrainer(vocab_size=256 + 512, initial_alphabet=alphabet, show_progress=False)
    theirs.train_from_iterator(list(TEXTS.values()), trainer)
    letters = {chr(c): byte for byte, c in zip(AGE, [*(b for b in AGE if AGE[b] < 188), *range(256, 256 + 68)])}

    def as_bytes(piece):
        return bytes(letters[c] for c in piece)

    pairs = [p if isinstance(p, list) else p.split(" ") for p in json.loads(theirs.to_str())["model"]["merges"]]
    assert [(as_bytes(a), as_bytes(b)) for a, b in pairs] == TRAINED.merge_bytes()
    for text in TEXTS.values():
        assert [as_bytes(piece) for piece in theirs.encode(text).tokens] == TRAINED.pieces(text)
