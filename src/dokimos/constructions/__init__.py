"""Families of instances whose label is proven, each with a twin of the other label."""

from typing import Any

from dokimos.constructions.base import Construction
from dokimos.registry import Registry

CONSTRUCTIONS: Registry[Construction[Any]] = Registry(
    "family",
    {
        "constant-on-box": "dokimos.constructions.constant_on_box:ConstantOnBox",
        "contractive-cnn": "dokimos.constructions.contractive_cnn:ContractiveCnn",
        "convex-corners": "dokimos.constructions.convex_corners:ConvexCorners",
        "disjuncts": "dokimos.constructions.disjuncts:Disjuncts",
        "exclusive-pairs": "dokimos.constructions.exclusive_pairs:ExclusivePairs",
        "exact-radius": "dokimos.constructions.exact_radius:ExactRadius",
        "linear-attention": "dokimos.constructions.linear_attention:LinearAttention",
        "ops": "dokimos.constructions.ops:Ops",
        "paired-bias": "dokimos.constructions.paired_bias:PairedBias",
        "polynomial": "dokimos.constructions.polynomial:Polynomial",
        "scale": "dokimos.constructions.scale:Scale",
        "softmax-attention": "dokimos.constructions.softmax_attention:SoftmaxAttention",
    },
)

__all__ = ["CONSTRUCTIONS", "Construction"]
