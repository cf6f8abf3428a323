"""`start.py update`: the new edition comes, and no word that the learner wrote is lost.

A bare repository in a folder plays the server; nothing leaves the machine.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from grading import update
from grading.update import update_clone

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git on this machine")
TOUR, OTHER, TASK = "notebooks/tour über.ipynb", "notebooks/other.ipynb", "assignments/ps01/ps01.ipynb"


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def publish(author: Path, **files: str | None) -> None:
    """A new edition: names stand for the files above, None deletes."""
    for name, text in files.items():
        path = author / globals()[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink() if text is None else path.write_text(text, encoding="utf-8")
    git(author, "add", "--all")
    git(author, "commit", "--quiet", "--message", "edition")
    git(author, "push", "--quiet", "origin", "HEAD:main")


@pytest.fixture
def course(tmp_path, monkeypatch):
    """(author's clone, learner's clone) of one server."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "server.git")
    git(tmp_path, "clone", "--quiet", "server.git", "author")
    author, learner = tmp_path / "author", tmp_path / "learner with a space"
    shutil.copy(Path(__file__).resolve().parents[2] / ".gitignore", author)
    publish(author, TOUR="first", OTHER="first", TASK="first")
    git(tmp_path, "clone", "--quiet", "server.git", learner.name)
    return author, learner


def copies(learner: Path) -> list[Path]:
    return sorted(learner.rglob("*.yours-*"))


def test_a_file_that_both_changed_keeps_both(course, capsys):
    author, learner = course
    (learner / TOUR).write_text("mine", encoding="utf-8")
    (learner / OTHER).write_text("also mine")
    publish(author, TOUR="second", TASK="second")
    assert update_clone(learner) == 0
    assert (learner / TOUR).read_text() == "second" == (learner / TASK).read_text()
    (copy,) = copies(learner)
    assert re.fullmatch(r"tour über\.yours-\d{8}-\d{6}\.ipynb", copy.name) and copy.read_text() == "mine"
    assert (learner / OTHER).read_text() == "also mine", "the new edition does not touch it: it stays"
    said = capsys.readouterr().out
    assert copy.name in said and "Every other file that you changed is as you left it." in said
    assert git(learner, "status", "--porcelain").split() == ["M", OTHER], "git does not see the copy"


def test_nothing_new(course, capsys):
    _, learner = course
    (learner / TOUR).write_text("mine")
    assert update_clone(learner) == 0
    assert (learner / TOUR).read_text() == "mine" and not copies(learner)
    assert capsys.readouterr().out == "The course is up to date.\n"


def test_a_file_that_the_new_edition_drops_is_kept_as_a_copy(course):
    author, learner = course
    (learner / TOUR).write_text("mine")
    publish(author, TOUR=None)
    update_clone(learner)
    assert not (learner / TOUR).exists() and [copy.read_text() for copy in copies(learner)] == ["mine"]


def test_a_file_of_the_learner_under_a_new_name_of_the_course(course, monkeypatch):
    author, learner = course
    monkeypatch.setitem(globals(), "NEW", "notebooks/new.ipynb")
    (learner / "notebooks/new.ipynb").write_text("mine")
    publish(author, NEW="theirs")
    update_clone(learner)
    assert (learner / "notebooks/new.ipynb").read_text() == "theirs"
    assert [copy.read_text() for copy in copies(learner)] == ["mine"]


def test_a_file_that_the_learner_deleted_comes_back(course):
    author, learner = course
    (learner / TOUR).unlink()
    publish(author, TOUR="second")
    update_clone(learner)
    assert (learner / TOUR).read_text() == "second" and not copies(learner)


def test_a_failed_merge_puts_everything_back(course, monkeypatch):
    author, learner = course
    (learner / TOUR).write_text("mine")
    publish(author, TOUR="second")
    honest = update.git

    def failing(root, *words):
        return honest(root, *(["merge", "no-such-branch"] if words[0] == "merge" else words))

    monkeypatch.setattr(update, "git", failing)
    with pytest.raises(SystemExit, match="nothing of yours was changed"):
        update_clone(learner)
    assert (learner / TOUR).read_text() == "mine" and not copies(learner)


def test_no_server_leaves_everything(course, tmp_path):
    _, learner = course
    (learner / TOUR).write_text("mine")
    shutil.rmtree(tmp_path / "server.git")
    with pytest.raises(SystemExit, match="git fetch did not work"):
        update_clone(learner)
    assert (learner / TOUR).read_text() == "mine" and not copies(learner)


def test_commits_of_ones_own_are_left_to_git(course):
    author, learner = course
    (learner / TOUR).write_text("mine")
    git(learner, "commit", "--quiet", "--all", "--message", "mine")
    publish(author, OTHER="second")
    with pytest.raises(SystemExit, match="git pull --rebase"):
        update_clone(learner)
    assert (learner / TOUR).read_text() == "mine"


def test_staged_changes_are_left_to_the_learner(course):
    author, learner = course
    (learner / TOUR).write_text("mine")
    git(learner, "add", "--all")
    publish(author, TOUR="second")
    with pytest.raises(SystemExit, match="git restore --staged"):
        update_clone(learner)
    assert (learner / TOUR).read_text() == "mine" and not copies(learner)


def test_a_download_is_not_a_clone(course, tmp_path):
    (tmp_path / "unpacked").mkdir()
    with pytest.raises(SystemExit, match="Download the new edition into another folder"):
        update_clone(tmp_path / "unpacked")
    with pytest.raises(SystemExit, match="not a git clone"):
        update_clone(course[1] / "notebooks")
