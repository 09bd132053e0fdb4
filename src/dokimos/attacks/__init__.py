"""Searches for counterexamples: one file each, batched, seeded, behind one interface."""

from dokimos.attacks.base import Attack
from dokimos.core.plugins import PluggableRegistry

#: Every attack by its name; each is imported when first asked for.
ATTACKS: PluggableRegistry[Attack] = PluggableRegistry(
    "attack",
    {
        "pgd": "dokimos.attacks.pgd:PGD",
    },
    group="dokimos.attacks",
    expects=Attack,
)

__all__ = ["ATTACKS", "Attack"]
