"""The Difficulty Profile: what makes an instance hard, one file per component."""

from dokimos.profiles.base import Component
from dokimos.registry import Registry

#: The canonical five, by the names of `model.COMPONENTS`.
CANONICAL: Registry[Component] = Registry(
    "profile component",
    {
        "gradient_dimension": "dokimos.profiles.gradient_dimension:GradientDimension",
        "ibp_gap": "dokimos.profiles.ibp_gap:IbpGap",
        "margin": "dokimos.profiles.margin:LeastMargin",
        "regions": "dokimos.profiles.regions:Regions",
        "unstable": "dokimos.profiles.unstable:UnstableFraction",
    },
)

#: What is measured beside them.
EXTRAS: Registry[Component] = Registry(
    "extra measurement",
    {
        "attacked_margin": "dokimos.profiles.attacked_margin:AttackedMargin",
        "crown_bound": "dokimos.profiles.crown_gap:CrownLowerBound",
        "crown_gap": "dokimos.profiles.crown_gap:CrownGap",
        "ibp_bound": "dokimos.profiles.ibp_gap:IbpLowerBound",
        "inputs": "dokimos.profiles.sizes:Inputs",
        "nonlinear_units": "dokimos.profiles.sizes:NonlinearUnits",
        "parameters": "dokimos.profiles.sizes:Parameters",
        "unstable_units": "dokimos.profiles.sizes:UnstableUnits",
    },
)

__all__ = ["CANONICAL", "EXTRAS", "Component"]
