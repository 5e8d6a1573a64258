"""Sphinx extension: write formulas as MathML, which browsers draw themselves: no script, no network."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

UNKNOWN = {"dots": "ldots"}  # commands that docutils has under another name only

log = logging.getLogger(__name__)


def inline(self, node):
    """Draw `$...$`."""
    self.body.append(mathml(self, node, as_block=False))
    raise nodes.SkipNode


def block(self, node):
    """Draw `$$...$$`, with its number if it has a label."""
    names = "".join(f'<span id="{name}"></span>' for name in node["ids"])
    number = f'<span class="eqno">({get_node_equation_number(self, node)})</span>' if node.get("number") else ""
    self.body.append(f'<div class="math">{names}{number}{mathml(self, node, as_block=True)}</div>')
    raise nodes.SkipNode


def mathml(translator, node, as_block):
    """Give the formula as a `math` element; one that docutils cannot read stays TeX, with a warning."""
    tex = node.astext()
    try:
        known = re.sub(r"\\([A-Za-z]+)", lambda command: "\\" + UNKNOWN.get(command[1], command[1]), tex)
        return tex2mathml(known, as_block=as_block)
    except (MathError, IndexError, KeyError, AttributeError, TypeError) as error:
        # docutils promises MathError, and lets others through where a command lacks its argument.
        log.warning("formula %r cannot be written as MathML: %s", tex, error, location=_place(translator, node), type="math")
        return translator.starttag(node, "code", "") + translator.encode(tex) + "</code>"


def _place(translator, node):
    """The page and line of the node, or of the closest one around it that has a line."""
    while node.line is None and node.parent is not None:
        node = node.parent
    return translator.builder.current_docname, node.line


def setup(app):
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
