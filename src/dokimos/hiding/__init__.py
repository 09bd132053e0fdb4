"""Counterexamples that are hard to find, and how hard they are: planting them, and attacking them."""
