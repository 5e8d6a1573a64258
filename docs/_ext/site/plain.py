"""Turn a page's MyST into Markdown that any notebook reads, and tell its cells and promises apart from its prose."""

import posixpath
import re
from dataclasses import dataclass
from urllib.parse import urljoin

from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

from _ext.sessions.source import KINDS

PARSER = create_md_parser(MdParserConfig(enable_extensions={"colon_fence", "dollarmath"}, disable_syntax=["inline"]), RendererHTML)
DIRECTIVE = re.compile(r"\{(?P<name>[\w:-]+)\}\s*(?P<argument>.*)", re.S)
DROPPED = {"front_matter", "myst_target", "myst_line_comment", "myst_block_break"}
BOXES = {"admonition", "attention", "caution", "danger", "error", "hint", "important", "note", "seealso", "tip", "warning"}
TITLES = {"seealso": "See also"}

INLINE = re.compile(
    r"""
    \{(?P<role>[\w:-]+)\}(?P<ticks>`+)(?P<content>.+?)(?P=ticks)(?!`)   # {role}`content`
    | (?P<code>(?P<fence>`+).+?(?P=fence)(?!`) | \$[^$]+\$)             # code and formulas stay
    | (?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target><[^<>\n]*>|[^\s()]*(?:\([^()]*\)[^\s()]*)*)(?:\s+"[^"]*")?\)
    | <(?P<auto>[a-z]+:[^<>\s]+|\#[^<>\s]+)>
    | (?<=[\])`])\{(?P<attributes>[.\#][^{}\n]*)\}                      # [text](target){.class}
    """,
    re.X | re.S,
)


@dataclass(frozen=True)
class Piece:
    """A stretch of a page: `kind` is "prose" or one of the sessions' kinds, `text` its Markdown or its source."""

    kind: str
    text: str
    title: str = ""


class _AnyDirective:
    option_spec = {"any": None}
    required_arguments = 0
    optional_arguments = 1
    has_content = True


def pieces(text, resolve):
    """Give a page's pieces in order; `resolve(target)` is the address of a link, or None where it has none outside the site."""
    prose = []
    for piece in _pieces(text, resolve):
        if piece.kind == "prose":
            prose.append(piece.text)
            continue
        yield from _joined(prose)
        prose = []
        yield piece
    yield from _joined(prose)


def _joined(prose):
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    return [Piece("prose", text)] if text else []


def _pieces(text, resolve):
    lines, at = text.splitlines(), 0
    for token in PARSER.parse(text + "\n"):
        fence = token.type in {"fence", "colon_fence"}
        directive = DIRECTIVE.fullmatch(token.info.strip()) if fence else None
        if token.level or not token.map or not (fence or token.type in DROPPED):
            continue
        start, stop = token.map
        yield Piece("prose", inline("\n".join(lines[at:start]), resolve))
        if directive:
            yield from _directive(directive["name"], directive["argument"], token.content, resolve)
        elif fence:
            yield Piece("prose", "\n" + "\n".join(lines[start:stop]) + "\n")
        at = stop
    yield Piece("prose", inline("\n".join(lines[at:]), resolve))


def _directive(name, argument, content, resolve):
    parsed = parse_directive_text(_AnyDirective, "", content, validate_options=False)
    body = "\n".join(parsed.body)
    if name in KINDS:
        yield Piece(name, body, argument)
    elif name == "math":
        yield Piece("prose", f"\n$$\n{body.strip()}\n$$\n")
    elif name in BOXES:
        title = inline(argument, resolve) or TITLES.get(name, name.capitalize())
        yield Piece("prose", f"\n> **{title}**\n>")
        for piece in _pieces(body, resolve):
            quoted = "".join(f"> {line}".rstrip() + "\n" for line in piece.text.splitlines())
            yield Piece("prose", quoted.rstrip()) if piece.kind == "prose" else piece
        yield Piece("prose", "")
    # Any other is drawn by the site alone: a table of contents, a box of measured facts.


def inline(text, resolve):
    """Replace what only Sphinx understands within prose: roles, links of the site, attributes."""

    def plain(match):
        if match["role"]:
            return _role(match["role"], match["content"], resolve)
        if match["code"]:
            return match[0]
        if match["attributes"]:
            return ""
        target = (match["auto"] or match["target"]).strip("<>")
        address = resolve(target)
        label = inline(match["text"], resolve) if match["text"] else _name(target)
        if match["image"]:
            return f"*{label}*"
        return f"[{label}]({address})" if address else label

    return INLINE.sub(plain, text)


def _role(name, content, resolve):
    if name == "math":
        return f"${content}$"
    label, _, target = content.partition(" <")
    address = resolve(target.rstrip(">")) if target else None
    return f"[{label}]({address})" if address else label if target else f"`{content}`"


def _name(target):
    """What to call a link that has no text of its own."""
    scheme, _, rest = target.rpartition(":")
    return f"`torch.{rest}`" if scheme == "torch" else posixpath.basename(rest).partition("#")[0].removesuffix(".md") or rest


def resolver(docname, schemes, site=""):
    """Make `resolve` for a page: `schemes` as in `myst_url_schemes`, `site` the published site's address or nothing."""

    def resolve(target):
        scheme, colon, rest = target.partition(":")
        if colon and scheme in schemes:
            known = schemes[scheme]
            if known is None:
                return target
            path, _, fragment = rest.partition("#")
            template = known if isinstance(known, str) else known["url"]
            return template.replace("{{path}}", path).replace("{{fragment}}", fragment)
        path, mark, fragment = target.partition("#")
        if site and path.endswith(".md"):
            return urljoin(f"{site}{docname}.html", path.removesuffix(".md") + ".html" + mark + fragment)
        return None

    return resolve
