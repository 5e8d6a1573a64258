"""Choose the pages that a benchmark's sites are made of, in a process of its own, and print them as JSON."""

import json

from _ext.bench import sites
from _ext.sessions import server

if __name__ == "__main__":
    server.start()
    print(json.dumps(sites.light_pages()))
