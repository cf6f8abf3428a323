"""Scaling laws: allocations against brute force, fits against known truth, and papers against themselves."""

import dataclasses
import time

import numpy as np
import pytest

from mlsys.transformer import scaling_laws as sl
from mlsys.transformer.isoflop import by_budget
from mlsys.transformer.scaling_fit import huber, minimise, predict

CHINCHILLA_BUDGET = 5.76e23  # FLOP: Hoffmann et al. 2022, Table 3
by_name = pytest.mark.parametrize("law", sl.LAWS, ids=lambda law: law.name)


# Laws


def test_loss_of_chinchilla_by_hand():
    want = 1.69 + 406.4 / 70e9**0.34 + 410.7 / 1.4e12**0.28
    assert sl.HOFFMANN_PRINTED.loss(70e9, 1.4e12) == pytest.approx(want, rel=1e-12)


@by_name
def test_more_never_hurts(law):
    sizes = np.geomspace(1e6, 1e12, 50)
    assert (np.diff(law.loss(sizes, 1e10)) < 0).all() and (np.diff(law.loss(1e9, sizes)) < 0).all()


def test_kaplan_joint_law_has_both_single_laws_as_limits():
    assert sl.KAPLAN.loss(1e9, 1e30) == pytest.approx(sl.KAPLAN_N.loss(1e9), rel=1e-3)
    assert sl.KAPLAN.loss(1e30, 1e10) == pytest.approx(sl.KAPLAN_D.loss(1e10), rel=1e-3)
    assert sl.KAPLAN_C.loss(3.1e8) == 1.0


@by_name
def test_every_published_number_names_its_source(law):
    assert law.source
    assert all(entry.source for entry in (*sl.PUBLISHED_EXPONENTS, sl.KAPLAN_N, sl.KAPLAN_D, sl.KAPLAN_C))


# Allocation


@by_name
@pytest.mark.parametrize("flops", [1e18, CHINCHILLA_BUDGET, 1e27])
def test_closed_form_equals_search_and_grid(law, flops):
    exact, searched = sl.optimum(law, flops), sl.optimum_numerically(law, flops)
    assert searched.parameters == pytest.approx(exact.parameters, rel=1e-4)
    assert searched.loss == pytest.approx(exact.loss, rel=1e-12)
    assert exact.flops == pytest.approx(flops, rel=1e-12)
    sizes = exact.parameters * np.geomspace(0.01, 100, 4001)
    assert law.loss(sizes, flops / 6 / sizes).min() >= exact.loss * (1 - 1e-14)


@by_name
def test_growth_of_the_optimum_is_the_exponent(law):
    small, large = sl.optimum(law, 1e20), sl.optimum(law, 1e24)
    assert np.log10(large.parameters / small.parameters) / 4 == pytest.approx(sl.exponent(law), rel=1e-12)
    assert large.loss < small.loss


# What the papers say, against itself: facts that lessons let the reader find.


def test_one_budget_four_answers():
    """At Chinchilla's budget: 20 tokens a parameter were used, and every fit to the same runs says something else."""
    ratios = {law.name: sl.optimum(law, CHINCHILLA_BUDGET).tokens_per_parameter for law in sl.LAWS}
    assert ratios["Hoffmann 2022, printed"] == pytest.approx(92.6, abs=0.1)
    assert ratios["Hoffmann 2022, unrounded"] == pytest.approx(58.9, abs=0.1)
    assert ratios["Epoch 2024 refit"] == pytest.approx(18.4, abs=0.1)
    assert ratios["Kaplan 2020, joint"] < 3
    assert 1.4e12 / 70e9 == 20


def test_rounding_alone_moves_the_answer_by_more_than_half():
    printed, unrounded = (
        sl.optimum(law, CHINCHILLA_BUDGET).tokens_per_parameter for law in (sl.HOFFMANN_PRINTED, sl.HOFFMANN_UNROUNDED)
    )
    assert printed / unrounded == pytest.approx(1.572, abs=0.01)
    rounded = dataclasses.replace(sl.EPOCH_REFIT, A=482.01, B=2085.43, E=1.82, alpha=0.3478, beta=0.3658)
    assert sl.optimum(rounded, CHINCHILLA_BUDGET).tokens_per_parameter == pytest.approx(18.39, abs=0.01)


