"""Sphinx extension for a site that has an address: a sitemap, and a link to the copy for reading offline.

The address comes from the environment (SITE_URL); without it conf.py loads none of this.
"""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree

from sphinx.errors import ConfigError

from _ext.site import offline, title_links

BRANCH = "gh-pages"  # where the workflow publishes; Colab opens files of a branch only
OFFLINE = f"{offline.NAME}.zip"  # put beside the site by the workflow
EXTENSIONS = ["_ext.site.hosted", "sphinxext.opengraph", "notfound.extension", "sphinx.ext.githubpages"]


def address():
    """The site's address with a slash at the end, or an empty text."""
    url = os.environ.get("SITE_URL", "").strip()
    return f"{url.rstrip('/')}/" if url else ""


def path():
    """The part of the address that a page on the same host starts its links with."""
    return urlsplit(address()).path or "/"


def extensions():
    """What to load: nothing for a site without an address."""
    return EXTENSIONS if address() else []


def colab():
    """The address in Colab below which the published notebooks open, or an empty text."""
    repository = os.environ.get("GITHUB_REPOSITORY", "").strip()
    return f"https://colab.research.google.com/github/{repository}/blob/{BRANCH}/" if address() and repository else ""


def check(app, config):
    """Refuse an address that no page could be reached at."""
    parts = urlsplit(config.html_baseurl)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.query or parts.fragment:
        raise ConfigError(f"SITE_URL is not the address of a site: {config.html_baseurl!r} (wanted: https://host/path/)")


def link_offline_copy(app, pagename, templatename, context, doctree):
    """Offer the whole site for reading offline, on the front page."""
    if pagename == app.config.root_doc:
        title_links.add(context, "Read offline (zip)", OFFLINE, download=OFFLINE)


def root_the_sidebar(app, pagename, templatename, context, doctree):
    """The 404 page is shown at any path: let its sidebar lead from the host's root."""
    if pagename == app.config.notfound_pagename and context.get("furo_navigation_tree"):
        context["furo_navigation_tree"] = re.sub(r'href="(?![a-z]+:|[/#])', f'href="{path()}', context["furo_navigation_tree"])


def write_sitemap(app, exception):
    """List every page, also those that this build did not write again."""
    if exception or app.builder.format != "html":
        return
    root = ElementTree.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
    for docname in sorted(app.env.found_docs):
        link = "" if docname == app.config.root_doc else app.builder.get_target_uri(docname)
        ElementTree.SubElement(ElementTree.SubElement(root, "url"), "loc").text = app.config.html_baseurl + link
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(Path(app.outdir, "sitemap.xml"), encoding="utf-8", xml_declaration=True)


def setup(app):
    app.setup_extension("_ext.site.title_links")
    app.connect("config-inited", check)
    app.connect("html-page-context", link_offline_copy)
    app.connect("html-page-context", root_the_sidebar, priority=800)  # when it is drawn
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
