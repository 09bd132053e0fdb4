"""Searches for counterexamples: one file each, batched and seeded, with a common interface."""

from dokimos.core.plugins import PluggableRegistry
from dokimos.engine.attacks.base import Attack

#: All attacks by name; each is imported when first used.
ATTACKS: PluggableRegistry[Attack] = PluggableRegistry(
    "attack",
    {
        "pgd": "dokimos.engine.attacks.gradients:PGD",
        "pgd-leaky": "dokimos.engine.attacks.gradients:LeakyPGD",
        "mi-fgsm": "dokimos.engine.attacks.gradients:MIFGSM",
        "apgd-ce": "dokimos.engine.attacks.gradients:CrossEntropyAPGD",
        "apgd-margin": "dokimos.engine.attacks.gradients:APGD",
        "apgd-dlr": "dokimos.engine.attacks.gradients:RatioAPGD",
        "targeted": "dokimos.engine.attacks.gradients:Targeted",
        "fab": "dokimos.engine.attacks.gradients:FAB",
        "square": "dokimos.engine.attacks.gradients:Square",
        "units": "dokimos.engine.attacks.units:SingleUnits",
        "units-leaky": "dokimos.engine.attacks.units:LeakySingleUnits",
        "coordinate-units": "dokimos.engine.attacks.units:CoordinateUnits",
    },
    group="dokimos.engine.attacks",
    expects=Attack,
)

__all__ = ["ATTACKS", "Attack"]
