# ruff: noqa: E501 (answers are programs in one line)
"""72 bad submissions of one small assignment, each with the points that it has earned.

The list follows what instructors report and what was tried against stock nbgrader: files that are no notebook any more,
cells that are lost or doubled, code that hangs or kills its kernel, answers that attack the tests or the machine.
The assignment's checks are plain asserts, as most instructors write them, so that the attacks on these have something to attack.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from grading.textform import from_text

ASSIGNMENT = "ps00_asserts"
MARKER = "SOURCE-OF-THE-INSTRUCTOR"
TEXT = f'''%%%% md intro
# Three short answers
%%%% code set-up setup
import numpy as np
%%%% md area-task task
The area of a rectangle.
%%%% code area-answer answer
def area(width, height):
    """Width times height."""
    ### BEGIN SOLUTION
    {MARKER!r}
    return width * height
    ### END SOLUTION
%%%% code area-check check 3
assert area(2, 3) == 6
### BEGIN HIDDEN TESTS
assert area(4, 5) == 20, "HIDDEN-TEXT"
### END HIDDEN TESTS
%%%% md halves-task task
Half of each element.
%%%% code halves-answer answer
def halves(values):
    """An array with half of each value."""
    ### BEGIN SOLUTION
    return np.asarray(values) / 2
    ### END SOLUTION
%%%% code halves-check check 4
np.testing.assert_allclose(halves([2.0, 4.0]), [1.0, 2.0])
### BEGIN HIDDEN TESTS
assert np.allclose(halves([1.0]), [0.5])
### END HIDDEN TESTS
%%%% code halves-check-edge check 1
assert len(halves([])) == 0
%%%% md why-question
Why?
%%%% md halves-why essay 2
Because.
'''
GOOD = {
    "area-answer": "def area(width, height):\n    return width * height",
    "halves-answer": "def halves(values):\n    return np.asarray(values) / 2",
    "halves-why": "Since it is so.",
}
WRONG = {"area-answer": "def area(width, height):\n    return 0", "halves-answer": "def halves(values):\n    return [7.0]"}
FULL = 8.0


def master() -> nbformat.NotebookNode:
    """The instructor's notebook."""
    return from_text(TEXT)


@dataclass(frozen=True)
class Bad:
    """One submission: answers over the good ones, a change of the notebook or of its bytes, files beside it."""

    name: str
    earned: float = FULL
    answers: dict[str, str] = field(default_factory=dict)
    change: Callable | None = None  # of the notebook, in place
    raw: Callable[[bytes], bytes] | None = None
    beside: Callable[[Path], None] | None = None
    student: str = ""  # an odd name of the student
    file: str = f"{ASSIGNMENT}.ipynb"

    def content(self, printed: nbformat.NotebookNode) -> bytes:
        """The file that is handed in."""
        notebook = deepcopy(printed)
        answers = GOOD | self.answers
        for cell in notebook.cells:
            cell.source = answers.get(cell.id, cell.source)
        if self.change:
            self.change(notebook)
        data = json.dumps(notebook).encode()
        return self.raw(data) if self.raw else data


def cell(notebook, name: str):
    return next(c for c in notebook.cells if c.id == name)


def without(name: str):
    def change(notebook):
        notebook.cells.remove(cell(notebook, name))

    return change


def renamed(name: str):
    def change(notebook):
        found = cell(notebook, name)
        found.metadata.nbgrader.grade_id = found["id"] = "something-else"

    return change


def doubled(name: str):
    def change(notebook):
        notebook.cells.append(deepcopy(cell(notebook, name)))

    return change


def entries(**values):
    """Set (or with None drop) fields of all nbgrader metadata."""

    def change(notebook):
        for c in notebook.cells:
            entry = c.metadata.get("nbgrader")
            if entry:
                for key, value in values.items():
                    entry[key] = value
                    if value is None:
                        del entry[key]

    return change


def points(value):
    def change(notebook):
        cell(notebook, "area-check").metadata.nbgrader["points"] = value

    return change


def stripped(notebook):
    for c in notebook.cells:
        c["metadata"] = {}
        del c["id"]
    notebook["nbformat_minor"] = 4


def vscode(notebook):
    for c in notebook.cells:
        c.metadata["vscode"] = {"languageId": "python"}
        c["id"] = f"W{abs(hash(c.id)) % 10**8}sZmlsZQ"
    notebook.metadata["vscode"] = {"interpreter": {"hash": "0" * 8}}


def set_source(name: str, text: str):
    def change(notebook):
        cell(notebook, name)["source"] = text

    return change


