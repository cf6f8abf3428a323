"""No honest answer loses a point: solutions, alternatives, and everything that honest people do around them."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import CHECK, REPOSITORY, RIGHT, USUAL, both, grade, graded, level, points, said, submission, verdict  # noqa: E402

from grading.answers import read_answers  # noqa: E402
from grading.cells import exercise_of  # noqa: E402
from grading.sealed.rebuild import name_of, own_role  # noqa: E402
from mlsys.check import hint_text  # noqa: E402

pytestmark = pytest.mark.skipif(level() == 0, reason="no isolation level holds on this machine")
NOTEBOOKS = sorted((REPOSITORY / "source").glob("*/*.ipynb"))
HEAD, BODY = RIGHT.split("\n", 1)

HONEST = {
    "K01": RIGHT,
    "K02": RIGHT.replace(":\n", ":\n    import warnings, logging, sys\n    warnings.warn('slow')\n    logging.warning('x')\n"
                         "    print('!', file=sys.stderr)\n", 1),
    "K03": RIGHT.replace(":\n", ":\n    for n in range(300): print('debug', n)\n", 1),
    "K04": RIGHT.replace("return ", "return np.int64(").rstrip() + ")\n",
    "K05": "import math\ndef helper(x): return math.ceil(x - 1e-12)\ndef gpus_needed(n, b, g): return helper(n * b / (g * 1e9))\n",
    "K06": "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()\nimport ipywidgets\ndisplay(ipywidgets.IntSlider())\n" + RIGHT,
    "K07": "slow = [True]\n" + RIGHT.replace(":\n", ":\n    import time\n    while slow and time.process_time() < 2.5: pass\n    slow.clear()\n", 1),  # noqa: E501
    "K08": "from concurrent.futures import ThreadPoolExecutor\nfrom multiprocessing import get_context\n" + RIGHT.replace(
        "return ", "with ThreadPoolExecutor(4) as pool: list(pool.map(str, range(8)))\n    return "),
    "K08b": "import multiprocessing\n" + RIGHT + "with multiprocessing.get_context('fork').Pool(4) as pool: print('pool', pool.map(abs, [-3, 2]))\n",  # noqa: E501
    "K09": RIGHT.replace(":\n", ":\n    open('x.txt', 'w').write('7')\n    assert open('x.txt').read() == '7'\n", 1),
    "K10": "# zażółć gęślą jaźń 🚀\nprint('Größe 🚀')\n" + RIGHT,
    "class": "class Counter:\n    def __call__(self, n, b, g): return -(-n * b // (g * 10**9))\ngpus_needed = Counter()\n",
    "lambda": "gpus_needed = lambda n, b, g: -(-n * b // (g * 10**9))\n",
    "subclass": "class Whole(int): pass\n" + RIGHT.replace("return ", "return Whole(").rstrip() + ")\n",
    "magic": "%matplotlib inline\n%timeit -n1 -r1 1 + 1\n" + RIGHT,
    "quit at the end": RIGHT + "quit()\n",
    "error at the end": RIGHT + "1 / 0\n",
}  # fmt: skip


@pytest.mark.parametrize("case", list(HONEST))
def test_full_points(case):
    report = graded(HONEST[case])
    assert points(report) == {CHECK: 2} and verdict(report).outcome == "pass", (report.checks, said(report))
    if case == "K06":
        assert "image/png" in said(report)
    if case == "K08b":
        assert "pool [3, 2]" in said(report)
    if case == "K10":
        assert "Größe 🚀" in "".join(o.text for c in report.notebook.cells for o in c.get("outputs", []) if "text" in o)


def test_partly_right():
    """K11: points for the right one only."""
    report = both(kibibytes="def kibibytes(n, itemsize):\n    return n * itemsize / 1000\n")
    assert points(report) == {"kibibytes-check": 0, "row-means-check": 4, "row-means-check-edge": 1}
    assert "gave 2.048, expected 2" in verdict(report, "kibibytes-check").message


def test_the_demanded_error():
    """K12: a check that wants a ValueError sees one."""
    from grading.textform import from_text

    master = from_text(
        "%%%% code set-up setup\nfrom mlsys import check\n%%%% md root-task task\nx\n%%%% code root-answer answer\ndef root(x):\n"
        "    ### BEGIN SOLUTION\n    if x < 0: raise ValueError(f'x={x} is negative')\n    return x ** 0.5\n    ### END SOLUTION\n"
        "%%%% code root-check check 2\ncheck.raises(root, (-1,), ValueError)\n1.5\n"
    )
    right = {"root-answer": "def root(x):\n    if x < 0: raise ValueError('no')\n    return x ** 0.5\n"}
    assert points(grade(master, submission(master, right))) == {"root-check": 1.5}, "partial credit is the check's last number"
    assert points(grade(master, submission(master, {"root-answer": "def root(x):\n    return 0\n"}))) == {"root-check": 0}


def test_help_from_other_cells():
    """A helper in an added cell, an import added to the set-up cell, a plain cell that was changed: all of it counts."""
    from nbformat.v4 import new_code_cell

    def change(notebook):
        place = next(n for n, cell in enumerate(notebook.cells) if cell.id == "gpus-needed-answer")
        notebook.cells.insert(place, new_code_cell("def up(a, b): return -(-a // b)"))
        notebook.cells[1].source += "\nimport operator"

    report = graded("def gpus_needed(n, b, g):\n    return up(operator.mul(n, b), g * 10**9)\n", change=change)
    assert points(report) == {CHECK: 2}, (report.checks, report.repairs)


def test_outcomes_say_what_happened():
    """Each outcome that a student can cause, with its sentence."""
    assert verdict(graded()).outcome == "not attempted" and "is not written yet" in verdict(graded()).message
    assert verdict(graded("def gpus_needed(n, b, g):\n    return n // 0\n")).outcome == "error in your code"
    wrong = verdict(graded("def gpus_needed(n, b, g):\n    return int(n * b / (g * 1e9))\n"))
    assert wrong.outcome == "wrong" and hint_text("gpus-rounded-down") in wrong.message
    assert verdict(graded("x = 1\n")).outcome == "error in your code" and "do not define" in verdict(graded("x = 1\n")).message


def test_a_broken_check_is_no_score():
    """A fault of the lecturer's or the grader's is neither 0 nor full points, but a cell to look at."""
    from sealed_kit import start_page

    master = start_page()
    cell = next(cell for cell in master.cells if cell.id == CHECK)
    for broken in ("check.functoin(gpus_needed)", "1 / 0", "def f(:", "7.5\n"):
        cell.source = broken
        report = grade(master, submission(master, {"gpus-needed-answer": RIGHT}))
        assert points(report) == {CHECK: None} and report.faults == (CHECK,) and "GraderFault" in said(report), broken


def answers_of(master) -> dict[str, str]:
    """Every answer as the instructor wrote it."""
    return {name_of(cell): cell.source for cell in master.cells if own_role(cell) == "answer"}


@pytest.mark.slow
def test_the_longest_lesson_keeps_within_the_limits():
    """With all that a lesson computes beside its exercises; this one trains some forty models."""
    (path,) = (path for path in NOTEBOOKS if path.stem == "04_scaling_laws")
    master = nbformat.read(path, as_version=4)
    report = grade(master, submission(master, answers_of(master)), USUAL)
    assert report.score == report.max_score and not report.repairs, report.checks
    ran = [cell for cell in report.notebook.cells if cell.cell_type == "code" and own_role(cell) == "plain" and cell.source.strip()]
    assert ran and not any(output.output_type == "error" for cell in ran for output in cell.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_as_the_table_says(path: Path):
    """Of each notebook: the solutions and one right alternative get all points, the stub none, a mistake meets its hint."""
    master = nbformat.read(path, as_version=4)
    master.cells = [c for c in master.cells if own_role(c) not in ("plain", "predict") or c.cell_type != "code"]
    solutions = answers_of(master)
    if not solutions:
        pytest.skip("no exercise in this notebook")
    report = grade(master, submission(master, solutions), USUAL)
    assert report.score == report.max_score and not report.repairs, report.checks
    assert grade(master, submission(master), USUAL).score == 0
    versions = read_answers(REPOSITORY / "tests/answers" / f"{path.stem}.py")
    right = {f"{v.exercise}-answer": v.source for v in versions if v.kind == "right"}
    report = grade(master, submission(master, solutions | right), USUAL, seed=b"another")
    assert report.score == report.max_score, [check for check in report.checks if check.outcome != "pass"]
    wrong = {v.exercise: v for v in versions if v.kind == "wrong"}
    report = grade(master, submission(master, {f"{name}-answer": v.source for name, v in wrong.items()}), USUAL)
    for name, version in wrong.items():
        told = "\n".join(check.message for check in report.checks if exercise_of(check.cell) == name)
        assert hint_text(version.name) in told, (name, version.name, told)
