"""Measure builds side by side: python -m _ext.bench [--sizes 5 20 60 240] [--rounds 3] [--stock-to 20] [--stock-rounds 1]"""

import argparse
import dataclasses
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

from _ext.bench import report, sites
from _ext.bench.measure import adopt_orphans, timed
from _ext.sessions import server

BUILD = [sys.executable, "-m", "_ext.site", "html", "docs", "build", "-q", "-c", ".", "-j", "auto"]  # what `make html` runs
NOTHING = [*BUILD, "-D", "sessions_run=0"]
STOCK = [sys.executable, "-m", "sphinx", "-q", "-c", ".", "-j", "2", "docs", "build"]
TRIES = 5  # of a build by MyST-NB that aborts
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(server.PACKAGES)}


class Bench:
    """Sites in `folder`, and what was measured on them: `results` is size -> mode -> list of Figures."""

    def __init__(self, folder, pages):
        self.folder, self.pages = folder, pages
        self.results, self.aborted = {}, []

    def measure(self, size, rounds, stock_rounds, stock_to):
        """Measure sites of `size` pages in every mode, one after another, round by round."""
        ours, off = (sites.make(Path(self.folder, name), self.pages, size, sites.OURS, sites.READER) for name in ("ours", "off"))
        for round_ in range(rounds):
            for site in (ours, off):
                shutil.rmtree(site / "build", ignore_errors=True)
            self._note(size, "nothing run", _good(timed(NOTHING, off, ENVIRONMENT)))
            self._note(size, "cold", _good(timed(BUILD, ours, ENVIRONMENT)))
            for site in (ours, off):
                _edit(site, round_)
            self._note(size, "nothing run, edit", _good(timed(NOTHING, off, ENVIRONMENT)))
            self._note(size, "edit", _good(timed(BUILD, ours, ENVIRONMENT)))
            self._note(size, "unchanged", _good(timed(BUILD, ours, ENVIRONMENT)))
            self._code(size, ours)
            if round_ < stock_rounds:
                for mode in ("off", "force", "cache") if size <= stock_to else ("off",):
                    self._stock(size, mode)
        shutil.rmtree(ours / "build", ignore_errors=True)
        self._note(size, "memory", _good(timed(BUILD, ours, ENVIRONMENT, memory=True)))

    def _code(self, size, site):
        command = [sys.executable, "-m", "_ext.bench.warmcode", str(site)]
        figures = _good(timed(command, site, {**ENVIRONMENT, **server.ENVIRONMENT}))
        told = json.loads(figures.printed.splitlines()[-1])
        for mode, name in (("import", "import torch"), ("code", "all code, warm")):
            self._note(size, name, dataclasses.replace(figures, wall=told[mode], cpu=told[mode]))

    def _stock(self, size, mode):
        """Measure one of MyST-NB's own modes; its cache aborts now and then where two jobs make one database."""
        for _ in range(TRIES):
            site = sites.make(Path(self.folder, "stock"), self.pages, size, sites.STOCK, f'nb_execution_mode = "{mode}"')
            figures = timed(STOCK, site, ENVIRONMENT)
            if figures.status == 0:
                self._note(size, f"MyST-NB {mode}", figures)
                return
            self.aborted.append(f"`{mode}` at {size} pages")
            print(f"{size:5} pages  MyST-NB {mode}: aborted: {_reason(figures.printed)}", flush=True)

    def _note(self, size, mode, figures):
        self.results.setdefault(size, {}).setdefault(mode, []).append(figures)
        print(f"{size:5} pages  {mode:18} {figures.wall:7.2f} s wall {figures.cpu:7.2f} s CPU", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m _ext.bench", description="Measure how fast the site builds.")
    parser.add_argument("--sizes", nargs="+", type=int, default=[5, 20, 60, 240], help="pages a site")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each measurement; the median is shown")
    parser.add_argument("--stock-to", type=int, default=20, help="largest site that MyST-NB's own modes are measured on")
    parser.add_argument("--stock-rounds", type=int, default=1, help="rounds of MyST-NB's own modes, which take minutes")
    parser.add_argument("--out", default="docs/_bench", help="where the table, the plot and the figures go")
    options = parser.parse_args()

    adopt_orphans()
    pages = _chosen()
    print(f"sites of {len(pages)} pages of this site, over and over")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(folder, pages)
        for size in options.sizes:
            bench.measure(size, options.rounds, options.stock_rounds, options.stock_to)
    report.write(Path(options.out), bench.results, _facts(), {
        "command": "make bench" + (f' O="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""),
        "date": date.today().isoformat(), "cores": os.cpu_count(), "python": platform.python_version(),
        "torch": version("torch").partition("+")[0], "sphinx": version("sphinx"), "myst-nb": version("myst-nb"),
        "rounds": options.rounds, "kinds of pages": len(pages), "aborted": bench.aborted,
    })
    print(f"\nwritten to {options.out}: builds.json, builds.md, builds.svg")


def _chosen():
    chosen = subprocess.run([sys.executable, "-m", "_ext.bench.choose"], env=ENVIRONMENT, capture_output=True, text=True)
    if chosen.returncode:
        sys.exit(f"no pages to measure:\n{chosen.stderr}")
    return json.loads(chosen.stdout.splitlines()[-1])


def _facts():
    """Measure the facts of all pages twice: with an empty cache, and with what the first time left there."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        cold, warm = (_good(timed([sys.executable, "-m", "_ext.bench.factcost", folder], ".", ENVIRONMENT)) for _ in range(2))
    count = json.loads(cold.printed.splitlines()[-1])["operations"]
    print(f"facts of {count} operations: {cold.cpu:.1f} s CPU with an empty cache, {warm.cpu:.2f} s with a full one")
    return {"operations": count, "cold": round(cold.cpu, 3), "warm": round(warm.cpu, 3)}


def _good(figures):
    if figures.status:
        sys.exit(f"a build failed ({figures.status}):\n{figures.printed[-3000:]}")
    return figures


def _reason(printed):
    lines = printed.strip().splitlines() or [""]
    return next((line for line in reversed(lines) if "Error" in line), lines[-1]).strip()[:100]


def _edit(site, round_):
    page = sorted(Path(site, "docs", "a").glob("page_*.md"))[0]
    time.sleep(0.01)
    page.write_text(page.read_text("utf-8") + f"\nEdited {round_}.\n", "utf-8")


if __name__ == "__main__":
    main()
