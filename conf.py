"""Sphinx configuration, and nothing but assignments: what needs an `if` or a `def` is a module in docs/_ext."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

ROOT = Path(__file__).parent
sys.path[:0] = [str(ROOT / "docs")]

from _ext.site import hosted  # noqa: E402 - docs/ is on the path only now

project = "Torch Field Guide"
author = "the contributors"
copyright = f"2026, {author}"
release = version = installed("torch").partition("+")[0]

extensions = [
    "_ext.sessions.early",
    "myst_nb",
    "sphinx_copybutton",
    "_ext.sessions.extension",
    "_ext.errors.extension",
    "_ext.facts.extension",
    "_ext.site.accessible",
    "_ext.site.mathml",
    "_ext.site.notebooks",
    "_ext.site.page_list",
    "_ext.site.sidebar",
    *hosted.extensions(),
]
exclude_patterns = ["_build", "_ext", "_facts", "_bench"]
templates_path = ["docs/_templates"]

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
myst_update_mathjax = False
myst_url_schemes = {
    "http": None,
    "https": None,
    "torch": {
        "url": "https://docs.pytorch.org/docs/stable/generated/torch.{{path}}.html",
        "title": "torch.{{path}}",
    },
}

# Cells and promises run in a session a page; MyST-NB draws what they gave.
nb_execution_mode = "off"
nb_custom_formats = {".md": "_ext.sessions.extension.read"}
nb_merge_streams = True
nb_output_stderr = "error"
nb_number_source_lines = False
nb_execution_show_tb = True

# HTML
html_theme = "furo"
html_title = project
pygments_dark_style = "a11y-high-contrast-dark"
html_static_path = ["docs/_static"]
html_css_files = ["site.css", "pictures.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_math_renderer = "mathml"
html_copy_source = False
html_use_index = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.output) > div.highlight pre"

# Hosted: the site's address, from the environment; without it none of this is used
html_baseurl = hosted.address()
colab_address = hosted.colab()
notfound_urls_prefix = hosted.path()
ogp_site_url = hosted.address()
ogp_social_cards = {"enable": False}
