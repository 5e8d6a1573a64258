"""Finds the page of a pasted message.

The same steps are written in ``docs/_static/errors.js``; ``tests/test_errors_browser.py`` holds the two equal.

1. Fold the text.  2. Look for each template's anchor.  3. From there compare the template literal by literal, with no
backtracking, so that the time is bounded whatever is pasted.  4. Rank.  5. If nothing matched, see whether the text
is the beginning of a message that was cut before its anchor.  6. Else compare by shared runs of letters and name what
is near.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from _ext.errors.template import ANCHOR, CHARACTERS, LONGEST, Template, fold

LAST_HITS = 20  # occurrences of one anchor that are looked at, from the end: a log may repeat a line for ever
HEAD = 8  # characters of the literal behind a placeholder that are searched for
BEGINS = 13  # matching literal characters that name a message when the text is the beginning of it and ends there
BEGINS_LONG = 6, 24  # or so many, when names and shapes between them make the text so long
ENOUGH = 28  # matching literal characters that name a message, though the rest is missing or differs
GRAM = 5  # length of a run of letters, for near misses
NEAR_SHARED = 14  # runs that must be shared
NEAR_SCORE = 0.45  # share of the shorter text's runs that must be shared
NEAR_MOST = 3  # near misses named
MESSAGE_MOST = 600  # folded characters that are compared for near misses
TEXT_MOST = 2000  # folded characters up to which a text without an exception's name counts as a message


@dataclass(frozen=True)
class Hit:
    """A template found in a text: where (in the folded text), how many literal characters agree, whether all do.

    `order` is the template's place on its page: what a page names first is what it is about.
    """

    page: int
    order: int
    start: int
    end: int
    literal: int
    complete: bool


@dataclass(frozen=True)
class Answer:
    """Pages by index: those whose message stands in the text, best first, or else those that come near."""

    hits: tuple[int, ...]
    near: tuple[int, ...]


def _all_in(text: str, start: int, end: int, kind: str) -> bool:
    allowed = CHARACTERS[kind]
    return not allowed or all(character in allowed for character in text[start:end])


def _common(literal: str, text: str, at: int) -> int:
    """Return how many characters of `literal` agree with `text` from `at` on."""
    length = min(len(literal), len(text) - at)
    if text.startswith(literal[:length], at):
        return length
    return next(n for n in range(length) if literal[n] != text[at + n])


def _forward(template: Template, text: str, at: int, first: int) -> tuple[int, int, bool]:
    """Compare from part `first` to the end: (end, agreeing literal characters, nothing contradicts)."""
    agreed = 0
    parts = template.parts
    for index in range(first, len(parts)):
        is_literal, value = parts[index]
        if is_literal:
            common = _common(value, text, at)
            agreed += common
            at += common
            if common < len(value):
                return at, agreed, at == len(text)
        elif index + 1 == len(parts):
            break
        else:
            literal = parts[index + 1][1]
            head = literal[:HEAD]
            limit = min(len(text), at + LONGEST[value] + len(head))
            found = text.find(head, at + 1, limit)
            if found < 0:  # the text may end in the placeholder, or in the first letters of the literal behind it
                begun = next((n for n in range(len(head) - 1, 0, -1) if text.endswith(head[:n], at + 1)), 0)
                end = len(text) - begun
                return at, agreed + begun, end - at <= LONGEST[value] and _all_in(text, at, end, value)
            if not _all_in(text, at, found, value):
                return at, agreed, False
            at = found
    return at, agreed, True


def _backward(template: Template, text: str, at: int) -> tuple[int, int, bool]:
    """Compare from the anchor to the beginning: (start, agreeing literal characters, nothing contradicts)."""
    agreed = 0
    parts = template.parts
    for index in range(template.anchor - 1, -1, -1):
        is_literal, value = parts[index]
        if is_literal:
            length = min(len(value), at)
            if text[at - length:at] != value[len(value) - length:]:
                return at, agreed, False
            agreed += length
            at -= length
            if length < len(value):
                return at, agreed, True
        elif index == 0:
            break
        else:
            tail = parts[index - 1][1][-HEAD:]
            found = text.rfind(tail, max(0, at - LONGEST[value] - len(tail)), max(0, at - 1))
            if found < 0:
                return at, agreed, at <= LONGEST[value] and _all_in(text, 0, at, value)
            if not _all_in(text, found + len(tail), at, value):
                return at, agreed, False
            at = found + len(tail)
    return at, agreed, True


class Matcher:
    """All templates of all pages, ready to be searched for.

    `pages` is one sequence of templates a page; answers name pages by their index in it.
    """

    def __init__(self, pages: Iterable[Sequence[Template]]):
        self.pages = [tuple(templates) for templates in pages]
        self._anchors: dict[str, list[tuple[int, int, Template]]] = {}
        for page, templates in enumerate(self.pages):
            for order, template in enumerate(templates):
                anchor = template.parts[template.anchor][1][:ANCHOR]
                self._anchors.setdefault(anchor, []).append((page, order, template))
        self._grams: list[list[set[str]]] | None = None

    def hits(self, folded: str) -> list[Hit]:
        """Return every template found in the folded text, in no particular order."""
        found = []
        for anchor, owners in self._anchors.items():
            end = len(folded)
            for _ in range(LAST_HITS):
                at = folded.rfind(anchor, 0, end)
                if at < 0:
                    break
                end = at + len(anchor) - 1
                for page, order, template in owners:
                    stop, ahead, clean_ahead = _forward(template, folded, at, template.anchor)
                    start, behind, clean_behind = _backward(template, folded, at)
                    agreed = ahead + behind
                    complete = clean_ahead and clean_behind
                    # Of a short template three quarters will do, in whole numbers, if nothing contradicts.
                    if agreed >= ENOUGH or complete and agreed * 4 >= template.literal * 3:
                        found.append(Hit(page, order, start, stop, agreed, complete))
        return found

    def search(self, text: str) -> Answer:
        """Return the pages whose message stands in `text`: whole ones before parts, the last in the text first."""
        folded = fold(text)
        found = self.hits(folded)
        # A hit inside the text of a longer one is the lesser reading of the same words.
        ordered = sorted(found, key=lambda hit: (not hit.complete, -hit.literal, -hit.start, hit.order, hit.page))
        kept: list[Hit] = []
        lesser: list[Hit] = []
        for hit in ordered:
            overlaps = any(hit.start < other.end and other.start < hit.end for other in kept)
            (lesser if overlaps else kept).append(hit)
        kept.sort(key=lambda hit: (not hit.complete, -hit.start, hit.order, hit.page))
        pages = tuple(dict.fromkeys(hit.page for hit in [*kept, *lesser]))
        if pages:
            return Answer(pages, ())
        message = last_message(text)
        if message is not None:
            folded = fold(message[:20 * MESSAGE_MOST])
        elif len(folded) > TEXT_MOST:
            return Answer((), ())
        begun = self._begun(folded)
        return Answer(begun, () if begun else self._near(folded))

    def _begun(self, folded: str) -> tuple[int, ...]:
        """Return the pages of templates that the message begins and does not contradict: it was cut early."""
        found = []
        for page, templates in enumerate(self.pages):
            for order, template in enumerate(templates):
                _, agreed, clean = _forward(template, folded, 0, 0)
                long = agreed >= BEGINS_LONG[0] and len(folded) >= BEGINS_LONG[1]
                if clean and (agreed >= BEGINS or long):
                    found.append((-agreed, order, page))
        return tuple(dict.fromkeys(page for *_, page in sorted(found)))

    def _near(self, folded: str) -> tuple[int, ...]:
        wanted = _grams(folded[:MESSAGE_MOST])
        if self._grams is None:
            self._grams = [[set().union(*(_grams(v) for lit, v in t.parts if lit)) for t in page] for page in self.pages]
        scores = []
        for page, templates in enumerate(self._grams):
            best = 0.0
            for grams in templates:
                shared = len(wanted & grams)
                if shared >= NEAR_SHARED:
                    best = max(best, shared / min(len(wanted), len(grams)))
            if best >= NEAR_SCORE:
                scores.append((-best, page))
        return tuple(page for _, page in sorted(scores)[:NEAR_MOST])


def _grams(folded: str) -> set[str]:
    return {folded[i:i + GRAM] for i in range(len(folded) - GRAM + 1)}


_EXCEPTION_LINE = re.compile(r"(?:^|[\n\r])[ \t|]*(?:E[ \t]+)?(?:[A-Za-z_][\w.]*)?(?:Error|Exception|Warning): ", re.ASCII)


def last_message(text: str) -> str | None:
    """Return what follows the last exception's name in `text` (``RuntimeError: ``), or None where none is named."""
    *_, last = [None, *_EXCEPTION_LINE.finditer(text)]
    return text[last.end():] if last else None
