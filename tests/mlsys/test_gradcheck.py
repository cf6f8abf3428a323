"""The gradient checker finds planted faults and passes what is right."""

import numpy as np
import pytest

from mlsys.autograd import Tensor
from mlsys.gradcheck import GradReport, gradcheck, numeric_grad


def faulty(name, forward, vjp):
    """An operation with a backward rule of our choice."""
    return lambda x: Tensor._record(name, forward(x.data), vjp, x._node)


@pytest.mark.parametrize(
    "fn",
    [
        faulty("square without the 2", lambda x: x * x, lambda g: (g,)),
        faulty("exp off by a millionth", np.exp, lambda g: (g * np.exp(POINT) * (1 + 1e-5),)),
        faulty("transposed", lambda x: x.T.copy(), lambda g: (g,)),
        faulty("one element", lambda x: x * 2, lambda g: (np.where(np.arange(9).reshape(3, 3) == 4, 0, g * 2),)),
        faulty("no gradient at all", lambda x: x * 2, lambda g: (None,)),
        faulty("not a number", lambda x: x * 2, lambda g: (g * np.nan,)),
    ],
)
def test_planted_faults_are_found(fn):
    report = gradcheck(fn, POINT)
    assert not report.ok and not report.errors[0] <= 1e-6


POINT = np.random.default_rng(0).standard_normal((3, 3))


def test_the_right_rule_passes_with_room():
    report = gradcheck(lambda a, b: ((a @ b).tanh() * a).sum(0), POINT, POINT.T)
    assert report.ok and len(report.errors) == 2 and max(report.errors) < 1e-8
    assert isinstance(report, GradReport)


def test_the_blame_falls_on_one_input():
    def fn(a, b):
        return Tensor._record("mul", a.data * b.data, lambda g: (g * POINT, g * 2 * POINT), a._node, b._node)

    errors = gradcheck(fn, POINT, POINT).errors
    assert errors[0] < 1e-8 and errors[1] > 1e-2


def test_numeric_grad_hands_over_what_it_was_handed():
    kinds = []

    def fn(x, y):
        kinds.append((type(x), type(y)))
        return (y * x).sum() if isinstance(y, Tensor) else float((x * y).sum())

    dx, dy = numeric_grad(fn, [1.0, 2.0], Tensor([3.0, 4.0]))
    assert np.allclose(dx, [3, 4]) and np.allclose(dy, [1, 2]) and dx.dtype == np.float64
    assert set(kinds) == {(np.ndarray, Tensor)}


def test_numeric_grad_leaves_the_point_alone():
    x = np.array([1.0, 2.0])
    numeric_grad(lambda x: (x**3).sum(), x)
    assert x.tolist() == [1.0, 2.0]


def test_numbers_and_empty_inputs():
    (g,) = numeric_grad(lambda x: x**2, 3.0)
    assert np.isclose(g, 6.0)
    assert gradcheck(lambda a, b: a.sum() + b, np.zeros((0, 2)), 1.0).ok


def test_an_output_with_several_numbers_needs_gradcheck():
    with pytest.raises(ValueError):
        numeric_grad(lambda x: x * 2, np.ones(3))
