# Build and check the site. A fresh clone needs only `make html`.

PYTHON     ?= python3
VENV       ?= .venv
BUILDDIR   ?= docs/_build
SPHINXOPTS ?= -W -j auto -q
O          ?=

# VENV= (empty) uses the Python on the path as it is, for an image that has the requirements.
ifneq ($(strip $(VENV)),)
RUN   = $(VENV)/bin/python
READY = $(VENV)/.ready
else
RUN   = $(PYTHON)
READY =
endif

export PYTHONPATH := docs$(if $(PYTHONPATH),:$(PYTHONPATH))

BUILD = $(RUN) -m _ext.site

.PHONY: help html doctest linkcheck live test bench facts facts-all clean
.DEFAULT_GOAL := help

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "VENV= uses the Python on the path; O= and SPHINXOPTS= pass options to Sphinx, or to pytest with make test."

html: $(READY)  ## run every example and write the site to docs/_build/html
	@$(BUILD) html docs $(BUILDDIR) -c . $(SPHINXOPTS) $(O)

doctest: $(READY)  ## run every page and check every promise, without writing the site
	@$(BUILD) doctest docs $(BUILDDIR) -c . $(SPHINXOPTS) $(O)

linkcheck: $(READY)  ## ask every outside link whether it still answers
	@$(BUILD) linkcheck docs $(BUILDDIR) -c . $(SPHINXOPTS) $(O)

live: $(READY)  ## rebuild and reload in the browser while you write
	@$(RUN) -m _ext.site.live docs $(BUILDDIR) -c . -j auto $(O)

test: $(READY)  ## run every test, promises included
	@$(RUN) -m pytest tests $(O)

bench: $(READY)  ## measure how fast the site builds, beside MyST-NB's own modes
	@$(RUN) -m _ext.bench $(O)

facts: $(READY)  ## measure the documented operations again and rewrite their record
	@$(RUN) -m _ext.facts measure $(O)

facts-all: $(READY)  ## measure every operation that torch's own samples cover
	@$(RUN) -m _ext.facts all $(O)

clean:  ## forget every build
	rm -rf $(BUILDDIR)

# Installs once: the stamp is newer than the requirements until they change.
$(VENV)/.ready: requirements.txt docs/_ext/site/python.py
	@$(PYTHON) docs/_ext/site/python.py
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@echo "installing requirements.txt into $(VENV) (once)"
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt \
		>$(VENV)/install.log 2>&1 || { echo "not installed: $$(tail -n 1 $(VENV)/install.log) (all of it: $(VENV)/install.log)" >&2; exit 1; }
	@touch $@
