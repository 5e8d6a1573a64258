"""Read a page's text: which cells, promises and pictures it holds, in order, and on which line each starts."""

import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from myst_parser.parsers.directives import parse_directive_text

CELL, PROMISE = "code-cell", "doctest"
PICTURES = ("autograd-graph", "tensor-layout")
KINDS = (CELL, PROMISE, *PICTURES)

FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,})(?P<info>[^`]*)$")
NAME = re.compile(r"\{(?P<name>[\w-]+)\}(?P<argument>.*)")


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
    lines = text.splitlines()
    return list(_scan(lines, 0, len(lines), Path(folder))) if is_notebook(text) else []


def _scan(lines, start, stop, folder):
    at = start
    while at < stop:
        opening = FENCE.match(lines[at])
        if not opening:
            at += 1
            continue
        end = _closing(lines, at, stop, opening["marks"])
        directive = NAME.match(opening["info"].strip())
        if directive and directive["name"] in KINDS:
            yield _item(lines, at, end, directive, len(opening["indent"]), folder)
        elif directive:  # a directive may hold others, in a fence of fewer marks
            yield from _scan(lines, at + 1, end, folder)
        at = end + 1


def _closing(lines, at, stop, marks):
    for line in range(at + 1, stop):
        if re.fullmatch(rf"\s*`{{{len(marks)},}}\s*", lines[line]):
            return line
    raise PageError(at + 1, "this fence has no end")


def _item(lines, at, end, directive, indent, folder):
    body = [line[indent:] if not line[:indent].strip() else line for line in lines[at + 1 : end]]
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