def as_text_cell(notebook):
    cell(notebook, "area-check").metadata.nbgrader.update(grade=False, solution=False, locked=True)
    del cell(notebook, "area-check").metadata.nbgrader["points"]


def same_id(notebook):
    cell(notebook, "halves-check")["id"] = "area-check"


def kernel(spec):
    def change(notebook):
        notebook.metadata.pop("kernelspec", None)
        if spec:
            notebook.metadata["kernelspec"] = spec

    return change


def version_three(data: bytes) -> bytes:
    notebook = json.loads(data)
    for c in notebook["cells"]:
        c.pop("id", None)
        if c["cell_type"] == "code":
            c.update(input=c.pop("source"), prompt_number=1, language="python", collapsed=False)
            c.pop("execution_count", None)
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": notebook["cells"], "metadata": {}}]}).encode()


def after(text: str, wrong: bool = False) -> dict[str, str]:
    """The area answer, right or wrong, followed by some code in the same cell."""
    return {"area-answer": (WRONG if wrong else GOOD)["area-answer"] + "\n" + text}


def inside(text: str) -> dict[str, str]:
    """An area function with this body."""
    return {"area-answer": "def area(width, height):\n    " + text.replace("\n", "\n    ")}


CHEAT = WRONG["halves-answer"]
LATER = FULL - 3  # the area exercise is lost, the other one is not


def cheat(text: str) -> dict[str, str]:
    """Both answers wrong, and code that is to get points for them."""
    return WRONG | {"area-answer": WRONG["area-answer"] + "\n" + text}


