"""What holds for every test: one BLAS thread, a data folder of its own, and honest skips.

The variables are set when pytest reads this file, before any test imports NumPy; xdist's
workers and every process that a test starts inherit them.
"""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ[_name] = "1"

NO_SKIP = os.environ.get("MLSYS_NO_SKIP", "") not in ("", "0")
SKIPS_THAT_FAIL = ("browser", "nbgrader")  # markers; where MLSYS_NO_SKIP is set, their skips are failures


def pytest_configure(config):
    """Progress that tests write lands in a folder that goes when the run ends, not with the learner's."""
    config.mlsys_data = tempfile.mkdtemp(prefix="mlsys-tests-")
    os.environ["MLSYS_DATA_DIR"] = config.mlsys_data


def pytest_unconfigure(config):
    """Remove what `pytest_configure` made."""
    shutil.rmtree(config.mlsys_data, ignore_errors=True)


def pytest_ignore_collect(collection_path):
    """Doctests are collected in mlsys/ and grading/; under tests/ only test files are read."""
    if collection_path.suffix == ".py" and not collection_path.name.startswith("test_"):
        return True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where `.ci/run` says that everything is installed, a skipped browser or nbgrader test is a failure."""
    report = yield
    wanted = NO_SKIP and any(item.get_closest_marker(name) for name in SKIPS_THAT_FAIL)
    if wanted and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"MLSYS_NO_SKIP is set, and this test was skipped: {report.longrepr}"
    return report
