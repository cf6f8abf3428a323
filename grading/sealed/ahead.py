"""Graders that start while the coordinator still imports, collects and backs up: their servers take seconds to be warm."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from .execute import Grader


class Ahead:
    """Called, it gives an open Grader: one of those started ahead, else a new one. Use it in a `with` statement.

    level: as for `Grader`. number: how many to start. What is wrong with a level is raised by the call.
    """

    def __init__(self, level: str | int, number: int):
        self.level = level
        self.pool = ThreadPoolExecutor(number, thread_name_prefix="opening")
        self.started = [self.pool.submit(self.open) for _ in range(number)]

    def open(self) -> Grader:
        return Grader(self.level).__enter__()

    def __call__(self) -> Grader:
        try:
            return self.started.pop().result()  # one step, so that no two threads get the same
        except IndexError:
            return self.open()

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_) -> None:
        """Close what nobody took."""
        self.pool.shutdown(cancel_futures=True)
        for future in self.started:
            if not future.cancelled() and not future.exception():
                future.result().close()