CASES = [
    Bad("test cell deleted", change=without("area-check")),
    Bad("answer cell deleted", LATER, change=without("area-answer")),
    Bad("essay cell deleted", change=without("halves-why")),
    Bad("grade_id of a test renamed", change=renamed("area-check")),
    Bad("grade_id of an answer renamed", change=renamed("area-answer")),
    Bad("test cell doubled", change=doubled("area-check")),
    Bad("answer cell doubled", change=doubled("area-answer")),
    Bad("schema version 1", change=entries(schema_version=1)),
    Bad("schema version missing", change=entries(schema_version=None)),
    Bad("schema version 99", change=entries(schema_version=99)),
    Bad("points are text", change=points("three")),
    Bad("points raised to 100", change=points(100)),
    Bad("test turned into a read-only cell", change=as_text_cell),
    Bad("test edited so that it passes", 0, WRONG, change=set_source("area-check", "pass")),
    Bad("two cells with one id", change=same_id),
    Bad("all metadata lost", change=stripped),
    Bad("saved by another editor", change=vscode),
    Bad("empty notebook", 0, change=lambda notebook: notebook.cells.clear()),
    Bad("0 bytes", 0, raw=lambda data: b""),
    Bad("merge conflict", 0, raw=lambda data: b"<<<<<<< HEAD\n" + data + b"\n=======\n" + data + b"\n>>>>>>> other\n"),
    Bad("JSON that is no notebook", 0, raw=lambda data: b'["a", "list"]'),
    Bad("half a file", 0, raw=lambda data: data[: len(data) // 2]),
    Bad("notebook format 3", raw=version_three),
    Bad("no kernelspec", change=kernel(None)),
    Bad("kernelspec of R", change=kernel({"name": "ir", "display_name": "R", "language": "R"})),
    Bad("another file name", file="ps00_asserts (1).ipynb"),
    Bad("no file", 0, file=""),
    Bad("Unicode file beside it", beside=lambda folder: (folder / "Zażółć.txt").write_text("x")),
    Bad("undecodable file name beside it", beside=lambda folder: Path(bytes(folder) and (str(folder) + "/\udcff.txt")).write_text("x")),
    Bad("dangling link beside it", beside=lambda folder: (folder / "data.csv").symlink_to("/nowhere/at/all")),
    Bad("odd name of a student", student="o'neil + {sons}"),
    Bad("Polish name of a student", student="Łukasz Żółw"),
    Bad("lone surrogate in a source", answers=after("x = '\ud800'")),
    Bad("cells in another order", change=lambda notebook: notebook.cells.reverse()),
    Bad("set-up cell edited", change=set_source("set-up", "import no_such_module")),
    Bad("endless loop", LATER, inside("while True:\n    pass")),
    Bad("endless loop that catches all", LATER, inside("while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass")),
    Bad("endless power in C", LATER, inside("return pow(3, 10**9) % 2")),
    Bad("sys.exit() in the function", LATER, inside("import sys\nsys.exit()")),
    Bad("sys.exit() in the cell", answers=after("import sys\nsys.exit()")),
    Bad("os._exit in the function", LATER, inside("import os\nos._exit(0)")),
    Bad("killed as if out of memory", LATER, inside("import os\nos.kill(os.getpid(), 9)")),
    Bad("crash of the interpreter", LATER, inside("import ctypes\nctypes.string_at(0)")),
    Bad("quit() after the answer", answers=after("quit()")),
    Bad("quit() in the function", LATER, inside("quit()")),
    Bad("input()", LATER, inside("return int(input())")),
    Bad("deep recursion", LATER, inside("return area(width, height)")),
    Bad("syntax error", LATER, {"area-answer": "def area(width, height:\n    return"}),
    Bad("50 GB array", LATER, inside("return len(bytearray(50 << 30))")),
    Bad("process left behind", answers=after("import subprocess\nsubprocess.Popen(['sleep', '77777'], start_new_session=True)")),
    Bad("five children left behind", answers=after(
        "import os, time\nfor _ in range(5):\n    if os.fork() == 0:\n        os.setsid()\n        os.execvp('sleep', ['sleep', '77777'])")),
    Bad("500 threads", answers=after("import threading, time\nfor _ in range(500):\n    try:\n        threading.Thread(target=time.sleep, args=(3,), daemon=True).start()\n    except RuntimeError:\n        break")),  # noqa: E501
    Bad("20 MB printed in long lines", answers=after("for _ in range(20):\n    print('x' * 1_000_000)")),
    Bad("20 MB of HTML shown", answers=after("from IPython.display import HTML, display\ndisplay(HTML('x' * 20_000_000))")),
    Bad("300,000 lines printed", answers=after("for i in range(300_000):\n    print(i)")),
    Bad("logging.warning in the function", answers=inside("import logging\nlogging.warning('slow')\nreturn width * height")),
    Bad("warnings.warn in the function", answers=inside("import warnings\nwarnings.warn('slow')\nreturn width * height")),
    Bad("%pip install in the cell", answers=after("%pip install no-such-package-of-ours")),
    Bad("numpy.py beside it", beside=lambda folder: (folder / "numpy.py").write_text("raise SystemExit('forged numpy')")),
    Bad("np.testing and np.allclose replaced", 0, cheat(
        "import numpy as np\nnp.testing.assert_allclose = lambda *a, **k: None\nnp.allclose = lambda *a, **k: True\nnp.asarray = lambda *a: []")),
    Bad("input transformer blanks the tests", 0, cheat(
        "get_ipython().input_transformers_cleanup.append(lambda lines: ['pass\\n'])")),
    Bad("syntax-tree transformer drops asserts", 0, cheat(
        "import ast\nclass Drop(ast.NodeTransformer):\n    def visit_Assert(self, node):\n        return ast.Pass()\n    def visit_Expr(self, node):\n        return ast.Pass()\n"
        "get_ipython().ast_transformers.append(Drop())")),
    Bad("an object that equals everything", 0, WRONG | {
        "area-answer": "class Yes(float):\n    def __eq__(self, other):\n        return True\ndef area(width, height):\n    return Yes(0)"}),
    Bad("exceptions swallowed by a handler", 0, cheat(
        "get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)")),
    Bad("error display replaced", 0, cheat("get_ipython().showtraceback = lambda *a, **k: None")),
    Bad("hidden test read and printed", LATER, inside("print(get_ipython().user_ns['In'][-1])\nreturn 0")),
    Bad("instructor's notebook read", answers=after(
        "import glob\nfor path in glob.glob('../../../../source/*/*.ipynb') + glob.glob('../../../source/*/*.ipynb'):\n    print(open(path).read())")),
    Bad("other students listed", answers=after("import os\nprint('LISTED', [n for n in os.listdir('../..') if n.endswith('good')])")),
    Bad("file written into source/", answers=after(
        "import glob\nfor path in glob.glob('../../../../source') + glob.glob('../../../source'):\n    open(path + '/planted', 'w').close()")),
    Bad("extra credit written into the gradebook", answers=after(
        "import glob, sqlite3\nfor path in glob.glob('../../../gradebook.db') + glob.glob('../../../../gradebook.db'):\n"
        "    book = sqlite3.connect(path)\n    book.execute('update grade set extra_credit = 99')\n    book.commit()")),
    Bad("gradebook deleted", answers=after(
        "import glob, os\nfor path in glob.glob('../../../gradebook.db') + glob.glob('../../../../gradebook.db'):\n    os.remove(path)")),
    Bad("network", answers=after("import os, socket\nsocket.create_connection(('127.0.0.1', PORT), 5).sendall(b'hello')")),
]  # fmt: skip
assert len(CASES) == 72 and len({case.name for case in CASES}) == 72
