"""Tiny instances with what is claimed about them, taken apart so that each part can be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dokimos.checker.base import CertificateKind
from dokimos.checker.check import prove
from dokimos.checker.kinds import CERTIFICATES
from dokimos.constructions.base import Construction, Unusable
from dokimos.constructions.draft import Draft, make_knobs
from dokimos.core.registry import Registry
from dokimos.engine.outcome import NoProof
from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth
from dokimos.suites.vnnlib.writer import exact_decimal

# Small VNN-LIB files, and truths bound to them


def question(bounds: Sequence[tuple[Any, Any]], outputs: int, *unsafe: str) -> bytes:
    """The VNN-LIB 1.0 file of a box and of assertions on the outputs, all of which must hold."""
    lines = [f"(declare-const X_{i} Real)" for i in range(len(bounds))]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i, (low, high) in enumerate(bounds):
        lines += [f"(assert (>= X_{i} {low}))", f"(assert (<= X_{i} {high}))"]
    return "\n".join([*lines, *(f"(assert {u})" for u in unsafe), ""]).encode()


def instance_of(network: bytes, property_: bytes) -> Instance:
    """The instance of two files."""
    return Instance(name="small", network_file=network, property_file=property_)


def repaired(truth: Truth, instance: Instance) -> Truth:
    """The same statement, bound by its hashes to the files of `instance`."""
    return replace(truth, network_sha256=instance.network_sha256, property_sha256=instance.property_sha256)


def stated(
    instance: Instance,
    kind: str,
    data: Mapping[str, Any] | None = None,
    *,
    label: Label = Label.UNSAT,
    witness: tuple[Fraction, ...] | None = None,
    real: Fraction | None = Fraction(0),
    float32: Fraction | None = None,
) -> Truth:
    """A truth about `instance`, whether it is true or not."""
    margins = {Semantics.REAL: real, Semantics.FLOAT32: float32}
    return Truth(
        label=label,
        claims={s: Claim(proven=m is not None, margin=m) for s, m in margins.items()},
        certificate=Certificate(kind, data or {}),
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
        witness=witness,
    )


@dataclass(frozen=True)
class LabelStatement:
    """Two files taken apart, and what is claimed about them."""

    network: bytes
    bounds: tuple[tuple[Fraction, Fraction], ...]
    outputs: int
    unsafe: str
    truth: Truth

    @cached_property
    def instance(self) -> Instance:
        """The two files."""
        decimals = [(exact_decimal(a), exact_decimal(b)) for a, b in self.bounds]
        return instance_of(self.network, question(decimals, self.outputs, self.unsafe))


def kinds_with(kind: CertificateKind) -> Registry[CertificateKind]:
    """The shipped kinds and, if it is none of them, this one."""
    if kind.name in CERTIFICATES:
        return CERTIFICATES
    known: Registry[CertificateKind] = Registry("certificate kind", CERTIFICATES.targets)
    known.add(kind.name, kind)
    return known


def drafts_of(construction: Construction[Any], seed: int, **knobs: Any) -> tuple[Draft, Draft]:
    """What a family drafts: the robust half and its twin. Unusable draws are drawn again."""
    chosen = make_knobs(construction.knobs_class, knobs, family=construction.family)
    rng = np.random.default_rng(seed)
    while True:
        try:
            return construction.construct(chosen, rng)
        except (Unusable, NoProof):
            continue


def statement_of(
    draft: Draft,
    *,
    margin: bool,
    kinds: Registry[CertificateKind] = CERTIFICATES,
    unsafe: str | None = None,
) -> LabelStatement:
    """The draft with its proven margin, or with the label alone; only for the reals.

    Its property must have one box, and call unsafe that class 0 is not above all others, unless `unsafe`
    says in VNN-LIB what is.
    """
    (case,) = draft.question.cases
    outputs = draft.question.output_size
    others = " ".join(f"(and (<= Y_0 Y_{k}))" for k in range(1, outputs))
    made = LabelStatement(
        network=draft.network,
        bounds=tuple(zip(case.box.lower, case.box.upper, strict=True)),
        outputs=outputs,
        unsafe=f"(or {others})" if unsafe is None else unsafe,
        truth=Truth(
            label=draft.label,
            claims={Semantics.REAL: Claim(proven=True, margin=Fraction(0))},
            certificate=draft.certificate,
            network_sha256="",
            property_sha256="",
            witness=draft.witness,
        ),
    )
    instance = made.instance
    proven = prove(instance, draft.certificate, draft.label, draft.witness, kinds=kinds)
    claim = Claim(proven=True, margin=proven.real if margin else Fraction(0))
    bound = replace(
        made.truth,
        claims={Semantics.REAL: claim},
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
    )
    return replace(made, truth=bound)
