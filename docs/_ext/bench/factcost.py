"""Bring the facts of all pages up to date as a build does, with a cache in the folder given; print what was measured as JSON."""

import json
import re
import sys
from pathlib import Path

from _ext.facts import cache
from _ext.facts.operations import OPERATIONS

DOCS = Path(__file__).parents[2]
BOX = re.compile(r"^`{3,}\{facts\}[ \t]+(\S+)[ \t]*$", re.M)

if __name__ == "__main__":
    pages = "\n".join(path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts)
    names = sorted(set(BOX.findall(pages)) & set(OPERATIONS))
    found = cache.facts(names, True, Path(sys.argv[1]), DOCS / "_facts")
    print(json.dumps({"operations": len(found.entries), "measured": len(found.measured)}))
