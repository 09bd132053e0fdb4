"""Families of instances whose label is proven, each with a twin of the other label."""

from typing import Any

from dokimos.constructions.base import Construction
from dokimos.registry import Registry

CONSTRUCTIONS: Registry[Construction[Any]] = Registry(
    "family",
    {
        "convex-corners": "dokimos.constructions.convex_corners:ConvexCorners",
        "exclusive-pairs": "dokimos.constructions.exclusive_pairs:ExclusivePairs",
        "exact-radius": "dokimos.constructions.exact_radius:ExactRadius",
        "paired-bias": "dokimos.constructions.paired_bias:PairedBias",
        "polynomial": "dokimos.constructions.polynomial:Polynomial",
    },
)

__all__ = ["CONSTRUCTIONS", "Construction"]