@pytest.mark.parametrize(
    "law, plotted", [(sl.EPOCH_REFIT, 25.66), (sl.HOFFMANN_UNROUNDED, 72.87), (sl.HOFFMANN_PRINTED, 72.87)]
)
def test_ratios_plotted_by_epoch_do_not_follow_from_the_laws_at_that_budget(law, plotted):
    """Disputed, so no key: 25.66 and 72.87 are printed beside the same parameters."""
    assert abs(sl.optimum(law, CHINCHILLA_BUDGET).tokens_per_parameter / plotted - 1) > 0.15


def test_approach_3_prints_exponents_outside_its_own_interval():
    third = sl.PUBLISHED_EXPONENTS[2]
    assert not third.a_interval[0] <= third.a <= third.a_interval[1]
    assert round(sl.exponent(sl.HOFFMANN_PRINTED), 2) == 0.45 != third.a  # from the rounded parameters
    assert round(sl.exponent(sl.HOFFMANN_UNROUNDED), 2) == third.a


def test_approach_3_disagrees_with_1_and_2_and_the_refit_does_not():
    first, second, third, kaplan = sl.PUBLISHED_EXPONENTS
    assert third.a_interval[1] < min(first.a_interval[0], second.a_interval[0])
    refit = sl.exponent(sl.EPOCH_REFIT)
    assert refit == pytest.approx(0.513, abs=5e-4)  # published with a standard error of 0.020
    assert second.a_interval[0] <= refit <= second.a_interval[1] and abs(refit - first.a) < 2 * 0.020
    assert all(abs(entry.a + entry.b - 1) < 1e-9 for entry in sl.PUBLISHED_EXPONENTS)


def test_kaplan_exponent_is_not_that_of_the_joint_law():
    """0.73 is for training that stops early at the best batch size; the joint law at convergence gives 0.56."""
    assert sl.exponent(sl.KAPLAN) == pytest.approx(0.5556, abs=1e-4)
    assert sl.PUBLISHED_EXPONENTS[3].a - sl.exponent(sl.KAPLAN) > 0.15
    assert 0.73 + 0.24 + 0.03 == pytest.approx(1)  # N, batch and steps take all compute


def test_table_3_is_6nd_but_for_its_own_budget_row():
    for parameters, flops, tokens, _ in sl.CHINCHILLA_TABLE_3:
        surplus = 6 * parameters * tokens / flops - 1
        assert abs(surplus) < 0.01 if parameters != 67e9 else surplus == pytest.approx(0.047, abs=1e-3)


def test_table_3_needs_more_tokens_each_for_large_models_by_approach_2():
    first = [tokens / parameters for parameters, _, tokens, _ in sl.CHINCHILLA_TABLE_3]
    second = [tokens / parameters for parameters, _, _, tokens in sl.CHINCHILLA_TABLE_3]
    assert 20 <= min(first) and max(first) < 22.4
    assert min(second) < 19.3 and max(second) > 29


# Serving


@by_name
def test_tokens_needed_invert_the_loss(law):
    best = sl.optimum(law, 1e22)
    sizes = best.parameters * np.array([0.8, 1.0, 5.0])
    tokens = sl.tokens_needed(law, sizes, best.loss)
    assert law.loss(sizes, tokens) == pytest.approx([best.loss] * 3, rel=1e-10)
    assert tokens[1] == pytest.approx(best.tokens, rel=1e-6)
    assert sl.tokens_needed(law, best.parameters / 1e4, best.loss) == np.inf


