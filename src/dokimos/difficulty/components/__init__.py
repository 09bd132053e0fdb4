"""The Difficulty Profile: what makes an instance hard, one file per component."""

from dokimos.core.plugins import PluggableRegistry
from dokimos.core.registry import Registry
from dokimos.difficulty.components.base import Component

#: The canonical five, by their names in a profile's file.
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

#: Extra measurements; packages may add to these.
EXTRAS: PluggableRegistry[Component] = PluggableRegistry(
    "extra measurement",
    {
        "attacked_margin": "dokimos.difficulty.components.attacked_margin:AttackedMargin",
        "crown_bound": "dokimos.difficulty.components.crown_gap:CrownLowerBound",
        "crown_gap": "dokimos.difficulty.components.crown_gap:CrownGap",
        "curvature": "dokimos.difficulty.components.discarded:Curvature",
        "first_order_ratio": "dokimos.difficulty.components.discarded:FirstOrderMarginRatio",
        "gap_over_margin": "dokimos.difficulty.components.discarded:GapOverMargin",
        "gap_regions": "dokimos.difficulty.components.discarded:GapTimesRegions",
        "gap_unstable": "dokimos.difficulty.components.discarded:GapTimesUnstable",
        "gradient_concentration": "dokimos.difficulty.components.discarded:GradientConcentration",
        "gradient_count": "dokimos.difficulty.components.discarded:GradientCount",
        "gradient_dimension_max": "dokimos.difficulty.components.discarded:GradientDimensionMax",
        "gradient_norm": "dokimos.difficulty.components.discarded:GradientNorm",
        "gradient_variation": "dokimos.difficulty.components.discarded:GradientVariation",
        "ibp_absolute_gap": "dokimos.difficulty.components.discarded:IbpAbsoluteGap",
        "ibp_bound": "dokimos.difficulty.components.ibp_gap:IbpLowerBound",
        "inputs": "dokimos.difficulty.components.sizes:Inputs",
        "layers": "dokimos.difficulty.components.discarded:Layers",
        "linear_regions": "dokimos.difficulty.components.linear_regions:LinearRegions",
        "linearisation_error": "dokimos.difficulty.components.discarded:LinearisationError",
        "lipschitz_ratio": "dokimos.difficulty.components.discarded:LipschitzMarginRatio",
        "local_lipschitz": "dokimos.difficulty.components.discarded:LocalLipschitz",
        "margin_high": "dokimos.difficulty.components.bracketed_margin:MarginHigh",
        "margin_low": "dokimos.difficulty.components.bracketed_margin:MarginLow",
        "mean_margin": "dokimos.difficulty.components.discarded:MeanMargin",
        "nonlinear_units": "dokimos.difficulty.components.sizes:NonlinearUnits",
        "parameters": "dokimos.difficulty.components.sizes:Parameters",
        "proof_leaves": "dokimos.difficulty.components.proof_leaves:ProofLeaves",
        "relative_linearisation": "dokimos.difficulty.components.discarded:RelativeLinearisation",
        "unstable_regions": "dokimos.difficulty.components.discarded:UnstableTimesRegions",
        "unstable_units": "dokimos.difficulty.components.sizes:UnstableUnits",
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
