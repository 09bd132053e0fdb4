"""All kinds of proof, by name: one line each."""

from __future__ import annotations

from dokimos.checker.base import CertificateKind
from dokimos.core.registry import Registry

CERTIFICATES: Registry[CertificateKind] = Registry(
    "certificate kind",
    {
        "constant-on-box": "dokimos.checker.proofs.constant_on_box:ConstantOnBoxProof",
        "contraction": "dokimos.checker.proofs.contraction:Contraction",
        "convex-corners": "dokimos.checker.proofs.convex_corners:ConvexCornersProof",
        "convex-tangent": "dokimos.checker.proofs.polynomials:ConvexTangent",
        "fixed-routing": "dokimos.checker.proofs.fixed_routing:FixedRouting",
        "linear": "dokimos.checker.linear.proof:LinearProof",
        "linear-attention": "dokimos.checker.proofs.attention:DominantKey",
        "no-inputs": "dokimos.checker.proofs.no_inputs:NoInputs",
        "nonexpansive": "dokimos.checker.proofs.nonexpansive:Nonexpansive",
        "ordered-pairs": "dokimos.checker.proofs.ordered_pairs:OrderedPairs",
        "parity-lock": "dokimos.checker.proofs.on_other_kinds:ParityLockProof",
        "pinning": "dokimos.checker.proofs.polynomials:Pinning",
        "rewritten": "dokimos.checker.proofs.on_other_kinds:Rewritten",
        "softmax-attention": "dokimos.checker.proofs.attention:FixedOrdering",
        "witness": "dokimos.checker.proofs.witness:Witness",
    },
)