@by_name
@pytest.mark.parametrize("served", [0, 1e11, 1e13, 1e15])
def test_cheapest_life_against_a_grid(law, served):
    best = sl.optimum(law, 1e22)
    sizing = sl.cheapest(law, best.loss, served)
    assert law.loss(sizing.parameters, sizing.tokens) == pytest.approx(best.loss, rel=1e-9)
    assert sizing.total_flops == sizing.flops + 2 * sizing.parameters * served
    sizes = best.parameters * np.geomspace(0.01, 3, 20001)
    total = sizes * (6 * sl.tokens_needed(law, sizes, best.loss) + 2 * served)
    assert sizing.total_flops <= total.min() * (1 + 1e-9)
    assert total.min() == pytest.approx(sizing.total_flops, rel=1e-4)


@by_name
def test_serving_shrinks_the_model_and_training_alone_gives_the_optimum(law):
    best = sl.optimum(law, 1e22)
    lives = [sl.cheapest(law, best.loss, served) for served in (0, 1e10, 1e12, 1e14)]
    assert lives[0].parameters == pytest.approx(best.parameters, rel=1e-6)
    assert lives[0].total_flops == pytest.approx(1e22, rel=1e-6)
    assert all(a.parameters > b.parameters and a.tokens < b.tokens for a, b in zip(lives, lives[1:]))


def test_losses_that_no_run_reaches_are_refused():
    with pytest.raises(ValueError, match="loss=1.5 is not above the floor 1.69"):
        sl.cheapest(sl.HOFFMANN_PRINTED, 1.5, 1e12)
    with pytest.raises(ValueError, match="loss=-1"):
        sl.cheapest(sl.KAPLAN, -1, 0)
    with pytest.raises(ValueError, match="served=-5"):
        sl.cheapest(sl.EPOCH_REFIT, 2.0, -5)


# Runs and valleys


def rng(seed=0):
    return np.random.default_rng(seed)


def test_synthetic_runs_follow_the_law_on_their_budgets():
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(), noise=0)
    assert len(runs) == 245
    assert runs.losses == pytest.approx(sl.EPOCH_REFIT.loss(runs.parameters, runs.tokens))
    assert [len(group) for group in by_budget(runs)] == [35] * 7
    noisy = sl.synthetic_runs(sl.EPOCH_REFIT, rng(), noise=0.01)
    assert np.log(noisy.losses / runs.losses).std() == pytest.approx(0.01, rel=0.15)
    failed = np.log(sl.synthetic_runs(sl.EPOCH_REFIT, rng(), noise=0, outliers=0.1).losses / runs.losses)
    assert (failed >= 0).all() and 0.04 < (failed > 0.04).mean() < 0.18


def test_runs_are_checked():
    with pytest.raises(ValueError, match="2 sizes, 2 token counts, 1 losses"):
        sl.Runs([1e6, 2e6], [1e6, 1e6], [3.0])
    with pytest.raises(ValueError, match="losses has an entry"):
        sl.Runs([1e6], [1e6], [-3.0])
    with pytest.raises(ValueError, match="tokens has an entry"):
        sl.Runs([1e6], [np.nan], [3.0])


@pytest.mark.parametrize("law", [sl.EPOCH_REFIT, sl.HOFFMANN_PRINTED], ids=lambda law: law.name)
@pytest.mark.parametrize("span", [2, 10])
def test_valleys_lie_at_the_optimum_and_miss_to_the_side_that_the_docstring_says(law, span):
    valleys = sl.isoflop_valleys(sl.synthetic_runs(law, rng(), noise=0, span=span))
    off = np.array([valley.parameters / sl.optimum(law, valley.flops).parameters for valley in valleys])
    assert (off < 1).all() if law.alpha < law.beta else (off > 1).all()
    assert abs(off - 1).max() < (0.004 if span == 2 else 0.04)
    assert all(valley.inside for valley in valleys)
    assert sl.growth(valleys)[0] == pytest.approx(sl.exponent(law), abs=1e-6)
    for valley in valleys:
        assert valley.curve(valley.parameters) == pytest.approx(valley.loss, rel=1e-9)
        assert valley.curve(valley.parameters * 1.1) > valley.loss
        assert 6 * valley.parameters * valley.tokens == pytest.approx(valley.flops)


