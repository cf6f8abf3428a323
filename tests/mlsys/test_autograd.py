"""The engine: accumulation, order, freeing, aliasing, types and the sentences of errors."""

import copy
import gc
import operator
import pickle
import threading
import weakref

import numpy as np
import pytest

from mlsys.autograd import Tensor, concat, linear, no_grad


def leaf(*values, dtype=np.float32, **kwargs):
    return Tensor(np.array(values, dtype), requires_grad=True, **kwargs)


def probe(x, seen):
    """Identity whose backward calls `seen` (an operation is one call of `_record`)."""

    def vjp(g):
        seen()
        return (g,)

    return Tensor._record("probe", x.data.copy(), vjp, x._node)


# Accumulation


def test_a_value_used_twice_gets_both_gradients():
    x = leaf(3.0)
    y = x * x + x
    y.backward()
    assert x.grad == [7.0]


def test_diamond_waits_for_both_branches():
    x = leaf(2.0)
    h = x * 3
    (h.exp().log() * h + h).backward()  # h*h + h
    assert np.allclose(x.grad, 3 * (2 * 6 + 1), rtol=1e-5)


def test_work_does_not_grow_with_the_number_of_paths():
    x, turns = leaf(1.0), []
    h = x
    for _ in range(40):
        h = probe(h, lambda: turns.append(1))
        h = h + h
    h.backward()
    assert x.grad == [2.0**40] and len(turns) == 40


@pytest.mark.parametrize("y_first", [False, True])
def test_late_and_early_branches_meet_in_creation_order(y_first):
    x = leaf(1.0, 2.0)
    a = x.exp()
    b = a * 2  # made before c, used after it
    c = a.tanh()
    out = (b * c + c if y_first else c + c * b).sum()
    out.backward()
    e = np.exp(x.data)
    want = (2 * np.tanh(e) + (2 * e + 1) * (1 - np.tanh(e) ** 2)) * e
    assert np.allclose(x.grad, want, rtol=1e-5)


def test_gradients_add_up_over_backward_calls_until_zero_grad():
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    x.zero_grad()
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_two_losses_of_one_leaf_equal_their_sum():
    x, z = leaf(1.0, -2.0), leaf(1.0, -2.0)
    (x * x).sum().backward()
    x.exp().sum().backward()
    ((z * z).sum() + z.exp().sum()).backward()
    assert np.allclose(x.grad, z.grad)


def test_backward_with_a_gradient_is_a_vector_jacobian_product():
    x = leaf(1.0, 2.0, 3.0)
    (x * x).backward([1.0, 0.0, -1.0])
    assert x.grad.tolist() == [2.0, 0.0, -6.0]


def test_backward_of_a_leaf_adds_the_gradient_itself():
    x, g = leaf(1.0, 2.0), np.array([5.0, 6.0], np.float32)
    x.backward(g)
    x.backward(g)
    assert x.grad.tolist() == [10.0, 12.0] and g.tolist() == [5.0, 6.0]


# Aliasing


def test_leaves_that_receive_the_same_gradient_do_not_share_it():
    a, b, g = leaf(1.0, 2.0), leaf(3.0, 4.0), np.ones(2, np.float32)
    (a + b).backward(g)
    a.grad *= 10
    assert b.grad.tolist() == [1.0, 1.0] and g.tolist() == [1.0, 1.0]


def test_gradients_through_views_own_their_memory():
    a = Tensor(np.ones((2, 3), np.float32), requires_grad=True)
    b = Tensor(np.ones((2, 3), np.float32), requires_grad=True)
    (concat([a, b], axis=1).T.reshape(12) * 1.0).sum().backward()
    a.grad += 1
    assert b.grad.tolist() == [[1.0] * 3] * 2


def test_accumulating_changes_no_gradient_that_waits_elsewhere():
    x, y = leaf(1.0), leaf(1.0)
    s = x + y  # hands one array to both
    (s + x * 2 + s).backward()
    assert x.grad == [4.0] and y.grad == [2.0]


def test_the_gradient_of_a_leaf_may_be_fed_back_in():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x + 0.0).backward(x.grad)
    assert x.grad.tolist() == [4.0, 8.0]


def test_data_of_the_caller_is_never_written():
    x, w, b = np.full((2, 2), -1.0, np.float32), leaf([1.0, 2.0], [3.0, 4.0]), leaf(1.0, 1.0)
    h = linear(Tensor(x), w, b)
    before = h.data.copy()
    h.relu().sum().backward()
    assert (x == -1).all() and (h.data == before).all()


