"""Measure how fast the site builds, beside the ways that others run pages. Results go to docs/_bench."""
