"""What every prover may say instead of a proof."""

from __future__ import annotations


class NoProof(Exception):
    """No proof was found; the message says why. Whoever asked may try another question."""
