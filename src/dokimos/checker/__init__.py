"""The checker: one file per kind of proof, read in one sitting.

It reads the files that the verifier reads and nothing else; it imports no construction, no torch and no
onnxruntime. `check` is the way in.
"""

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.check import check, prove
from dokimos.checker.kinds import CERTIFICATES

__all__ = ["CERTIFICATES", "CertificateKind", "Problem", "Proven", "check", "prove"]
