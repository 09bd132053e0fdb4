"""From two files and a truth to "proven" or an error."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import TypeVar

from dokimos.checker.base import FLOATS, CertificateKind, NoData, Problem, Proven, read_data
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile
from dokimos.core.registry import Registry
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import (
    DEFAULT_ULPS,
    Certificate,
    Claim,
    Instance,
    Label,
    OwnAnswer,
    Semantics,
    Truth,
)
from dokimos.suites.vnnlib.model import Point, require_fit
from dokimos.suites.vnnlib.reader import read_vnnlib

T = TypeVar("T")
#: The kind of proof of what holds in all runs of floats. Only who claims that needs its module.
RUNS, _RUNS = "runs", "dokimos.checker.proofs.runs"


def prove(
    instance: Instance,
    certificate: Certificate,
    label: Label,
    witness: Point | None,
    *,
    ulps: int = DEFAULT_ULPS,
    kinds: Registry[CertificateKind] = CERTIFICATES,
    asked: Proven | None = None,
    semantics: Semantics = Semantics.FLOAT32,
) -> Proven:
    """The margins that `certificate` establishes for `label` on the files of `instance`.

    `ulps` is how far exp, tanh, erf, sigmoid and softmax may be off in floats; `kinds` are the kinds of
    proof to trust; `asked` are margins that suffice, so that the proof may stop early; `semantics` is the
    one of floats that is asked about beside the reals.

    Raises InvalidProof if it does not prove the label, UnreadableFile or UnsupportedOp if a file cannot be
    read.
    """
    problem = _problem(instance, witness, ulps, semantics, asked)
    if certificate.kind not in kinds:
        raise UnreadableFile(instance.name, f"its certificate has the unknown kind {certificate.kind!r}")
    kind = kinds[certificate.kind]
    if kind.proves is not label:
        raise InvalidProof(f"a certificate of kind {kind.name!r} cannot prove {label.value!r}")
    return _applied(problem, lambda: kind.prove(problem, certificate.data))


def prove_in_floats(
    instance: Instance,
    own: OwnAnswer,
    semantics: Semantics,
    *,
    ulps: int = DEFAULT_ULPS,
    kinds: Registry[CertificateKind] = CERTIFICATES,
    asked: Proven | None = None,
) -> Fraction | None:
    """The margin that a proof gives of an answer under one semantics of floats; see `prove`."""
    if own.certificate.kind != RUNS:
        found = prove(
            *(instance, own.certificate, own.label, own.witness),
            ulps=ulps,
            kinds=kinds,
            asked=asked,
            semantics=semantics,
        )
        return found.floats
    problem = _problem(instance, own.witness, ulps, semantics, asked)
    read_data(own.certificate.data, NoData)
    margin: Fraction = _applied(problem, lambda: import_module(_RUNS).margin_of_runs(problem, own.label))
    return margin


def _problem(
    instance: Instance, witness: Point | None, ulps: int, semantics: Semantics, asked: Proven | None
) -> Problem:
    return Problem(
        network=read_onnx(instance.network_file, name=f"{instance.name}.onnx"),
        property=read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib"),
        witness=witness,
        ulps=ulps,
        asked=asked,
        semantics=semantics,
    )


def _applied(problem: Problem, proof: Callable[[], T]) -> T:
    try:
        require_fit(problem.network, problem.property)
        return proof()
    except UnreadableFile:
        raise
    except InputError as error:
        raise InvalidProof(f"the proof does not apply: {error}") from error


def check(instance: Instance, truth: Truth, *, kinds: Registry[CertificateKind] = CERTIFICATES) -> Proven:
    """Prove the label again from the files, and every claim of `truth` with it, by one of `kinds`.

    What is returned are margins of the label over the reals and in float32. Raises InvalidProof if the
    files are not the ones that the truth is about, if a proof does not go through, or if a claim says more
    than is proven.
    """
    for what, stated, found in (
        ("network", truth.network_sha256, instance.network_sha256),
        ("property", truth.property_sha256, instance.property_sha256),
    ):
        if stated != found:
            raise InvalidProof(f"the {what} is not the file that the label was proven for (sha256 differs)")
    _require_witness(truth)
    real = truth.claim(Semantics.REAL)
    claimed = [semantics for semantics in FLOATS if truth.claim(semantics).proven]
    beside = next((s for s in claimed if truth.claim(s).own is None), None)
    floats = Claim(False) if beside is None else truth.claim(beside)
    proven = prove(
        instance,
        truth.certificate,
        truth.label,
        truth.witness,
        ulps=floats.ulps or DEFAULT_ULPS,
        kinds=kinds,
        asked=Proven(real.margin or Fraction(0), floats.margin if floats.proven else None),
        semantics=beside or Semantics.FLOAT32,
    )
    _require(truth, Semantics.REAL, proven.real)
    if beside is not None:
        _require(truth, beside, proven.floats)
    alone = {s: _margin_alone(instance, truth, s, kinds) for s in claimed if s is not beside}
    for semantics, margin in alone.items():
        _require(truth, semantics, margin)
    if truth.claim(Semantics.INTEGER).proven:
        is_quantised = read_onnx(instance.network_file, name=f"{instance.name}.onnx").is_quantised
        _require(truth, Semantics.INTEGER, proven.real if is_quantised else None)
    if not real.proven or any(truth.claim(s).own for s in (Semantics.REAL, Semantics.INTEGER)):
        raise InvalidProof("the label is not claimed for the reals")
    if beside in (None, Semantics.FLOAT32) and Semantics.FLOAT32 not in alone:
        return proven
    single = truth.under(Semantics.FLOAT32)
    margin = alone.get(Semantics.FLOAT32)
    if single is None or margin is None or single.label is not truth.label:
        return Proven(proven.real, None)
    return Proven(proven.real, min(margin, proven.real))


def _margin_alone(
    instance: Instance, truth: Truth, semantics: Semantics, kinds: Registry[CertificateKind]
) -> Fraction | None:
    """What is proven of a claim that has a proof of its own, or shares that of the label."""
    alone = truth.under(semantics)
    assert alone is not None
    _require_witness(alone)
    claim = alone.claim(semantics)
    own = OwnAnswer(alone.label, alone.certificate, alone.witness)
    asked = Proven(Fraction(0), claim.margin or Fraction(0))
    return prove_in_floats(
        instance, own, semantics, ulps=claim.ulps or DEFAULT_ULPS, kinds=kinds, asked=asked
    )


def _require_witness(truth: Truth) -> None:
    if (truth.label is Label.SAT) != (truth.witness is not None):
        raise InvalidProof("the label sat needs a witness, and no other label may have one")


def _require(truth: Truth, semantics: Semantics, margin: Fraction | None) -> None:
    """Raise InvalidProof if a claim says more than this margin."""
    claim = truth.claim(semantics)
    if claim.proven and margin is None:
        raise InvalidProof(f"the label is claimed for {semantics.value}, but not proven there")
    if claim.proven and (claim.margin is None or margin is None or claim.margin > margin):
        raise InvalidProof(f"the margin claimed for {semantics.value} is larger than what is proven")
