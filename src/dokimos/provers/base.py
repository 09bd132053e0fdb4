"""What a prover raises if it finds no proof."""

from __future__ import annotations


class NoProof(Exception):
    """No proof was found; the message says why. The caller may try another question."""
