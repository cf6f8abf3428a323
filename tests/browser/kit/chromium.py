"""The browser: found on this machine, started without a window, and watched.

Chromium, Google Chrome and Microsoft Edge all serve; the first that starts is used and none
is ever downloaded. `MLSYS_BROWSER` names another executable. Everything that a page asks for
outside this machine and every error in its console is written down.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ON_PATH = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "microsoft-edge-stable",
    "chrome",
    "msedge",
)
IN_APPLICATIONS = ("Google Chrome", "Microsoft Edge", "Chromium")
IN_PROGRAM_FILES = (
    r"Google\Chrome\Application\chrome.exe",
    r"Microsoft\Edge\Application\msedge.exe",
    r"Chromium\Application\chrome.exe",
)
FLAGS = (
    "--no-sandbox",  # the pages are ours and on this machine; as root Chromium starts only so
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # nothing leaves this machine
)
LOCAL = re.compile(r"(https?|wss?)://(127\.0\.0\.1|localhost|\[::1\])[:/]|(data|blob|about|file):")
HELP = (
    "Install Chromium, Google Chrome or Microsoft Edge (Debian: `apt-get install chromium`), "
    "or set MLSYS_BROWSER to the browser's executable."
)


class NoBrowser(Exception):
    """Why there is no browser to test with, and what to do about it."""


def candidates() -> list[str]:
    """Executables that may be a browser that we can drive: PATH first, then the usual folders."""
    named = os.environ.get("MLSYS_BROWSER")
    if named:
        return [named]
    found = [shutil.which(name) for name in ON_PATH]
    for folder in (Path("/Applications"), Path.home() / "Applications"):
        found += [str(folder / f"{name}.app" / "Contents" / "MacOS" / name) for name in IN_APPLICATIONS]
    for variable in ("ProgramFiles", "ProgramFiles(x86)", "LOCALAPPDATA"):
        if os.environ.get(variable):
            found += [str(Path(os.environ[variable]) / tail) for tail in IN_PROGRAM_FILES]
    found.append("/snap/bin/chromium")
    return list(dict.fromkeys(path for path in found if path and Path(path).is_file()))


@contextlib.contextmanager
def start_browser() -> Iterator:
    """A running browser (Playwright's `Browser`). Raises NoBrowser with a sentence that says why not."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise NoBrowser(f"Playwright is not installed ({error}). `python3 start.py test` installs it.") from None
    found = candidates()
    if not found:
        raise NoBrowser(f"No browser was found. {HELP}")
    with sync_playwright() as playwright:
        browser, refused = None, []
        for path in found:
            try:
                browser = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
                break
            except Error as error:
                refused.append(f"{path} does not start ({error.message.splitlines()[0]}).")
        if browser is None:
            raise NoBrowser(" ".join(refused) + f" {HELP}")
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def window(browser, width: int = 1280, height: int = 900) -> Iterator:
    """A fresh window (Playwright's `BrowserContext`) with two lists that fill by themselves.

    `problems`: errors of the console; `outside`: addresses that are not on this machine.
    """
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="light")
    context.problems, context.outside = [], []

    def note_request(request) -> None:
        if not LOCAL.match(request.url):
            context.outside.append(request.url)

    def watch(page) -> None:
        page.on("console", lambda message: message.type == "error" and context.problems.append(message.text))
        page.on("pageerror", lambda error: context.problems.append(f"page error: {error}"))
        page.on("request", note_request)
        page.on("websocket", note_request)

    context.on("page", watch)
    try:
        yield context
    finally:
        context.close()
