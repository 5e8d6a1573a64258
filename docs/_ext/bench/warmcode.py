"""Run every cell of a site's pages in one warm process, each page in a namespace of its own: the least that running can cost."""

import contextlib
import io
import json
import sys
import time
import warnings
from pathlib import Path

if __name__ == "__main__":
    began = time.perf_counter()
    import torch  # noqa: F401

    imported = time.perf_counter() - began
    from _ext.sessions import source

    texts = [path.read_text("utf-8") for path in sorted(Path(sys.argv[1], "docs").rglob("page_*.md"))]
    warnings.simplefilter("ignore")
    pages = [[compile(item.source, "cell", "exec") for item in source.items_of(text, ".")] for text in texts]
    began = time.perf_counter()
    for page in pages:
        names = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()):
            # In one process pages are not apart: a warning that the last one showed is not shown again,
            # so a cell that counts on it fails here, and ends its page.
            with contextlib.suppress(Exception):
                for code in page:
                    exec(code, names)
    print(json.dumps({"import": imported, "code": time.perf_counter() - began}))
