"""Layouts and cache lines against brute force on real arrays."""

import numpy as np
import pytest

from mlsys.tensor import Layout, fetches, layout_of, lines_touched, offsets


def random_view(rng):
    base = np.arange(rng.integers(1, 400), dtype=rng.choice([np.float16, np.float32, np.float64]))
    base = base[: base.size // 6 * 6 or 1]
    base = base.reshape((6, -1) if base.size >= 6 else (1, 1))
    view = base
    for _ in range(rng.integers(0, 4)):
        pick = rng.integers(4)
        axis = int(rng.integers(view.ndim))
        index = [slice(None)] * view.ndim
        index[axis] = slice(None, None, int(rng.choice([-2, -1, 1, 2])))
        view = [view.T, view[tuple(index)], np.broadcast_to(view, (2, *view.shape)), view][pick]
    return base, view


@pytest.mark.parametrize("seed", range(30))
def test_offsets_find_every_element(seed):
    base, view = random_view(np.random.default_rng(seed))
    found = base.ravel()[offsets(layout_of(view, base)) // base.itemsize]
    assert np.array_equal(found, view)


@pytest.mark.parametrize("seed", range(30))
def test_contiguous_agrees_with_numpy(seed):
    base, view = random_view(np.random.default_rng(seed))
    assert layout_of(view, base).is_contiguous == view.flags.c_contiguous


def test_foreign_memory_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        layout_of(np.zeros(3), np.zeros(4))


@pytest.mark.parametrize("seed", range(20))
def test_fetches_against_a_list(seed):
    base, view = random_view(np.random.default_rng(seed))
    layout = layout_of(view, base)
    for room in (1, 2, 5):
        kept, count = [], 0
        for line in (offsets(layout).ravel() // 64).tolist():
            count += line not in kept
            kept = [line] + [k for k in kept if k != line][: room - 1]
        assert fetches(layout, 64, room) == count


def test_a_bigger_cache_never_fetches_more():
    base = np.zeros((32, 48), np.float32)
    counts = [fetches(layout_of(base.T, base), 64, room) for room in range(1, 40)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == lines_touched(layout_of(base, base)) == 96


def test_bad_line_and_cache():
    layout = Layout((4,), (12,), 0, 12)
    with pytest.raises(ValueError, match="itemsize=12"):
        fetches(layout)
    with pytest.raises(ValueError, match="cache_lines=0"):
        fetches(Layout((4,), (4,), 0, 4), 64, 0)
