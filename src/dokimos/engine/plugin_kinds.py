"""Kinds of proof that other packages add: outside the trusted core, and off by default.

Nothing that the checker needs imports this module. A label that such a kind proves is only as trustworthy
as the package it comes from: the package is named wherever the label is called proven, and the label never
counts against a verifier (`judging.judge`).
"""

from __future__ import annotations

from dokimos.checker.base import CertificateKind
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.plugins import PluggableRegistry
from dokimos.core.registry import Registry

#: The shipped kinds, and those of installed packages.
ALL_CERTIFICATES: PluggableRegistry[CertificateKind] = PluggableRegistry(
    "certificate kind", CERTIFICATES.targets, group="dokimos.certificates", expects=CertificateKind
)


def trusted_kinds(*, plugin_proofs: bool) -> Registry[CertificateKind]:
    """The kinds of proof to accept: only the shipped ones, unless plug-ins' proofs are trusted too."""
    return ALL_CERTIFICATES if plugin_proofs else CERTIFICATES


def plugin_kind(kind: str) -> str:
    """A plug-in's kind with its package, as in "kind X of package Y 1.2"; empty for any other kind."""
    if kind not in ALL_CERTIFICATES.plugged_in:
        return ""
    return f"kind {kind} of package {ALL_CERTIFICATES.provider(kind)}"


def why_not_trusted(kind: str) -> str:
    """Why a plug-in's kind proves nothing by default; empty for any other kind."""
    if kind not in ALL_CERTIFICATES.plugged_in:
        return ""
    package = ALL_CERTIFICATES.provider(kind)
    return f"kind {kind} comes from package {package}; use `plugin_proofs` to trust it"
