"""Build the site whole or not at all: python -m _ext.site BUILDER SOURCE BUILDDIR [Sphinx's options]."""

import sys

from _ext.site.build import main

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], sys.argv[4:]))
