"""Formulas: TeX as MathML, which browsers draw without a script, and nothing but MathML.

The TeX comes from lessons and from students. What the converter makes of it is written anew, escaped, from an explicit list of
elements, attributes and values; a formula that is long, deep, defines commands or is not understood stays as its text.
"""

from __future__ import annotations

import html
import re
from xml.etree.ElementTree import Element

MAX_TEX, MAX_DEPTH = 1000, 40
MATH = {tag: () for tag in "mrow msqrt mroot mpadded mphantom msub msup msubsup munder munderover mtr".split()} | {
    "math": ("display",),
    "mi": ("mathvariant",),
    "mn": ("mathvariant",),
    "mtext": ("mathvariant",),
    "mo": "mathvariant stretchy fence form accent movablelimits largeop lspace rspace minsize maxsize".split(),
    "mspace": ("width",),
    "mfrac": ("linethickness",),
    "mover": ("accent",),
    "mstyle": ("displaystyle", "scriptlevel"),
    "mtable": ("displaystyle",),
    "mtd": ("columnalign",),
}
PARTS = {"mfrac": 2, "mroot": 2, "msub": 2, "msup": 2, "mover": 2, "munder": 2, "msubsup": 3, "munderover": 3}
MATH_VALUE = re.compile(
    r"true|false|block|prefix|infix|postfix|left|center|right|normal|bold|\d(\.\d{1,3})?(em|px|pt)?"
)
MACRO = re.compile(r"\\([a-z]*def|(re)?new|provide|Declare|let)|(?<!\\)#")


def formula(tex: str, display: str) -> str:
    """TeX as MathML; empty where it is long, deep, defines commands or is not understood.

    >>> formula("k^2", "inline")
    '<math><mrow><msup><mi>k</mi><mn>2</mn></msup></mrow></math>'
    """
    if len(tex) > MAX_TEX or MACRO.search(tex):  # a definition can double itself
        return ""
    try:
        from latex2mathml.converter import convert_to_element

        return _mathml(convert_to_element(tex.replace("{aligned}", "{split}"), display=display))
    except Exception:  # TeX of a student fails in many ways, and then its text is shown
        return ""


def _mathml(element: Element, depth: int = 0) -> str:
    """An element of the converter as escaped markup, with the spaces around names and slashes as TeX has them."""
    tag, text = element.tag, html.unescape(element.text or "")
    if tag == "mtext":
        text = re.sub(r"\\([_%$#{}])", r"\1", text)
    if tag not in MATH or depth > MAX_DEPTH or len(element) != PARTS.get(tag, len(element)):
        raise ValueError(tag)
    if "\\" in text or "&" in text:  # a command or a table that the converter does not know
        raise ValueError(text)
    attributes = {name: value for name, value in element.attrib.items() if is_math(tag, name, value)}
    if tag in ("mi", "mo") and len(text) > 1 and text.isalpha():
        tag, attributes = "mo", attributes | {"lspace": "0", "rspace": "0.167em"}
    elif tag == "mo" and text == "/":
        attributes |= {"lspace": "0", "rspace": "0"}
    elif tag == "mo" and text == "^":
        text, attributes = "\u02c6", {"stretchy": "false"}
    words = "".join(f' {name}="{value}"' for name, value in attributes.items())
    inside = html.escape(text) + "".join(_mathml(child, depth + 1) for child in element)
    return f"<{tag}{words}>{inside}</{tag}>"


def is_math(tag: str, name: str, value: str) -> bool:
    """An attribute of MathML that holds a word or a small length, and no address."""
    return name in MATH.get(tag, ()) and bool(MATH_VALUE.fullmatch(value))
