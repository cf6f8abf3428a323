"""Reshape, transpose, repeat and index: operations that move elements and keep nothing.

Their adjoints come in pairs: a reshape or a transpose goes back the way it came, repeating
and summing are each other's adjoint, and so are reading from places and adding into places.
Lessons: tensors, backpropagation.
"""

from __future__ import annotations

import numpy as np

from mlsys.autograd.engine import spread

BASIC = (int, slice, type(None), type(Ellipsis), np.integer)


class Shapes:
    """reshape transpose T broadcast_to and indexing of a tensor."""

    __slots__ = ()

    def reshape(self, *shape):
        """The same elements in the same order in another shape: a view where NumPy can."""
        before = self.data.shape
        return self._record("reshape", self.data.reshape(*shape), lambda g: (g.reshape(before),), self._node)

    def transpose(self, *axes):
        """Axes in the order given, or reversed if none is: a view."""
        data = self.data.transpose(*axes)
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        back = None
        if order:
            back = sorted(range(data.ndim), key=lambda i: order[i] % data.ndim)
        return self._record("transpose", data, lambda g: (g.transpose(back),), self._node)

    @property
    def T(self):
        """All axes in reverse order, as in NumPy."""
        return self.transpose()

    def broadcast_to(self, shape):
        """Repeated to `shape`; the repeats are summed on the way back."""
        data = spread(self.data, tuple(shape))
        return self._record("broadcast_to", data, lambda g: (g,), self._node)

    def __getitem__(self, index):
        """Slices give a view, integer arrays a copy (a gather).

        The way back adds each gradient into the place that was read; a place that was read
        twice gets both.

        >>> from mlsys.autograd import Tensor
        >>> x = Tensor([5.0, 6.0, 7.0], requires_grad=True)
        >>> x[[0, 2, 2]].sum().backward()
        >>> x.grad
        array([1., 0., 2.], dtype=float32)
        """
        shape = self.data.shape
        if isinstance(index, list):
            index = np.asarray(index)
        parts = index if isinstance(index, tuple) else (index,)
        once = all(isinstance(i, BASIC) for i in parts)  # no place can be read twice
        rows = isinstance(index, np.ndarray) and index.dtype.kind in "iu"

        def vjp(g):
            if rows:
                ids = index.reshape(-1) % shape[0]
                return (add_into_rows(shape, ids, g.reshape(ids.size, *shape[1:])),)
            dx = np.zeros(shape, g.dtype)
            if once:
                dx[index] = g
            else:
                np.add.at(dx, index, g)
            return (dx,)

        return self._record("getitem", self.data[index], vjp, self._node)

    def __len__(self):
        return len(self.data)

    def __iter__(self):
        return (self[i] for i in range(len(self.data)))


def add_into_rows(shape, ids: np.ndarray, g: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Zeros of `shape` (in `out`, if given) to which row i of `g` was added at row ids[i] >= 0.

    A row may be chosen often. So the gradients are first brought into the order of their rows,
    and then summed run by run: ten times faster than `np.add.at` for a table of characters.
    """
    if out is None:
        out = np.empty(shape, g.dtype)
    out[...] = 0
    if len(ids):
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
        out[ids[starts]] = np.add.reduceat(g[order], starts, axis=0)
    return out
