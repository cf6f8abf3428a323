"""The merges explorer: each look-up equals the tokenizer itself, and the lesson's story holds."""

import re

import numpy as np
import pytest

from mlsys.data.text import languages
from mlsys.tokenizer import Tokenizer
from mlsys.widgets.merges import (
    FROM,
    MERGES,
    MergesExplorer,
    apart,
    finding,
    pieces_after,
    shown,
    steps,
    story,
    tokenizer_of,
)


@pytest.fixture(scope="module")
def shared():
    return MergesExplorer()


@pytest.fixture
def box(shared):
    shared.language.value, shared.source.value, shared.merges.value, shared.d_model.value = "Russian", "an English novel", 300, 768
    return shared


@pytest.mark.parametrize("source", list(FROM))
@pytest.mark.parametrize("language", ["English", "Turkish", "Hindi", "Japanese", "Python"])
def test_look_up_equals_the_tokenizer(source, language):
    """For a prefix of the merges the pieces and the curve are those of a tokenizer that stopped there."""
    words, curve = story(source, language)
    text = languages()[language]
    for k in (0, 1, 7, 300, 1310, MERGES):
        tokenizer = tokenizer_of(source).first(k)
        pieces = [piece for history in words for piece in pieces_after(history, k)]
        assert pieces == tokenizer.pieces(text)
        assert curve[k] == len(pieces)
    assert np.all(np.diff(curve) <= 0) and b"".join(pieces) == text.encode()


def test_steps_replace_from_the_left_and_overlaps_once():
    aa = Tokenizer([(97, 97), (256, 256)])
    assert [pieces for _, pieces in steps("aaaaa", aa)][-1] == [b"aaaa", b"a"]
    assert [pieces for _, pieces in steps("aaa", aa)][-1] == [b"aa", b"a"]


def test_all_stops_of_the_slider_have_a_tokenizer():
    for source in FROM:
        assert len(tokenizer_of(source).merges) == MERGES


def test_what_the_lesson_says_is_seen(box):
    """No English merge fits Russian; with merges from every language Hindi is below English, a byte, not a story."""
    box.merges.value = MERGES
    assert "1.00 a byte" in box.sentence() and "no merge fits" in box.picture.value
    box.source.value, box.language.value = "every language", "Hindi"
    assert "0.26 a byte, 1.76 times as many as the same story in English" in box.sentence()
    box.language.value = "English"
    assert "0.32 a byte" in box.sentence() and "times" not in box.sentence()


def test_table_grows_with_merges_and_width(box):
    def megabytes():
        return float(re.search(r"([\d.]+) MB", box.sentence())[1])

    box.merges.value = 0
    assert megabytes() == pytest.approx(2 * 256 * 768 / 1e6, abs=0.005)
    box.merges.value, box.d_model.value = MERGES, 8192
    assert megabytes() == pytest.approx(2 * 2256 * 8192 / 1e6, abs=0.005)


@pytest.mark.parametrize("language", list(languages()))
def test_every_text_at_both_ends_stays_inside(box, language):
    box.language.value = language
    for source in FROM:
        for k in (0, MERGES):
            box.source.value, box.merges.value = source, k
            picture = box.draw()
            for _, x, y, *rest in (shape for shape in picture.shapes if shape[0] == "rect"):
                assert 0 <= x and x + rest[0] <= picture.width and y + rest[1] <= picture.height
            assert picture.svg().count("<text") > 20


def test_static_twin_carries_the_sentence_without_a_warning(box, recwarn):
    box.language.value, box.source.value, box.merges.value = "Hindi", "every language", 1000
    bundle = box._repr_mimebundle_()
    assert bundle["text/plain"] == box.sentence() and bundle["image/png"][:4] == b"\x89PNG"
    assert not [w for w in recwarn if "Glyph" in str(w.message)]


def test_parts_of_characters_are_hexadecimal():
    assert [shown(p) for p in (b" a", "ж".encode(), b"\xd0", b"a\xd0", b"\n")] == ["␣a", "ж", "d0", "61 d0", "↵"]


def test_labels_keep_their_distance():
    assert apart([10.0, 12.0]) == [3.5, 18.5] and apart([12.0, 10.0]) == [18.5, 3.5] and apart([1.0, 50.0]) == [1.0, 50.0]


@pytest.mark.parametrize("per_byte, merges, start", [
    (1.0, 0, "every byte"), (1.0, 10, "no merge"), (0.8, 10, "few merges"), (0.25, 10, "a token is 4.0 bytes"),
])
def test_finding(per_byte, merges, start):
    assert finding(per_byte, merges).startswith(start)
