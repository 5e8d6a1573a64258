"""Say what pages did, in lines that a person can act on."""

import sys
import textwrap


def failure_lines(page, most=20):
    """Give (place, text) for the first failures of a page; `text` is a reason and, below it, the detail."""
    for at, (path, failure) in enumerate(page.failures):
        if at == most:
            yield f"{path}:{failure.line}", f"and {len(page.failures) - most} more failures from here on"
            return
        detail = textwrap.indent(_shorter(failure.detail.rstrip()), "    ")
        yield f"{path}:{failure.line}", failure.reason + (f"\n{detail}" if detail else "")


def summary(pages):
    """Say in one line how many pages, cells and promises ran, and which took longest."""
    ran = [page for page in pages if page.items]
    cells = sum(item.kind == "code-cell" for page in ran for item in page.items)
    promises = sum(result.promises for page in ran for result in page.results.values())
    slowest = sorted(ran, key=lambda page: -page.seconds)[:3]
    names = ", ".join(f"{page.name} {page.seconds:.1f} s" for page in slowest)
    return f"{_count(len(ran), 'page')} ran: {_count(cells, 'cell')}, {_count(promises, 'promise')}; longest: {names}"


def _count(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def plain(outputs):
    """Give each output of an item as text."""
    for output in outputs:
        if output["output_type"] == "error":
            yield "\n".join(output["traceback"])
        else:
            yield output.get("text") or output["data"].get("text/plain", str(list(output["data"])))


def _shorter(text, most=30, width=2000):
    lines = [line[:width] for line in text.splitlines()]
    return "\n".join(lines if len(lines) <= most else [*lines[: most - 5], "...", *lines[-4:]])


class Progress:
    """One line on a terminal that changes as pages end; in a log nothing, or a line a page when asked."""

    def __init__(self, total, lines=False, out=None):
        self.total, self.lines, self.out = total, lines, out or sys.stdout
        self.terminal = self.out.isatty()
        self.seen = 0

    def __call__(self, done, running):
        if self.lines:
            for page in done[self.seen :]:
                state = f"failed ({len(page.failures)})" if page.failures else "ok"
                print(f"page {page.name}: {state}, {page.seconds:.1f} s", file=self.out)
        elif self.terminal:
            failed = sum(bool(page.failures) for page in done)
            slowest = max(done, key=lambda page: page.seconds, default=None)
            text = f"running pages: {len(done)}/{self.total} done, {len(running)} running, {failed} failed"
            text += f" (slowest: {slowest.name} {slowest.seconds:.1f} s)" if slowest else ""
            print(f"\r\033[K{text}", end="" if running or len(done) < self.total else "\n", file=self.out, flush=True)
        self.seen = len(done)