@pytest.mark.parametrize("same", ["weight", "matmul"])
def test_one_leaf_in_both_places_of_a_product(same):
    w = Tensor(np.array([[1.0, 2.0], [3.0, 5.0]]), requires_grad=True)
    w._node.home = np.full((2, 2), 9.0)  # as an optimizer does
    (linear(w, w) if same == "weight" else w @ w).sum().backward()
    ones = np.ones((2, 2))
    assert np.allclose(w.grad, ones @ w.data.T + w.data.T @ ones) and w.grad is w._node.home


# Freeing


def test_a_dropped_loss_takes_its_graph_along_without_the_collector():
    gc.disable()
    try:
        x = leaf(*np.linspace(0, 1, 1000))
        h = x.exp()
        array, node = weakref.ref(h.data), weakref.ref(h)
        loss = (h * h).relu().sum()
        del h
        assert node() is None and array() is not None
        del loss
        assert array() is None
    finally:
        gc.enable()


def test_saved_arrays_are_freed_while_backward_walks():
    x, alive = leaf(1.0, 2.0), []
    early = probe(x * 1.0, lambda: alive.append(late() is not None))
    h = early.exp()  # keeps its output
    late = weakref.ref(h.data)
    h = probe(h, lambda: alive.append(late() is not None))
    h.sum().backward()
    del h
    assert alive == [True, False]


def test_an_activation_that_no_rule_reads_is_not_kept():
    x = leaf(1.0, 2.0)
    h = x + 1.0
    array = weakref.ref(h.data)
    loss = (h + 1.0).sum()
    del h
    assert array() is None
    loss.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_long_chain_needs_no_recursion():
    x = leaf(1.0)
    h = x
    for _ in range(20_000):
        h = h + 1.0
    h.backward()
    dropped = x
    for _ in range(20_000):
        dropped = dropped + 1.0
    del dropped
    assert x.grad == [1.0]


def test_a_second_backward_says_what_to_do():
    x = leaf(1.0)
    h = x.exp()
    loss, other = h * 2.0, h * 3.0
    loss.backward()
    with pytest.raises(RuntimeError, match="already walked: what 'mul' had saved is freed"):
        loss.backward()
    with pytest.raises(RuntimeError, match="'exp'.*Compute the loss again"):
        other.backward()


# What needs a gradient


def test_only_leaves_that_ask_get_a_gradient():
    x, c = leaf(1.0), Tensor([2.0])
    y = x * c
    y.backward()
    assert x.grad == [2.0] and c.grad is None and y.grad is None
    assert y.requires_grad and not (c * c).requires_grad


def test_freezing_a_leaf():
    w = leaf(1.0)
    w.requires_grad = False
    assert not (w * 2).requires_grad
    w.requires_grad = True
    (w * 2).backward()
    assert w.grad == [2.0]
    with pytest.raises(ValueError, match="follows from its inputs"):
        (w * 2).requires_grad = False


def test_no_grad_nests_and_belongs_to_one_thread():
    x, seen = leaf(1.0), []
    with no_grad():
        with no_grad():
            pass
        assert not (x * 2).requires_grad
        other = threading.Thread(target=lambda: seen.append((x * 2).requires_grad))
        other.start()
        other.join()
    assert seen == [True] and (x * 2).requires_grad
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert (x * 2).requires_grad


def test_detach_cuts_the_graph():
    x = leaf(2.0)
    (x * x.detach()).backward()
    assert x.grad == [2.0]


@pytest.mark.parametrize(
    ("act", "error", "sentence"),
    [
        (lambda: Tensor([1.0]).backward(), RuntimeError, "depends on no tensor"),
        (lambda: (leaf(1.0, 2.0) * 1).backward(), ValueError, r"shape \(2,\) needs a gradient"),
        (lambda: (leaf(1.0, 2.0) * 1).backward([1.0]), ValueError, r"shape \(1,\) for a tensor of shape \(2,\)"),
        (lambda: Tensor(Tensor([1.0])), TypeError, "is a Tensor already"),
        (lambda: np.asarray(leaf(1.0)), TypeError, r"write \.data"),
        (lambda: np.exp(Tensor([1.0])), TypeError, "does not support ufuncs"),
        (lambda: leaf(1.0) ** leaf(2.0), TypeError, "exponent must be a number"),
        (lambda: setattr(leaf(1.0) * 2, "grad", None), ValueError, "only a leaf"),
        (lambda: operator.isub(leaf(1.0, name="b"), 1.0), TypeError, r"write b\.data -= \.\.\."),
    ],
)
def test_errors_are_sentences(act, error, sentence):
    with pytest.raises(error, match=sentence):
        act()


