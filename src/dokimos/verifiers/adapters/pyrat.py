"""PyRAT, as packaged for VNN-COMP."""

from __future__ import annotations

from dokimos.verifiers.adapters.vnncomp_tool import VnncompTool
from dokimos.verifiers.styles import CertificateStyle


class Pyrat(VnncompTool):
    """Its place is the folder of its competition scripts."""

    name = "pyrat"
    prepares = False
    #: Abstract domains pushed forward, refined by splitting.
    styles = (CertificateStyle.PARTITION, CertificateStyle.REACHABILITY)
