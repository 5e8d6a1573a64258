"""The errors that a page promises: what stands under ``Traceback`` in its doctests."""

import doctest
import re

_FENCE = re.compile(r"^```\{doctest\}.*?\n(.*?)^```$", re.M | re.S)


def promised_errors(text: str) -> list[str]:
    """Return the exception lines promised in a page's text or a part of it; what an ELLIPSIS leaves out is left out."""
    found = []
    for body in _FENCE.findall(text):
        if "Traceback (most recent call last):" in body:
            for example in doctest.DocTestParser().get_examples(body):
                if example.exc_msg:
                    elided = example.options.get(doctest.ELLIPSIS)
                    found.append(example.exc_msg.replace("...", "") if elided else example.exc_msg)
    return found
