"""Tensors that remember how they were made, and so can be differentiated.

Read in this order: `engine` (the walk back in time), `tensor`, `arithmetic`, `elementwise`,
`shapes` (one small rule an operation), `fused` (a few operations written as one, for speed),
`memory` (what the forward pass keeps, and how to keep less), `malloc` (where the pages go).
"""

from mlsys.autograd import malloc
from mlsys.autograd.engine import no_grad
from mlsys.autograd.fused import (
    cross_entropy,
    embedding,
    gelu,
    layer_norm,
    linear,
    log_softmax,
    mse_loss,
    softmax,
)
from mlsys.autograd.joins import concat, stack, where
from mlsys.autograd.memory import NodeRecord, checkpoint, graph, saved_bytes
from mlsys.autograd.tensor import Tensor

__all__ = [
    "NodeRecord", "Tensor", "checkpoint", "concat", "cross_entropy", "embedding", "gelu", "graph",
    "layer_norm", "linear", "log_softmax", "mse_loss", "no_grad", "saved_bytes", "softmax", "stack",
    "where",
]

malloc.keep_freed_pages()
