"""The shipped texts are whole and clean, and windows stay inside."""

import unicodedata

import numpy as np
import pytest

from mlsys.data.text import languages, moby_dick, windows


def test_languages_say_the_same_in_as_many_paragraphs():
    texts = languages()
    assert len(texts) == 13 and len(set(texts.values())) == 13
    for name, text in texts.items():
        assert unicodedata.normalize("NFC", text) == text, name
        assert "\r" not in text and "\ufffd" not in text and text.endswith("\n")
        if name != "Python":
            assert text.count("\n") == 2, name
    compile(texts["Python"], "the page of Python", "exec")


def test_the_novel_is_ascii():
    text = moby_dick()
    assert text.isascii() and text.count("\nCHAPTER ") == 24 and "\r" not in text


def test_windows():
    rng = np.random.default_rng(0)
    ids = np.arange(20)
    for _ in range(50):
        inputs, targets = windows(ids, 3, 19, rng)
        assert (inputs == np.arange(19)).all() and (targets == inputs + 1).all()
    with pytest.raises(ValueError, match="20 tokens hold no window of 20"):
        windows(ids, 1, 20, rng)
