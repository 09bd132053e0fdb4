"""Drawings of the rows, as SVG: the same for the page and for a paper."""
