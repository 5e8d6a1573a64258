"""Message templates: how the text of an error is written down so that every instance of it is recognised.

A template is the message as torch prints it, with a placeholder where the text depends on the call:
``shape '<shape>' is invalid for input of size <int>``.  Folding makes two texts comparable: it drops what a
terminal, a forum or a copy adds (line breaks, colours, typographic quotes, letter case, invisible marks).
"""

import re
from dataclasses import dataclass

# A placeholder's kind: the characters it may stand for (after folding) and how many of them.
# Every set holds "." so that an elision ("…", "...") in a quoted message matches too.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
CHARACTERS = {
    "i": _DIGITS + ".+-",
    "n": _DIGITS + _LETTERS + ".+-",
    "s": _DIGITS + "torchsizeux" + "_,.[](){}*+-",  # the letters of torch.Size, of 2x3, of symbolic sizes
    "w": _DIGITS + _LETTERS + "_.:<>*&-",
    "t": "",  # anything
}
LONGEST = {"i": 40, "n": 40, "s": 240, "w": 120, "t": 400}

PLACEHOLDERS = {
    "int": "i",  # 3, -1
    "number": "n",  # 1.5, inf
    "shape": "s",  # [2, 3], torch.Size([2]), (2, 3)
    "dtype": "w",  # Long, torch.FloatTensor, c10::Half
    "type": "w",  # NoneType, numpy.ndarray
    "name": "w",  # a function, an argument, an attribute, a node
    "device": "w",  # cuda:0
    "text": "t",  # any other text
}
_PLACEHOLDER = re.compile("<(" + "|".join(PLACEHOLDERS) + ")>")

_ESCAPE = re.compile("\x1b(?:\\[[^@-~]{0,32}[@-~])?")
# What pytest ("E   ", ">   ") and quoted mail ("> ") put before a line.
_MARGIN = re.compile(r"(^|[\n\r])[ \t]*(?:E(?=[ \t]{2})|>(?=[ \t]))")
_LOOKALIKES = str.maketrans({
    **dict.fromkeys("´‘’‚‛′", "'"), **dict.fromkeys("“”„‟″", '"'), **dict.fromkeys("‐‑‒–—−", "-"), "…": "...",
})
_DROPPED = re.compile(r"[^!-{}~]+")


def fold(text: str) -> str:
    """Return `text` as printable ASCII without blanks, bars, colours and margins, in lower case."""
    text = _ESCAPE.sub("", text)
    text = _MARGIN.sub(r"\1", text).replace("`", "'")
    if not text.isascii():
        text = text.translate(_LOOKALIKES)
    return _DROPPED.sub("", text).lower()


def split_placeholders(source: str) -> list[tuple[bool, str]]:
    """Cut a template into ``(is_placeholder, text or placeholder's name)``, empty texts left out."""
    pieces = _PLACEHOLDER.split(source)
    return [(position % 2 == 1, piece) for position, piece in enumerate(pieces) if piece]


@dataclass(frozen=True)
class Template:
    """A compiled message: literal texts and placeholder kinds in turn, and which literal to look for first.

    `parts` holds folded literals and one-letter kinds as ``(is_literal, value)``; `anchor` is an index into it.
    """

    source: str
    parts: tuple[tuple[bool, str], ...]
    anchor: int

    @property
    def literal(self) -> int:
        """Number of literal characters: how much text has to agree."""
        return sum(len(value) for is_literal, value in self.parts if is_literal)

    def as_data(self) -> list:
        """Return the template for the browser: ``[anchor, [literal | [kind], ...]]``."""
        return [self.anchor, [value if is_literal else [value] for is_literal, value in self.parts]]


# Long enough to be rare in ordinary text, short enough to survive a cut.
ANCHOR = 16
_ANCHOR_AT_LEAST = 12


def compile_template(source: str) -> Template:
    """Compile one message template.

    Raises ValueError when too little literal text is left to recognise it, or when two placeholders touch.
    """
    parts: list[tuple[bool, str]] = []
    for placeholder, piece in split_placeholders(source):
        if placeholder:
            if parts and not parts[-1][0]:
                raise ValueError(f"two placeholders touch in {source!r}")
            parts.append((False, PLACEHOLDERS[piece]))
        elif folded := fold(piece):
            parts.append((True, folded))
    lengths = [len(value) if is_literal else 0 for is_literal, value in parts]
    if max(lengths, default=0) < 8:
        raise ValueError(f"no literal text of 8 characters in {source!r}")
    anchor = next((i for i, length in enumerate(lengths) if length >= _ANCHOR_AT_LEAST), lengths.index(max(lengths)))
    return Template(source, tuple(parts), anchor)
