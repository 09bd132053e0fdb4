"""This package keeps to the contracts of Dokimos."""

from __future__ import annotations

from dokimos_example.corner_search import CornerSearch
from dokimos_example.lone_hinge import LoneHinge

from dokimos.testing import ConstructionContract, VerifierContract


class TestLoneHinge(ConstructionContract):
    """The family."""

    constructions = (LoneHinge(),)


class TestCornerSearch(VerifierContract):
    """The verifier."""

    verifiers = (CornerSearch(),)
