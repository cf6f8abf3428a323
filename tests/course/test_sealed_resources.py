"""Whatever a submission uses up, the batch goes on, honest answers beside it keep their points, and a sentence says why."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import (  # noqa: E402
    CHECK,
    RIGHT,
    TIGHT,
    USUAL,
    both,
    grade,
    graded,
    level,
    points,
    said,
    start_page,
    submission,
    verdict,
)  # fmt: skip

from grading.sealed import Grader, GraderUnavailable, groups  # noqa: E402
from grading.textform import from_text  # noqa: E402

pytestmark = pytest.mark.skipif(level() < 2, reason="no isolation level holds on this machine")
level_three = pytest.mark.skipif(level() < 3, reason=f"needs isolation level 3, this machine reaches {level()}")
REST = {"row-means-check": 4, "row-means-check-edge": 1}  # what the other exercise keeps
GOOD = "def kibibytes(n, itemsize):\n    return n * itemsize / 1024\n"

CELLS = {  # an answer cell that does this costs its own exercise at most
    "R01": "while True: pass\n",
    "R02": "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n",
    "R04": "import time\ntime.sleep(3600)\n",
    "R05": "x = b'x' * (4 << 30)\n",
    "R06": "import numpy as np\nx = np.ones(1 << 29)\n",
    "R24": "import time\nwhile True:\n    print('x', end=''); time.sleep(0.2)\n",
    "R26": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')\n",
    "exit": "import os\nos._exit(0)\n",
    "signal": "import os\nos.kill(os.getpid(), 9)\n",
}
CALLS = {  # a function that does this when a check calls it
    "R03": "while True: pass",
    "R17": "import numpy as np; return np.ones(200_000_000)",
    "R19": "return 10 ** 1_000_000",
    "R20": "import itertools; return itertools.count()",
    "R21": "import ctypes; ctypes.string_at(0)",
    "deep": "x = []\n    for _ in range(100_000): x = [x]\n    return x",
}


@pytest.mark.parametrize("case", list(CELLS))
def test_cell(case):
    report = both(kibibytes=CELLS[case], limits=TIGHT)
    assert points(report) == {"kibibytes-check": 0} | REST, report.checks
    assert not report.faults


@pytest.mark.parametrize("case", list(CALLS))
def test_call(case):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = both(kibibytes=f"def kibibytes(n, itemsize):\n    {CALLS[case]}\n", limits=TIGHT)
    assert points(report) == {"kibibytes-check": 0} | REST, report.checks
    assert verdict(report, "kibibytes-check").outcome in ("limit reached", "wrong", "error in your code")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "the grader's own memory grew"


BESIDE = {  # done beside an honest answer, which keeps its points
    "R09": "import threading, time\ntry:\n    for _ in range(500): threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
    "except RuntimeError: print('stopped at the limit')\n",
    "R10": "for _ in range(300): print('x' * 100_000)\n",
    "R11": "import sys\nfor _ in range(300): sys.stderr.write('x' * 100_000)\n",
    "R13": "from IPython.display import display\nfor n in range(3000): display(n)\n",
    "R15": "import os\ntry:\n    for n in range(20_000): open(f'f{n}', 'w').close()\nexcept OSError as error: print('stopped', error)\n",
    "R16": "try:\n    with open('/dev/shm/x', 'wb') as f:\n        for _ in range(200): f.write(b'x' * (1 << 20))\nexcept OSError as error: print('stopped', error)\n",  # noqa: E501
    "R25": "import matplotlib.pyplot as plt\nplt.figure(figsize=(1000, 1000), dpi=100); plt.plot([1, 2]); plt.show()\n",
    "K03": "for n in range(400): print('debug', n)\n",
}
MUST_SAY = {"R09": "stopped at the limit", "R10": "was left out", "R11": "was left out", "R13": "was left out"}


@pytest.mark.parametrize("case", list(BESIDE))
def test_beside_an_honest_answer(case):
    if case in ("R15", "R16") and level() < 3:
        pytest.skip(f"needs isolation level 3, this machine reaches {level()}")
    report = graded(BESIDE[case] + RIGHT)
    assert points(report) == {CHECK: 2}, report.checks
    assert MUST_SAY.get(case, "") in said(report) and ("stopped" in said(report) or case not in ("R15", "R16"))
    assert len(said(report)) < 3 << 20


def test_the_wall_limit_ends_a_submission():
    """R01, R04: cells that add up past the limit end it; what was not reached is said to be so, and nothing is lost."""
    limits = replace(TIGHT, wall_s=4, cell_s=3)
    start = time.monotonic()
    report = both(kibibytes="import time\ntime.sleep(60)\n", row_means="import time\ntime.sleep(60)\n", limits=limits)
    assert report.score == 0 and time.monotonic() - start < 20 and not report.faults


def test_many_added_cells():
    """R27: 20,000 added text cells."""
    from nbformat.v4 import new_markdown_cell

    def add(notebook):
        notebook.cells += [new_markdown_cell(f"cell {n}") for n in range(20_000)]

    report = graded(RIGHT, change=add)
    assert report.score == 2 and len(report.notebook.cells) < 1000 and "left out" in report.repairs[0]


MANY = """
import os, time
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        text = b"x" * (200 << 20)
        time.sleep(2)
        os._exit(0)
    children.append(child)
