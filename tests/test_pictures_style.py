"""The style sheet: contrast in both themes, computed with the colours of the installed Furo."""

import re
from pathlib import Path

import furo
import pytest
from _ext.pictures.layout import COLOURS

SHEET = (Path(__file__).parent.parent / "docs/_static/pictures.css").read_text()
FURO = (Path(furo.__file__).parent / "theme/furo/static/styles/furo.css").read_text()


def variables(css):
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{3,6})\b", css))


def rule(css, selector):
    return re.search(re.escape(selector) + r"\s*\{([^}]*)\}", css).group(1)


def themes():
    light, dark = rule(SHEET, ".torch-picture"), rule(SHEET, 'body[data-theme="dark"] .torch-picture')
    # Furo has several rules for `body`; one of them holds the light colours.
    page_light = next(r for r in re.findall(r"body\{([^}]*)\}", FURO) if "--color-foreground-primary:" in r)
    page_dark = rule(FURO, "body[data-theme=dark]")
    base = variables(page_light) | variables(light)
    return {"light": base, "dark": base | variables(page_dark) | variables(dark)}


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    channels = [int(digits[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


TEXT, QUIET, PAPER = "color-foreground-primary", "color-foreground-secondary", "color-background-primary"
PAIRS = [
    (TEXT, PAPER),
    (QUIET, PAPER),
    (TEXT, "picture-box"),
    (QUIET, "picture-box"),
    (TEXT, "picture-leaf"),
    (QUIET, "picture-leaf"),
    ("picture-held", "picture-box"),
    ("picture-cut", "picture-box"),
    ("picture-cut", PAPER),
    ("picture-flow", PAPER),
    *((TEXT, f"picture-v{k}") for k in range(COLOURS)),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_contrast(theme, text, ground):
    colours = themes()[theme]
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_lines_contrast(theme):
    colours = themes()[theme]
    for line in ("picture-flow", "picture-cut", "picture-leaf-line", QUIET):
        assert contrast(colours[line], colours[PAPER]) >= 3


def test_contrast_is_computed_as_wcag_says():
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


def test_dark_is_the_same_when_chosen_and_when_the_system_asks():
    chosen = rule(SHEET, 'body[data-theme="dark"] .torch-picture')
    asked = rule(SHEET, 'body:not([data-theme="light"]) .torch-picture')
    assert variables(chosen) == variables(asked) and len(variables(chosen)) > COLOURS


def test_every_colour_is_used_and_nothing_is_fetched():
    defined = {name for name in variables(SHEET) if name.startswith("picture-")}
    used = set(re.findall(r"var\(--(picture-[\w-]+)\)", SHEET))
    assert defined <= used
    assert {f"picture-v{k}" for k in range(COLOURS)} <= used
    assert not re.search(r"url\(|@import|https?:", SHEET)
