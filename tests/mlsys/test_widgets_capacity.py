"""The capacity explorer: its short cuts agree with least squares, and its story holds."""

import numpy as np
import pytest

from mlsys.data import digits
from mlsys.widgets.capacity import DECAY, FEATURES, IMAGES, CapacityExplorer, finding


@pytest.fixture(scope="module")
def shared():
    return CapacityExplorer()


@pytest.fixture
def box(shared):
    shared.features.value, shared.noise.value, shared.decay.value = 50, 0, "none"
    return shared


def point(box):
    at, curves = box.model()
    return curves[at]


def test_grid_is_the_slider(box):
    """Each stop of the slider is one of the solved sizes."""
    for step in range(26):
        box.features.value = 10 ** (1 + 0.1 * step)
        assert FEATURES[box.model()[0]] == round(box.features.value)
    assert IMAGES in FEATURES


@pytest.mark.parametrize("decay", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("k", [10, 63, 501])
def test_fit_equals_least_squares(box, k, decay):
    """The solution in the coordinates of the decomposition equals NumPy's own on the features."""
    rng = np.random.default_rng(1)
    data = digits()
    train, valid = data.take(data.forms < 10), data.take(data.forms >= 10)
    train = train.take(rng.choice(len(train), IMAGES, replace=False))
    mean, std = train.images.mean(axis=0), train.images.std()
    w = rng.normal(size=(64, FEATURES[-1]))[:, :k] / 8
    inside, outside = (np.maximum((part.images - mean) / std @ w, 0) / np.sqrt(k) for part in (train, valid))
    targets = np.eye(10)[train.labels] - 0.1
    rows = np.concatenate([inside, np.sqrt(decay) * np.eye(k)])
    solved = np.linalg.lstsq(rows, np.concatenate([targets, np.zeros((k, 10))]), rcond=None)[0]
    fit = box.fits[FEATURES.index(k)]
    got = fit.accuracies(targets, train.labels, valid.labels, decay)
    want = [100 * np.mean((f @ solved).argmax(axis=1) == y) for f, y in ((inside, train.labels), (outside, valid.labels))]
    assert got == pytest.approx(want, abs=0.51)  # one image at most may fall on the other side


def test_wrong_labels_are_as_many_as_asked_and_nested(box):
    before = np.zeros(IMAGES, bool)
    for noise in (0, 10, 35, 50):
        box.noise.value = noise
        wrong = box.noisy_labels() != box.labels
        assert wrong.sum() == noise / 100 * IMAGES and np.all(wrong[before])
        before = wrong


def test_more_features_never_fit_worse_without_decay(box):
    for noise in (0, 50):
        box.noise.value = noise
        train = box.model()[1][:, 0]
        assert train[-1] == 100 and np.all(train[FEATURES.index(IMAGES):] == 100)
        assert train[0] < 70


def test_what_the_lesson_says_is_seen(box):
    """The hole at 200 features, its repair by decay, and validation ahead of training at 50 % noise."""
    box.features.value = 200
    assert point(box)[0] == 100 and point(box)[1] < 40
    box.decay.value = "0.01"
    assert 85 < point(box)[1] < 95
    box.noise.value, box.features.value, box.decay.value = 50, 3162, "1"
    train, valid = point(box)
    assert 45 < train < 65 and 68 < valid < 82
    box.decay.value = "none"
    assert point(box)[0] == 100 and point(box)[1] < 65


def test_sentence_and_title_carry_the_numbers(box):
    train, valid = point(box)
    assert f"training {train:.1f} %, validation {valid:.1f} %" in box.sentence()
    assert f"{train - valid:.0f} points" in box.picture.value
    assert box.readout.value.count(box.sentence()) == 1


@pytest.mark.parametrize("numbers, start", [
    ((40.0, 60.0, 30), "It cannot memorise"),
    ((40.0, 45.0, 0), "It cannot fit"),
    ((90.0, 80.0, 0), "It fits part"),
    ((100.0, 15.0, 0), "Every label is memorised; validation is 85"),
    ((100.0, 15.0, 20), "Every label is memorised, the wrong ones too"),
])
def test_finding_names_the_regime(numbers, start):
    assert finding(*numbers).startswith(start)


def test_slider_of_features_alone_solves_nothing_again(box):
    """Curves are kept while noise and decay stay."""
    curves = box.model()[1]
    box.features.value = 1000
    assert box.model()[1] is curves
    box.decay.value = next(iter(set(DECAY) - {"none"}))
    assert box.model()[1] is not curves
