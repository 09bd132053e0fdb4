"""The variants of the families `ops` and `quantised`, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from dokimos.constructions.operators import elementwise, layouts, quantised
from dokimos.constructions.operators.sketch import Variant

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {v.name: v for module in (elementwise, layouts) for v in module.variant.variants}
)
QUANTISED: Mapping[str, Variant] = MappingProxyType({v.name: v for v in quantised.variant.variants})

__all__ = ["QUANTISED", "VARIANTS", "Variant"]
