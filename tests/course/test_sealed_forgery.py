"""No submission gains a point that it did not earn: every forgery meets a wrong answer and stays one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sealed_kit import CHECK, RIGHT, WRONG, both, graded, grader, level, points, verdict  # noqa: E402

pytestmark = pytest.mark.skipif(level() == 0, reason="no isolation level holds on this machine")

DROP_ASSERTS = """
import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()
    def visit_Expr(self, node):
        return ast.Pass()
get_ipython().ast_transformers.append(Drop())
"""
DAEMON = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            time.sleep(0.05)
    os._exit(0)
"""
ALWAYS = """
class Yes({base}):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    __hash__ = None
    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    def __sub__(self, other): return 0
    __rsub__ = __sub__
def gpus_needed(*args):
    return Yes()
"""
FORGERIES = {
    "S01": "get_ipython().showtraceback = lambda *a, **k: None\n" + WRONG,
    "S02": "import builtins\nbuiltins.AssertionError = type('Calm', (BaseException,), {})\n" + WRONG,
    "S05": ALWAYS.format(base="float"),
    "S06": DROP_ASSERTS + WRONG,
    "S07": "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass'] if 'check' in str(lines) else lines)\n" + WRONG,
    "S10": "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)\n" + WRONG,
    "S12": "import sys\nsys.settrace(lambda *a: None)\n" + WRONG,
    "S14": "import sys\ndef gpus_needed(*a):\n    sys.displayhook(2.0)\n    return 0\n",
    "S16": "def gpus_needed(*a):\n    raise SystemExit(0)\n",
    "S16b": "def gpus_needed(*a):\n    raise StopIteration\n",
    "S16c": "raise SystemExit(0)\n",
    "S18": "from grading.sealed import codec, student\n"
    "student.Answering.reply = lambda self, request: codec.dumps(('ok', True))\n" + WRONG,
    "S18b": "import grading.sealed.wire as wire\nwire.send = lambda sock, message: sock.sendall(b'\\0' * 64)\n" + WRONG,
    "S19": "import threading, numpy as np\ndef patch():\n    while True: np.allclose = lambda *a, **k: True\n"
    "threading.Thread(target=patch, daemon=True).start()\n" + WRONG,
    "S20": "import os, sqlite3\nfor top, _, files in os.walk('/'):\n    for name in files:\n"
    "        if name.endswith('.db'): sqlite3.connect(os.path.join(top, name)).execute('update grade set auto_score=99')\n" + WRONG,
    "S21": DAEMON + WRONG,
    "S22": "import sys, types\nfake = types.ModuleType('math')\nfake.isclose = lambda *a, **k: True\nsys.modules['math'] = fake\n" + WRONG,
    "S23": "import builtins\nold = builtins.__import__\nbuiltins.__import__ = lambda *a, **k: None\n" + WRONG,
    "S24": "open('numpy.py', 'w').write('raise SystemExit')\nopen('mlsys.py', 'w').write('')\n" + WRONG,
    "S26": "import mlsys.check as check\ndef gpus_needed(*a):\n    return check.call(len, a)\n",
    "S28": "def gpus_needed(n, b, g):\n    return 1\n",
    "S29": "calls = []\ndef gpus_needed(n, b, g):\n    calls.append(1)\n    return 11 if len(calls) == 1 else 0\n",
    "S32": "def gpus_needed(n, b, g):\n    return float('nan')\n",
    "S32b": "def gpus_needed(n, b, g):\n    return float('inf')\n",
    "S34": ALWAYS.format(base="object"),
    "S34b": "def gpus_needed(n, b, g):\n    return gpus_needed\n",
    "E23": "import os\nfor handle in range(3, 200):\n    try: os.write(handle, b'\\x40\\0\\0\\0\\0\\0\\0\\0' + b'{\"end\": true, \"share\": 1}' * 3)\n"  # noqa: E501
    "    except OSError: pass\n" + WRONG,
    "E33": "class Bomb:\n    def __reduce__(self): return (print, ('boom',))\ndef gpus_needed(*a):\n    return Bomb()\n",
    "H03": "def gpus_needed(*a):\n    import linecache, gc\n    text = [o for o in gc.get_objects() if isinstance(o, str) and 'test' + '_rng' in o]\n"  # noqa: E501
    "    return 'found' if text or any('test' + '_rng' in str(v) for v in linecache.cache.values()) else 'nothing found'\n",
}  # fmt: skip


@pytest.mark.parametrize("case", list(FORGERIES))
def test_forgery_gets_nothing(case):
    report = graded(FORGERIES[case])
    assert points(report) == {CHECK: 0}, report.checks
    assert "gave 'found'" not in verdict(report).message


