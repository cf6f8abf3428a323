"""The start page and the lessons in JupyterLab, as a learner uses them.

One server and one page a notebook: everything is run through the menu, sliders are moved with
the keyboard, a wrong and a right answer are typed in, both themes are looked at. The notebooks
and `mlsys` are a copy; nothing is written into the repository.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import nbformat
import pytest
from kit import lab, look
from kit.chromium import window
from kit.course import solution_of
from kit.server import LabServer

from grading.answers import read_answers
from grading.cells import exercise_of, role_of
from mlsys.check import hint_text

pytestmark = [pytest.mark.browser, pytest.mark.slow]
REPOSITORY = Path(__file__).resolve().parents[2]
# Paths below notebooks/ that are looked at, a pattern; MLSYS_LESSONS="01_foundations/03*" is one lesson.
WANTED = os.environ.get("MLSYS_LESSONS", "*")
PRINTED = (path.relative_to(REPOSITORY / "notebooks").as_posix() for path in REPOSITORY.glob("notebooks/**/*.ipynb"))
NOTEBOOKS = sorted(path for path in PRINTED if fnmatch(path, WANTED) and ".ipynb_checkpoints" not in path)
NOT_WRITTEN = re.compile(r"\w+ is not written yet\.$")
ENDS = (("Home", "aria-valuemin"), ("End", "aria-valuemax"))  # a key and the attribute of the slider that it reaches
ARROWS = (("ArrowLeft", ""), ("ArrowRight", ""))
READABLE = 4.5  # WCAG level AA, text of normal size
# What axe-core finds and we cannot mend: (rule, part of the element) -> why.
NOT_OURS = {
    ("aria-input-field-name", 'class="noUi-handle'): "ipywidgets 8 does not tie a slider's description to its handle",
}


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    """JupyterLab over a copy of the notebooks and the library."""
    folder = tmp_path_factory.mktemp("learner")
    (folder / "course").mkdir()
    shutil.copy(REPOSITORY / "start.py", folder / "course")
    for name in ("notebooks", "mlsys"):
        shutil.copytree(REPOSITORY / name, folder / "course" / name, ignore=shutil.ignore_patterns("__pycache__"))
    with LabServer(folder / "course", folder / "state", {"PYTHONPATH": str(folder / "course")}) as started:
        yield started


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda path: Path(path).stem)
def notebook(request) -> str:
    """Path of a notebook below `notebooks/`."""
    return request.param


@pytest.fixture(scope="module")
def page(browser, server, notebook):
    """The notebook in Lab after Run All Cells."""
    with window(browser, height=1000) as context:
        opened = lab.open_notebook(context, server, f"notebooks/{notebook}")
        lab.run_all(opened)
        yield opened


def source_of(notebook: str) -> nbformat.NotebookNode:
    """The instructor's edition of a printed notebook."""
    (path,) = (REPOSITORY / "source").glob(f"*/{Path(notebook).name}")
    return nbformat.read(path, as_version=4)


def test_run_all_raises_nothing_but_open_exercises(page):
    """Every cell ran, and the only errors are checks of exercises that nobody has answered."""
    ran = [cell for cell in lab.cells(page) if cell["type"] == "code" and cell["source"].strip()]
    assert all(cell["count"] for cell in ran), [cell["id"] for cell in ran if not cell["count"]]
    said = lab.complaints(page)
    wrong = {cell: text for cell, text in said.items() if "-check" not in cell or not NOT_WRITTEN.search(text)}
    assert not wrong, wrong
    checks = {cell["id"] for cell in ran if "-check" in cell["id"]}
    assert set(said) == checks, f"these checks pass without an answer: {checks - set(said)}"


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_keyboard_moves_pictures_that_read_well(page, notebook, shot, theme):
    """Each slider of each widget goes to both ends by keyboard; the picture follows, and every text in it stands out.

    The first slider of a widget also takes the arrow keys. The dark theme is looked at with each slider at its upper end.
    """
    page.emulate_media(color_scheme=theme)
    page.wait_for_selector(f"body[data-jp-theme-light={'true' if theme == 'light' else 'false'}]", state="attached")
    widgets = [cell for cell in lab.cells(page) if has_widget(cell)]
    assert widgets, "no widget in this notebook"
    for cell in widgets:
        widget = lab.show(page, cell["id"]).locator(".jp-OutputArea-output", has=page.locator("svg[role=img]")).first
        widget.wait_for()
        left, drawn = set(range(widget.locator(".widget-slider").count())), {}
        for menu, option in [(None, None), *options_of(widget)]:
            if menu is not None:
                if option not in menu.locator("option").all_text_contents():  # another menu has just changed this one
                    continue
                menu.select_option(option)
                look_at(page, cell["id"], widget, drawn)
            for n in sorted(left):
                row = widget.locator(".widget-slider").nth(n)
                if row.locator("[disabled]").count() == 0:  # some sliders matter to some choices only
                    slide(page, cell["id"], widget, row, drawn, ENDS[1:] if theme == "dark" else ENDS + ARROWS * (n == 0))
                    left.discard(n)
        shot(page, f"{Path(notebook).stem}-{cell['id']}-{theme}")
        assert not left, f"{cell['id']} has sliders that no choice of its menus wakes: {left}"
        assert theme == "dark" or len(drawn) >= 3, f"{cell['id']} draws the same whatever its controls say"
        pale = [text for texts in drawn.values() for text in texts if text["contrast"] < READABLE]
        assert not pale, pale
    assert all("-check" in cell for cell in lab.complaints(page))


