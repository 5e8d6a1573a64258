"""Run a page's cells and promises in one process of its own, and feed what they print to MyST-NB.

Data flows one way: ``source`` (page text to items) -> ``pool`` (one process a page, some at a time)
-> ``run`` (the process: items to results) -> ``extension`` (results to Sphinx).
"""
