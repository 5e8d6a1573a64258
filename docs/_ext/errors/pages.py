"""The pages of the error index: what each says of itself in its front matter, its title and its first sentence."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from _ext.errors.match import Answer, Matcher
from _ext.errors.template import Template, compile_template

ROOT = Path(__file__).parents[2] / "errors"  # docs/errors

# Families in the order of the index, with their headings.
FAMILIES = {
    "autograd": "Autograd",
    "inplace": "In-place writes and shared memory",
    "view": "Views and reshaping",
    "shape": "Shapes and dimensions",
    "broadcasting": "Broadcasting and expansion",
    "repetition": "Repetition",
    "product": "Matrix products and linear algebra",
    "indexing": "Indexing",
    "joining": "Joining and splitting",
    "reduction": "Reductions",
    "dtype": "Types of numbers",
    "conversion": "Making tensors, numbers and arrays",
    "device": "Devices and layouts",
    "module": "Modules, losses and optimizers",
    "silent": "No error, wrong result",
}

_FRONT_MATTER = re.compile(r"---\n(?P<yaml>.*?)^---[ \t]*\n(?P<body>.*)", re.M | re.S)
_TITLE = re.compile(r"^# (?P<title>[^\n]+)\n+(?P<first>(?:(?!\n\n).)+)", re.M | re.S)
_SENTENCE = re.compile(r".+?[.?](?=\s|$)", re.S)


class PageError(Exception):
    """A page of the error index that cannot be used: `path` and one line of `reason`."""

    def __init__(self, path: Path, reason: str):
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


@dataclass(frozen=True)
class Message:
    """One message that a page explains.

    `since` and `until` are torch versions: the first release known to raise it, the last one known to.
    `needs` says what this machine lacks to raise it.
    """

    template: Template
    since: str | None = None
    until: str | None = None
    needs: str | None = None

    @property
    def text(self) -> str:
        """The template as written on the page, in one line."""
        return " ".join(self.template.source.split())


@dataclass(frozen=True)
class ErrorPage:
    """A page of the index. `stem` is its path below ``docs/errors`` without the suffix, as in ``silent/data-write``."""

    stem: str
    path: Path
    title: str
    summary: str
    family: str
    kinds: tuple[str, ...]
    messages: tuple[Message, ...]
    operations: tuple[str, ...]
    body: str

    @property
    def silent(self) -> bool:
        """Whether the fault raises nothing."""
        return self.family == "silent"


def plain(markdown: str) -> str:
    """Return one line of Markdown as plain text: no code marks, links as their text."""
    text = re.sub(r"\[([^\]]*)\]\([^)\s]*\)", r"\1", markdown)
    return " ".join(re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", r"\2", text).replace("\\", "").split())


def read(path: Path, root: Path = ROOT) -> ErrorPage:
    """Read one page. Raises PageError with what is missing."""
    text = path.read_text("utf-8")
    parts = _FRONT_MATTER.match(text)
    try:
        about = (yaml.load(parts["yaml"], yaml.CSafeLoader) or {}).get("error") if parts else None
    except yaml.YAMLError as problem:
        raise PageError(path, f"front matter is not YAML: {problem.problem}") from None
    if not isinstance(about, dict):
        raise PageError(path, "no `error:` in the front matter")
    if unknown := set(about) - {"family", "type", "messages", "operations"}:
        raise PageError(path, f"unknown in `error:`: {', '.join(sorted(unknown))}")
    if about.get("family") not in FAMILIES:
        raise PageError(path, f"family is {about.get('family')!r}; known: {', '.join(FAMILIES)}")
    head = _TITLE.search(parts["body"])
    if not head:
        raise PageError(path, "no title with a sentence below it")
    first = plain(head["first"])
    sentence = _SENTENCE.match(first)
    messages = []
    for entry in about.get("messages") or []:
        entry = {"text": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict) or set(entry) - {"text", "since", "until", "needs"} or not isinstance(entry.get("text"), str):
            raise PageError(path, f"a message is a text, or text, since, until, needs: {entry!r}")
        try:
            template = compile_template(entry["text"].strip())
        except ValueError as problem:
            raise PageError(path, str(problem)) from None
        messages.append(Message(template, *(str(entry[key]) if entry.get(key) else None for key in ("since", "until", "needs"))))
    if not messages and about["family"] != "silent":
        raise PageError(path, "no messages")
    kinds = about.get("type") or []
    return ErrorPage(
        stem=path.relative_to(root).with_suffix("").as_posix(),
        path=path,
        title=plain(head["title"]),
        summary=sentence[0] if sentence else first,
        family=about["family"],
        kinds=tuple([kinds] if isinstance(kinds, str) else kinds),
        messages=tuple(messages),
        operations=tuple(about.get("operations") or []),
        body=parts["body"],
    )


def paths(root: Path = ROOT) -> list[Path]:
    """Return the files of all pages, those of silent faults last: of two equal matches the first page wins."""
    return sorted((path for path in root.rglob("*.md") if path.name != "index.md"), key=lambda path: (path.parent != root, path))


def read_all(root: Path = ROOT) -> list[ErrorPage]:
    """Read every page, in the order of `paths`. Raises PageError for the first that cannot be used."""
    return [read(path, root) for path in paths(root)]


class Index:
    """All pages and the matcher over their messages."""

    def __init__(self, root: Path = ROOT):
        self.pages = read_all(root)
        self.matcher = Matcher([message.template for message in page.messages] for page in self.pages)

    def search(self, text: str) -> Answer:
        """Search a pasted text; the answer names pages by their index in `pages`."""
        return self.matcher.search(text)

    def find(self, text: str) -> ErrorPage | None:
        """Return the page whose message stands in `text`, or None."""
        hits = self.search(text).hits
        return self.pages[hits[0]] if hits else None


@cache
def index() -> Index:
    """Return the index of this site, read once a process."""
    return Index()


def find(text: str) -> str | None:
    """Return the stem of the page that explains an error's text (``docs/errors/STEM.md``), or None."""
    page = index().find(text)
    return page.stem if page else None
