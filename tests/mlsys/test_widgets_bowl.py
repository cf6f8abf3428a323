"""The bowl: what it says about stability is what its own walks do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mlsys.widgets import bowl
from mlsys.widgets.bowl import ADAM, GD, MOMENTUM, STEEP, BowlExplorer

OPTIMIZERS = [GD, MOMENTUM, ADAM]


def set_up(optimizer=GD, lr=0.15, beta=0.9, kappa=10.0) -> BowlExplorer:
    box = BowlExplorer()
    box.optimizer.value, box.lr.value, box.beta.value, box.kappa.value = optimizer, lr, beta, kappa
    return box


def test_limit_of_gradient_descent_is_two_over_the_curvature():
    for curvature in (0.01, 1.0, 10.0):
        assert bowl.limit(curvature) == pytest.approx(2 / curvature)


def test_growth_is_the_largest_eigenvalue_of_one_step():
    rng = np.random.default_rng(0)
    for _ in range(200):
        lr, h, beta = rng.uniform(0, 1), 10 ** rng.uniform(-2, 1), rng.uniform(0, 0.99)
        step = np.array([[1 - lr * h, -lr * beta], [h, beta]])
        assert bowl.growth(lr, h, beta) == pytest.approx(np.abs(np.linalg.eigvals(step)).max(), rel=1e-6)


def test_walks_leave_above_the_limit_and_come_home_below():
    for beta in (0.0, 0.3, 0.8):
        for kappa in (1.0, 10.0):
            edge, curvatures = bowl.limit(STEEP, beta), (STEEP / kappa, STEEP)
            assert bowl.distance(bowl.heavy_ball(curvatures, 0.9 * edge, beta)[-1]) < 0.1
            assert bowl.distance(bowl.heavy_ball(curvatures, 1.1 * edge, beta)[-1]) > 100


def test_seen_factor_is_the_predicted_one():
    for lr in (0.02, 0.05, 0.15, 0.25):
        path = bowl.heavy_ball((1.0, STEEP), lr, 0.0)
        predicted = max(bowl.growth(lr, h) for h in (1.0, STEEP))
        assert bowl.seen_factor(path) == pytest.approx(predicted, rel=1e-3)


def test_first_step_of_adam_is_the_learning_rate_in_both_directions():
    for curvatures in ((10.0, 10.0), (0.01, 10.0)):
        before, after = bowl.adam(curvatures, 0.1, 0.9)[:2]
        assert [abs(b - a) for a, b in zip(before, after)] == pytest.approx([0.1, 0.1], rel=1e-4)


def test_sentence_tells_stable_from_unstable():
    box = set_up(GD, lr=0.15)
    assert "stable, the limit is 0.200" in box.sentence() and "Predicted factor of the error a step 0.850, seen 0.850" in box.sentence()
    box.lr.value = 0.25
    assert "unstable" in box.readout.value and "1.500, seen 1.500" in box.readout.value
    box.optimizer.value = MOMENTUM
    assert ": stable" in box.readout.value and "0.949, seen 0.949" in box.readout.value


def test_momentum_slider_is_off_for_gradient_descent():
    box = set_up(GD)
    assert box.beta.disabled
    box.optimizer.value = ADAM
    assert not box.beta.disabled


def test_arrival_in_one_step_is_said():
    assert "it arrives at once" in set_up(GD, lr=0.1, kappa=1.0).sentence()


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_end_of_every_slider_draws(optimizer):
    box = set_up(optimizer)
    for slider, ends in ((box.lr, (0.005, 0.5)), (box.beta, (0.0, 0.98)), (box.kappa, (1.0, 1000.0))):
        keep = slider.value
        for value in ends:
            slider.value = value
            assert 'role="img"' in box.picture.value and "nan" not in box.picture.value
            assert box.draw().label in box.picture.value.replace("&#x27;", "'")
        slider.value = keep


def test_path_stays_inside_its_square():
    for path in (bowl.heavy_ball((1.0, STEEP), 0.25, 0.0), bowl.heavy_ball((0.01, STEEP), 0.39, 0.95)):
        assert all(max(map(abs, w)) <= 1.3 + 1e-12 for w in bowl.inside(path, 1.3))


def test_static_twin_is_a_png_and_the_sentence():
    bundle = set_up()._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG") and bundle["text/plain"].startswith(GD)


def test_loss_is_half_the_weighted_square():
    assert bowl.loss((2.0, 1.0), (1.0, 10.0)) == 7.0
    assert math.isclose(bowl.distance((3.0, 4.0)), 5.0)
