"""`python -m grading grade ASSIGNMENT`: a lecturer's week in one command."""

from __future__ import annotations

import errno
import sys
import time
import warnings

from ..sealed.execute import GraderUnavailable
from .batch import Wish, run_batch
from .feedback import write_feedback
from .places import places_of
from .report import Class, Progress, differences_text, plot, table


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
    told: dict = {}

    def after(batch) -> None:
        book = batch.ledger
        told["class"] = Class(
            book.scores(args.assignment), book.cells(args.assignment), book.penalties(args.assignment)
        )
        told["pages"] = 0 if args.no_feedback else write_feedback(batch)

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
    collected = outcome.collected
    print(f"Collected {len(collected.new)} new versions of {args.assignment}; {len(outcome.lines)} submissions in all.")
    for student, name, why in collected.refused:
        print(f"Refused: {student} {name}: {why}".replace(" :", ":"))
    if outcome.backup:
        print(f"Backed up the gradebook to grading/backups/{outcome.backup.name}.")
    if outcome.lines:
        print("\n" + table(outcome, told["class"]) + "\n")
        picture = plot(outcome, told["class"], places.reports / f"{args.assignment}.png")
        print(f"Points of the class: grading/reports/{picture.name}")
    if not args.no_feedback:
        print(f"Wrote {told['pages']} feedback pages below grading/feedback/.")
    number = sum(line.state == "graded" for line in outcome.lines.values())
    print(f"Graded {number} submissions in {time.monotonic() - started:.0f} s; "
          f"{sum(line.state == 'done' for line in outcome.lines.values())} were done before.")  # fmt: skip
    if outcome.held:
        print(f"\nThe re-grade changes {len(outcome.held)} scores, and none of these was written:")
        print(differences_text(outcome.held))
        print("Run the command again with --yes to write them.")
    if outcome.failed:
        print(f"{len(outcome.failed)} submissions could not be written; run the command again.")
    return 1 if outcome.held or outcome.failed else 0


def opener(level: str):
    """What opens a Grader at a level of isolation."""
    from functools import partial

    from .workers import sealed_grader

    return partial(sealed_grader, int(level) if level.isdigit() else level)


def ask(lines) -> bool:
    """Show what a re-grade changes, and ask on a terminal."""
    if not sys.stdin.isatty():
        return False
    print("\nThe re-grade changes these scores:\n" + differences_text(lines))
    return input("Write them? [y/N] ").strip().lower() in ("y", "yes")
