"""From two files and a truth to "proven" or an error."""

from __future__ import annotations

from fractions import Fraction

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile
from dokimos.core.registry import Registry
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import DEFAULT_ULPS, Certificate, Instance, Label, Semantics, Truth
from dokimos.suites.vnnlib.model import Point, require_fit
from dokimos.suites.vnnlib.reader import read_vnnlib


def prove(
    instance: Instance,
    certificate: Certificate,
    label: Label,
    witness: Point | None,
    *,
    ulps: int = DEFAULT_ULPS,
    kinds: Registry[CertificateKind] = CERTIFICATES,
    asked: Proven | None = None,
) -> Proven:
    """The margins that `certificate` establishes for `label` on the files of `instance`.

    `ulps` is how far exp, tanh, erf, sigmoid and softmax may be off in float32; `kinds` are the kinds of
    proof to trust; `asked` are margins that suffice, so that the proof may stop early.

    Raises InvalidProof if it does not prove the label, UnreadableFile or UnsupportedOp if a file cannot be
    read.
    """
    problem = Problem(
        network=read_onnx(instance.network_file, name=f"{instance.name}.onnx"),
        property=read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib"),
        witness=witness,
        ulps=ulps,
        asked=asked,
    )
    if certificate.kind not in kinds:
        raise UnreadableFile(instance.name, f"its certificate has the unknown kind {certificate.kind!r}")
    kind = kinds[certificate.kind]
    if kind.proves is not label:
        raise InvalidProof(f"a certificate of kind {kind.name!r} cannot prove {label.value!r}")
    try:
        require_fit(problem.network, problem.property)
        return kind.prove(problem, certificate.data)
    except UnreadableFile:
        raise
    except InputError as error:
        raise InvalidProof(f"the proof does not apply: {error}") from error


def check(instance: Instance, truth: Truth, *, kinds: Registry[CertificateKind] = CERTIFICATES) -> Proven:
    """Prove the label again from the files, and every claim of `truth` with it, by one of `kinds`.

    Raises InvalidProof if the files are not the ones that the truth is about, if the proof does not go
    through, or if a claim says more than is proven.
    """
    for what, stated, found in (
        ("network", truth.network_sha256, instance.network_sha256),
        ("property", truth.property_sha256, instance.property_sha256),
    ):
        if stated != found:
            raise InvalidProof(f"the {what} is not the file that the label was proven for (sha256 differs)")
    if (truth.label is Label.SAT) != (truth.witness is not None):
        raise InvalidProof("the label sat needs a witness, and no other label may have one")
    real, float32 = truth.claim(Semantics.REAL), truth.claim(Semantics.FLOAT32)
    ulps = float32.ulps
    proven = prove(
        instance,
        truth.certificate,
        truth.label,
        truth.witness,
        ulps=DEFAULT_ULPS if ulps is None else ulps,
        kinds=kinds,
        asked=Proven(real.margin or Fraction(0), float32.margin if float32.proven else None),
    )
    for semantics, margin in ((Semantics.REAL, proven.real), (Semantics.FLOAT32, proven.floats)):
        claim = truth.claim(semantics)
        if claim.proven and margin is None:
            raise InvalidProof(f"the label is claimed for {semantics.value}, but not proven there")
        if claim.proven and (claim.margin is None or margin is None or claim.margin > margin):
            raise InvalidProof(f"the margin claimed for {semantics.value} is larger than what is proven")
    if not truth.claim(Semantics.REAL).proven:
        raise InvalidProof("the label is not claimed for the reals")
    return proven
