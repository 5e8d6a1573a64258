"""Run pages without building the site: python -m _ext.sessions [--show] docs/operations/detach.md ..."""

import argparse
import os
import sys
from pathlib import Path

from _ext.sessions import server

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m _ext.sessions", description="Run pages without building the site.")
    parser.add_argument("pages", nargs="+", metavar="PAGE.md")
    parser.add_argument("--show", action="store_true", help="print what each cell gave")
    options = parser.parse_args()
    show = options.show
    texts = [Path(name).read_text("utf-8-sig") for name in options.pages]
    server.start(texts)

    from _ext.sessions import pool, report, source
    from _ext.sessions.run import Failure, Limits

    pages = []
    for name, text in zip(options.pages, texts):
        page = pool.Page(Path(name).stem, os.path.relpath(name), [])
        try:
            page.items = source.items_of(text, Path(name).parent)
        except source.PageError as error:
            page.failures.append((page.path, Failure(error.line, error.reason)))
        pages.append(page)
    pool.run_pages(pages, Limits(), private=[str(Path.cwd())], watch=report.Progress(len(pages)))
    for page in pages:
        for place, text in report.failure_lines(page):
            print(f"{place}: {text}", file=sys.stderr)
        if show:
            for index, result in sorted(page.results.items()):
                print(f"--- {page.path}:{page.items[index].line} {page.items[index].kind}", *report.plain(result.outputs), sep="\n")
    print(report.summary(pages))
    sys.exit(any(page.failures for page in pages))
