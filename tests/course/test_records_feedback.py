"""Feedback gives nothing away, runs nothing and fetches nothing."""

from __future__ import annotations

import base64
import html
import io
import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.utils import notebook_hash

sys.path.insert(0, str(Path(__file__).parent))

from records_kit import RIGHT, STAND_IN, StandIn, grade, lecturer, places_of  # noqa: E402

from grading.answers import read_answers  # noqa: E402
from grading.cells import role_of  # noqa: E402
from grading.records.batch import run_batch  # noqa: E402, F401
from grading.records.feedback import (  # noqa: E402
    MAX_PIXELS,
    MAX_WORK,
    TAGS,
    Left,
    clean,
    for_release,
    formatted,
    hidden_lines,
    page,
    picture,
    unformatted,
    visible,
    work_of,
    write_feedback,
)
from grading.records.formulas import MATH, MATH_VALUE, formula  # noqa: E402
from grading.records.ledger import Mark  # noqa: E402
from grading.records.results import fault, graded_cells, missing, plain  # noqa: E402
from grading.records.store import Receipt, Store  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PS01 = nbformat.read(ROOT / "source/ps01_foundations/ps01_foundations.ipynb", as_version=4)
EMPTY = {"problem": "", "repairs": [], "checks": []}


def lines_of_hidden_tests(master) -> list[str]:
    """Every line of every hidden test, read without the code under test."""
    found = []
    for cell in master.cells:
        inside = False
        for line in cell.source.split("\n"):
            inside = (inside or "### BEGIN HIDDEN TESTS" in line) and "### END HIDDEN TESTS" not in line
            if inside and "### BEGIN" not in line and line.strip():
                found.append(line.strip())
    return found


def said(content: str) -> str:
    """The text of a page with its entities resolved."""
    return html.unescape(content)


def test_no_line_of_a_hidden_test_of_problem_set_one_is_in_any_page():
    """H12: Not with everything right, nor wrong with a chatty message, nor when outputs repeat the tests."""
    hidden = lines_of_hidden_tests(PS01)
    assert len(hidden) > 100
    own = "\n".join(visible(cell.source) for cell in PS01.cells)  # what the notebook shows anyway
    secret = [line for line in hidden if line not in own and len(line) > 11]
    assert len(secret) > 80
    notebook = nbformat.from_dict(PS01)
    whole_tests = "\n".join(cell.source for cell in PS01.cells if role_of(cell) == "check")
    for outcome in ("pass", "wrong", "error in your code"):
        checks = [
            {"cell": cell, "outcome": outcome, "points": 0.0, "max_points": most, "hidden": hidden_, "seconds": 1.0,
             "message": f"{whole_tests}\nTraceback: File \"{ROOT}/grading/x.py\"\nHint: Read the task again."}
            for cell, most in graded_cells(PS01).items()
            for hidden_ in [outcome == "wrong"]
        ]  # fmt: skip
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = [new_output("stream", text=whole_tests), new_output("error", evalue=whole_tests)]
        content = page("ps01", PS01, notebook, EMPTY | {"checks": checks, "problem": whole_tests})
        text = said(content)
        leaked = [line for line in secret if line in text]
        assert leaked == [] and str(ROOT) not in text
        if outcome == "wrong":
            assert text.count("Hint: Read the task again.") == len(checks)


def test_a_hidden_check_says_its_hint_and_no_input():
    message = "area(320.5) gave 3, expected 4.\nHint: The radius counts twice."
    checks = [{"cell": "conv-view-check-windows", "outcome": "wrong", "points": 0.0, "max_points": 2.0,
               "hidden": True, "seconds": 0.0, "message": message}]  # fmt: skip
    text = said(page("ps01", PS01, nbformat.from_dict(PS01), EMPTY | {"checks": checks}))
    assert "The radius counts twice." in text and "inputs that you have not seen" in text and "320.5" not in text
    checks[0]["hidden"] = False
    assert "area(320.5) gave 3" in said(page("ps01", PS01, nbformat.from_dict(PS01), EMPTY | {"checks": checks}))


def test_a_fault_and_a_missing_notebook_are_told_without_their_reasons_inside():
    result = fault(PS01, "the server at /srv/secret died", "1", "")
    text = said(page("ps01", PS01, new_notebook(), result | {"problem": ""}))
    assert "Your lecturer looks at it" in text and "/srv/secret" not in text and "open of 2" in text
    text = said(page("ps01", PS01, new_notebook(), missing(PS01, "No notebook was handed in.", "1", "")))
    assert "No notebook was handed in." in text and "(Score: 0 / 40)" in text


