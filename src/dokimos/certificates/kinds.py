"""All kinds of proof, by name: one line each."""

from __future__ import annotations

from dokimos.certificates.base import CertificateKind
from dokimos.registry import Registry

CERTIFICATES: Registry[CertificateKind] = Registry(
    "certificate kind",
    {
        "branch-and-bound": "dokimos.certificates.branch_and_bound:BranchAndBound",
        "constant-on-box": "dokimos.certificates.constant_on_box:ConstantOnBox",
        "contraction": "dokimos.certificates.contraction:Contraction",
        "convex-corners": "dokimos.certificates.convex_corners:ConvexCorners",
        "convex-tangent": "dokimos.certificates.convex_tangent:ConvexTangent",
        "enclosure": "dokimos.certificates.enclosure:Enclosure",
        "linear-attention": "dokimos.certificates.linear_attention:DominantKey",
        "ordered-pairs": "dokimos.certificates.ordered_pairs:OrderedPairs",
        "pinning": "dokimos.certificates.pinning:Pinning",
        "rewritten": "dokimos.certificates.rewritten:Rewritten",
        "slopes-and-splits": "dokimos.certificates.slopes_and_splits:SlopesAndSplits",
        "softmax-attention": "dokimos.certificates.softmax_attention:FixedOrdering",
        "split-tree": "dokimos.certificates.split_tree:SplitTree",
        "witness": "dokimos.certificates.witness:Witness",
    },
)
