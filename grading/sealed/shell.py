"""An IPython shell that runs one cell and says what came out, within limits in bytes."""

from __future__ import annotations

import base64
import io
import sys
import traceback
from dataclasses import dataclass, field
from typing import Any

from .limits import Limits

CUT = "\n[The rest of the output was left out: a cell may leave {0}.]\n"
KEPT = ("text/plain", "image/png")  # no HTML, no script: a lecturer's browser shows what is here


class CellTooLong(BaseException):
    """Raised inside of a cell that used up its time."""


@dataclass
class Collected:
    """What one cell has left so far."""

    limits: Limits
    outputs: list[dict] = field(default_factory=list)
    size: int = 0
    rich: int = 0
    full: bool = False

    def text(self, name: str, text: str) -> None:
        """Text of a stream; neighbours are joined."""
        text = text[: max(0, self.limits.text_bytes - self.size)]
        if text:
            self.size += len(text.encode("utf-8", "replace"))
            last = self.outputs[-1] if self.outputs else {}
            if last.get("output_type") == "stream" and last["name"] == name:
                last["text"].append(text)
            else:
                self.outputs.append({"output_type": "stream", "name": name, "text": [text]})
        elif not self.full:
            self.full = True
            cut = CUT.format(f"{self.limits.text_bytes:,} bytes of text")
            self.outputs.append({"output_type": "stream", "name": "stdout", "text": [cut]})

    def display(self, data: dict) -> None:
        """A value or a figure."""
        self.rich += 1
        if self.rich > self.limits.rich_outputs:
            if self.rich == self.limits.rich_outputs + 1:
                self.text("stdout", CUT.format(f"{self.limits.rich_outputs} figures and values"))
            return
        kept = {}
        for kind in KEPT:
            value = data.get(kind)
            if isinstance(value, bytes):
                value = base64.b64encode(value).decode()
            if isinstance(value, str) and len(value) <= self.limits.text_bytes * (2 if kind == "image/png" else 1):
                kept[kind] = value
        if kept:
            self.outputs.append({"output_type": "display_data", "data": kept, "metadata": {}})

    def as_list(self) -> list[dict]:
        """The outputs as plain data."""
        return [o | {"text": "".join(o["text"])} if o["output_type"] == "stream" else o for o in self.outputs]


class Stream(io.TextIOBase):
    """Standard output or error of a cell."""

    encoding, errors = "utf-8", "replace"

    def __init__(self, collected: Collected, name: str):
        self.collected, self.name = collected, name

    def write(self, text: str) -> int:
        self.collected.text(self.name, str(text))
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return {"stdout": 1, "stderr": 2}[self.name]


class Shell:
    """One IPython shell with figures inline, warmed by a few cells."""

    def __init__(self):
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.interactiveshell import InteractiveShell
        from traitlets.config import Config

        config = Config()
        config.HistoryManager.enabled = False
        config.InteractiveShell.colors = "NoColor"
        config.InteractiveShell.autoindent = False
        owner = self

        class Inline(InteractiveShell):
            def enable_gui(self, gui=None):
                """Figures are inline, whatever `%matplotlib` asks for."""

        class Publisher(DisplayPublisher):
            def publish(self, data, metadata=None, **_):
                owner.now.display(data)

        self.shell = Inline.instance(config=config)
        self.shell.display_pub = Publisher(parent=self.shell)
        self.shell.display_trap.hook = self.show
        self.shell.showtraceback = lambda *_, **__: None
        self.shell.showsyntaxerror = lambda *_, **__: None
        self.now = Collected(Limits())
        self._figures()
        for cell in ("1/0", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", "def f(:", "3", "import warnings\nwarnings.warn('w')", "%timeit -n1 -r1 1", "%matplotlib inline", "print('é')"):  # fmt: skip  # noqa: E501
            self.run(cell, Limits())
        self.shell.reset(new_session=True)

    def _figures(self) -> None:
        import matplotlib
        from matplotlib_inline.backend_inline import configure_inline_support

        matplotlib.use("module://matplotlib_inline.backend_inline")
        configure_inline_support(self.shell, "module://matplotlib_inline.backend_inline")

    @property
    def names(self) -> dict[str, Any]:
        """The student's names."""
        return self.shell.user_ns

    def show(self, value: Any) -> None:
        """The value of a cell's last expression."""
        if value is not None:
            data, _ = self.shell.display_formatter.format(value)
            self.now.display(data)

    def run(self, source: str, limits: Limits) -> tuple[list[dict], list[str] | None]:
        """The outputs of a cell; and name, text and place of its error, or None."""
        self.now = Collected(limits)
        streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = Stream(self.now, "stdout"), Stream(self.now, "stderr")
        try:
            result = self.shell.run_cell(source, store_history=True)
            error = result.error_before_exec or result.error_in_exec
        except BaseException as caught:  # a student's hook, or time that ran out outside of the cell
            error = caught
        finally:
            sys.stdout, sys.stderr = streams
        return self.now.as_list(), None if error is None else describe(error)


def describe(error: BaseException) -> list[str]:
    """Type, text, and the line of the student's code that raised it."""
    try:
        text = str(error)
    except BaseException:
        text = ""
    line = ""
    try:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename.startswith("<ipython-input")]
        line = (own or frames)[-1].line if frames else getattr(error, "text", "") or ""
    except BaseException:
        pass
    return [type(error).__name__[:80], text[:2000], str(line or "").strip()[:300]]
