"""nnenum, as it comes to VNN-COMP."""

from __future__ import annotations

from dokimos.verifiers.adapters.vnncomp_tool import VnncompTool
from dokimos.verifiers.styles import CertificateStyle


class Nnenum(VnncompTool):
    """Its place is the folder vnncomp_scripts of its repository."""

    name = "nnenum"
    #: Zonotopes, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
