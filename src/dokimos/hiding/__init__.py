"""Counterexamples that are hard to find: planting them, and measuring how hard they are by attacks."""
