"""What a page holds is found where a reader of its text finds it."""

import pytest

import tiny
from _ext.sessions.source import PageError, is_notebook, items_of


def found(text, folder="."):
    return [(item.kind, item.line, item.source) for item in items_of(tiny.notebook(text), folder)]


def test_items_come_in_order_with_the_line_of_their_first_line():
    text = """
        # A

        ```{code-cell}
        :tags: [raises-exception]

        a = 1
        b = 2
        ```

        ```{doctest}
        >>> a
        1
        ```

        ```{autograd-graph} The title
        :alt: What it shows
        import torch
        ```
        """
    assert found(text) == [("code-cell", 14, "a = 1\nb = 2"), ("doctest", 19, ">>> a\n1"), ("autograd-graph", 25, "import torch")]
    items = items_of(tiny.notebook(text), ".")
    assert items[0].tags == ("raises-exception",)
    assert (items[2].title, items[2].alt) == ("The title", "What it shows")


def test_promises_in_admonitions_and_lists_are_found():
    text = """
        :::{note}
        ```{doctest}
        >>> 1
        1
        ```
        :::

        ````{note}
        ```{doctest}
        >>> 2
        2
        ```
        ````

        - item

          ```{doctest}
          >>> 3
          3
          ```
        """
    assert [source for kind, line, source in found(text)] == [">>> 1\n1", ">>> 2\n2", ">>> 3\n3"]


def test_what_is_only_shown_is_no_item():
    text = """
        ````text
        ```{doctest}
        >>> 1
        ```
        ````

        ```python
        1 / 0
        ```
        """
    assert found(text) == []


def test_a_page_without_the_front_matter_of_a_notebook_runs_nothing():
    assert not is_notebook("# A\n")
    assert not is_notebook("---\ntitle: a\n---\n")
    assert items_of("# A\n\n```{doctest}\n>>> 1\n```\n", ".") == []


@pytest.mark.parametrize(
    "text, line",
    [
        ("```{code-cell}\n1", 9),
        ("\n\n```{code-cell}\n:load: gone.py\n```", 9),
        ("```{code-cell}\n---\n[a\n---\n1\n```", 9),
    ],
)
def test_a_page_that_cannot_be_read_says_where(text, line, tmp_path):
    with pytest.raises(PageError) as error:
        items_of(tiny.notebook(text), tmp_path)
    assert error.value.line == line


def test_broken_front_matter_says_where():
    with pytest.raises(PageError) as error:
        items_of("---\nfile_format: mystnb\na: [\n---\n", ".")
    assert error.value.line in (3, 4)
