"""All kinds of proof, by name: one line each."""

from __future__ import annotations

from dokimos.certificates.base import CertificateKind
from dokimos.registry import Registry

CERTIFICATES: Registry[CertificateKind] = Registry(
    "certificate kind",
    {
        "convex-corners": "dokimos.certificates.convex_corners:ConvexCorners",
        "ordered-pairs": "dokimos.certificates.ordered_pairs:OrderedPairs",
        "rewritten": "dokimos.certificates.rewritten:Rewritten",
        "slopes-and-splits": "dokimos.certificates.slopes_and_splits:SlopesAndSplits",
        "split-tree": "dokimos.certificates.split_tree:SplitTree",
        "witness": "dokimos.certificates.witness:Witness",
    },
)
