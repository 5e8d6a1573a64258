"""Sphinx extension: repair what Furo leaves unclear for screen readers."""


def give_headings_a_level(app, pagename, templatename, context, doctree):
    """A sidebar caption says that it is a heading; say of which level too."""
    tree = context.get("furo_navigation_tree")
    if tree:
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app):
    app.connect("html-page-context", give_headings_a_level, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
