"""α,β-CROWN, as it comes to VNN-COMP."""

from __future__ import annotations

from dokimos.verifiers.adapters.vnncomp_tool import VnncompTool
from dokimos.verifiers.styles import CertificateStyle


class AlphaBetaCrown(VnncompTool):
    """Its place is the folder vnncomp_scripts of its repository."""

    name = "alpha-beta-crown"
    #: A dual relaxation at each node of a partition search.
    styles = (CertificateStyle.DUAL, CertificateStyle.PARTITION)
