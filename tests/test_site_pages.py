"""Formulas and lists of pages, on tiny sites."""

import tiny
from bs4 import BeautifulSoup


def parsed(path):
    return BeautifulSoup(path.read_text("utf-8"), "html.parser")


def test_a_formula_that_cannot_be_drawn_is_named_with_its_line(tmp_path):
    page = tiny.notebook("# T\n\nGood: $x^2 \\dots$.\n\nBad: $\\nosuch{x}$.\n\n$$\n\\frac{1}\n$$\n\n```{code-cell}\n1\n```\n")
    status, printed, site = tiny.make_site(tmp_path, {"a.md": page})
    assert status == 1 and not site.exists()
    assert "docs/a.md:13: WARNING: formula '\\\\nosuch{x}' cannot be written as MathML" in printed
    assert "docs/a.md:15: WARNING: formula" in printed
    assert printed.count("WARNING") == 2


def test_formulas_are_drawn_without_script(tmp_path):
    page = tiny.notebook("# T\n\n$a < b$\n\n$$\n\\sum_i x_i\n$$ (total)\n\n{eq}`total`\n\n```{code-cell}\n1\n```\n")
    status, printed, site = tiny.make_site(tmp_path, {"a.md": page})
    assert status == 0, printed
    inline, block = parsed(site / "a.html").find_all("math")
    assert inline.get_text().split() == ["a", "<", "b"] and inline.get("display") != "block" and block["display"] == "block"
    link = parsed(site / "a.html").find("a", href="#equation-total")
    assert link.get_text() == "(1)" and parsed(site / "a.html").find(id="equation-total")
    assert "mathjax" not in (site / "a.html").read_text("utf-8").lower()


def listed(site):
    return [item.get_text(" ", strip=True) for item in parsed(site / "index.html").select("ul.page-list > li")]


def test_a_list_of_pages_follows_the_pages(tmp_path):
    index = "# Index\n\n```{page-list} part/*\n```\n\n```{toctree}\n:hidden:\n:glob:\n\npart/*\n```\n"
    pages = {
        "index.md": index,
        "part/index.md": "# Part\n",
        "part/a.md": "# The `a`\n\n`a` is [the first](b.md) one.\nIt says more.\n",
        "part/b.md": "# B\n\nSecond.\n",
    }
    assert tiny.make_site(tmp_path, pages)[0] == 0
    site = tmp_path / "build/html"
    assert listed(site) == ["The a a is the first one.", "B Second."]
    assert parsed(site / "index.html").select_one("ul.page-list a")["href"] == "part/a.html"

    assert tiny.make_site(tmp_path, pages | {"part/b.md": "# B\n\nReworded.\n", "part/c.md": "# C\n\nThird.\n"})[0] == 0
    assert listed(site) == ["The a a is the first one.", "B Reworded.", "C Third."]


def test_a_list_of_nothing_is_named(tmp_path):
    status, printed, _ = tiny.make_site(tmp_path, {"a.md": tiny.notebook("# A\n\n```{page-list} nothing/*\n```\n")})
    assert status == 1 and "docs/a.md:11: WARNING: no page matches nothing/*" in printed
