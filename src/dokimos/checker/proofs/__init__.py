"""The kinds of proof, but for `linear`."""
