"""A small course in a folder of the test: lecturer, students and the exchange between them.

The lecturer's folder holds `source/` and the repository's own `nbgrader_config.py` with the
exchange moved into the test's folder; each student has a folder and a cache of submissions.
Steps run as real commands (`command`) or, where two seconds a command would be wasted, in
this process through nbgrader's own classes (`api`, `fetch`, `submit`).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from grading.textform import from_text

REPOSITORY = Path(__file__).resolve().parents[3]
STAND_IN = "ps00_stand_in"
TIMEOUT_S = 300

STAND_IN_TEXT = '''%%%% md intro
# A problem set for the tests of the grading loop
%%%% code set-up setup
import numpy as np
from mlsys import check
%%%% md kibibytes-task task
How many KiB do `n` elements of `itemsize` bytes take?
%%%% code kibibytes-given given
SIZES = [(1024, 2), (512, 4)]
%%%% code kibibytes-answer answer
def kibibytes(n, itemsize):
    """KiB (1024 bytes) that n elements take."""
    ### BEGIN SOLUTION
    return n * itemsize / 1024
    ### END SOLUTION
%%%% code kibibytes-check check 3
check.function(kibibytes, expected=[(SIZES[0], 2), (SIZES[1], 2)])
### BEGIN HIDDEN TESTS
check.that(kibibytes(0, 8) == 0, "Nothing takes no memory.")
### END HIDDEN TESTS
%%%% md row-means-task task
Return the mean of each row of a matrix.
%%%% code row-means-answer answer
def row_means(matrix):
    """The mean of each row, as a list."""
    ### BEGIN SOLUTION
    return [float(np.mean(row)) for row in matrix]
    ### END SOLUTION
%%%% code row-means-check check 4
check.function(row_means, expected=[(([[1, 3], [5, 9]],), [2, 7])])
%%%% code row-means-check-edge check 1
check.function(row_means, expected=[(([[4]],), [4])])
%%%% md row-means-question
Why is the mean of the row means not always the mean of the matrix?
%%%% md row-means-why essay 2
It is here, because all rows are equally long.
'''


def stand_in() -> nbformat.NotebookNode:
    """The instructor's notebook of the stand-in assignment: 8 points by checks, 2 by hand."""
    return from_text(STAND_IN_TEXT)


def solution_of(cell: nbformat.NotebookNode) -> str:
    """The source of an answer cell as a student who knows the answer leaves it."""
    return "\n".join(line for line in cell.source.splitlines() if not re.match(r"\s*### (BEGIN|END) SOLUTION", line))


def answered(notebook: nbformat.NotebookNode, answers: dict[str, str]) -> nbformat.NotebookNode:
    """The notebook with the sources of some cells (by grade_id) replaced."""
    left = dict(answers)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in left:
            cell.source = left.pop(name)
    if left:
        raise KeyError(f"the notebook has no cells {sorted(left)} to answer in")
    return notebook


