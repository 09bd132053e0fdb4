"""Searches for counterexamples: batched, seeded, with gradients."""
