"""What every shipped attack must keep to."""

from __future__ import annotations

from dokimos.engine.attacks import ATTACKS
from dokimos.testing import AttackContract


class TestShippedAttacks(AttackContract):
    attacks = tuple(ATTACKS[name] for name in ATTACKS.shipped)


def test_attacks_are_listed_by_their_names() -> None:
    assert all(ATTACKS[name].name == name for name in ATTACKS.shipped)
