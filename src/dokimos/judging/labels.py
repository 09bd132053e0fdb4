"""What counts as a label: a truth that is proven, by a proof of Dokimos or an exact witness."""

from __future__ import annotations

from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.readable import printable
from dokimos.provers.plugin_kinds import plugin_kind
from dokimos.suites.instance import Semantics, Truth

#: The certificate of an instance whose only proof is a witness that a verifier gave.
SETTLED = "an exact witness"


def is_proven_for(truth: Truth, semantics: Semantics) -> bool:
    """Whether it is proven over the reals, or in float32, whichever is asked."""
    claim = truth.claims.get(semantics)
    return claim is not None and claim.proven


def is_proven(truth: Truth) -> bool:
    """Whether it is proven at all."""
    return any(is_proven_for(truth, semantics) for semantics in Semantics)


def is_ours(truth: Truth) -> bool:
    """Whether its proof is of a kind that Dokimos ships, or a witness that was replayed just now."""
    return truth.certificate.kind in CERTIFICATES or truth.certificate.kind == SETTLED


def why_no_label(truth: Truth | None) -> str:
    """Why `truth` is not used as a label; empty if it is."""
    if truth is None or not is_proven(truth):
        return "there is no label"
    plugin_proof = proof_of_plugin(truth)
    return (
        f"its label is proven only by {plugin_proof}, which is never used against a verifier"
        if plugin_proof
        else ""
    )


def proof_of_plugin(truth: Truth | None) -> str:
    """The kind of proof, if it is one that Dokimos does not ship; otherwise empty."""
    if truth is None or is_ours(truth):
        return ""
    kind = truth.certificate.kind
    return plugin_kind(kind) or f"the unknown kind {printable(kind)}"
