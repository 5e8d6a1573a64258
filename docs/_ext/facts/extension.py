"""Sphinx extension: fact boxes and the tables that are drawn from facts.

``{facts} NAME`` draws the box of an operation; ``{facts-table}`` the table of all operations that have one;
``{facts-views}``, ``{facts-versions}`` and ``{facts-all}`` the other tables.
Facts are brought up to date before Sphinx reads: from the cache in ``_build/.facts``, or measured in a process of their
own. A fact that is not the recorded one ends the build.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.errors import SphinxError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from . import box, cache, everything, tables
from .gather import CannotMeasure
from .operations import OPERATIONS
from .run import MeasuringFailed

logger = logging.getLogger(__name__)

_BOX = re.compile(r"^(?:`{3,}|:{3,})\{facts\}[ \t]+(\S+)[ \t]*$", re.MULTILINE)
_TABLE = re.compile(r"^(?:`{3,}|:{3,})\{facts-(table|views|versions|all)\}", re.MULTILINE)


class FactChanged(SphinxError):
    """A measured fact is not the recorded one."""

    category = "Facts"


class facts_box(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes in lower case
    """The box of the operation ``name``; drawn when HTML is written, since it links to other pages."""


class facts_table(nodes.General, nodes.Element):  # noqa: N801
    """The table ``kind``."""


class FactsDirective(SphinxDirective):
    """``{facts} NAME``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in OPERATIONS:
            # MyST tells a directive the line below its fence.
            place = (self.env.docname, self.lineno - 1)
            logger.warning(
                "no facts are measured for %r; docs/_ext/facts/operations.py lists what is", name, location=place
            )
            return []
        return [facts_box(name=name)]


