"""Read a page's text: which cells, promises and pictures it holds, in order, and on which line each starts."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

CELL, PROMISE = "code-cell", "doctest"
PICTURES = ("autograd-graph", "tensor-layout")
KINDS = (CELL, PROMISE, *PICTURES)

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}(?=[^`]*$)|~{3,})(?P<info>.*)$")
NAME = re.compile(r"\{(?P<name>[\w-]+)\}(?P<argument>.*)")

# What MyST would draw and this reader of lines does not follow.
UNREAD = re.compile(rf"^(?:[ \t]*>[ \t>]*(?:`{{3,}}|~{{3,}})|[ \t>]*:{{3,}})[ \t]*\{{(?P<name>{'|'.join(KINDS)})\}}", re.I)
COLONS = re.compile(r"^[ \t]*:{3,}[ \t]*(?P<info>\S.*)?$")
SPLITS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")


class PageError(Exception):
    """A page whose text cannot be read: `line` is 1-based, `reason` is one line."""

    def __init__(self, line, reason):
        super().__init__(reason)
        self.line, self.reason = line, reason


@dataclass(frozen=True)
class Item:
    """One thing that a page's session does.

    `line` is the 1-based line of `source`'s first line, in the page or, for a loaded program, in `loaded`.
    """

    kind: str
    line: int
    source: str
    tags: tuple = ()
    title: str = ""
    alt: str | None = None
    loaded: str | None = None


class _AnyDirective:
    """What MyST's directive parser needs to know: a body, and options that it need not check."""

    option_spec = {"any": None}  # an empty one would mean: no options at all
    required_arguments = 0
    optional_arguments = 1
    has_content = True


def is_notebook(text):
    """Say whether the front matter declares a MyST notebook."""
    match = re.match(r"---\n(.*?)^(?:---|\.\.\.)\s*$", text, re.M | re.S)
    if not match:
        return False
    try:
        metadata = yaml.safe_load(match[1])
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise PageError(mark.line + 2 if mark else 1, f"front matter is not YAML: {error.problem}") from None
    return isinstance(metadata, dict) and metadata.get("file_format") == "mystnb"


def items_of(text, folder):
    """List the items of a page in order; `folder` is where `:load:` paths start.

    Raises PageError for a fence without an end, options that are not YAML, or a file that is not there.
    """
    if not is_notebook(text):
        return []
    if odd := SPLITS.search(text):
        # Python's splitlines, and so MyST, ends a line here; editors do not.
        raise PageError(text.count("\n", 0, odd.start()) + 1, f"holds the character {odd[0]!r}: write it as an escape")
    lines = text.split("\n")
    return list(_scan(lines, 0, len(lines), Path(folder)))


def _scan(lines, start, stop, folder, inside=False):
    at, colons = start, 0
    while at < stop:
        opening = FENCE.match(lines[at])
        if not opening:
            if fence := COLONS.match(lines[at]):
                colons = max(0, colons + (1 if fence["info"] else -1))
            if unread := UNREAD.match(lines[at]):
                raise PageError(at + 1, f"this {{{unread['name']}}} would not run: write it as a fence of backticks, outside quotes")
            at += 1
            continue
        end = _closing(lines, at, stop, opening)
        directive = NAME.match(opening["info"].strip())
        if directive and directive["name"] == CELL and (inside or colons or opening["indent"]):
            raise PageError(at + 1, "this {code-cell} would not run: it starts at the left margin, in no other fence")
        if directive and directive["name"] in KINDS:
            yield _item(lines, at, end, directive, len(opening["indent"]), folder)
        elif directive:  # a directive may hold others, in a fence of fewer marks
            yield from _scan(lines, at + 1, end, folder, inside=True)
        at = end + 1


def _closing(lines, at, stop, opening):
    indent, marks = len(opening["indent"].expandtabs(4)), opening["marks"]
    closing = re.compile(rf"[ ]{{0,{indent + 3}}}{marks[0]}{{{len(marks)},}}\s*")
    for line in range(at + 1, stop):
        if closing.fullmatch(lines[line].expandtabs(4)):
            return line
    raise PageError(at + 1, "this fence has no end")


def _item(lines, at, end, directive, indent, folder):
    body = [line[indent:] if not line[:indent].strip() else line for line in lines[at + 1 : end]]
    # Here, not above: a page's process takes the kinds of items from this module and never reads a page.
    from myst_parser.parsers.directives import parse_directive_text

    parsed = parse_directive_text(_AnyDirective, "", "\n".join(body), validate_options=False)
    if parsed.warnings:
        raise PageError(at + 1, f"options cannot be read: {parsed.warnings[0].msg}")
    options, loaded, first = parsed.options, None, at + 2 + parsed.body_offset
    source = "\n".join(parsed.body)
    if "load" in options:
        path = (folder / options["load"]).resolve()
        try:
            source, loaded, first = path.read_text("utf-8"), str(path), 1
        except OSError as error:
            raise PageError(at + 1, f"cannot load {options['load']}: {error.strerror}") from None
    tags = options.get("tags") or ()
    tags = tuple(tags) if isinstance(tags, (list, tuple)) else tuple(re.split(r"[,\s]+", str(tags).strip("[] ")))
    return Item(directive["name"], first, source, tags, directive["argument"].strip(), options.get("alt"), loaded)
