"""Hands: open a notebook in JupyterLab, run it, type into a cell, move a slider.

Three habits keep this steady. Wait for the status bar's "| Idle" before "Run All Cells": the
notebook's own light says idle before there is a kernel, and the click is lost. Open every page
in a workspace of its own, so that no old layout comes back. Ask the page's model of the
notebook what a cell gave, and the page itself what is drawn.
"""

from __future__ import annotations

import re
import secrets
import time

PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"
LIMIT_MS = 60_000

CELLS = """() => window.jupyterapp.shell.currentWidget.content.widgets.map((cell, index) => {
    const {id, source, outputs, execution_count} = cell.model.sharedModel.toJSON();
    cell.node.dataset.cellId = cell.model.id;
    return {id: cell.model.id, type: cell.model.type, index, source: [source].flat().join(''),
            outputs: outputs || [], count: execution_count,
            prompt: cell.node.querySelector('.jp-InputPrompt')?.textContent.trim() || ''};
})"""
IDLE = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    return panel.sessionContext.session?.kernel?.status === 'idle'
        && !panel.content.widgets.some(cell => cell.node.querySelector('.jp-InputPrompt')?.textContent.includes('*'));
}"""
SHOW = """index => {
    const notebook = window.jupyterapp.shell.currentWidget.content;
    notebook.activeCellIndex = index;
    return notebook.scrollToItem(index, 'center');
}"""


def open_lab(context, server, path: str = ""):
    """Lab in a fresh workspace, showing the file `path` (below the server's root) if one is given."""
    page = context.new_page()
    tail = f"/tree/{path}" if path else ""
    page.goto(f"{server.url}/lab/workspaces/{secrets.token_hex(4)}{tail}?reset&token={server.token}", timeout=LIMIT_MS)
    page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=LIMIT_MS)
    page.wait_for_selector("#jp-main-dock-panel", timeout=LIMIT_MS)
    return page


def open_notebook(context, server, path: str):
    """A notebook in Lab, with its kernel ready."""
    page = open_lab(context, server, path)
    page.wait_for_selector(f"{PANEL} .jp-Cell", timeout=LIMIT_MS)
    page.wait_for_selector(r"#jp-main-statusbar >> text=/\| Idle$/", timeout=LIMIT_MS)
    page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget?.content?.widgets?.length > 0", timeout=LIMIT_MS
    )
    return page


def menu(page, *names: str) -> None:
    """Click through the menu bar by what is written there: `menu(page, "Run", "Run All Cells")`."""
    page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{re.escape(names[0])}$")).click()
    for name in names[1:]:
        page.locator(".lm-Menu-item", has_text=re.compile(f"^{re.escape(name)}")).first.click()


def run_all(page, limit_s: float = 120.0) -> None:
    """Run > Run All Cells, and wait until all have run.

    Between two cells the kernel is idle for a moment; where a cell failed and Lab gave up the
    ones behind it, only an idle time of three seconds tells.
    """
    before = counts(page)
    menu(page, "Run", "Run All Cells")
    end, idle_since = time.monotonic() + limit_s, None
    while time.monotonic() < end:
        page.wait_for_timeout(50)
        now, idle = counts(page), page.evaluate(IDLE)
        idle_since = (idle_since or time.monotonic()) if idle and now != before else None
        if idle and all(now[key] not in (None, before[key]) for key in now):
            return
        if idle_since and time.monotonic() - idle_since > 3:
            return
    raise AssertionError(f"the cells still run after {limit_s:g} s: {[key for key in now if now[key] == before[key]]}")


def counts(page) -> dict[str, int | None]:
    """The execution count of every code cell that is not empty."""
    return {cell["id"]: cell.get("count") for cell in cells(page) if cell["type"] == "code" and cell["source"].strip()}


def cells(page) -> list[dict]:
    """The cells of the notebook as the page holds them: id, type, source, outputs, count, index."""
    return page.evaluate(CELLS)


def cell(page, cell_id: str) -> dict:
    """One cell of `cells`."""
    found = {cell["id"]: cell for cell in cells(page)}
    if cell_id not in found:
        raise KeyError(f"the page has no cell {cell_id!r}; it has {', '.join(found)}")
    return found[cell_id]


def show(page, cell_id: str):
    """Make a cell the active one, scroll to it, and return its place in the page."""
    page.evaluate(SHOW, cell(page, cell_id)["index"])
    place = page.locator(f'{PANEL} [data-cell-id="{cell_id}"]')
    place.scroll_into_view_if_needed()
    return place


def type_into(page, cell_id: str, source: str) -> None:
    """Replace the text of a cell as a person would: open it, select all, type."""
    place = show(page, cell_id)
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    place.locator(".cm-content").click()
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.insert_text(source)
    page.wait_for_function(
        "([id, text]) => window.jupyterapp.shell.currentWidget.content.widgets"
        ".find(c => c.model.id === id).model.sharedModel.getSource() === text",
        arg=[cell_id, source],
        timeout=10_000,
    )
    page.keyboard.press("Escape")


def save(page) -> None:
    """Save the notebook with Control+S and wait until it is saved."""
    page.keyboard.press("Escape")
    page.keyboard.press("ControlOrMeta+S")
    page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.context.model.dirty", timeout=20_000)


def run_cell(page, cell_id: str, limit_ms: int = 60_000) -> dict:
    """Run one cell with Control+Enter; the cell as it is when it is done."""
    show(page, cell_id)
    before = cell(page, cell_id)["count"]
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.wait_for_function(
        f"([id, before]) => {{const c = ({CELLS})().find(c => c.id === id);"
        f" return c.count != null && c.count !== before && ({IDLE})();}}",
        arg=[cell_id, before],
        timeout=limit_ms,
        polling=50,
    )
    return cell(page, cell_id)


def text_of(cell: dict) -> str:
    """All that a cell printed or failed with, as plain text."""
    parts = []
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
        elif output["output_type"] == "stream":
            parts.append("".join(output["text"]))
        else:
            parts.append("".join(output["data"].get("text/plain", "")))
    return "\n".join(parts)


def complaints(page) -> dict[str, str]:
    """Cells that failed or wrote to the error stream: id -> what they said."""
    said = {}
    for one in cells(page):
        for output in one["outputs"]:
            if output["output_type"] == "error":
                said[one["id"]] = output["evalue"] or output["ename"]
            elif output.get("name") == "stderr":
                said[one["id"]] = "".join(output["text"])
    return said
