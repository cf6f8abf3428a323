"""Feedback: one page for each notebook, which gives nothing away and runs nothing.

A page is built from the ledger's record and the autograded notebook in the store. The text of hidden tests is
cut out at its marks; a hidden check that failed says its hint and no input; paths of the machine are cut
from outputs. Text from the student is escaped, formatted text goes through an allow-list, pictures are
decoded and written again; formulas become MathML of an allow-list, which browsers draw. The page holds no script and
fetches nothing: its own policy forbids both.
"""

from __future__ import annotations

import base64
import hmac
import html
import io
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from ..cells import exercise_of
from ..sealed.report import FAULT, PASS
from .formulas import MATH, MAX_TEX, formula, is_math
from .ledger import Ledger, Mark
from .places import put_bytes
from .reading import time_of
from .store import Receipt, Store

SECRET = "submission_secret.txt"
HIDDEN = re.compile(r"(?ms)^[^\n]*### BEGIN HIDDEN TESTS.*?(^[^\n]*### END HIDDEN TESTS[^\n]*\n?|\Z)")
PATHS = re.compile(r"(?<![\w.:/~])(?:[A-Za-z]:[\\/]|[\\/])(?:[^\s\\/'\"<>|:]+[\\/])+([^\s\\/'\"<>|:]*)")
ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SIGN = re.compile(r"[^\w ]|_|(?<= ) ")  # a run of spaces is slow too
MAX_TEXT, MAX_PIXELS = 20_000, 4_000_000
MAX_WORK = 20_000  # of `work_of`: 0.6 s on one core with the slowest of some 10,000 texts made to be slow
TAGS = (
    "p br hr h1 h2 h3 h4 h5 h6 ul ol li strong em b i s del code pre blockquote table thead tbody tr th td sub sup "
    "details summary a span"
).split()
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
pre { background: #f5f5f3; padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
pre.out { background: none; border-left: 3px solid #ccc; margin-left: 1rem; }
table { border-collapse: collapse; } th, td { border: 1px solid #ccc; padding: .25rem .6rem; text-align: left; }
section.check, section.mark { border: 1px solid #bbb; border-left-width: 6px; padding: .3rem .9rem; margin: 1rem 0; }
section.pass { border-left-color: #2b7a3d; } section.lost { border-left-color: #b3392c; }
section.mark { border-left-color: #4a62ad; } img { max-width: 100%; } .note { background: #fff4d6; padding: .4rem .8rem; }
math[display=block] { margin: .6rem 0; } [mathvariant=bold] { font-weight: bold; }
mtd[columnalign=left] { text-align: left; justify-items: start; } mtd[columnalign=right] + mtd { padding-left: 0; }
mtd[columnalign=right] { text-align: right; justify-items: end; padding-right: 0; }
"""
UNSEEN = "A check with inputs that you have not seen did not pass."


@dataclass
class Left:
    """What a student's part of one page may still cost; what is past it is shown as plain text, or named."""

    work: int = MAX_WORK
    pixels: int = 3 * MAX_PIXELS


def work_of(markdown: str) -> int:
    """What formatting a text may cost: a little for each letter, four times that for each sign that may be markup.

    >>> work_of("two words"), work_of("**<b>**")
    (59, 75)
    """
    return 50 + len(markdown) + 3 * len(SIGN.findall(markdown))


def visible(source: str) -> str:
    """A check's source without its hidden tests.

    >>> visible("print(1)\\n### BEGIN HIDDEN TESTS\\nassert False\\n### END HIDDEN TESTS\\nprint(2)")
    'print(1)\\nprint(2)'
    """
    return HIDDEN.sub("", source)


def hidden_lines(master: NotebookNode) -> set[str]:
    """Lines that stand in hidden tests and nowhere else in an instructor's notebook, long enough to tell something."""
    hidden, shown = set(), set()
    for cell in master.cells:
        open_part = visible(cell.source)
        shown |= {line.strip() for line in open_part.split("\n")}
        hidden |= {line.strip() for part in HIDDEN.finditer(cell.source) for line in part[0].split("\n")}
    return {line for line in hidden - shown if len(line) > 11 and "HIDDEN TESTS" not in line}


def clean(text: str, secrets: set[str] = frozenset()) -> str:
    """A student's output as text: no control codes, no path of the machine, no line of a hidden test.

    >>> clean(chr(27) + "[31mread /home/ana/course/data.csv")
    'read …/data.csv'
    """
    text = CONTROL.sub("", ANSI.sub("", text.replace("\r\n", "\n")))
    text = text.encode("utf-8", "replace").decode("utf-8")
    if any(secret in text for secret in secrets):
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "[withheld]")
    return _cut(PATHS.sub(lambda match: "…/" + match[1], text))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + f"\n[{len(text) - MAX_TEXT} more characters]"


def _printed(source: str) -> str:
    """A cell's text without control characters, and in characters that a file can hold."""
    return CONTROL.sub("", source).encode("utf-8", "replace").decode("utf-8")


def unformatted(source: str) -> str:
    """A cell's text as it was typed."""
    return f"<pre>{html.escape(_cut(_printed(source)))}</pre>"


@lru_cache(512)
def formatted(markdown: str) -> str:
    """Formatted text as HTML of an allow-list: no script, handler, style, picture or frame; formulas as MathML.

    A text that is too much work, or that the converter cannot take, such as one with an attached picture, is shown as
    it was typed.
    """
    if work_of(markdown) > MAX_WORK:
        return unformatted(markdown)
    try:
        return _formatted(_printed(markdown))
    except Exception:  # it fails in several ways, and none of them may keep a page
        return unformatted(markdown)


def _formatted(markdown: str) -> str:
    import bleach
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        left = 10 * MAX_TEX  # of the work that a cell's formulas may make

        def math(self, tex: str, display: str) -> str:
            self.left -= len(tex) + 20
            return formula(tex, display) if self.left >= 0 else ""

        def inline_math(self, body: str) -> str:  # `$5 or $` is no formula
            return body == body.strip() and self.math(body, "inline") or super().inline_math(body)

        def block_math(self, body: str) -> str:
            return self.math(body, "block") or super().block_math(body)

        def latex_environment(self, name: str, body: str) -> str:
            tex = f"\\begin{{{name}}}{body}\\end{{{name}}}"
            return self.math(tex, "block") or super().latex_environment(name, body)

        def block_code(self, code: str, info: str | None = None) -> str:  # no colours: a lexer can take for ever
            return super().block_code(code)

    page = MarkdownWithMath(renderer=Renderer(escape=False, exclude_anchor_links=True)).render(markdown)
    attributes = {"a": _is_web_link, "details": ["open"]} | dict.fromkeys(MATH, is_math)
    return bleach.clean(page, tags=[*TAGS, *MATH], attributes=attributes, strip=True)


def _is_web_link(tag: str, name: str, value: str) -> bool:
    """A link of the course's own pages leads nowhere from here; any other scheme could run something."""
    return name == "href" and value.startswith(("https://", "http://"))


def picture(data: str, left: Left | None = None) -> str:
    """A PNG as an image tag: decoded, measured and written again; empty if it is none."""
    from PIL import Image

    left = left or Left()
    try:
        content = base64.b64decode(data, validate=False)
        with Image.open(io.BytesIO(content), formats=["PNG"]) as image:
            if image.width * image.height > MAX_PIXELS:
                return "<p>[a picture that is too large]</p>"
            left.pixels -= image.width * image.height
            if left.pixels < 0:
                return "<p>[one picture too many]</p>"
            again = io.BytesIO()
            image.convert("RGBA").save(again, "PNG")
    except Exception:  # a broken picture fails in many ways, and none of them matters
        return ""
    return f'<img alt="output" src="data:image/png;base64,{base64.b64encode(again.getvalue()).decode()}">'


def outputs(cell: NotebookNode, secrets: set[str], left: Left) -> str:
    """What a cell left: text and pictures. A widget shows the picture that it leaves beside itself."""
    parts = []
    for output in cell.get("outputs", []):
        kind, data = output.get("output_type"), output.get("data", {})
        if kind == "stream":
            parts.append(_pre(clean(_text(output.get("text")), secrets)))
        elif kind == "error":
            parts.append(_pre(clean(f"{output.get('ename')}: {output.get('evalue')}", secrets)))
        elif "image/png" in data:
            parts.append(picture(_text(data["image/png"]), left))
        elif "text/plain" in data:
            parts.append(_pre(clean(_text(data["text/plain"]), secrets)))
    return "".join(parts)


def _text(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _pre(text: str) -> str:
    return f'<pre class="out">{html.escape(text)}</pre>' if text.strip() else ""


def told(check: dict, secrets: set[str]) -> str:
    """What a student reads about one check. A hidden one that failed says its hint and none of its inputs."""
    if check["outcome"] == FAULT:
        return "This check could not be decided by machine. Your lecturer looks at it."
    message = clean(check["message"], secrets)
    if check["hidden"] and check["outcome"] != PASS:
        hints = [line for line in message.split("\n") if line.startswith("Hint: ")]
        message = "\n".join([UNSEEN, *hints])
    return message


def page(
    title: str,
    master: NotebookNode,
    notebook: NotebookNode,
    result: dict,
    marks: dict[str, Mark] = {},  # noqa: B006  (only read)
    comments: dict[str, str] = {},  # noqa: B006
    late: float = 0.0,
) -> str:
    """The feedback page of one notebook. marks and comments: by cell, as the gradebook has them; late: points off."""
    secrets, left = hidden_lines(master), Left()
    own = {cell.source for cell in master.cells}
    checks = {check["cell"]: check for check in result["checks"]}
    points = {
        cell.metadata.nbgrader.grade_id: float(cell.metadata.nbgrader.points)
        for cell in master.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    }
    got = sum(marks.get(cell, Mark(checks.get(cell, {}).get("points"))).score for cell in points)
    body = [f"<h1>{html.escape(title)}</h1>", f"<p>(Score: {got - late:g} / {sum(points.values()):g})</p>"]
    body += [f"<p>{late:g} points are taken off because it came late.</p>"] * (late > 0)
    undecided = any(check["outcome"] == FAULT for check in checks.values())
    for note in dict.fromkeys(["" if undecided else result["problem"], *result["repairs"]]):
        if note:
            body.append(f'<p class="note">{html.escape(clean(note, secrets))}</p>')
    body.append(_table(points, checks, marks))
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name in checks:
            body.append(_check(checks[name], marks.get(name), secrets))
        elif cell.cell_type == "markdown":
            work = 0 if cell.source in own else work_of(cell.source)
            body.append(formatted(cell.source) if work <= left.work else unformatted(cell.source))
            left.work -= work if work <= left.work else 0
        elif cell.cell_type == "code":
            source = _printed(visible(cell.source))
            body.append(f"<pre><code>{html.escape(source)}</code></pre>{outputs(cell, secrets, left)}")
        if name in points and name not in checks:
            mark = marks.get(name, Mark(None))
            state = "not marked yet" if mark.waits else f"{mark.score:g} of {points[name]:g} points{_in_brackets(by_hand(mark))}"
            body.append(f'<section class="mark"><p><b>{html.escape(name)}</b>: {state}</p></section>')
        if comments.get(name):
            body.append(f'<section class="mark"><p>{html.escape(clean(comments[name]))}</p></section>')
    there = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in notebook.cells}
    body += [_check(check, marks.get(name), secrets) for name, check in checks.items() if name not in there]
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def by_hand(mark: Mark | None, always: bool = False) -> str:
    """What a person gave. always: whether the cell is one that no check decides.

    >>> by_hand(Mark(0.0, 1.0)), by_hand(Mark(3.0, None, 1.5)), by_hand(Mark(3.0))
    ('marked by hand', '1.5 extra by hand', '')
    """
    words = ["marked by hand"] * (always or mark is not None and mark.manual is not None)
    if mark and mark.extra:
        words.append(f"{mark.extra:g} extra by hand")
    return ", ".join(words)


def _in_brackets(words: str) -> str:
    return f" ({words})" * bool(words)


def _table(points: dict[str, float], checks: dict[str, dict], marks: dict[str, Mark]) -> str:
    rows = []
    for cell, most in points.items():
        mark, check = marks.get(cell), checks.get(cell)
        outcome = "; ".join(filter(None, [check["outcome"] if check else "", by_hand(mark, check is None)]))
        waits = check is not None and check["points"] is None and (mark is None or mark.manual is None)
        score = mark.score if mark else (check["points"] or 0.0) if check else 0.0
        score = "open" if waits or check is None and mark is not None and mark.waits else f"{score:g}"
        name = exercise_of(cell) or cell
        row = (name, cell, outcome, f"{score} of {most:g}")
        rows.append("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>")
    return (
        "<table><thead><tr><th>exercise</th><th>check</th><th>outcome</th><th>points</th></tr></thead><tbody>"
        + "".join(rows)
        + "</tbody></table>"
    )


def _check(check: dict, mark: Mark | None, secrets: set[str]) -> str:
    score = mark.score if mark else check["points"]
    score = "open" if check["points"] is None and (mark is None or mark.manual is None) else f"{score or 0:g}"
    kind = "pass" if check["outcome"] == PASS else "lost"
    head = f"{check['cell']}: {check['outcome']}, {score} of {check['max_points']:g} points{_in_brackets(by_hand(mark))}"
    text = told(check, secrets) if check["outcome"] != PASS else ""
    message = f"<pre>{html.escape(text)}</pre>" if text.strip() else ""
    return f'<section class="check {kind}"><p><b>{html.escape(head)}</b></p>{message}</section>'


class Pages:
    """The pages of an assignment: what the gradebook says of all its submissions is read once."""

    def __init__(self, ledger: Ledger, assignment: str):
        self.assignment = assignment
        self.marks, self.comments = ledger.scores(assignment), ledger.comments(assignment)
        self.late = ledger.penalties(assignment)

    def page(self, student: str, name: str, master: NotebookNode, notebook: NotebookNode, result: dict) -> str:
        """The page of one notebook of one student."""
        marks, comments = (
            {cell: value for (book, cell), value in found.get(student, {}).items() if book == name}
            for found in (self.marks, self.comments)
        )
        late = self.late.get(student, {}).get(name, 0.0)
        return page(f"{self.assignment}/{name}", master, notebook, result, marks, comments, late)


def write_feedback(batch) -> int:
    """Write the pages of all submissions of a finished batch that changed; how many."""
    assignment, written = batch.outcome.assignment, 0
    pages = Pages(batch.ledger, assignment)
    for student, line in batch.outcome.lines.items():
        if line.state in ("held", "not written") or not line.results:
            continue
        folder: Path = batch.places.feedback / student / assignment
        for name, result in line.results.items():
            notebook = nbformat.reads(batch.store.get(result["object"]).decode("utf-8"), as_version=4)
            content = pages.page(student, name, batch.parsed[name], notebook, result).encode("utf-8")
            path = folder / f"{name}.html"
            if not path.is_file() or path.read_bytes() != content:
                put_bytes(path, content, mode=0o644)
                written += 1
        for name, content in for_release(batch.store, batch.jobs[student].receipt).items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != content:
                put_bytes(path, content)
    return written


def for_release(store: Store, receipt: Receipt) -> dict[str, bytes]:
    """What `nbgrader release_feedback` wants beside the pages, for every student: without it the command stops.

    Pages are handed out under a name made from the secret that nbgrader drew when the student submitted. One that was changed, or
    none, is replaced by one of ours: a page must not lie under a name that somebody can guess.
    """
    kept = receipt.files.get(SECRET)
    secret = store.get(kept).strip() if kept else b""
    if not re.fullmatch(rb"[0-9a-f]{128}", secret) or len(set(secret)) < 10:
        parts = f"feedback\0{receipt.assignment}\0{receipt.student}\0{receipt.number}"
        secret = hmac.new(store.secret(), parts.encode(), "sha512").hexdigest().encode()
    when = receipt.claimed if time_of(receipt.claimed) else receipt.received
    return {"timestamp.txt": when.encode(), SECRET: secret}  # without an end of line, as nbgrader writes both
