"""Make and build a tiny site with the project's own configuration, for tests that need a page or a fault of their own."""

import filecmp
import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
FRONT = """\
---
file_format: mystnb
kernelspec:
  name: python3
  display_name: Python 3
  language: python
---

"""
INDEX = """\
# Tiny

```{toctree}
:glob:

**
```
"""
CONF = f"""\
import runpy
globals().update({{name: value for name, value in runpy.run_path({str(ROOT / "conf.py")!r}).items() if name[0] != "_"}})
html_static_path = [str(ROOT / "docs/_static")]
templates_path = [str(ROOT / "docs/_templates")]
"""


def notebook(text):
    """Put the front matter of a notebook page before `text`; its first line is then line 9 of the page."""
    return FRONT + textwrap.dedent(text).lstrip("\n")


def make_site(folder, pages, conf="", builder="html", options=("-W", "-q"), environment=None, timeout=120):
    """Write `pages` (path below docs/ -> text) and build them in a process of its own.

    `conf` is Python that follows the project's own conf.py; `environment` is added to the process's.
    An index page is made if `pages` has none. May be called again on the same folder.
    Return (exit status, what was printed, folder of the published site).
    """
    start = dict(
        cwd=write_site(folder, pages, conf),
        env={**os.environ, "PYTHONPATH": str(ROOT / "docs"), "PYTHONUTF8": "1", "NO_COLOR": "1", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    ran = subprocess.run(command(builder, options), **start)
    return ran.returncode, ran.stdout, Path(folder, "build", builder)


def write_site(folder, pages, conf=""):
    """Write the sources alone; return `folder`, where `command` is then to be started."""
    folder = Path(folder)
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "conf.py").write_text(CONF + textwrap.dedent(conf), "utf-8")
    for name, text in {"index.md": INDEX, **pages}.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def command(builder="html", options=("-W", "-q")):
    """The arguments that build a tiny site from its own folder."""
    return [sys.executable, "-m", "_ext.site", builder, "docs", "build", "-c", ".", *options]


def differences(one, two):
    """List the files that are not equal byte for byte, or are in one folder only."""
    names = {path.relative_to(folder) for folder in (one, two) for path in Path(folder).rglob("*") if path.is_file()}
    return sorted(str(name) for name in names if not all((folder / name).is_file() for folder in (one, two))
                  or not filecmp.cmp(one / name, two / name, shallow=False))
