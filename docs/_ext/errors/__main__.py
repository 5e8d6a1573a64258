"""From a terminal: ``python -m _ext.errors < traceback.txt`` names the page that explains the error.

``python -m _ext.errors review`` lists messages whose wording changed, ``accept`` rewrites those that a person approved.
"""

import argparse
import sys
from pathlib import Path

from _ext.errors.pages import PageError, index


def show(path: Path) -> str:
    """Return a path as one would type it here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def look_up(text: str) -> int:
    """Print the page of a pasted text and its first sentence; return 0 if there is one, else 1."""
    known = index()
    answer = known.search(text)
    for number in answer.hits:
        page = known.pages[number]
        print(f"{show(page.path)}\n{page.summary}")
    if answer.hits:
        return 0
    print("No page knows this message." if text.strip() else "Nothing was given on standard input.")
    if answer.near:
        print("Nearest:")
        for number in answer.near:
            print(f"  {show(known.pages[number].path)}  {known.pages[number].title}")
    return 1


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m _ext.errors", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", title="after a torch upgrade")
    review = commands.add_parser("review", help="list messages whose text changed: old text, new text, page")
    accept = commands.add_parser("accept", help="rewrite the promises that a person has approved")
    accept.add_argument("numbers", nargs="*", metavar="NUMBER", help="numbers from the list of `review`")
    accept.add_argument("--all", action="store_true", help="approve the whole list")
    for command in (review, accept):
        command.add_argument("--pages", nargs="*", metavar="PAGE.md", type=Path, help="only these pages")
    options = parser.parse_args(arguments)
    try:
        if options.command is None:
            return look_up(sys.stdin.buffer.read().decode("utf-8", "replace"))
        from _ext.errors import review as reviewing  # runs torch, which looking up does not need

        return reviewing.main(options)
    except PageError as problem:
        print(problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