def png(width: int = 3, height: int = 2) -> str:
    from PIL import Image

    content = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(content, "PNG")
    return base64.b64encode(content.getvalue()).decode()


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "<iframe src='https://evil.example'></iframe>",
    "<style>body{display:none}</style>",
    "<svg onload=alert(1)>",
    "<b onmouseover=alert(1)>b</b>",
    "<form action='https://evil.example'><input></form>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<base href='https://evil.example'>",
    "```html\n<script>alert(1)</script>\n```",
    "<b title='\"><script>alert(1)</script>'>b</b>",
    "$</math><script>alert(1)</script>$",
    "$$x</mi></math><img src=x onerror=alert(1)>$$",
    r"$\text{<img src=x onerror=alert(1)>}$",
    r"$\text{&lt;script&gt;alert(1)&#60;/script&#x3e;}$",
    r"$\unicode{x3c}script\unicode{3e}$ and $\verb|<script>|$",
    r"$\mathrm{＜script＞}\text{\u202e<svg onload=alert(1)>}$",
    r"$\operatorname{<script>}$ $\tag{<script>}x$ $\mbox{<script>$<script>$}$",
    r"$\href{javascript:alert(1)}{x}$",
    r"$\class{a}{x}\style{background:url(https://evil.example)}{x}\color{url(//evil.example)}{x}$",
    r'$\hspace{1em" onclick="alert(1)}\rule{1em" style="x}{9em}x$',
    '<details open="\n\n$$x" onclick="alert(1)$$\n\n">',
    "<math><maction actiontype='statusline' href='javascript:alert(1)' onclick='alert(1)'>x</maction></math>",
    "<math><annotation-xml encoding='text/html'><script>alert(1)</script></annotation-xml></math>",
    "<math><mtext><table><mglyph src='https://evil.example'><style><img src=x onerror=alert(1)></style></table></mtext></math>",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_a_student_runs_in_a_page(attack):
    """E31 of the table of cases."""
    cells = [
        new_markdown_cell(attack),
        new_code_cell(attack, outputs=[
            new_output("display_data", {"text/html": attack, "text/plain": attack, "image/svg+xml": attack}),
            new_output("display_data", {"text/html": attack, "application/javascript": attack}),
            new_output("stream", text=attack),
            new_output("display_data", {"image/png": attack}),
        ]),
    ]  # fmt: skip
    result = EMPTY | {"problem": attack, "repairs": [attack]}
    content = page(attack, PS01, new_notebook(cells=cells), result, {}, {"": attack})
    tags = re.findall(r"<(/?[a-zA-Z!][^\s>]*)([^>]*)>", content)
    names = {name.strip("/").lower() for name, _ in tags}
    assert not names & {"script", "iframe", "form", "input", "svg", "base", "object", "embed", "link", "img"}
    assert not any(re.search(r"(?i)\bon\w+\s*=|javascript:|src\s*=", rest) for _, rest in tags), tags
    assert sum(name == "meta" for name, _ in tags) == 2 and sum(name == "style" for name, _ in tags) == 1
    assert "default-src 'none'" in content
    tags = re.findall(r"<(/?)([^\s>]*)([^>]*)>", formatted(attack))
    assert {name for _, name, _ in tags} <= {*TAGS, *MATH} and not re.search(r"<(?!/?[a-z])", formatted(attack))
    for _, tag, rest in tags:
        for name, value in re.findall(r'([^\s="]+)(?:="([^"]*)")?', rest):
            assert tag in ("a", "details") or name in MATH[tag] and MATH_VALUE.fullmatch(value), (tag, name, value)


