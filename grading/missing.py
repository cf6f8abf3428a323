"""Cells that a submission has lost come back before it is graded.

Students delete cells, paste over them, or open the notebook in a tool that drops nbgrader's
marks. Stock nbgrader then grades what is left: it gives no points for the lost check, says
nothing, and keeps the submission for manual grading for ever. Here each lost cell is put
back where the printed assignment has it, or, where only its mark is gone, marked again, and a
sentence in the log and at the top of the feedback says so. Nothing of the student's is removed.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

NOTE = (
    "{notebook}.ipynb of {student} came without {count}: {names}. Everything lost was put back before grading; an answer "
    "cell comes back empty. If an answer stood in a lost cell, rename your notebook, get the assignment afresh, "
    "copy your answers over and submit again."
)


def name_of(cell: NotebookNode) -> str | None:
    """nbgrader's name of a cell, None for a plain one."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def put_back(notebook: NotebookNode, printed: NotebookNode) -> list[str]:
    """Put the marked cells of `printed` that `notebook` lacks back into it; the names of those cells.

    A cell that still has its id but no mark gets the mark of the printed cell. Any other
    lost cell is inserted behind the nearest printed cell before it.
    """
    marked = {cell.id: cell for cell in printed.cells if name_of(cell)}
    present = {name_of(cell) for cell in notebook.cells}
    back = []
    for cell in notebook.cells:
        master = marked.get(cell.get("id"))
        if master is not None and name_of(cell) is None and name_of(master) not in present:
            cell.metadata["nbgrader"] = deepcopy(master.metadata.nbgrader)
            back.append(name_of(master))
    place = 0
    for master in printed.cells:
        names = [name_of(cell) or cell.get("id") for cell in notebook.cells]
        name = name_of(master) or master.id
        if name in names:
            place = names.index(name) + 1
        elif name_of(master):
            notebook.cells.insert(place, deepcopy(master))
            back.append(name)
            place += 1
    return back


class PutBackCells(NbGraderPreprocessor):
    """A step of nbgrader's autograde, in front of OverwriteCells (which restores what a locked cell says)."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Put lost cells back and say so."""
        about = resources["nbgrader"]
        printed = self.printed(about["assignment"], about["notebook"])
        back = put_back(nb, nbformat.read(printed, as_version=4)) if printed.is_file() else []
        if back:
            count = "one cell" if len(back) == 1 else f"{len(back)} cells"
            note = NOTE.format(notebook=about["notebook"], student=about["student"], count=count, names=", ".join(back))
            self.log.warning(note)
            nb.cells.insert(0, nbformat.v4.new_markdown_cell(f"**Note.** {note}", id="cells-put-back"))
        return nb, resources

    def printed(self, assignment: str, notebook: str) -> Path:
        """The printed assignment's notebook, in the course that is being graded."""
        folder = self.parent.parent.coursedir  # of the converter that runs the exporter that runs this step
        return Path(folder.format_path(folder.release_directory, ".", assignment), f"{notebook}.ipynb")
