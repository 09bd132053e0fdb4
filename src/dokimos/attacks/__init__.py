"""Searches for counterexamples: one file each, batched, seeded, behind one interface."""

from dokimos.attacks.base import Attack
from dokimos.core.registry import Registry

#: Every attack by its name; each is imported when first asked for.
ATTACKS: Registry[Attack] = Registry("attack", {"pgd": "dokimos.attacks.pgd:PGD"})

__all__ = ["ATTACKS", "Attack"]
