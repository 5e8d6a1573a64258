"""After a torch upgrade: which messages changed, and how an approved change is written down.

``review`` runs every recorded message and every promised error of the pages on the installed torch, and lists each
changed wording once: old text, new text, where.  ``accept`` rewrites the promises and records that a person approved,
and adds the new wording to the page that explains it; the old one keeps its place with the last version that had it.
A message that is no longer raised is listed too, and is never rewritten: what to say then is for a person to decide.
"""

import re
import sys
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from _ext.errors import records as recorded
from _ext.errors.match import Matcher
from _ext.errors.observe import NOTHING, observe
from _ext.errors.pages import ROOT, ErrorPage, paths, read
from _ext.errors.template import compile_template, fold


@dataclass
class Change:
    """One change of wording: where it was promised (path and line), and the ids of the records that show it."""

    old: str
    new: str
    places: list[tuple[Path, int]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def gone(self) -> bool:
        """Whether nothing is raised any more."""
        return self.new == NOTHING


@dataclass
class Review:
    """All changes, in order of their first place, and what could not be run."""

    changes: list[Change]
    failures: list[str]


def promised(docs: Path = ROOT.parent) -> list[Path]:
    """Return the pages of the site that promise an error."""
    pages = (path for path in sorted(docs.rglob("*.md")) if "_build" not in path.parts)
    return [path for path in pages if "\nTraceback (most recent call last):" in path.read_text("utf-8")]


def review(pages: list[Path], records: list[recorded.Record]) -> Review:
    """Run the promised errors of `pages` and the `records`; return what changed."""
    answers = observe([{"page": str(path)} for path in pages] + [{"code": record.code} for record in records])
    changes: dict[tuple[str, str], Change] = {}
    failures = []

    def change(old, new):
        return changes.setdefault((old, new), Change(old, new))

    for path, answer in zip(pages, answers):
        if isinstance(answer, dict):
            failures.append(f"{path}: {answer['failed']}")
            continue
        for line, old, new in answer:
            if old != new:
                change(old, new).places.append((path, line))
    for record, answer in zip(records, answers[len(pages):]):
        if isinstance(answer, dict):
            failures.append(f"record {record.id}: {answer['failed']}")
        elif not record.is_raised_as(answer):
            change(record.raises, answer).ids.append(record.id)
    return Review(list(changes.values()), failures)


def generalise(message: str) -> str:
    """Turn a message into a template: numbers, shapes and the usual names of types become placeholders.

    A first draft for a person to look over: what varies beyond these stays as it was printed.
    """
    text = re.sub(r"torch\.Size\(\[[^\]]*\]\)|\[[0-9, -]*\]|\((?:\d+, )+\d*\)", "<shape>", message)
    text = re.sub(r"\btorch\.\w+Tensor\b|\b(?:Complex)?(?:Float|Double|Half|Long|Int|Short|Char|Byte|Bool|BFloat16)\b", "<dtype>", text)
    text = re.sub(r"(?<![\w<.])-?\d+\.\d+(?![\w.])", "<number>", text)
    text = re.sub(r"(?<![\w<.])-?\d+(?=x\d)|(?<=x)\d+\b|(?<![\w<.-])-?\d+(?![\w>]|\.\d|-[a-zA-Z])", "<int>", text)
    return text


def message_of(text: str) -> str:
    """Return what follows the exception's name."""
    return text.partition(": ")[2]


def _owner(pages: list[ErrorPage], text: str) -> ErrorPage | None:
    hits = Matcher([message.template for message in page.messages] for page in pages).search(text).hits
    return pages[hits[0]] if hits else None


def _claims(page: ErrorPage, text: str) -> bool:
    """Whether one of the page's templates is the whole of `text`."""
    alone = Matcher([[message.template for message in page.messages]])
    return any(hit.complete for hit in alone.hits(fold(text)))


def add_wording(path: Path, root: Path, old: str, new: str, until: str, since: str) -> bool:
    """Add the new wording to the page's messages, and mark the old one; return whether the page was changed."""
    page = read(path, root)
    if _claims(page, new):
        return False
    text = path.read_text("utf-8")
    lines = text.split("\n")
    at = next(number for number, line in enumerate(lines) if line.strip() == "messages:")
    indent = len(lines[at]) - len(lines[at].lstrip())
    end = next(number for number in range(at + 1, len(lines)) if lines[number] == "---" or (
        lines[number].strip() and len(lines[number]) - len(lines[number].lstrip()) <= indent and not lines[number].lstrip().startswith("-")))
    alone = [(message, Matcher([[message.template]])) for message in page.messages]
    kept = []
    pad = " " * (indent + 2)
    for message, matcher in alone:
        retired = not (message.until or message.needs) and any(hit.complete for hit in matcher.hits(fold(old)))
        facts = {"since": message.since, "until": until if retired else message.until, "needs": message.needs}
        source = message.template.source.split("\n")
        if not any(facts.values()):
            kept += [f"{pad}- |-", *(f"{pad}  {line}" for line in source)]
        else:
            kept += [f"{pad}- text: |-", *(f"{pad}    {line}" for line in source)]
            kept += [f"{pad}  {name}: " + (f'"{value}"' if name != "needs" else value) for name, value in facts.items() if value]
    draft = generalise(message_of(new)).split("\n")
    compile_template("\n".join(draft))
    kept += [f"{pad}- text: |-", *(f"{pad}    {line}" for line in draft), f'{pad}  since: "{since}"']
    path.write_text("\n".join([*lines[:at + 1], *kept, *lines[end:]]), "utf-8")
    return True


def rewrite_promise(path: Path, line: int, old: str, new: str) -> None:
    """Replace the promised text of the example that begins on `line` of a page.

    Raises ValueError if the old text does not stand there.
    """
    lines = path.read_text("utf-8").split("\n")
    before = old.split("\n")
    for at in range(line - 1, min(line + 60, len(lines))):
        if lines[at:at + len(before)] == before:
            lines[at:at + len(before)] = [text or "<BLANKLINE>" for text in new.split("\n")]
            path.write_text("\n".join(lines), "utf-8")
            return
    raise ValueError(f"{path}:{line}: the promise is not where it was: {old!r}")


def accept(changes: list[Change], root: Path, records_path: Path, installed: str) -> list[str]:
    """Write the approved changes down; return what a person should look at.

    Promises are rewritten from the bottom of a page to its top, so that no line moves before it is used.
    """
    known_version, records = recorded.read(records_path)
    error_pages = [read(path, root) for path in paths(root)]
    notes = []
    places = [(path, line, change) for change in changes for path, line in change.places]
    for path, line, change in sorted(places, key=lambda place: (str(place[0]), -place[1])):
        rewrite_promise(path, line, change.old, change.new)
    for change in changes:
        owner = _owner(error_pages, change.old) or _owner(error_pages, change.new)
        if owner is None:
            notes.append(f"no page explains: {change.new}")
        elif add_wording(owner.path, root, change.old, change.new, known_version, installed):
            notes.append(f"{owner.path}: a new wording was added to `messages`; look over its placeholders")
    new_texts = {identity: change.new for change in changes for identity in change.ids}
    recorded.write(known_version, [
        replace(record, raises=new_texts.get(record.id, record.raises)) for record in records], records_path)
    return notes


def listing(found: Review, here: Path | None = None) -> str:
    """Return the list that a person reads: numbered changes first, then what is gone, then what failed."""
    here = here or Path.cwd()

    def shown(path):
        return path.relative_to(here) if path.is_relative_to(here) else path

    blocks = []
    worded = [change for change in found.changes if not change.gone]
    for number, change in enumerate(worded, 1):
        where = [f"{shown(path)}:{line}" for path, line in change.places] + [f"record {identity}" for identity in change.ids]
        blocks.append(f"{number}\n  old  {change.old}\n  new  {change.new}\n" + "".join(f"  in   {place}\n" for place in where))
    for change in found.changes:
        if change.gone:
            where = [f"{shown(path)}:{line}" for path, line in change.places] + [f"record {identity}" for identity in change.ids]
            blocks.append(f"no longer raised (for a person to rewrite; say since when)\n  old  {change.old}\n" + "".join(f"  in   {place}\n" for place in where))
    blocks += [f"not run: {reason}\n" for reason in found.failures]
    return "\n".join(blocks) or "Every recorded message and every promised error is as it was.\n"


def main(options) -> int:
    """Run ``review`` or ``accept`` from the command line; return the exit status."""
    installed = version("torch").partition("+")[0]
    known_version, records = recorded.read()
    only = [path.resolve() for path in options.pages] if options.pages is not None else None
    found = review(promised() if only is None else only, [] if only is not None else recorded.here(records))
    if options.command == "review":
        print(listing(found), end="")
        if known_version != installed:
            print(f"\nThe records are of torch {known_version}; installed is {installed}.")
        return 1 if found.changes or found.failures else 0
    worded = [change for change in found.changes if not change.gone]
    try:
        chosen = worded if options.all else [worded[int(number) - 1] for number in options.numbers if int(number) > 0]
    except (ValueError, IndexError):
        print(f"numbers are those of `review`: 1 to {len(worded)}", file=sys.stderr)
        return 2
    if not chosen:
        print("nothing was approved: name the numbers that `review` lists, or --all", file=sys.stderr)
        return 2
    for note in accept(chosen, ROOT, recorded.PATH, installed):
        print(note)
    print(f"{len(chosen)} of {len(worded)} changes written")
    if len(chosen) == len(found.changes) and not found.failures:
        recorded.write(installed, recorded.read()[1])
    return 0
