"""The Difficulty Profile: what makes an instance hard, one file per component."""

from dokimos.core.plugins import PluggableRegistry
from dokimos.core.registry import Registry
from dokimos.difficulty.components.base import Component

#: The canonical five, by the names of `model.COMPONENTS`.
CANONICAL: Registry[Component] = Registry(
    "profile component",
    {
        "gradient_dimension": "dokimos.difficulty.components.gradient_dimension:GradientDimension",
        "ibp_gap": "dokimos.difficulty.components.ibp_gap:IbpGap",
        "margin": "dokimos.difficulty.components.margin:LeastMargin",
        "regions": "dokimos.difficulty.components.regions:Regions",
        "unstable": "dokimos.difficulty.components.unstable:UnstableFraction",
    },
)

#: What is measured beside them; packages may add to these.
EXTRAS: PluggableRegistry[Component] = PluggableRegistry(
    "extra measurement",
    {
        "attacked_margin": "dokimos.difficulty.components.attacked_margin:AttackedMargin",
        "crown_bound": "dokimos.difficulty.components.crown_gap:CrownLowerBound",
        "crown_gap": "dokimos.difficulty.components.crown_gap:CrownGap",
        "ibp_bound": "dokimos.difficulty.components.ibp_gap:IbpLowerBound",
        "inputs": "dokimos.difficulty.components.sizes:Inputs",
        "nonlinear_units": "dokimos.difficulty.components.sizes:NonlinearUnits",
        "parameters": "dokimos.difficulty.components.sizes:Parameters",
        "unstable_units": "dokimos.difficulty.components.sizes:UnstableUnits",
    },
    group="dokimos.components",
    expects=Component,
)

__all__ = ["CANONICAL", "EXTRAS", "Component"]