def test_budgets_that_nearly_agree_share_a_valley():
    """Real runs stop at whole steps."""
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(), noise=0)
    wobbly = sl.Runs(runs.parameters, runs.tokens * rng().uniform(0.98, 1.02, len(runs)), runs.losses)
    assert [len(group) for group in by_budget(wobbly)] == [35] * 7


def test_a_valley_whose_minimum_was_not_tried_says_so():
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(), noise=0, sizes=9)
    best = np.array([sl.optimum(sl.EPOCH_REFIT, flops).parameters for flops in runs.flops])
    valleys = sl.isoflop_valleys(runs.take(runs.parameters > 1.5 * best))
    assert not any(valley.inside for valley in valleys)
    with pytest.raises(ValueError, match="there are 0"):
        sl.growth(valleys)
    hill = sl.Runs([1e6, 2e6, 4e6], [4e9, 2e9, 1e9], [3.0, 3.1, 3.0])
    (valley,) = sl.isoflop_valleys(hill)
    assert not valley.inside and np.isnan(valley.parameters)
    with pytest.raises(ValueError, match="needs three sizes"):
        sl.isoflop_valleys(hill.take([0, 1]))
    with pytest.raises(ValueError, match="the bootstrap needs four"):
        sl.growth_samples(hill, rng())


def test_intervals_of_the_growth_cover_the_truth():
    """Nominal 90 %; measured 87 % over 200 sweeps of 7 budgets x 7 sizes."""
    hits = 0
    for seed in range(60):
        runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(seed), sizes=7, span=4, noise=0.005)
        low, high = np.nanquantile(sl.growth_samples(runs, rng(seed), resamples=100), [0.05, 0.95])
        hits += low <= sl.exponent(sl.EPOCH_REFIT) <= high
    assert 46 <= hits


# Fits


@pytest.mark.parametrize("law", [sl.HOFFMANN_PRINTED, sl.HOFFMANN_UNROUNDED, sl.EPOCH_REFIT], ids=lambda law: law.name)
def test_a_fit_without_noise_finds_the_law(law):
    fit = sl.fit_law(sl.synthetic_runs(law, rng(), noise=0))
    for field in ("A", "B", "E", "alpha", "beta"):
        assert getattr(fit.law, field) == pytest.approx(getattr(law, field), rel=1e-5)
    assert fit.starts == 324 and fit.agreeing > 250


@pytest.mark.parametrize("outliers", [0, 0.05])
def test_a_fit_with_noise_comes_near(outliers):
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(1), noise=0.005, outliers=outliers)
    fit = sl.fit_law(runs)
    assert fit.law.E == pytest.approx(sl.EPOCH_REFIT.E, abs=0.02)
    assert sl.exponent(fit.law) == pytest.approx(sl.exponent(sl.EPOCH_REFIT), abs=0.015)
    assert fit.agreeing > 250


def test_outliers_move_a_least_squares_fit_and_not_the_robust_one():
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(3), noise=0.002, outliers=0.05)
    floor = [abs(sl.fit_law(runs, delta=delta).law.E - sl.EPOCH_REFIT.E) for delta in (1e-3, 1e3)]
    assert floor[0] < 0.01 < floor[1]


def test_no_start_ends_lower_than_the_one_that_is_returned():
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(5), noise=0.005)
    fit = sl.fit_law(runs)
    random = rng(6).uniform([0, 0, -1, 0, 0], [25, 25, 1, 2, 2], (150, 5))
    objectives = minimise(runs, random, np.ones((1, len(runs))), 1e-3, steps=2000, gain=1e-12)[1]
    assert objectives.min() >= fit.objective * (1 - 1e-5)
    theta = np.array([[np.log(fit.law.A), np.log(fit.law.B), np.log(fit.law.E), fit.law.alpha, fit.law.beta]])
    residuals = predict(theta, np.log(runs.parameters), np.log(runs.tokens))[0] - np.log(runs.losses)
    assert huber(residuals, np.ones((1, len(runs))), 1e-3)[0] == pytest.approx(fit.objective, rel=1e-6)