# Types


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "float32"), (2.5, "float32"), ([1, 2], "float32"), ([[1.0]], "float32"), (True, "float32"),
        (np.float64(1), "float32"), (np.arange(3), "float32"), (np.ones(2, bool), "float32"),
        (np.ones(2), "float64"), (np.array(1.0), "float64"), (np.ones(2, np.float32), "float32"),
        (np.ones(2, np.float16), "float16"),
    ],
)
def test_types_of_data(data, dtype):
    assert Tensor(data).dtype == dtype


CONSTANTS = [2, 2.0, np.float64(2), np.float32(2), np.int64(2), np.array(2.0), np.array([2.0, 2.0]), [2, 2], np.array([2, 2])]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("c", CONSTANTS, ids=lambda c: f"{type(c).__name__}-{np.asarray(c).dtype}-{np.ndim(c)}")
def test_a_constant_takes_the_type_of_the_tensor(c, dtype):
    x = leaf(1.0, 4.0, dtype=dtype)
    for out in (x + c, c + x, x - c, c - x, x * c, c * x, x / c, c / x):
        assert isinstance(out, Tensor) and out.dtype == dtype
        out.sum().backward()
        assert x.grad.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_operation_changes_the_type(dtype):
    x = Tensor(np.array([[0.5, 1.5], [2.5, 0.25]], dtype), requires_grad=True)
    outs = [
        -x, x**2, x**3, x**-1, x**0.5, x**1.7, x**0, x @ x, x.exp(), x.log(), x.sqrt(), x.tanh(), x.sigmoid(),
        x.relu(), x.abs(), x.sum(), x.mean(), x.mean(0), x.sum(1, keepdims=True), x.max(), x.max(0), x.softmax(),
        x.log_softmax(0), x.T, x.reshape(4), x[0], x[[0, 0]], x.broadcast_to((3, 2, 2)), x[0, 0], x.sum() * 2.0,
        x.sum() / x.mean() - 1.0, 1.0 - x.sum(),
    ]
    for out in outs:
        assert type(out.data) is np.ndarray and out.dtype == dtype
        x.zero_grad()
        out.backward(np.ones(out.shape))
        assert x.grad.dtype == dtype and x.grad.shape == x.shape


def test_a_gradient_has_the_type_of_its_leaf():
    x, y = leaf(1.0, dtype=np.float32), leaf(2.0, dtype=np.float64)
    out = x * y
    out.backward()
    assert out.dtype == np.float64 and x.grad.dtype == np.float32 and y.grad.dtype == np.float64


# Behaving like a value


def test_comparisons_are_arrays_and_tensors_are_keys():
    x, y = Tensor([1.0, 2.0]), Tensor([1.0, 3.0])
    assert (x == y).tolist() == [True, False] and (x != 1).tolist() == [False, True]
    assert (x < y).tolist() == [False, True] and (x >= 2).tolist() == [False, True]
    assert (x > y).tolist() == [False, False] and (x <= y).tolist() == [True, True]
    assert len({x, y, x}) == 2


def test_a_computed_tensor_may_be_reassigned():
    x = leaf(1.0, 2.0)
    h = x * 1.0
    h += x
    h -= 0.5
    h *= x
    h /= 2.0
    h.sum().backward()
    assert np.allclose(h.data, [0.75, 3.5]) and np.allclose(x.grad, [1.75, 3.75])


def test_conversions():
    x = Tensor([[1.0, 2.0]], name="x")
    assert x[0, 1].item() == 2.0 and float(x[0, 0]) == 1.0 and bool(x[0, 0]) and len(x) == 1
    assert x.numpy() is x.data and np.asarray(x).tolist() == [[1.0, 2.0]]
    assert (x.shape, x.ndim, x.size, x.dtype) == ((1, 2), 2, 2, np.float32)
    assert [row.shape for row in x] == [(2,)] and repr(x) == "Tensor([[1., 2.]], name='x')"
    assert repr(leaf(1.0) * 2) == "Tensor([2.], op='mul')"


def test_copies_and_pickles_are_new_leaves():
    x = leaf(1.0, 2.0, name="w")
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.data is not x.data and (y.data == x.data).all() and y.name == "w" and y.requires_grad
        (y * 2).sum().backward()
        assert x.grad is None and y.grad.tolist() == [2.0, 2.0]