class FactsTableDirective(SphinxDirective):
    """``{facts-table}`` and its kin; the directive's own name says which table."""

    option_spec = {"caption": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        return [facts_table(kind=self.name.removeprefix("facts-"))]


# -------------------------------------------------------------------------------------------- before reading


def bring_up_to_date(app, env, added, changed, removed) -> list[str]:
    """Measure what the pages need, end the build where a fact changed, return pages whose facts are not those drawn."""
    boxes, table_pages = _scan(env)
    views = "views" in table_pages
    if boxes or views:
        try:
            found = cache.facts(boxes, views, _folder(app, "facts_cache"), _folder(app, "facts_records"), _say)
        except (MeasuringFailed, CannotMeasure, ModuleNotFoundError, ValueError) as error:
            raise FactChanged(f"not measured: {error}") from None
        if found.changes:
            raise FactChanged(_told(found, boxes))
        env.facts = {
            "version": found.version,
            "recorded": found.recorded,
            "entries": found.entries,
            "views": found.views,
        }
    else:
        env.facts = {"version": "", "recorded": True, "entries": {}, "views": {}}
    env.facts["pages"] = boxes
    drawn = getattr(env, "facts_drawn", {})
    env.facts_drawn = _digests(env, boxes, table_pages, _folder(app, "facts_records"))
    return [page for page, digest in env.facts_drawn.items() if drawn.get(page) != digest and page in env.all_docs]


def _scan(env) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return operation -> page of its box, and table -> pages that show it."""
    boxes: dict[str, str] = {}
    table_pages: dict[str, list[str]] = {}
    for page in sorted(env.found_docs):
        text = Path(env.doc2path(page)).read_text(encoding="utf-8", errors="replace")
        if "{facts" not in text:
            continue
        for name in _BOX.findall(text):
            if name in OPERATIONS:
                boxes.setdefault(name, page)
        for kind in _TABLE.findall(text):
            table_pages.setdefault(kind, []).append(page)
    return boxes, table_pages


def _digests(env, boxes: dict[str, str], table_pages: dict[str, list[str]], records: Path) -> dict[str, str]:
    """Return page -> hash of all facts that it shows."""
    shown: dict[str, list[Any]] = {}
    for name, page in boxes.items():
        shown.setdefault(page, []).append([name, env.facts["entries"][name], env.facts["recorded"]])
    files = [(path.name, path.stat().st_mtime_ns) for path in sorted(records.glob("*.json"))]
    of_table = {
        "table": [env.facts["entries"], boxes],
        "views": [env.facts["views"], files, boxes],
        "versions": files,
        "all": [files, boxes],
    }
    for kind, pages in table_pages.items():
        for page in pages:
            shown.setdefault(page, []).append(of_table[kind])
    return {
        page: hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest() for page, facts in shown.items()
    }


def _told(found: cache.Facts, pages: dict[str, str]) -> str:
    lines = [
        f"{len(found.changes)} {'is' if len(found.changes) == 1 else 'are'} not as recorded for torch {found.version}:"
    ]
    for change in found.changes:
        page = pages.get(change.operation)
        lines.append(f"  {change}" + (f"  ({page})" if page else ""))
    names = " ".join(sorted({change.operation for change in found.changes if change.operation != "views"}))
    command = (
        f'make facts O="{names}"'
        if names and all(change.operation != "views" for change in found.changes)
        else "make facts"
    )
    lines.append(f"If this is how torch behaves now, accept it with: {command}")
    return "\n".join(lines)


def _folder(app, option: str) -> Path:
    return Path(app.srcdir, getattr(app.config, option))


def _say(what: str) -> None:
    logger.info("measuring facts: %s", what)


# -------------------------------------------------------------------------------------------- writing


def _error_link(writer) -> box.ErrorLink:
    """Return what finds an error's page in the error index, as an address seen from the page being written."""
    try:
        from _ext.errors import find
    except ImportError:
        return box.no_link
    builder = writer.builder

    def link(error: str) -> str | None:
        stem = find(error)
        page = f"errors/{stem}"
        return (
            builder.get_relative_uri(builder.current_docname, page) if stem and page in builder.env.found_docs else None
        )

    return link


def _visit_box(writer, node: facts_box) -> None:
    env, operation = writer.builder.env, OPERATIONS[node["name"]]
    writer.body.append(
        box.draw(
            node["name"],
            env.facts["entries"][node["name"]],
            env.facts["version"],
            recorded=env.facts["recorded"],
            numpy={call.text: call.numpy for call in operation.calls if call.numpy},
            codes={effect.question: effect.code for effect in operation.effects},
            link=_error_link(writer),
        )
    )
    raise nodes.SkipNode


def _visit_table(writer, node: facts_table) -> None:
    builder = writer.builder
    env = builder.env

    def page_of(name: str) -> str | None:
        page = env.facts["pages"].get(name)
        return f"{builder.get_relative_uri(builder.current_docname, page)}#{box.identifier(name)}" if page else None

    records, version, official = _folder(builder.app, "facts_records"), cache.installed_version(), _official(builder.config)
    facts = env.facts
    draw: dict[str, Callable[[], str]] = {
        "table": lambda: tables.operations(facts["entries"], facts["version"], page_of, facts["recorded"]),
        "views": lambda: tables.views(
            facts["views"], facts["version"], facts["recorded"], everything.latest(records, version), page_of, official
        ),
        "versions": lambda: tables.versions(records, page_of),
        "all": lambda: tables.all_of_torch(records, version, page_of, official),
    }
    writer.body.append(draw[node["kind"]]())
    raise nodes.SkipNode


def _official(config) -> Callable[[str], str | None]:
    """Return what makes the address of an operation's official page, from the scheme that prose uses for it."""
    scheme = (getattr(config, "myst_url_schemes", None) or {}).get("torch")
    url = scheme.get("url") if isinstance(scheme, dict) else scheme
    if not isinstance(url, str):
        return lambda path: None
    return lambda path: url.replace("{{path}}", path) if path else None


def _skip(writer, node: nodes.Node) -> None:
    raise nodes.SkipNode


def add_files(app, pagename, templatename, context, doctree) -> None:
    """Load styles and script on the pages that use them, and on no other."""
    if doctree is None:
        return
    table = next(doctree.findall(facts_table), None)
    if table is not None or next(doctree.findall(facts_box), None) is not None:
        app.add_css_file("facts.css")
    if table is not None:
        app.add_js_file("facts.js", loading_method="defer")


def setup(app) -> dict[str, Any]:
    """Register directives, nodes and the two folders, both relative to the sources."""
    app.add_config_value("facts_records", "_facts", "env")
    app.add_config_value("facts_cache", "_build/.facts", "")
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), (_skip, None))
    app.add_node(facts_box, html=(_visit_box, None), **others)
    app.add_node(facts_table, html=(_visit_table, None), **others)
    app.add_directive("facts", FactsDirective)
    for kind in ("table", "views", "versions", "all"):
        app.add_directive(f"facts-{kind}", FactsTableDirective)
    app.connect("env-get-outdated", bring_up_to_date)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
