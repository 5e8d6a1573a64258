"""What both kinds of picture share: the result, the SVG around a drawing, and text that fits."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from html import escape

#: Widest drawing in px that a phone of 390 px shows without shrinking it.
PAGE_WIDTH = 352

#: Advance of one character in a monospace font, in em.
#: The widest of the usual ones, so that text never leaves its box.
MONO_ADVANCE = 0.61

_WORD_ENDS = re.compile(r"(?<=[\s.,])|(?<=_)(?![_(])|(?<=[a-z])(?=[A-Z])")
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Picture:
    """A drawing that a page can hold.

    svg: one `<svg>` element, to be put into HTML as it stands; it needs `pictures.css` and no script.
    alt: the text alternative, which is in the SVG too.
    """

    svg: str
    alt: str


def escaped(text: str) -> str:
    """`text` as XML character data; characters that XML forbids become U+FFFD."""
    return escape(_NOT_XML.sub("\ufffd", text), quote=True)


def finish(kind: str, body: str, width: float, height: float, title: str, alt: str, key: str = "") -> Picture:
    """Wrap `body` (SVG elements) into a whole picture of `width` by `height` px.

    The ids are a hash of what is drawn, so that they are the same in every build and differ within a page.
    `key` tells apart pictures that are alike in everything.
    """
    seed = "\x00".join((kind, body, title, alt, key)).encode("utf-8", "replace")
    name = f"picture-{hashlib.sha256(seed).hexdigest()[:12]}"
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="torch-picture torch-{kind}" width="{number(width)}"'
        f' height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" role="img"'
        f' aria-labelledby="{name}-title {name}-desc" font-family="ui-monospace, monospace" font-size="12"'
        f' fill="currentColor">\n<title id="{name}-title">{escaped(title)}</title>\n'
        f'<desc id="{name}-desc">{escaped(alt)}</desc>\n{body}\n</svg>'
    )
    return Picture(svg, alt)


def number(value: float) -> str:
    """`value` with at most one decimal, as short as it can be written."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def text_width(text: str, size: float) -> float:
    """Width in px of `text` in a monospace font of `size` px."""
    cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
    return cells * MONO_ADVANCE * size


def wrap(text: str, size: float, width: float) -> list[str]:
    """Break `text` into lines that fit `width` px, where a word ends: `a b`, `a.b`, `a,b`, `a_b`, `aB`."""
    lines, line = [], ""
    for part in _WORD_ENDS.split(text):
        if line and text_width((line + part).rstrip(), size) > width:
            lines.append(line.rstrip())
            line = ""
        while text_width(part.rstrip(), size) > width and len(part) > 1:
            fits = max(1, sum(text_width(part[: n + 1], size) <= width for n in range(len(part))))
            lines.append(part[:fits])
            part = part[fits:]
        line += part
    if line.strip() or not lines:
        lines.append(line.rstrip())
    return lines


def counted(count: int, noun: str) -> str:
    """`1 tensor`, `2 tensors`; thousands are grouped."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
