"""The kinds of evidence that verifiers build: certificate styles."""

from __future__ import annotations

from enum import Enum


class CertificateStyle(Enum):
    """What a verifier builds as evidence (Appendix C of the paper). It may combine several.

    Classes of tools that the paper names say what it says of them; the others, how the tools describe
    themselves.
    """

    DUAL = "dual relaxation"
    PARTITION = "partition"
    SAT = "SAT"
    REACHABILITY = "reachability"
    OTHER = "other"