def has_widget(cell: dict) -> bool:
    """Whether a cell shows a widget."""
    return any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in cell["outputs"])


def options_of(widget) -> Iterator[tuple]:
    """Every choice of every menu of a widget, as (menu, label)."""
    for menu in widget.locator("select").all():
        for label in menu.locator("option").all_text_contents():  # read when its turn comes: a menu may depend on another
            yield menu, label


def look_at(page, cell_id: str, widget, drawn: dict[str, list]) -> None:
    """Wait for the picture of a widget and note it with the contrast of its texts, unless it was seen before."""
    here = f'{lab.PANEL} [data-cell-id="{cell_id}"] .jp-OutputArea-output'
    look.settled(page, here, quiet_s=0.15)
    picture = widget.locator("svg[role=img]").first.evaluate("picture => picture.outerHTML")
    if picture not in drawn:
        drawn[picture] = look.text_contrast(page, here)


def slide(page, cell_id: str, widget, row, drawn: dict[str, list], keys: tuple) -> None:
    """Move one slider with some keys, to its ends with some of them, and look at the picture each time."""
    handle, shown = row.locator(".noUi-handle"), {}
    name = row.locator(".widget-label").inner_text()
    for key, end in keys:
        handle.focus()
        page.keyboard.press(key)
        look_at(page, cell_id, widget, drawn)
        for _ in range(60):  # End goes to the maximum that a slider was born with; a raised one needs Page Up
            if not end or handle.get_attribute("aria-valuenow") == handle.get_attribute(end):
                break
            page.keyboard.press("PageUp" if key == "End" else "PageDown")
            look_at(page, cell_id, widget, drawn)
        else:
            pytest.fail(f"{key} and the page keys do not bring the slider {name!r} to its end")
        shown[key] = row.locator(".widget-readout").inner_text()
    assert "Home" not in shown or shown["Home"] != shown["End"], f"{name}: {shown}"
    assert "ArrowLeft" not in shown or shown["End"] == shown["ArrowRight"] != shown["ArrowLeft"], f"{name}: {shown}"


def test_outputs_are_accessible(page):
    """axe-core finds nothing in the outputs beyond the faults of others that are listed above."""
    found = look.axe_violations(page, f"{lab.PANEL} .jp-OutputArea")
    ours = [v for v in found if not any(v["rule"] == rule and part in v["html"] for rule, part in NOT_OURS)]
    assert not ours, ours


def test_a_wrong_answer_meets_its_hint_and_a_right_one_passes(page, notebook, shot):
    """Type a known mistake, run the check, read the hint; then type the answer and pass."""
    source = source_of(notebook)
    versions = read_answers(REPOSITORY / "tests" / "answers" / f"{Path(notebook).stem}.py")
    mistake = next(version for version in versions if version.kind == "wrong")
    answer = f"{mistake.exercise}-answer"
    checks = [c.id for c in source.cells if role_of(c) == "check" and exercise_of(c.id) == mistake.exercise]
    lab.type_into(page, answer, mistake.source)
    lab.run_cell(page, answer)
    said = [lab.text_of(lab.run_cell(page, check)) for check in checks]
    assert any(hint_text(mistake.name) in text for text in said), said
    shot(page, f"{Path(notebook).stem}-hint")
    lab.type_into(page, answer, solution_of(next(c for c in source.cells if c.id == answer)))
    lab.run_cell(page, answer)
    for check in checks:
        done = lab.run_cell(page, check)
        assert not any(output["output_type"] == "error" for output in done["outputs"]), lab.text_of(done)
        assert lab.text_of(done), f"{check} says nothing when it passes"
    shot(page, f"{Path(notebook).stem}-solved")


def test_no_request_leaves_and_the_console_is_quiet(page):
    """Runs last: all that happened above asked this machine only and logged no error."""
    assert page.context.outside == []
    assert page.context.problems == []
