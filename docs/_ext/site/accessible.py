"""Sphinx extension: repair what Furo and MyST-NB leave unclear for screen readers."""

from docutils import nodes


def give_headings_a_level(app, pagename, templatename, context, doctree):
    """A sidebar caption says that it is a heading; say of which level too."""
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def name_plots(app, doctree):
    """A plot whose cell has no `mystnb: image: alt` would be read out as its file's name."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            image["alt"] = "Plot drawn by the code above; the text around it says what to see."


def setup(app):
    app.connect("html-page-context", give_headings_a_level, priority=900)
    app.connect("doctree-read", name_plots)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