print("killed:", sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


@pytest.mark.parametrize("isolation", [4, 3])
def test_memory_over_many_processes(isolation):
    """R07: six processes of 200 MB, none of which is over its own limit: only a control group caps their sum."""
    if level() < isolation:
        pytest.skip(f"needs isolation level {isolation}, this machine reaches {level()}")
    handed = submission(start_page(), {"gpus-needed-answer": MANY + RIGHT})
    with Grader(isolation, replace(USUAL, group_bytes=700 << 20)) as grader:
        report = grader.grade(start_page(), handed, "ada")
        group = grader.student.group
        again = grader.grade(start_page(), submission(start_page(), {"gpus-needed-answer": RIGHT}), "ben")
    killed = int(re.search(r"killed: (\d)", said(report))[1])
    assert (3 <= killed < 6) if isolation == 4 else killed == 0
    assert report.score == again.score == 2 and report.level == isolation
    assert not group or not group.folder.exists()


def test_without_a_control_group_level_four_says_why(monkeypatch):
    """The kernel's tree cannot be written: level 4 refuses with a reason, and "auto" takes the next one."""
    monkeypatch.setattr(groups, "places", lambda: iter([("cgroup2", Path("/proc/1"))]))
    with pytest.raises(GraderUnavailable, match="no control group for memory"):
        Grader(4).open()
    if level() >= 2:
        with Grader() as grader:
            assert grader.level in (2, 3)


@level_three
def test_files_and_scratch_have_a_size():
    """One file of 32 MB and 64 MB of scratch, not more."""
    big = "try:\n    for n in range(9):\n        with open(f'f{n}', 'wb') as f: f.write(b'x' * (16 << 20))\nexcept OSError as error: print('stopped at', n, error)\n"  # noqa: E501
    assert "stopped at 4" in said(graded(big + RIGHT)) or "stopped at 3" in said(graded(big + RIGHT))


def test_the_batch_goes_on():
    """After all of that a plain answer is graded as ever, and no process of a submission is left."""
    assert graded(RIGHT).score == 2
    assert not [p for p in os.listdir("/tmp") if p.startswith("submission-")]


TWO = """%%%% code set-up setup
from mlsys import check
%%%% md first-task task
x
%%%% code first-answer answer
def first(n):
    ### BEGIN SOLUTION
    return n
    ### END SOLUTION
%%%% code first-check check 2
count = check.call(first, 3)
for _ in range(count if isinstance(count, int) else 0):
    pass
check.close(check.call(first, count), 3, "first")
%%%% md second-task task
x
%%%% code second-answer answer
def second(n):
    ### BEGIN SOLUTION
    return n
    ### END SOLUTION
%%%% code second-check check 3
check.close(second(4), 4, "second(4)")
"""


USES_UP = {"time": "10**15", "depth": "[" * 31 + "]" * 31, "size": "__import__('numpy').zeros((64 << 20) - 200, 'u1')"}


@pytest.mark.parametrize("what", list(USES_UP))
def test_what_a_check_uses_up_is_not_missing_in_the_next(what):
    """R29: data that the check cannot be through with, or cannot hand back, costs its own check and is no fault."""
    master = from_text(TWO)
    answers = {"first-answer": f"def first(n):\n    return {USES_UP[what]}\n", "second-answer": "def second(n):\n    return n\n"}
    report = grade(master, submission(master, answers), TIGHT)
    assert points(report) == {"first-check": 0, "second-check": 3} and not report.faults, report.checks


@level_three
@pytest.mark.parametrize("number", [2, 15])
def test_the_guardian_takes_no_signal(number):
    """R30: process 1 of a submission cannot be ended from within, so there is nothing to grade again."""
    assert graded(f"import os\nos.kill(1, {number})\n" + RIGHT).score == 2


def test_what_cells_define_is_looked_up_within_a_budget():
    """R31: past so many characters a cell is read by eye, past so many comparisons none is alike."""
    from grading.sealed import rebuild
    from grading.sealed.reading import Cell

    long = Cell("code", "x = 1\n" * (rebuild.MOST_PARSED // 6) + "def f(): pass\n")
    seen = rebuild.Seen([Cell("code", "y = 1\ndef g(): pass"), long])
    assert seen.defines(0) == {"y", "g"} and seen.defines(1) == {"f"}
    assert seen.likeness("y = 1\ndef g(): pass", 0) == 1
    seen.left = 0
    assert seen.likeness("y = 1\ndef g(): pass", 0) == 0
