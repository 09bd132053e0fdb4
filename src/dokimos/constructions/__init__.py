"""Families of instances whose label is proven, each with a twin of the other label."""

from typing import Any

from dokimos.constructions.base import Construction
from dokimos.core.plugins import PluggableRegistry

CONSTRUCTIONS: PluggableRegistry[Construction[Any]] = PluggableRegistry(
    "family",
    {
        "constant-on-box": "dokimos.constructions.families.constant_on_box:ConstantOnBox",
        "contractive-cnn": "dokimos.constructions.families.contractive_cnn:ContractiveCnn",
        "convex-corners": "dokimos.constructions.families.convex_corners:ConvexCorners",
        "dials": "dokimos.constructions.families.dials:Dials",
        "disjuncts": "dokimos.constructions.families.disjuncts:Disjuncts",
        "exact-radius": "dokimos.constructions.families.exact_radius:ExactRadius",
        "exclusive-pairs": "dokimos.constructions.families.exclusive_pairs:ExclusivePairs",
        "linear-attention": "dokimos.constructions.families.attention:LinearAttention",
        "message-passing": "dokimos.constructions.families.residual:MessagePassing",
        "ops": "dokimos.constructions.families.ops:Ops",
        "orders": "dokimos.constructions.families.precision:Orders",
        "paired-bias": "dokimos.constructions.families.paired_bias:PairedBias",
        "parity-lock": "dokimos.constructions.families.parity_lock:ParityLocks",
        "polynomial": "dokimos.constructions.families.polynomial:Polynomial",
        "precision": "dokimos.constructions.families.precision:Precision",
        "relaxations": "dokimos.constructions.families.ops:Relaxations",
        "residual": "dokimos.constructions.families.residual:Residual",
        "scale": "dokimos.constructions.families.disjuncts:Scale",
        "softmax-attention": "dokimos.constructions.families.attention:SoftmaxAttention",
        "specs": "dokimos.constructions.families.specs:Specs",
        "splits": "dokimos.constructions.families.splits:Splits",
        "transformer": "dokimos.constructions.families.transformer:Transformer",
        "two-copies": "dokimos.constructions.families.two_copies:TwoCopies",
        "quantised": "dokimos.constructions.families.ops:Quantised",
        "wrapped-ops": "dokimos.constructions.families.ops:WrappedOps",
    },
    group="dokimos.constructions",
    expects=Construction,
)

__all__ = ["CONSTRUCTIONS", "Construction"]