class Course:
    """Folders `course`, `exchange` and one for each student below `folder`, on this machine only."""

    course_id = "mlsys"

    def __init__(self, folder: Path):
        self.folder = folder
        self.root, self.exchange = self.person("course"), folder / "exchange"
        (self.root / "source").mkdir()
        self.exchange.mkdir()
        self.exchange.chmod(0o777)  # nbgrader asks for a folder that everybody may write to

    def person(self, name: str) -> Path:
        """The folder of one person, laid out like the course and with its nbgrader_config.py."""
        folder = self.folder / name
        (folder / "assignments").mkdir(parents=True)
        (folder / "grading").mkdir()
        shutil.copy(REPOSITORY / "nbgrader_config.py", folder)
        return folder

    def student(self, name: str) -> Path:
        """A student's folder, made on first use."""
        folder = self.folder / "students" / name
        return folder if folder.is_dir() else self.person(f"students/{name}")

    def add_source(self, assignment: str, notebooks: dict[str, nbformat.NotebookNode]) -> None:
        """Lay an assignment's instructor notebooks (by name) into `source/`."""
        folder = self.root / "source" / assignment
        folder.mkdir()
        for name, notebook in notebooks.items():
            nbformat.write(notebook, folder / f"{name}.ipynb")

    def source(self, assignment: str) -> dict[str, nbformat.NotebookNode]:
        """The instructor's notebooks of an assignment, by name."""
        folder = self.root / "source" / assignment
        return {path.stem: nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))}

    def environment(self, person: Path) -> dict[str, str]:
        """Environment of one person's commands: our `mlsys`, our exchange, no settings of the machine's user."""
        private = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "MLSYS_DATA_DIR")
        places = {name: str(self.folder / "state" / person.name / name.lower()) for name in private}
        for place in places.values():
            Path(place).mkdir(parents=True, exist_ok=True)
        return dict(os.environ) | places | {"PYTHONPATH": str(REPOSITORY), "MLSYS_EXCHANGE": str(self.exchange)}

    def command(self, *words: str, person: Path | None = None) -> str:
        """Run `nbgrader WORDS` in a person's folder (the lecturer's unless given); what it printed."""
        folder = person or self.root
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words],
            cwd=folder,
            env=self.environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"`nbgrader {' '.join(words)}` ended with status {done.returncode}:\n{done.stdout}")
        return done.stdout

    def config(self, person: Path | None = None):
        """The configuration that nbgrader reads in a person's folder (the lecturer's unless given)."""
        from traitlets.config.loader import PyFileConfigLoader

        folder = person or self.root
        config = PyFileConfigLoader("nbgrader_config.py", path=str(folder)).load_config()
        config.Exchange.root = str(self.exchange)
        config.Exchange.cache = self.environment(folder)["JUPYTER_DATA_DIR"] + "/nbgrader_cache"
        return config

    def api(self):
        """nbgrader's own interface to this course, as Formgrader uses it."""
        from nbgrader.apps.api import NbGraderAPI

        return NbGraderAPI(config=self.config())

    def do(self, step: str, assignment: str, *more: str, must: bool = True) -> str:
        """One step of `api` by its name; its log. Raises RuntimeError with the log unless it may fail."""
        result = getattr(self.api(), step)(assignment, *more)
        if must and not result["success"]:
            raise RuntimeError(f"{step} {assignment} failed:\n{result.get('error')}\n{result.get('log')}")
        return f"{result.get('log') or ''}{result.get('error') or ''}"

    def exchange_step(self, kind: str, student: str, assignment: str) -> None:
        """A student's step (FetchAssignment, Submit or FetchFeedback) through nbgrader's exchange classes."""
        from nbgrader.auth import Authenticator
        from nbgrader.coursedir import CourseDirectory
        from nbgrader.exchange import ExchangeFactory

        config = self.config(self.student(student))
        coursedir = CourseDirectory(config=config, assignment_id=assignment, student_id=student)
        step = getattr(ExchangeFactory(config=config), kind)
        step(coursedir=coursedir, authenticator=Authenticator(config=config), config=config).start()

    def work_of(self, student: str, assignment: str) -> list[Path]:
        """The notebooks that a student works in after fetching."""
        return sorted((self.student(student) / "assignments" / assignment).glob("*.ipynb"))

    def hand_in(self, student: str, assignment: str, answers: dict[str, dict[str, str]]) -> None:
        """Fetch, answer (notebook name -> grade_id -> source) and submit, as one student."""
        self.exchange_step("FetchAssignment", student, assignment)
        for path in self.work_of(student, assignment):
            notebook = nbformat.read(path, as_version=4)
            nbformat.write(answered(notebook, answers.get(path.stem, {})), path)
        self.exchange_step("Submit", student, assignment)

    def gradebook(self):
        """The gradebook, to be used in a `with` statement."""
        from nbgrader.api import Gradebook
        from nbgrader.coursedir import CourseDirectory

        return Gradebook(CourseDirectory(config=self.config()).db_url, self.course_id)

    def path_of(self, kind: str, student: str, assignment: str) -> Path:
        """Where the lecturer keeps a submission: kind is submitted, autograded or feedback."""
        from nbgrader.coursedir import CourseDirectory

        coursedir = CourseDirectory(config=self.config())
        return Path(coursedir.format_path(getattr(coursedir, f"{kind}_directory"), student, assignment))
