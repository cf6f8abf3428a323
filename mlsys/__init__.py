"""mlsys: small models of machine learning systems that can be read, run and measured.

Importing this package imports NumPy and nothing else. Before it does, it asks the BLAS
libraries for one thread each. On a shared machine two BLAS threads wait for each other at
a barrier after every small product, and a step that takes 0.4 ms with one thread was seen
to take 80 ms with two. Set the variables yourself to overrule; where NumPy was imported
before `mlsys`, its BLAS has already counted its threads and nothing changes.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy  # noqa: E402, F401  (after the variables, which BLAS reads when it is loaded)

__version__ = "0.1.0"
