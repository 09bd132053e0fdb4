"""The variants of the family `ops`, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from dokimos.constructions.operators import arithmetic, rearranging, windows
from dokimos.constructions.operators.sketch import Variant

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {v.name: v for module in (arithmetic, windows, rearranging) for v in module.variant.variants}
)

__all__ = ["VARIANTS", "Variant"]
