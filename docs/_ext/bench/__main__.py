"""Measure builds side by side: python -m _ext.bench [--sizes 5 20 60 240] [--rounds 3] [--stock-to 20] [--stock-rounds 1]"""

import argparse
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

from _ext.sessions import server

OPTIONS = ["-q", "-c", "."]
BUILD = [sys.executable, "-m", "_ext.site", "html", "docs", "build", *OPTIONS, "-j", "auto"]  # what `make html` runs
NOTHING = [*BUILD, "-D", "sessions_run=0"]
STOCK = [sys.executable, "-m", "sphinx", *OPTIONS, "-j", "2", "docs", "build"]


def main():
    from _ext.bench import report, sites
    from _ext.bench.measure import adopt_orphans, timed

    parser = argparse.ArgumentParser(prog="python -m _ext.bench", description="Measure how fast the site builds.")
    parser.add_argument("--sizes", nargs="+", type=int, default=[5, 20, 60, 240], help="pages a site")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each measurement; the median is shown")
    parser.add_argument("--stock-to", type=int, default=20, help="largest site that MyST-NB's own modes are measured on")
    parser.add_argument("--stock-rounds", type=int, default=1, help="rounds of MyST-NB's own modes, which take minutes")
    parser.add_argument("--out", default="docs/_bench", help="where the table, the plot and the figures go")
    options = parser.parse_args()

    adopt_orphans()
    environment = {**os.environ, "PYTHONPATH": str(server.PACKAGES)}
    chosen = subprocess.run([sys.executable, "-m", "_ext.bench.choose"], env=environment, capture_output=True, text=True)
    if chosen.returncode:
        sys.exit(f"no pages to measure:\n{chosen.stderr}")
    pages = json.loads(chosen.stdout.splitlines()[-1])
    print(f"sites of {len(pages)} pages of this site, over and over")
    results = {}

    def note(size, mode, figures):
        results.setdefault(size, {}).setdefault(mode, []).append(figures)
        print(f"{size:5} pages  {mode:18} {figures.wall:7.2f} s wall {figures.cpu:7.2f} s CPU", flush=True)

    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for size in options.sizes:
            ours = sites.make(Path(folder, f"ours{size}"), pages, size, sites.OURS, sites.READER)
            off = sites.make(Path(folder, f"off{size}"), pages, size, sites.OURS, sites.READER)
            for round_ in range(options.rounds):
                for mode, site, command in (("nothing run", off, NOTHING), ("cold", ours, BUILD)):
                    shutil.rmtree(site / "build", ignore_errors=True)
                    note(size, mode, _good(timed(command, site, environment)))
                for mode, site, command in (("nothing run, edit", off, NOTHING), ("edit", ours, BUILD)):
                    _edit(site, round_)
                    note(size, mode, _good(timed(command, site, environment)))
                note(size, "unchanged", _good(timed(BUILD, ours, environment)))
                code = _good(timed([sys.executable, "-m", "_ext.bench.warmcode", str(ours)], ours, {**environment, **server.ENVIRONMENT}))
                told = json.loads(code.printed.splitlines()[-1])
                for mode in ("import", "code"):
                    code.wall = code.cpu = told[mode]
                    note(size, {"import": "import torch", "code": "all code, warm"}[mode], code)
                for mode in ("off", "force", "cache") if round_ < options.stock_rounds else ():
                    if mode == "off" or size <= options.stock_to:
                        stock = sites.make(Path(folder, f"{mode}{size}"), pages, size, sites.STOCK, f'nb_execution_mode = "{mode}"')
                        figures = timed(STOCK, stock, environment)
                        if figures.status == 0:
                            note(size, f"MyST-NB {mode}", figures)
                        else:
                            print(f"{size:5} pages  MyST-NB {mode}: aborted: {figures.printed.strip().splitlines()[-1][:100]}", flush=True)
            shutil.rmtree(ours / "build", ignore_errors=True)
            note(size, "memory", _good(timed(BUILD, ours, environment, memory=True)))
            for path in Path(folder).iterdir():
                shutil.rmtree(path, ignore_errors=True)
    facts = _facts(environment)
    report.write(Path(options.out), results, facts, {
        "command": "make bench" + (f' O="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""),
        "date": date.today().isoformat(), "cores": os.cpu_count(), "python": platform.python_version(),
        "torch": version("torch").partition("+")[0], "sphinx": version("sphinx"), "myst-nb": version("myst-nb"),
        "rounds": options.rounds, "kinds of pages": len(pages),
    })
    print(f"\nwritten to {options.out}: builds.json, builds.md, builds.svg")


def _facts(environment):
    """Measure the facts of all pages twice: with an empty cache, and with what the first time left there."""
    from _ext.bench.measure import timed

    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        runs = [_good(timed([sys.executable, "-m", "_ext.bench.factcost", folder], ".", environment)) for _ in range(2)]
    told = json.loads(runs[0].printed.splitlines()[-1])
    print(f"facts of {told['operations']} operations: {runs[0].cpu:.1f} s CPU with an empty cache, {runs[1].cpu:.2f} s with a full one")
    return {"operations": told["operations"], "cold": runs[0].cpu, "warm": runs[1].cpu}


def _good(figures):
    if figures.status:
        sys.exit(f"a build failed ({figures.status}):\n{figures.printed[-3000:]}")
    return figures


def _edit(site, round_):
    page = sorted(Path(site, "docs", "a").glob("page_*.md"))[0]
    time.sleep(0.01)
    page.write_text(page.read_text("utf-8") + f"\nEdited {round_}.\n", "utf-8")


if __name__ == "__main__":
    main()
