"""The eyes of the browser tests see what they should: a test that cannot fail proves nothing."""

from __future__ import annotations

import pytest
from kit import look
from kit.chromium import LOCAL, NoBrowser, candidates, start_browser

pytestmark = pytest.mark.browser

PAGE = """<div class="jp-NotebookPanel"><div class="jp-OutputArea-output" style="background:#111;color:#fff">
<svg role="img" aria-label="a bar" width="200" height="60"><rect x="0" y="0" width="200" height="30" fill="#f89c20"/>
<text x="5" y="20" fill="#fff">pale</text><text x="5" y="50" fill="currentColor">clear</text></svg>
<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></div></div>"""


def test_missing_browser_is_a_sentence(monkeypatch, tmp_path):
    """A named browser that does not exist ends with what to do about it."""
    pytest.importorskip("playwright.sync_api")
    monkeypatch.setenv("MLSYS_BROWSER", str(tmp_path / "chrome"))
    assert candidates() == [str(tmp_path / "chrome")]
    with pytest.raises(NoBrowser, match="does not start.*Install Chromium"):
        with start_browser():
            pass


@pytest.mark.parametrize(
    "url, local",
    [
        ("http://127.0.0.1:8888/lab", True),
        ("ws://localhost:8888/api", True),
        ("data:image/png;base64,AA", True),
        ("http://127.0.0.1.example.org/", False),
        ("https://cdn.example.org/mathjax.js", False),
    ],
)
def test_local_addresses(url, local):
    """Only this machine counts as inside."""
    assert bool(LOCAL.match(url)) is local


def test_eyes_see_faults(new_window):
    """White on orange is pale, an image without text is a fault, a changed drawing and a request are noticed."""
    context = new_window()
    page = context.new_page()
    page.set_content(PAGE)
    contrast = {text["text"]: text["contrast"] for text in look.text_contrast(page)}
    assert contrast["pale"] == pytest.approx(2.14, abs=0.01) and contrast["clear"] > 15
    assert [fault["rule"] for fault in look.axe_violations(page, ".jp-OutputArea-output")] == ["image-alt"]
    before = look.settled(page)
    page.evaluate("() => document.querySelector('svg rect').setAttribute('width', 100)")
    assert look.changed(page, before) != before
    page.evaluate("() => fetch('https://cdn.example.org/x.js').catch(() => console.error('no way out'))")
    page.wait_for_timeout(200)
    assert context.outside == ["https://cdn.example.org/x.js"] and "no way out" in context.problems
