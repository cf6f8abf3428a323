"""72 bad submissions in one batch, and five resubmissions: none stops it, and each gets what it has earned.

`python -m tests.benchmarks.against_stock` puts stock nbgrader beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from bad_submissions import ASSIGNMENT, CASES, master  # noqa: E402
from sealed_kit import Course, level  # noqa: E402

from tests.benchmarks.against_stock import EVENTS, ours, printed, second_time  # noqa: E402

pytestmark = [pytest.mark.nbgrader, pytest.mark.slow, pytest.mark.skipif(level() < 2, reason="no isolation level holds on this machine")]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course with its small assignment, and the student's copy of that."""
    course = Course(tmp_path_factory.mktemp("bad"))
    course.add_source(ASSIGNMENT, {ASSIGNMENT: master()})
    notebook = printed(course.folder)
    course.command("generate_assignment", ASSIGNMENT)
    return course, notebook


def test_one_batch_of_them_all(course):
    seen = ours(course[0], CASES, course[1])
    assert {case.name: said for case in CASES if (said := seen[case.name].verdict(case.earned))} == {}


@pytest.mark.parametrize("name", [name for name in EVENTS if "test cell" in name or "JSON" in name])
def test_a_resubmission_has_no_old_score(course, name):
    """The other resubmissions stand in test_records_grade.py and test_sealed_nbgrader.py."""
    assert second_time(course[0], name, EVENTS[name], course[1], "ours") == EVENTS[name].earned
