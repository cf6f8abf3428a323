"""The check tools: compare by value, never ask a student's object, name the right mistake."""

import numpy as np
import pytest

from mlsys import check
from mlsys.check import difference, hints
from mlsys.check.compare import show


@pytest.fixture
def two_hints(monkeypatch):
    table = {"one-too-many": "You counted one too many.", "always-nine": "You said nine."}
    monkeypatch.setattr(hints, "all_hints", lambda: table)


EQUAL = [
    (1, 1.0), (np.float32(2), 2), ([1, 2], (1, 2)), (np.array([1, 2]), [1, 2]), ([[1, 2]], np.array([[1, 2]])),
    ({"a": np.int64(3)}, {"a": 3}), (float("nan"), float("nan")), (np.array([np.nan, 1]), np.array([np.nan, 1.0])),
    (np.longdouble(2), 2), ("x", "x"), (None, None), ({1, 2}, {2, 1}), (np.True_, True), (np.array(3.0), 3), (float("inf"), np.inf),
]
DIFFERENT = [
    (1, 2), (True, 1), ("1", 1), ([1], 1), ([1, 2], [2, 1]), (None, 0), (np.zeros(3), np.zeros(4)), ({"a": 1}, {"b": 1}),
    (np.ones(3), np.zeros(3)), (1, float("nan")), ([1, 2, 3], [1, 2]), (1.0, 1.0 + 1e-6), ([[1], [2, 3]], np.ones((2, 1))),
]


@pytest.mark.parametrize("got, want", EQUAL)
def test_equal_by_value(got, want):
    assert difference(got, want) is None


@pytest.mark.parametrize("got, want", DIFFERENT)
def test_different(got, want):
    assert difference(got, want)


def test_a_student_object_is_never_asked():
    class Liar:
        __eq__ = __bool__ = __float__ = __array__ = lambda *_: (_ for _ in ()).throw(RuntimeError("asked"))
        __hash__ = object.__hash__

    for want in (1, [1], np.ones(3), {"a": 1}, "x", None):
        assert "type Liar" in difference(Liar(), want)
    assert difference([1, Liar()], [1, 2])


def test_tolerance_is_relative_to_the_truth():
    assert difference(1.0009, 1.0, rtol=1e-3) is None
    assert difference(1.0011, 1.0, rtol=1e-3)
    assert difference(1e-13, 0.0, atol=1e-12) is None


def test_the_worst_element_is_named():
    got = np.zeros((3, 5))
    got[1, 4] = 7
    assert difference(got, np.zeros((3, 5))) == "7 at [1, 4], expected 0 (1 of 15 elements differ)"


def test_the_mistake_that_explains_most_is_named(two_hints):
    cases = [((8,), 8), ((20,), 20)]
    models = {"always-nine": lambda n: 9, "one-too-many": lambda n: n + 1}
    with pytest.raises(check.CheckFailed, match="one too many"):
        check.function(lambda n: n + 1, cases, models)
    with pytest.raises(check.CheckFailed, match="said nine"):
        check.function(lambda n: 9, cases, models)
    with pytest.raises(check.CheckFailed) as caught:
        check.function(lambda n: 5, cases, models)
    assert "Hint" not in str(caught.value)


def test_values_in_place_of_a_model(two_hints):
    models = {"always-nine": [9, 9], "one-too-many": [None, 3]}
    with pytest.raises(check.CheckFailed, match="one too many"):
        check.function(lambda n: n + (n > 1), [((1,), 1), ((2,), 2)], models)


def test_an_error_can_be_the_named_mistake(two_hints):
    def refuses(n):
        raise ValueError("no")

    with pytest.raises(check.CheckFailed, match="raised ValueError: no, in the line `raise ValueError.*\n.*said nine"):
        check.function(refuses, [((1,), 1)], {"always-nine": [ValueError]})


def test_not_written_yet():
    def later():
        raise NotImplementedError

    for run in (lambda: check.function(later, [((), 1)]), lambda: check.call(later), lambda: check.raises(later, (), ValueError)):
        with pytest.raises(check.CheckFailed, match="later is not written yet"):
            run()


def test_arguments_travel_by_value():
    def spoils(items):
        items.append(4)
        return items

    cases = [(([1],), [1, 4])]
    check.function(spoils, cases)
    check.function(spoils, cases)


def test_raises():
    check.raises(int, ("x",), ValueError)
    with pytest.raises(check.CheckFailed, match="gave 3; a ValueError was expected"):
        check.raises(int, ("3",), ValueError)


def test_call_gives_the_result_or_a_sentence():
    assert check.call(sorted, [2, 1]) == [1, 2]
    with pytest.raises(check.CheckFailed, match=r"int\('x'\) raised ValueError"):
        check.call(int, "x")


def test_an_error_without_a_text_makes_a_sentence_too():
    def stops(n):
        raise StopIteration

    said = r"stops\(3\) raised StopIteration, in the line `raise StopIteration`"
    for run in (lambda: check.call(stops, 3), lambda: check.function(stops, [((3,), 3)])):
        with pytest.raises(check.CheckFailed, match=rf"^{said}\.$"):
            run()
    with pytest.raises(check.CheckFailed, match=rf"^{said}; a ValueError was expected\.$"):
        check.raises(stops, (3,), ValueError)


def test_a_kernel_that_stops_without_a_text_makes_a_sentence():
    class Broken:
        def portable(self):
            raise MemoryError

    with pytest.raises(check.CheckFailed, match=r"^The kernel raised MemoryError\.$"):
        check.launch(Broken(), 1, 1)


def test_the_student_sees_the_message_only():
    failure = check.CheckFailed("f(1) gave 2, expected 3.\nHint: think.")
    assert failure._render_traceback_() == ["f(1) gave 2, expected 3.", "Hint: think."]


def test_unknown_hint_is_an_error_of_the_author():
    with pytest.raises(KeyError, match="no-such-hint"):
        check.that(False, "x", hint="no-such-hint")


def test_show_is_one_short_line():
    for value in (list(range(500)), {"k" * 200: 1}, np.zeros((9, 9)), "é" * 300):
        assert len(show(value)) <= 80 and "\n" not in show(value)


@pytest.mark.parametrize("got", [5.0, -np.inf, np.nan])
def test_only_infinity_equals_infinity(got):
    """A tolerance that is relative to infinity would allow every number."""
    assert difference(np.inf, np.inf) is None and difference(got, np.inf) is not None
    assert difference(np.array([1, np.inf]), np.array([1, np.inf])) is None
    assert difference(np.array([1, got]), np.array([1, np.inf])) is not None
