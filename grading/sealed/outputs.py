"""From what the servers said to a graded notebook. Nothing of the student's side is believed or passed on unread."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from .limits import Limits
from .reading import clean
from .report import FAULT, PASS, CheckResult

PNG = b"\x89PNG\r\n\x1a\n"
MOST_PIXELS = 16_000_000
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND", b"pHYs", b"gAMA", b"sRGB", b"cHRM", b"sBIT"}


def plain_text(value: Any, most: int) -> str:
    """Text without control characters, at most so long; "" for what is no text."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", clean(value[:most])) if isinstance(value, str) else ""


def checked_png(text: Any) -> str | None:
    """A picture in base64, rebuilt from its parts that draw; None for anything else."""
    try:
        data = base64.b64decode(text, validate=False)
        parts, place, size = [PNG], len(PNG), (0, 0)
        if not data.startswith(PNG):
            return None
        while place < len(data):
            length, kind = struct.unpack_from(">I4s", data, place)
            chunk = data[place : place + 12 + length]
            if len(chunk) != 12 + length or binascii.crc32(chunk[4:-4]) != struct.unpack(">I", chunk[-4:])[0]:
                return None
            if kind == b"IHDR":
                size = struct.unpack_from(">II", chunk, 8)
            if kind in CHUNKS:
                parts.append(chunk)
            place += 12 + length
        fits = 0 < size[0] * size[1] <= MOST_PIXELS
        return base64.b64encode(b"".join(parts)).decode() if fits and parts[-1][4:8] == b"IEND" else None
    except (binascii.Error, struct.error, TypeError, ValueError):
        return None


def checked_outputs(event: Any, limits: Limits) -> list[NotebookNode]:
    """The outputs of a student's cell, as text and checked pictures."""
    if not isinstance(event, Mapping):
        return []
    outputs, left = [], 2 * limits.text_bytes
    items = event.get("outputs")
    for item in items[: 4 * limits.rich_outputs] if isinstance(items, list) else []:
        if not isinstance(item, Mapping):
            continue
        if item.get("output_type") == "stream":
            text = plain_text(item.get("text"), left)
            left -= len(text)
            if text:
                outputs.append(new_output("stream", name="stderr" if item.get("name") == "stderr" else "stdout", text=text))
        elif item.get("output_type") == "display_data" and isinstance(item.get("data"), Mapping):
            data = {"text/plain": plain_text(item["data"].get("text/plain"), left)}
            left -= len(data["text/plain"])
            picture = checked_png(item["data"].get("image/png"))
            if picture:
                data["image/png"] = picture
            outputs.append(new_output("display_data", data=data))
    error = event.get("error")
    if isinstance(error, list) and len(error) == 3:
        name, text, line = (plain_text(part, 2000) for part in error)
        outputs.append(error_output(name, text, f"in the line `{line}`" if line else ""))
    why = {"time": "The cell was stopped: it took too long.", "died": "The cell ended its Python process."}
    sentence = why.get(str(event.get("end_of_process")))
    if sentence:
        outputs.append(error_output("LimitReached", sentence))
    return outputs


def error_output(name: str, text: str, where: str = "") -> NotebookNode:
    """An error as a cell shows it: a sentence, no traceback of ours."""
    lines = [f"{name}: {text}", *([where] if where else [])]
    return new_output("error", ename=name, evalue=text, traceback="\n".join(lines).splitlines())


def check_outputs(result: CheckResult, said: str) -> list[NotebookNode]:
    """The outputs of a check cell in the form that nbgrader's SaveAutoGrades takes for its points."""
    outputs = [new_output("stream", name="stdout", text=said)] if said else []
    if result.outcome == PASS:
        return outputs
    if result.points and result.points < result.max_points:
        value = f"{result.points:g}"
        return [*outputs, new_output("execute_result", data={"text/plain": value}, execution_count=None)]
    name = "GraderFault" if result.outcome == FAULT else "CheckFailed"
    return [*outputs, error_output(name, result.message if result.outcome != FAULT else f"{FAULT}: {result.message}")]


def with_note(notebook: NotebookNode, sentences: tuple[str, ...]) -> NotebookNode:
    """The notebook with what was put right, or why nothing could be read, at its top; feedback shows it there."""
    if sentences:
        note = "\n\n".join(f"**Note.** {sentence}" for sentence in sentences)
        notebook.cells.insert(0, new_markdown_cell(note, id="note-of-the-grader"))
    return notebook
