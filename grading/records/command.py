"""`python -m grading grade ASSIGNMENT`: a lecturer's week in one command."""

from __future__ import annotations

import errno
import sys
import time
import warnings

from mlsys.units import plural

from ..sealed.execute import GraderUnavailable
from .batch import Wish, run_batch
from .feedback import write_feedback
from .places import places_of
from .publish import released
from .report import Class, Progress, differences_text, plot, put_right, table, wrapped


def grade_command(args, make=None) -> int:
    """Grade, tell, draw. 0 if nothing is left to do, 1 if something is. make: gives a Grader; by default one of args.level."""
    warnings.filterwarnings("ignore", module=r"sqlalchemy|nbgrader")
    started = time.monotonic()
    places = places_of()
    wish = Wish(
        args.assignment,
        args.jobs,
        args.scheduler,
        args.source,
        args.names,
        args.any_owner,
        args.yes,
        args.wait,
    )
    progress = Progress()
    told: dict = {"asked": False}

    def after(batch) -> None:
        book, cells = batch.ledger, batch.ledger.cells(args.assignment)
        told["before"] = Class(batch.have, cells, batch.off)
        told["after"] = Class(book.scores(args.assignment), cells, book.penalties(args.assignment))
        told["pages"] = 0 if args.no_feedback else write_feedback(batch)

    def ask(lines) -> bool:
        """Show what a re-grade changes, and ask on a terminal."""
        told["asked"] = sys.stdin.isatty()
        if not told["asked"]:
            return False
        print(f"\nThe re-grade changes the scores of {plural(len(lines), 'student')}:\n" + differences_text(lines))
        return input("Write them? [y/N] ").strip().lower() in ("y", "yes")

    try:
        outcome = run_batch(places, wish, make or opener(args.level), print, progress, ask, after=after)
    except GraderUnavailable as error:
        print(f"Nothing was graded: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. What is written stays as it is; the same command goes on from there.", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print("The disk is full. Nothing half was written; make room and run the command again.", file=sys.stderr)
        return 1
    report(outcome, places, told, not args.no_feedback, time.monotonic() - started)
    return 1 if outcome.held or outcome.failed else 0


def report(outcome, places, told: dict, feedback: bool, seconds: float) -> None:
    """Print what a batch did. told: the class before and after, pages that were written, whether the lecturer was asked."""
    collected, assignment, lines = outcome.collected, outcome.assignment, list(outcome.lines.values())
    there = [line for line in lines if line.state != "lost"]
    ran = sum(line.ran for line in there)
    new = plural(len(collected.new), "new version")
    print(f"Collected {new} of {assignment}; {plural(len(there), 'submission')} in all.")
    for student, name, why in collected.refused:
        print(wrapped(f"Refused: {student} {name}: {why}".replace(" :", ":")))
    if outcome.backup:
        print(f"Backed up the gradebook to grading/backups/{outcome.backup.name}.")
    if lines:
        print("\n" + table(outcome, told["before"], told["after"]) + "\n")
        if text := put_right(outcome):
            print(text + "\n")
        picture = plot(outcome, told["after"], places.reports / f"{assignment}.png")
        print(f"Points of the class: grading/reports/{picture.name}")
    if feedback:
        print(f"Wrote {plural(told['pages'], 'feedback page')} below grading/feedback/.")
        out, behind = released(places, assignment)
        if out and behind:
            state = "is not handed out as it is" if behind == 1 else "are not handed out as they are"
            print(wrapped(f"{plural(behind, 'page')} {state}: run nbgrader release_feedback {assignment} again."))
    done = len(there) - ran
    were = "was" if done == 1 else "were"
    print(f"Graded {plural(ran, 'submission')} in {seconds:.0f} s; {done} {were} done before.")
    if outcome.penalties:
        print(f"Late penalties of {plural(len(outcome.penalties), 'student')} were worked out anew.")
    held = plural(len(outcome.held), "student")
    if outcome.held and told["asked"]:
        print("\nThe changes above were not written. Run the command again with --yes to write them.")
    elif outcome.held:
        print(f"\nThe re-grade changes the scores of {held}, and none of it was written:")
        print(differences_text(outcome.held))
        print("Run the command again with --yes to write them.")
    if outcome.failed:
        print(f"{plural(len(outcome.failed), 'submission')} could not be written; run the command again.")


def opener(level: str):
    """What opens a Grader at a level of isolation."""
    from functools import partial

    from .workers import sealed_grader

    return partial(sealed_grader, int(level) if level.isdigit() else level)
