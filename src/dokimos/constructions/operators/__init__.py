"""The variants of the family `ops`, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from dokimos.constructions.operators import elementwise, filters, layouts
from dokimos.constructions.operators.sketch import Variant

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {v.name: v for module in (elementwise, filters, layouts) for v in module.variant.variants}
)

__all__ = ["VARIANTS", "Variant"]
