"""The checker: the kinds of proof, and what they share.

It reads the same files as the verifier and nothing else; it imports no construction, no torch and no
onnxruntime. The entry point is `check`.
"""

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.check import check, prove
from dokimos.checker.kinds import CERTIFICATES

__all__ = ["CERTIFICATES", "CertificateKind", "Problem", "Proven", "check", "prove"]