def test_every_formula_of_the_course_is_drawn():
    """None stays as TeX between its dollars."""
    drawn = 0
    for path in sorted((ROOT / "source").rglob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                content = formatted(cell.source)
                text = re.sub(r"(?s)<(code|pre)>.*?</\1>", "", content)
                assert "$" not in text and "\\begin" not in text, (path.name, text)
                drawn += content.count("<math")
    assert drawn > 100


def test_two_formulas_of_the_course_say_what_they_said():
    law = formatted(r"$$L(N, D) = E + \frac{A}{N^\alpha} + \frac{B}{D^\beta}$$")
    assert '<math display="block">' in law and law.count("<mfrac>") == law.count("<msup>") == 2
    assert "<mi>N</mi><mi>α</mi>" in law and said(re.sub("<[^>]*>", "", law)).strip() == "L(N,D)=E+ANα+BDβ"
    limit = formatted(r"so $\min(1, W \cdot \text{ilp} / \text{latency})$ is")
    assert '<mo lspace="0" rspace="0.167em">min</mo>' in limit and "<mtext>latency</mtext>" in limit
    assert re.sub("<[^>]*>", "", limit).strip() == "so min(1,W·ilp/latency) is"


SLOW = ["\\begin{x}", "<i><p>", "\\\\[", "a|b\n-|-\n", "_a_ ", "<ul><li>", "$a$", "x " * 9, "a  "]


@pytest.mark.parametrize("unit", SLOW)
def test_text_that_is_slow_to_format_is_shown_as_it_was_typed(unit):
    """The limit is one of signs and letters, not of time: a page is the same on every machine."""
    short, long = unit * 20, unit * 20_000
    assert formatted(short) != unformatted(short)
    content = formatted(long)
    assert content == unformatted(long) and said(content).count(unit) >= 15_000 // len(unit)
    assert f"[{len(long) - 20_000} more characters]" in content


def test_a_page_formats_so_much_of_a_student_and_all_of_the_instructor():
    own = [cell.source for cell in PS01.cells if cell.cell_type == "markdown"]
    mine = [f"**{number}** " + "_a_ " * 100 for number in range(200)]
    assert sum(map(work_of, mine)) > 5 * MAX_WORK > 5 * work_of(max(own, key=len))
    book = new_notebook(cells=[new_markdown_cell(text) for pair in zip(mine, own * 9, strict=False) for text in pair])
    content = page("ps01", PS01, book, EMPTY)
    assert all(formatted(text) in content for text in own)
    done = content.count("<em>a</em>") // 100
    assert done == MAX_WORK // work_of(mine[0]) or done == MAX_WORK // work_of(mine[-1])
    assert content.count("_a_ " * 100) == len(mine[: len(own) * 9]) - done


def test_a_short_answer_behind_a_long_text_is_still_formatted():
    book = new_notebook(cells=[new_markdown_cell("<b>" * 50_000), new_markdown_cell("It is **so**.")])
    assert "<p>It is <strong>so</strong>.</p>" in page("ps01", PS01, book, EMPTY)


def test_every_text_of_the_course_is_formatted():
    for path in sorted((ROOT / "source").rglob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                assert work_of(cell.source) <= MAX_WORK, (path.name, cell.id)


def test_a_text_that_the_converter_refuses_stops_no_page():
    """A picture that was pasted into a cell is one: nbconvert raises when it is not attached."""
    book = new_notebook(cells=[new_markdown_cell("See ![it](attachment:it.png) <b>\ud800"), new_markdown_cell("**So.**")])
    content = page("ps01", PS01, book, EMPTY)
    assert "<pre>See ![it](attachment:it.png) &lt;b&gt;?</pre>" in content and "<strong>So.</strong>" in content


def test_no_lexer_of_the_student_s_choice_reads_a_block_of_code():
    assert formatted("```perl\n$x < 1\n```") == formatted("```\n$x < 1\n```") == "<pre><code>$x &lt; 1\n</code></pre>\n"


def test_pictures_of_a_page_have_so_many_pixels_together():
    side = int(MAX_PIXELS**0.5)
    left, data = Left(), png(side, side)
    kinds = ["<img" in picture(data, left) for _ in range(5)]
    assert kinds == [True, True, True, False, False]


@pytest.mark.parametrize("claimed, told", [("2026-01-01 10:00:00 UTC", True), ("2026-01-01 10:00:00 /proc/self/mem", False)])
def test_the_time_for_release_is_one_that_nbgrader_reads(tmp_path, claimed, told):
    receipt = Receipt(STAND_IN, "ana", 1, {}, "folder: ana", "2026-01-02T00:00:00+00:00", claimed=claimed)
    content = for_release(Store(tmp_path), receipt)["timestamp.txt"].decode()
    assert content == (claimed if told else "2026-01-02T00:00:00+00:00"), "no end of line, as nbgrader writes it"


def test_what_is_no_formula_or_not_understood_stays_as_its_text():
    assert formatted("$30,000 or $25,000 or \\$20,000") == "<p>$30,000 or $25,000 or $20,000</p>\n"
    assert formatted("`$x$`") == "<p><code>$x$</code></p>\n"
    for tex in (r"\nosuch{x} < 1", r"\frac{a", "a & b", r"\left( x", "x_", r"\cancel{x}", r"\begin{what} a & b"):
        assert formatted(f"${tex}$") == f"<p>${html.escape(tex, quote=False)}$</p>\n"
    assert formula(r"\text{<img>}", "inline") == "<math><mrow><mtext>&lt;img&gt;</mtext></mrow></math>"
    assert formula(r"\begin{aligned} a &= b \\ &= c \end{aligned}", "block").count("<mtr>") == 2
    assert formula(r"\begin{cases} 1 & \text{if } x < 0 \\ 0 & \text{else} \end{cases}", "block").count("<mtr>") == 2


def test_a_formula_that_would_take_long_stays_as_its_text():
    deep = ["{" * 10**5, r"\frac{" * 160 + "a", "^" * 1000, "x_{" * 300 + "a" + "}" * 300, r"\left(" * 150, "x" * 1001]
    deep += [f"{'{' * 60}a{'}' * 60}", r"\sqrt" * 150 + "a"]
    names = "bcdefghijklm"
    copies = "".join(rf"\newcommand{{\{a}}}[1]{{\{b}{{#1#1#1#1}}}}" for a, b in zip(names, names[1:])) + r"\b{x}"
    nested = r"\newenvironment{a}{\a\a}{}" + r"\def\a{\b\b}\def\b{x}\begin{a}\end{a}"
    for tex in (*deep, copies, nested):
        assert formula(tex, "inline") == "" and "<math" not in formatted(f"${tex}$"), tex[:40]
    many = formatted("$x$ " * 1_500)
    assert 100 < many.count("<math") < 1000 and many.count("$x$") + many.count("<math") == 1_500


def test_formatting_works_and_pictures_are_written_again():
    assert formatted("**bold** `x < 1`") == "<p><strong>bold</strong> <code>x &lt; 1</code></p>\n"
    assert "<msubsup><mi>a</mi><mn>1</mn><mn>2</mn></msubsup>" in formatted("so $a_1^2$ is")
    widget = new_output("display_data", {"application/vnd.jupyter.widget-view+json": {}, "image/png": png(),
                                         "text/plain": "4 blocks"})  # fmt: skip
    figure = new_output("display_data", {"image/png": png(40, 30), "text/plain": "<Figure>"})
    big = new_output("display_data", {"image/png": png(3000, 3000)})
    content = page("t", PS01, new_notebook(cells=[new_code_cell("1", outputs=[widget, figure, big])]), EMPTY)
    assert content.count('<img alt="output" src="data:image/png;base64,') == 2 and "too large" in content
    assert "<Figure>" not in said(content) and "http" not in content.replace('http-equiv="Content', "")


def test_text_of_outputs_is_clean():
    assert clean("a\x00b\x1b[31mred\x1b[0m\x1b]8;;http://x\x07link") == "abredlink"
    assert clean("File /home/lecturer/course/grading/x.py, line 3") == "File …/x.py, line 3"
    assert clean(r"C:\Users\lecturer\x.py") == "…/x.py"
    assert clean("12 km/h and a/b and https://example.org/a/b") == "12 km/h and a/b and https://example.org/a/b"
    assert len(clean("x" * 10**6)) < 21_000 and clean("\ud800") == "?"


def test_marks_and_comments_of_a_person_are_there(tmp_path):
    course = lecturer(tmp_path)
    grade(course.root)
    with course.gradebook() as book:
        row = book.find_grade("row-means-why", STAND_IN, STAND_IN, "ana")
        row.manual_score, row.needs_manual_grade = 1.5, False
        book.find_comment("row-means-why", STAND_IN, STAND_IN, "ana").manual_comment = "Which case do you <mean>?"
        book.db.commit()
    from records_kit import Wish

    pages = []
    for _ in range(2):
        run_batch(
            places_of(course.root),
            Wish(STAND_IN, source=course.root / "inbox"),
            StandIn,
            print,
            version="1",
            after=lambda batch: pages.append(write_feedback(batch)),
        )
    assert pages == [6, 0], "a page that says the same is not written again"
    text = said((course.root / f"grading/feedback/ana/{STAND_IN}/{STAND_IN}.html").read_text(encoding="utf-8"))
    assert "(Score: 9.5 / 10)" in text and "1.5 of 2 points" in text and "Which case do you <mean>?" in text
    others = [name for name in ("ben", "cleo", "dan", "eve", "fay") if re.search(rf"\b{name}\b", text)]
    assert others == [] and "HIDDEN" not in text and "kibibytes(0, 8)" not in text


def test_a_page_says_what_a_person_gave():
    """Points for a check that did not pass, extra ones for one that did, and an essay; in the table and at the cell."""
    cells = {"gradient-audit-check-sums": (0.0, "not attempted"), "row-column-check-matrix": (3.0, "pass"),
             "conv-view-check-fold": (0.0, "wrong")}  # fmt: skip
    most = graded_cells(PS01)
    checks = [
        {"cell": cell, "outcome": outcome, "points": points, "max_points": most[cell], "hidden": False, "message": ""}
        for cell, (points, outcome) in cells.items()
    ]
    marks = {"gradient-audit-check-sums": Mark(0.0, 1.0), "row-column-check-matrix": Mark(3.0, None, 1.5),
             "conv-view-check-fold": Mark(0.0)}  # fmt: skip
    text = re.sub("<[^>]*>", "|", page("ps01", PS01, nbformat.from_dict(PS01), EMPTY | {"checks": checks}, marks))
    sums, matrix, fold = (f"{most[cell]:g}" for cell in cells)
    assert f"|not attempted; marked by hand||1 of {sums}|" in text
    assert f"|pass; 1.5 extra by hand||4.5 of {matrix}|" in text and f"|wrong||0 of {fold}|" in text
    assert f"not attempted, 1 of {sums} points (marked by hand)|" in text
    assert f"pass, 4.5 of {matrix} points (1.5 extra by hand)|" in text and f"wrong, 0 of {fold} points|" in text


def test_every_wrong_version_of_problem_set_one_gives_a_page():
    """Pages of real wrong answers: no hidden line in any, whatever the answer's text is."""
    versions = [version for version in read_answers(ROOT / "tests/answers/ps01_foundations.py")]
    secret = hidden_lines(PS01)
    for version in versions[::5]:
        notebook = nbformat.from_dict(PS01)
        for cell in notebook.cells:
            if cell.id == f"{version.exercise}-answer":
                cell.source = version.source
        result = missing(PS01, "", "1", "")
        text = said(page("ps01", PS01, notebook, result, {"recompute-check-fits": Mark(2.0)}))
        own = [line for line in secret if line in version.source]
        assert [line for line in secret if line in text and line not in own] == []
    assert plain  # the form that workers hand over


@pytest.mark.skipif(os.name != "posix", reason="nbgrader's exchange works on Unix only")
def test_released_pages_reach_their_students_and_nobody_else(tmp_path, monkeypatch):
    """T19: a secret that was changed, or none, stops nobody's release, and no page lies under a name that can be guessed."""
    course = lecturer(tmp_path)
    course.do("generate_assignment", STAND_IN)
    course.do("release_assignment", STAND_IN)
    for student in ("yan", "zoe"):
        course.hand_in(student, STAND_IN, {STAND_IN: RIGHT})
    (tampered,) = (course.exchange / course.course_id / "inbound").glob("zoe+*")
    (tampered / "submission_secret.txt").chmod(0o600)
    (tampered / "submission_secret.txt").write_text("0" * 128)
    monkeypatch.setenv("MLSYS_EXCHANGE", str(course.exchange))
    grade(course.root, source=None)
    grade(course.root, after=write_feedback)
    assert "yan" in {path.parent.parent.name for path in (course.root / "grading/feedback").glob(f"*/{STAND_IN}/{STAND_IN}.html")}
    course.command("release_feedback", STAND_IN)
    released = {path.stem for path in (course.exchange / course.course_id / "feedback").glob("*.html")}
    assert len(released) == 8 and notebook_hash(secret="0" * 128, notebook_id=STAND_IN) not in released
    for student, pages in (("yan", 1), ("zoe", 0)):
        course.exchange_step("FetchFeedback", student, STAND_IN)
        found = list(course.work_of(student, STAND_IN)[0].parent.glob("feedback/*/*.html"))
        assert len(found) == pages and all("(Score: 8 / 10)" in path.read_text(encoding="utf-8") for path in found)
