"""The size of the smallest proof that is found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dokimos.difficulty.components.base import Component
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


class ProofLeaves(Component):
    """The leaves of the smallest proof by intervals, linear bounds and case distinctions (`proof_size`).

    One for each conjunction is the least. Searches end after a number of steps, so that every machine finds
    the same; where CPU time has ended one, the note says so.
    """

    name = "proof_leaves"
    symbol = "leaves"
    meaning = "leaves of the smallest proof found"
    on_request = True
    in_table = False

    def measure(self, seen: Inspection) -> Measurement:
        """The number of leaves; none for an instance with a counterexample."""
        if seen.least_margin is not None and seen.least_margin <= 0:
            return Measurement.not_applicable("a sample is a counterexample")
        if seen.proof.leaves is None:
            return Measurement(None, seen.proof.note)
        note = "; ".join(filter(None, (seen.proof.by, seen.proof.note)))
        return Measurement(float(seen.proof.leaves), note)