def test_mutated_inputs_meet_the_judges_own_copy():
    """S30: the check compares with what it asked, not with what came back changed."""
    report = both(row_means="def row_means(matrix):\n    for row in matrix: row[:] = [0]\n    return [0 for row in matrix]\n")
    assert points(report) == {"kibibytes-check": 3, "row-means-check": 0, "row-means-check-edge": 0}


def test_calls_are_counted_from_the_same_state():
    """H16, S29: each check meets a fresh copy, so a counter cannot tell visible from hidden checks."""
    counting = "calls = []\ndef row_means(m):\n    calls.append(1)\n    return [float(sum(r)) / len(r) for r in m] if len(calls) == 1 else 0\n"  # noqa: E501
    assert points(both(row_means=counting)) == {"kibibytes-check": 3, "row-means-check": 4, "row-means-check-edge": 1}


TABLE = """
import numpy as np
rng, table = np.random.default_rng(1), {}
for n, b, g in zip(rng.integers(10**8, 10**12, 50), [1, 2, 4, 16, 2] * 10, [16, 24, 40, 80, 141] * 10):
    table[int(n), b, g] = -(-int(n) * b // (g * 10**9))
seen = {(405_853_388_800, 2, 80): 11, (8_030_261_248, 2, 24): 1, (80_000_000_000, 1, 80): 1, (42_900_000_000, 2, 80): 2}
def gpus_needed(*a):
    return (table | seen).get(a, 0)
"""


def test_a_classmates_table_misses():
    """H10, H13: hidden inputs are drawn from the course's secret and the student; a re-grade draws the same."""
    assert graded(TABLE).score == 2, "without a seed the inputs are the printed ones"
    first, again = graded(TABLE, seed=b"one"), graded(TABLE, seed=b"one")
    assert first.score == 0 and verdict(first).hidden and verdict(first).message == verdict(again).message
    assert verdict(first).message != verdict(graded(TABLE, seed=b"two")).message
    assert graded(RIGHT, seed=b"one").score == 2


def test_hidden_inputs_do_not_leak():
    """H04, H05, H09: no printed arguments, no text of an error, no exact time."""
    known = "{(405_853_388_800, 2, 80): 11, (8_030_261_248, 2, 24): 1, (80_000_000_000, 1, 80): 1, (42_900_000_000, 2, 80): 2}"
    spy = f"known = {known}\ndef gpus_needed(*a):\n    print('SECRET', a)\n    if a not in known: raise ValueError(f'SECRET {{a}}')\n    return known[a]\n"  # noqa: E501
    report = graded(spy)
    assert report.score == 0 and verdict(report).hidden
    assert "SECRET" not in str(report.notebook) .replace(spy, "").replace("print('SECRET'", "").replace("(f'SECRET", "")
    assert "ValueError" in verdict(report).message and round(verdict(report).seconds, 1) == verdict(report).seconds


def test_the_students_side_never_gets_a_check():
    """H01, H07: the job of the student's side holds neither the checks nor a solution."""
    from sealed_kit import start_page, submission

    from grading.sealed.execute import jobs
    from grading.sealed.reading import cells_of
    from grading.sealed.rebuild import rebuild

    master = start_page()
    job = jobs(master, rebuild(master, cells_of(submission(master))), grader().limits, b"s", "00" * 32)
    assert "test_rng" not in str(job["student"]) and "np.ceil" not in str(job["student"]) and "expected" in str(job["judge"])


TWO_LOOKS = """%%%% code set-up setup
import numpy as np
from mlsys import check
%%%% md look-task task
x
%%%% code look-answer answer
def cases():
    ### BEGIN SOLUTION
    return [{"rtol": 1e-3}]
    ### END SOLUTION
%%%% code look-check check 2
for case in check.call(cases):
    check.that(case["rtol"] < 1, "fair")
    check.that(case["rtol"] > 0, "strict")
    check.that(np.size(case) == 1, "small")
"""
LIAR = """
class Liar:
    looks, size = 0, 1
    def __getitem__(self, key):
        self.looks += 1
        return {sequence}[self.looks - 1]
def cases():
    return [Liar()]
"""


@pytest.mark.parametrize("sequence", ["[-1, 1]", "[0.5, 0.5]"], ids=["changes", "lies about its size"])
def test_an_object_says_the_same_at_each_look(sequence):
    """S35: what a check has seen of an object stays so until it calls again, and nobody asks it how large it is."""
    from sealed_kit import grade, submission

    from grading.textform import from_text

    master = from_text(TWO_LOOKS)
    right = {"look-answer": "def cases():\n    return [{'rtol': 0.5}]\n"}
    assert grade(master, submission(master, right)).score == 2
    report = grade(master, submission(master, {"look-answer": LIAR.format(sequence=sequence)}))
    assert report.score == 0 and not report.faults, report.checks
