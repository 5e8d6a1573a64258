"""Sphinx extension: a line of links under a page's title, which other extensions fill."""

from html import escape

LAST = 950  # priority of the listener that writes the line, after all that fill it


def add(context, text, address, **attributes):
    """Add a link to the page that `context` (of html-page-context) is for."""
    context.setdefault("title_links", []).append((text, address, attributes))


def write(app, pagename, templatename, context, doctree):
    """Put the line under the title, at the end of its heading."""
    links = "".join(f"<a {_attributes(href=address, **more)}>{escape(text)}</a>" for text, address, more in context.get("title_links", ()))
    if links and "</h1>" in context.get("body", ""):
        context["body"] = context["body"].replace("</h1>", f'</h1>\n<p class="title-links">{links}</p>', 1)


def _attributes(**values):
    return " ".join(f'{name}="{escape(value)}"' for name, value in values.items())


def setup(app):
    app.connect("html-page-context", write, priority=LAST)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
