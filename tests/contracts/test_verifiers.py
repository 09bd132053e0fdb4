"""What every shipped verifier must keep to."""

from __future__ import annotations

from dokimos.testing import VerifierContract
from dokimos.verifiers.catalogue import VERIFIERS


class TestShippedVerifiers(VerifierContract):
    verifiers = tuple(VERIFIERS[name] for name in VERIFIERS.shipped)


def test_verifiers_are_listed_by_their_names() -> None:
    assert all(VERIFIERS[name].name == name for name in VERIFIERS.shipped)
