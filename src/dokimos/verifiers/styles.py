"""The kinds of evidence that verifiers build: certificate styles."""

from __future__ import annotations

from enum import Enum


class CertificateStyle(Enum):
    """What a verifier builds as evidence (Appendix C of the paper).

    It may combine several. Tools that the paper classifies have its classes; the others are classified by
    their own description.
    """

    DUAL = "dual relaxation"
    PARTITION = "partition"
    SAT = "SAT"
    REACHABILITY = "reachability"
    OTHER = "other"
