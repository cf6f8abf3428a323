"""Fixtures of the browser tests: the browser, a window, and screenshots that are kept in `shots/`."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from kit.chromium import NoBrowser, start_browser, window  # noqa: E402

SHOTS = HERE / "shots"


def no_browser(reason: str) -> None:
    """Skip with the reason; where skipping is forbidden (`MLSYS_NO_SKIP=1`), fail with it."""
    if os.environ.get("MLSYS_NO_SKIP", "") not in ("", "0"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    """The machine's browser, started once for a module."""
    starter = start_browser()
    try:
        started = starter.__enter__()
    except NoBrowser as error:
        no_browser(str(error))
    yield started
    starter.__exit__(None, None, None)


@pytest.fixture
def new_window(browser):
    """`new_window(width=..., height=...)` opens a fresh browser window; all are closed after the test."""
    with contextlib.ExitStack() as stack:

        def make(**size):
            make.opened.append(stack.enter_context(window(browser, **size)))
            return make.opened[-1]

        make.opened = []
        yield make


@pytest.fixture
def shot(request):
    """`shot(page, "name")` keeps a screenshot under `shots/`."""
    SHOTS.mkdir(exist_ok=True)

    def take(page, name: str) -> None:
        page.wait_for_timeout(300)  # Lab paints cells that come into view a moment later
        page.screenshot(path=str(SHOTS / f"{name}.png"))

    return take


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """When a test fails, keep a picture of every page that it had open."""
    report = yield
    held = getattr(item, "funcargs", {})
    pages = [held["page"]] if "page" in held else []
    if "new_window" in held:
        pages += [page for context in held["new_window"].opened for page in context.pages]
    if report.when == "call" and report.failed:
        SHOTS.mkdir(exist_ok=True)
        for number, page in enumerate(pages):
            try:
                page.screenshot(path=str(SHOTS / f"failed-{re.sub(r'[^a-z0-9_]+', '-', item.name)}-{number}.png"))
            except Exception as error:  # a page that is gone cannot be shown; the test's own failure counts
                report.sections.append(("screenshot", str(error)))
    return report
