"""Counterexamples that are hard to find: planting them, by locks or by training."""
