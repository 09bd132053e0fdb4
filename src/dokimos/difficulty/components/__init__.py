"""The Difficulty Profile: what makes an instance hard, one file per component."""

from dokimos.core.plugins import PluggableRegistry
from dokimos.core.registry import Registry
from dokimos.difficulty.components.measurements import Component

#: The canonical five, by their names in a profile's file.
CANONICAL: Registry[Component] = Registry(
    "profile component",
    {
        "gradient_dimension": "dokimos.difficulty.components.measurements:GradientDimension",
        "ibp_gap": "dokimos.difficulty.components.measurements:IbpGap",
        "margin": "dokimos.difficulty.components.measurements:LeastMargin",
        "regions": "dokimos.difficulty.components.measurements:Regions",
        "unstable": "dokimos.difficulty.components.measurements:UnstableFraction",
    },
)

#: Extra measurements; packages may add to these.
EXTRAS: PluggableRegistry[Component] = PluggableRegistry(
    "extra measurement",
    {
        "attacked_margin": "dokimos.difficulty.components.measurements:AttackedMargin",
        "crown_bound": "dokimos.difficulty.components.measurements:CrownLowerBound",
        "crown_gap": "dokimos.difficulty.components.measurements:CrownGap",
        "ibp_bound": "dokimos.difficulty.components.measurements:IbpLowerBound",
        "inputs": "dokimos.difficulty.components.measurements:Inputs",
        "nonlinear_units": "dokimos.difficulty.components.measurements:NonlinearUnits",
        "parameters": "dokimos.difficulty.components.measurements:Parameters",
        "sampled_margin": "dokimos.difficulty.components.measurements:SampledMargin",
        "unstable_units": "dokimos.difficulty.components.measurements:UnstableUnits",
    },
    group="dokimos.components",
    expects=Component,
)

#: What is known about an instance besides its profile, with its symbol and meaning.
FROM_LABEL = {"proven_margin": ("M_proven", "margin stated by the label's proof")}


def component(name: str) -> Component:
    """The component of that name, canonical or extra. Raises InputError if there is none."""
    return CANONICAL[name] if name in CANONICAL else EXTRAS[name]


def symbol(name: str) -> str:
    """The heading of a measurement in a table; its name if its component is not installed."""
    if name in FROM_LABEL:
        return FROM_LABEL[name][0]
    known = _find(name)
    return known.symbol if known else name


def meaning(name: str) -> str:
    """What a measurement is, in a few words."""
    if name in FROM_LABEL:
        return FROM_LABEL[name][1]
    known = _find(name)
    return known.meaning if known else name.replace("_", " ")


def describe(name: str) -> str:
    """A measurement by its symbol and in words."""
    is_known = name in FROM_LABEL or _find(name) is not None
    return f"{symbol(name)}, {meaning(name)}" if is_known else meaning(name)


def _find(name: str) -> Component | None:
    return CANONICAL[name] if name in CANONICAL else EXTRAS.get(name)


__all__ = ["CANONICAL", "EXTRAS", "Component", "component", "describe", "meaning", "symbol"]
