"""`python -m grading COMMAND`: what authors and lecturers run, from any folder of the course."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    top = argparse.ArgumentParser(prog="python -m grading", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text)

    text = command("text", "write a notebook as text, to .text/ or OUT (- for the screen)")
    text.add_argument("notebook", type=Path)
    text.add_argument("out", nargs="?")
    text.add_argument("--show", action="store_true", help="print it, or the file itself where it has no text form")
    untext = command("untext", "turn such a text into a notebook")
    untext.add_argument("text", type=Path)
    untext.add_argument("notebook", type=Path)
    form = command("format", "bring the notebooks of source/ into canonical form")
    form.add_argument("files", nargs="*")
    form.add_argument("--check", action="store_true", help="only name those that are not")
    lint = command("lint", "name the faults of notebooks that a student would meet")
    lint.add_argument("files", nargs="*")
    student = command("student-edition", "print source/ to notebooks/ and assignments/; never over somebody's work")
    student.add_argument("--check", action="store_true", help="print nothing, name the copies that are not fresh")
    student.add_argument(
        "--force-unanswered",
        action="store_true",
        help="also replace a copy with edited text if no place for an answer was touched; the old one goes to .text/",
    )
    new = command("new", "lay a new lesson with all fixed parts")
    new.add_argument("module", help="such as 03, or 03_gpu_architecture for a new module")
    new.add_argument("name", help="such as warps; it gets the next number")
    new.add_argument("title")
    table = command("table", "print every exercise with its points and all versions of its answer")
    table.add_argument("unit", nargs="?", help="a folder of source/ or a notebook's name; all without")
    table.add_argument("--csv", action="store_true")
    command("setup-git", "let `git diff` show notebooks as text in this clone")
    _lecturers(command)
    return top


def _lecturers(command) -> None:
    """The commands that touch students' work."""
    grade = command("grade", "collect, back up, grade, write feedback, print a table of the class")
    grade.add_argument("assignment", help="such as ps01_foundations")
    grade.add_argument("--from", dest="source", type=Path, metavar="FOLDER", help="a folder with a folder, zip or "
                       "notebook for each student, in place of the exchange")  # fmt: skip
    grade.add_argument(
        "--names", default="", metavar="REGEX", help="how names in FOLDER hold the student's: (?P<student>...)"
    )
    grade.add_argument("--jobs", type=_count, default=os.cpu_count() or 1, help="submissions at once (default: one a core)")
    grade.add_argument(
        "--scheduler", default="", metavar="tcp://HOST:PORT", help="grade on the workers of a Dask cluster"
    )
    grade.add_argument("--yes", action="store_true", help="write changes of scores that a re-grade makes")
    grade.add_argument(
        "--any-owner", action="store_true", help="take submissions whose files belong to another account"
    )
    grade.add_argument("--no-feedback", action="store_true", help="write no feedback pages")
    grade.add_argument("--wait", type=float, default=600, metavar="SECONDS", help="for a gradebook that is locked")
    grade.add_argument(
        "--level",
        default="auto",
        choices=["auto", "4", "3", "2", "1"],
        help="isolation; 1 is none, and every result says so",
    )
    restore = command("restore", "list the backups of the gradebook, or bring one back")
    restore.add_argument("backup", nargs="?", help="a name of the list, or last")
    command("doctor", "say which isolation holds on this machine, and how to get more")


def _count(text: str) -> int:
    """A whole number from one on."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Call the function behind a command; each is imported only when it is asked for."""
    if args.command == "text":
        from .textfiles import show_command, text_command

        return show_command(args.notebook) if args.show else text_command(args.notebook, args.out)
    if args.command == "untext":
        from .textfiles import untext_command

        return untext_command(args.text, args.notebook)
    if args.command == "format":
        from .formatting import format_command

        return format_command(args.files, args.check)
    if args.command == "lint":
        from .lint import lint_command

        return lint_command(args.files)
    if args.command == "new":
        from .scaffold import new_command

        return new_command(args.module, args.name, args.title)
    if args.command == "table":
        from .table import table_command

        return table_command(args.unit, args.csv)
    if args.command == "setup-git":
        from .setup_git import setup_git_command

        return setup_git_command()
    if args.command in ("grade", "restore", "doctor"):
        return _run_lecturers(args)
    from .student_edition import check_command, print_command

    return check_command() if args.check else print_command(args.force_unanswered)


def _run_lecturers(args: argparse.Namespace) -> int:
    """Call the function behind a command that touches students' work."""
    if args.command == "grade":
        return _grade(args)
    if args.command == "restore":
        from .records.backup import restore_command

        return restore_command(args.backup)
    try:
        from .sealed.doctor import doctor_command
    except ImportError as error:
        raise ValueError(f"doctor is not in this edition of the course ({error})") from None
    return doctor_command()


def _grade(args: argparse.Namespace) -> int:
    """Grade; on this machine the servers start before anything else is even imported."""
    if args.scheduler:
        from .records.command import grade_command

        return grade_command(args)
    from .sealed.ahead import Ahead

    with Ahead(args.level, args.jobs) as graders:
        from .records.command import grade_command

        return grade_command(args, graders)


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    try:
        return run(args)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stdout = None
        return 1
    except (ValueError, OSError) as error:
        print(f"{error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    # jsonschema compiles 38 grammars of internationalised addresses at its import, which is most of what a command
    # would wait for at its start. No notebook has such a field, and jsonschema does without.
    sys.modules["rfc3987_syntax"] = None
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", newline="\n")
    sys.exit(main())
