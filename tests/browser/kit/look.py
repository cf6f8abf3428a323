"""Eyes: what a page shows, how readable it is, and what a screen reader would miss.

Colours are the computed ones, blended along the stack of elements under each piece of text,
so a label on a bar is compared with the bar. Contrast is WCAG's ratio: 4.5 is the least for
text of normal size (level AA).
"""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

from .lab import PANEL

OUTPUT = f"{PANEL} .jp-OutputArea-output"

PICTURES = """selector => [...document.querySelectorAll(selector)].flatMap(output =>
    [...output.querySelectorAll('img')].map(i => i.src)
    .concat([...output.querySelectorAll('svg')].map(s => s.outerHTML)))"""

TEXT_IN_PICTURES = """selector => {
    const rgba = text => {
        const m = text.match(/rgba?\\(([^)]+)\\)/);
        if (!m) return null;
        const [r, g, b, a] = m[1].split(/[ ,/]+/).map(Number);
        return [r, g, b, a === undefined || Number.isNaN(a) ? 1 : a];
    };
    const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3])).concat(1);
    const light = c => {
        const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const opacity = element => {
        let share = 1;
        for (let e = element; e && e.nodeName !== 'svg'; e = e.parentElement) share *= Number(getComputedStyle(e).opacity);
        return share;
    };
    const paint = element => {
        const style = getComputedStyle(element);
        const shape = element instanceof SVGElement && element.nodeName !== 'svg';
        const colour = rgba(shape ? style.fill : style.backgroundColor);
        if (!colour) return null;
        return [...colour.slice(0, 3), colour[3] * (shape ? Number(style.fillOpacity) * opacity(element) : 1)];
    };
    const found = [];
    for (const text of document.querySelectorAll(selector + ' svg text')) {
        if (!text.textContent.trim()) continue;
        let box = text.getBoundingClientRect();
        if (!document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)?.closest('svg')) {
            text.scrollIntoView({block: 'center', inline: 'nearest'});
            box = text.getBoundingClientRect();
        }
        const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2)
            .filter(e => e !== text && !text.contains(e) && !e.contains(text) || e.contains(text) && e !== text)
            .filter(e => !['text', 'tspan', 'line', 'polyline'].includes(e.nodeName));
        let ground = [255, 255, 255, 1];
        for (const element of stack.reverse()) {
            const colour = paint(element);
            if (colour && colour[3] > 0) ground = over(colour, ground);
        }
        const ink = over(paint(text) || [0, 0, 0, 1], ground);
        const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
        found.push({text: text.textContent, ink: ink.slice(0, 3).map(Math.round), ground: ground.slice(0, 3).map(Math.round),
                    contrast: (high + 0.05) / (low + 0.05)});
    }
    return found;
}"""

AXE = """async selector => (await axe.run({include: [[selector]]}, {resultTypes: ['violations']})).violations.flatMap(v =>
    v.nodes.map(n => ({rule: v.id, impact: v.impact, help: v.help, target: n.target.flat().join(' '), html: n.html.slice(0, 200)})))"""


def pictures(page, selector: str = OUTPUT) -> list[str]:
    """Every image and SVG drawn under a selector, as text that changes when the drawing does."""
    return page.evaluate(PICTURES, selector)


def changed(page, before: list[str], selector: str = OUTPUT, limit_s: float = 15.0) -> list[str]:
    """The pictures as soon as they differ from `before`; raises AssertionError when they never do."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        now = pictures(page, selector)
        if now != before:
            return now
        page.wait_for_timeout(20)
    raise AssertionError(f"no picture under {selector} changed within {limit_s:g} s")


def settled(page, selector: str = OUTPUT, quiet_s: float = 0.4, limit_s: float = 20.0) -> list[str]:
    """The pictures once they have stayed the same for `quiet_s`."""
    end, seen, since = time.monotonic() + limit_s, pictures(page, selector), time.monotonic()
    while time.monotonic() < end:
        page.wait_for_timeout(40)
        now = pictures(page, selector)
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > quiet_s:
            return seen
    raise AssertionError(f"the pictures under {selector} still change after {limit_s:g} s")


def text_contrast(page, selector: str = OUTPUT) -> list[dict]:
    """Each text of each SVG under a selector, with its ink, its ground (RGB) and their contrast."""
    return page.evaluate(TEXT_IN_PICTURES, selector)


def axe_violations(page, selector: str) -> list[dict]:
    """What axe-core finds wrong under a selector: rule, impact, help, target and html of each.

    The script comes with the package `axe-playwright-python`, whose Python part is not used.
    """
    if not page.evaluate("() => 'axe' in window"):
        package = importlib.util.find_spec("axe_playwright_python")
        if package is None:
            raise ModuleNotFoundError("axe-core is missing: `pip install axe-playwright-python` brings its script.")
        script = Path(package.submodule_search_locations[0], "axe.min.js")
        page.evaluate(script.read_text(encoding="utf-8"))
    return page.evaluate(AXE, selector)
