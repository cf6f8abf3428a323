"""Data: what the files promise about shapes, ranges and chance."""

import subprocess
import sys
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest

from mlsys import data
from mlsys.data import batches, blobs, digits, flip_labels, moons, noise, spirals, train_test_split


def rng(seed=0):
    return np.random.default_rng(seed)


def test_digits_are_the_published_test_set():
    """Counts a class as the source's own description lists them for its test images."""
    found = digits()
    assert np.bincount(found.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert found.images.shape == (1797, 64) and found.images.dtype == np.float32
    assert found.images.min() == 0 and found.images.max() == 1
    assert np.array_equal(found.images * 16, np.round(found.images * 16))


def test_forms_repeat_one_sequence_of_digits():
    """Each form carries nearly the same digits in the same order, which is why we may call it a form."""
    found = digits()
    assert np.all(np.diff(found.forms) >= 0)
    texts = ["".join(map(str, found.labels[found.forms == form])) for form in range(14)]
    assert sum(map(len, texts)) == len(found) and min(map(len, texts)) >= 120
    for text in texts:
        assert SequenceMatcher(None, texts[0], text, autojunk=False).ratio() > 0.95


def test_a_form_is_a_hand():
    """Images of one form and digit are nearer to each other than to the same digit of other forms."""
    found = digits()
    gaps = {True: [], False: []}
    for digit in range(10):
        part = found.take(found.labels == digit)
        distance = np.linalg.norm(part.images[:, None] - part.images, axis=2)
        same = part.forms[:, None] == part.forms
        gaps[True].append(distance[same & ~np.eye(len(part), dtype=bool)].mean())
        gaps[False].append(distance[~same].mean())
    assert np.all(np.array(gaps[True]) < 0.9 * np.array(gaps[False]))


def test_digits_are_small_and_read_late():
    assert (Path(data.__file__).with_name("digits.npz")).stat().st_size < 100_000
    code = "import sys, numpy; numpy.load = None; import mlsys.data; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_each_call_gives_fresh_arrays():
    first = digits()
    first.images[:] = 7
    assert digits().images.max() == 1


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_generated_points_have_n_rows_and_even_classes(n):
    for x, y in (moons(n, 0.1, rng()), blobs(n, 3, rng()), spirals(n, 0.1, rng()), noise(n, 4, 2, rng())):
        assert len(x) == len(y) == n and x.dtype == np.float32 and np.isfinite(x).all()
        assert np.ptp(np.bincount(y, minlength=y.max() + 1)) <= 1


def test_the_same_generator_gives_the_same_data():
    for draw in (lambda g: moons(50, 0.2, g), lambda g: blobs(50, 4, g), lambda g: spirals(50, 0.1, g)):
        (x1, y1), (x2, y2), (x3, _) = draw(rng(3)), draw(rng(3)), draw(rng(4))
        assert np.array_equal(x1, x2) and np.array_equal(y1, y2) and not np.array_equal(x1, x3)


def test_moons_are_not_linear_and_blobs_are():
    def linear_accuracy(x, y):
        sides = np.c_[x, np.ones(len(x))]
        return np.mean((sides @ np.linalg.lstsq(sides, 2.0 * y - 1, rcond=None)[0] > 0) == y)

    assert 0.8 < linear_accuracy(*moons(2000, 0.05, rng())) < 0.95
    assert linear_accuracy(*spirals(2000, 0.02, rng())) < 0.75
    assert linear_accuracy(*blobs(2000, 2, rng(), spread=0.2)) > 0.99


@pytest.mark.parametrize("n, share, held_out", [(10, 0.3, 3), (1, 0.5, 0), (7, 0.0, 0), (7, 1.0, 7), (0, 0.5, 0)])
def test_split_uses_every_row_once(n, share, held_out):
    train, test = train_test_split(n, share, rng())
    assert len(test) == held_out and sorted([*train, *test]) == list(range(n))


@pytest.mark.parametrize("n, batch", [(10, 3), (10, 10), (10, 100), (0, 4), (1, 1)])
def test_an_epoch_uses_every_row_once(n, batch):
    parts = list(batches(n, batch, rng()))
    assert all(len(part) == batch for part in parts[:-1])
    assert sorted(row for part in parts for row in part) == list(range(n))


def test_flipped_labels_are_other_labels():
    old = np.arange(10_000) % 10
    new = flip_labels(old, 0.25, 10, rng())
    assert (new != old).sum() == 2500 and new.min() == 0 and new.max() == 9
    shift = np.bincount((new - old)[new != old] % 10, minlength=10)
    assert shift[0] == 0 and np.all(np.abs(shift[1:] - 2500 / 9) < 5 * np.sqrt(2500 / 9))
    assert np.array_equal(old, np.arange(10_000) % 10)


def test_bad_numbers_get_a_sentence():
    with pytest.raises(ValueError, match="share=1.5"):
        train_test_split(10, 1.5, rng())
    with pytest.raises(ValueError, match="share=-0.1"):
        flip_labels(np.zeros(3, int), -0.1, 2, rng())
    with pytest.raises(ValueError, match="batch=0"):
        list(batches(10, 0, rng()))
