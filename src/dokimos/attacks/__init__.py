"""Searches for counterexamples: one file each, batched and seeded, with a common interface."""

from dokimos.attacks.base import Attack
from dokimos.core.plugins import PluggableRegistry

#: All attacks by name; each is imported when first used.
ATTACKS: PluggableRegistry[Attack] = PluggableRegistry(
    "attack",
    {
        "pgd": "dokimos.attacks.pgd:PGD",
        "pgd-leaky": "dokimos.attacks.pgd_leaky:LeakyPGD",
        "pgd-smooth": "dokimos.attacks.pgd_smooth:SmoothPGD",
        "mi-fgsm": "dokimos.attacks.mi_fgsm:MIFGSM",
        "apgd-ce": "dokimos.attacks.apgd:CrossEntropyAPGD",
        "apgd-margin": "dokimos.attacks.apgd:APGD",
        "apgd-dlr": "dokimos.attacks.apgd:RatioAPGD",
        "targeted": "dokimos.attacks.apgd_targeted:Targeted",
        "multi-targeted": "dokimos.attacks.apgd_targeted:MultiTargeted",
        "fab": "dokimos.attacks.fab:FAB",
        "square": "dokimos.attacks.square:Square",
        "units": "dokimos.attacks.single_units:SingleUnits",
        "units-leaky": "dokimos.attacks.single_units:LeakySingleUnits",
        "joint-units": "dokimos.attacks.joint_units:JointUnits",
        "joint-units-leaky": "dokimos.attacks.joint_units:LeakyJointUnits",
        "greedy-units": "dokimos.attacks.greedy_units:GreedyUnits",
        "greedy-units-leaky": "dokimos.attacks.greedy_units:LeakyGreedyUnits",
        "annealing": "dokimos.attacks.annealing:Annealing",
        "coordinate-units": "dokimos.attacks.coordinate_units:CoordinateUnits",
        "crown-vertex": "dokimos.attacks.crown_vertex:CrownVertex",
        "lp-primal": "dokimos.attacks.linear_programs:LPPrimal",
        "lp-split": "dokimos.attacks.linear_programs:LPSplit",
    },
    group="dokimos.attacks",
    expects=Attack,
)

__all__ = ["ATTACKS", "Attack"]