def test_prediction_is_the_law():
    law = sl.EPOCH_REFIT
    theta = np.array([[np.log(law.A), np.log(law.B), np.log(law.E), law.alpha, law.beta]])
    size, tokens = np.array([1e8, 1e9]), np.array([1e10, 3e10])
    log_loss, shares = predict(theta, np.log(size), np.log(tokens))
    assert np.exp(log_loss[0]) == pytest.approx(law.loss(size, tokens), rel=1e-12)
    assert shares.sum(0) == pytest.approx(1)


def test_324_starts_on_245_runs_take_well_under_four_seconds():
    """Measured 0.2 s of CPU time; the limit leaves room for a slow machine."""
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(), noise=0.005)
    before = time.process_time()
    sl.fit_law(runs)
    assert time.process_time() - before < 4


LAPTOP = sl.ParametricLaw("a character model on a laptop", A=40.0, B=60.0, E=1.2, alpha=0.4, beta=0.32)


def test_a_small_sweep_of_small_models_can_be_fitted():
    runs = sl.synthetic_runs(LAPTOP, rng(), budgets=(1e10, 1e11, 1e12), sizes=6, noise=0.005)
    fit = sl.fit_law(runs)
    assert sl.exponent(fit.law) == pytest.approx(sl.exponent(LAPTOP), abs=0.05)
    low, high = sl.bootstrap(runs, fit, rng(), resamples=50).interval(sl.exponent)
    assert low < sl.exponent(fit.law) < high
    with pytest.raises(ValueError, match="5 runs cannot fix five numbers"):
        sl.fit_law(runs.take(slice(5)))


FEW_STARTS = sl.start_grid()[::54]
QUANTITIES = {"alpha": "alpha", "beta": "beta", "E": "E", "a": sl.exponent}


@pytest.mark.parametrize("noise, outliers", [(0.005, 0.0), (0.01, 0.0), (0.005, 0.05)])
def test_bootstrap_intervals_cover_the_truth(noise, outliers):
    """Nominal 90 %; measured 82 to 95 % over 60 sets of runs (beta lowest)."""
    law, sets, hits = sl.EPOCH_REFIT, 30, dict.fromkeys(QUANTITIES, 0)
    truth = {name: sl.exponent(law) if name == "a" else getattr(law, name) for name in QUANTITIES}
    for seed in range(sets):
        runs = sl.synthetic_runs(law, rng(1000 + seed), noise=noise, outliers=outliers)
        samples = sl.bootstrap(runs, sl.fit_law(runs, FEW_STARTS), rng(seed), resamples=60)
        for name, quantity in QUANTITIES.items():
            low, high = samples.interval(quantity, level=0.9)
            hits[name] += low <= truth[name] <= high
    assert all(hit >= 0.72 * sets for hit in hits.values()), hits
    assert sum(hits.values()) >= 0.82 * sets * len(hits), hits


def test_intervals_widen_with_noise_and_narrow_with_runs():
    def width(**how):
        runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(2), **how)
        low, high = sl.bootstrap(runs, sl.fit_law(runs, FEW_STARTS), rng(3), resamples=60).interval("alpha")
        return high - low

    assert width(noise=0.002) < width(noise=0.005) < width(noise=0.02)
    assert width(noise=0.005, sizes=48) < width(noise=0.005, sizes=8)


def test_an_interval_of_any_function_of_the_law():
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(4), noise=0.005)
    samples = sl.bootstrap(runs, sl.fit_law(runs), rng(5))
    low, high = samples.interval(lambda law: sl.optimum(law, CHINCHILLA_BUDGET).tokens_per_parameter)
    assert low < 18.34 < high and high / low > 1.2  # extrapolated 200 times beyond the largest budget
    inner = samples.interval("alpha", level=0.5)
    outer = samples.interval("alpha", level=0.95)
    assert outer[0] < inner[0] < inner[1] < outer[1]


def test_the_same_seed_gives_the_same_intervals():
    runs = sl.synthetic_runs(sl.EPOCH_REFIT, rng(4), noise=0.005)
    fit = sl.fit_law(runs)
    first, second = (sl.bootstrap(runs, fit, rng(9), resamples=20).thetas for _ in range(2))
    assert np.array_equal(first, second)
