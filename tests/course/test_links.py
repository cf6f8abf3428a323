"""The course hangs together: every link leads somewhere, the tables list what exists."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from mlsys import course

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)  # `kernel[grid, block](...)` is no link
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PRINTED = sorted([*(ROOT / "notebooks").rglob("*.ipynb"), *(ROOT / "assignments").rglob("*.ipynb")])
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "DATA.md", ROOT / "mlsys/VALIDATION.md"]


def text_of(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    return "\n".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "markdown")


@pytest.mark.parametrize("path", [*PRINTED, *PAGES], ids=lambda p: p.name)
def test_links_lead_somewhere(path):
    for link in LINK.findall(CODE.sub("", text_of(path))):
        if not link.startswith(("http://", "https://", "mailto:")):
            assert (path.parent / link).exists(), f"{path.name} links to {link}, which does not exist"


def test_contents_list_the_lessons():
    lessons = {p.relative_to(ROOT / "notebooks").with_suffix("").as_posix() for p in PRINTED if p.parent.parent == ROOT / "notebooks"}
    assert set(course.LESSONS) == lessons
    for link in LINK.findall(course.contents()):
        assert (ROOT / "notebooks" / link).exists()


@pytest.mark.parametrize("name", course.LESSONS)
def test_lesson_says_its_title_minutes_and_name(name):
    minutes, title = course.LESSONS[name]
    cells = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", 4).cells
    assert cells[0].source.splitlines()[0].split(" ", 2)[2] == title
    assert f"**Time** {minutes} minutes" in cells[0].source
    assert f'course.done("{name}")' in cells[-1].source


def test_readme_table_lists_what_exists():
    readme = text_of(ROOT / "README.md")
    for path in PRINTED:
        assert f"({path.relative_to(ROOT).as_posix()})" in readme, f"{path.name} is missing in the README's table"
