"""How a search for a proof ends: without one, with its effort used up, or with an accepted truth.

Kinds of proof that other packages add are outside the trusted core, and off by default. A label that such a
kind proves is only as trustworthy as the package it comes from: the package is named wherever the label is
called proven, and the label never counts against a verifier (`judging.judge`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import floor, inf, log10
from types import MappingProxyType

from dokimos.checker.base import FLOATS, CertificateKind, Proven
from dokimos.checker.check import prove, prove_in_floats
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.errors import InvalidProof
from dokimos.core.plugins import PluggableRegistry
from dokimos.core.registry import Registry
from dokimos.engine.runtimes.cross_check import require_agreement
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.rounding import own_format
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
from dokimos.suites.vnnlib.model import Point

# What a proof allows to be claimed of a label


#: Margins are stated as decimals with no more digits than this behind the point.
MOST_PLACES = 1000


def claims_of(
    proven: Proven,
    *,
    ulps: int = DEFAULT_ULPS,
    semantics: Semantics = Semantics.FLOAT32,
    is_quantised: bool = False,
) -> dict[Semantics, Claim]:
    """What may be claimed after a proof: its margins, rounded down to a few digits.

    `semantics` is the one of floats that the proof is about; what is proven of a quantised network over the
    reals is proven of what its operators compute with integers.
    """
    floats = Claim(proven=False)
    if proven.floats is not None:
        floats = Claim(proven=True, margin=round_down(proven.floats), ulps=ulps)
    real = Claim(proven=True, margin=round_down(proven.real))
    exactly = {Semantics.REAL: real} | ({Semantics.INTEGER: real} if is_quantised else {})
    return {**exactly, semantics: floats}


def round_down(margin: Fraction, *, digits: int = 9) -> Fraction:
    """The largest decimal of that many significant digits that is not above `margin` >= 0.

    0 if that would need more than MOST_PLACES digits after the point.
    """
    if margin * 10**MOST_PLACES < 10**digits:
        return Fraction(0)
    bits = margin.numerator.bit_length() - margin.denominator.bit_length()
    magnitude = floor(bits * log10(2)) - 1
    while margin >= Fraction(10) ** (magnitude + 1):
        magnitude += 1
    scale = Fraction(10) ** (digits - 1 - magnitude)
    return floor(margin * scale) / scale


# What a prover raises if it finds no proof


class NoProof(Exception):
    """No proof was found; the message says why. The caller may try another question."""


# How far a search for a proof may go: so many steps, and so much CPU time


class ReachedLimit(Enum):
    """What ended a search before it was through. Steps end it at the same place on every machine."""

    STEPS = "steps"
    TIME = "CPU time"
    SETTLED = "what was found beside it"


#: What has been found is saved no sooner again, and not before so many times what saving took.
SAVE_SECONDS, SAVE_SHARE = 30.0, 30.0


@dataclass
class SearchEffort:
    """What a search may use, and has used.

    The time is the CPU time of this process, so that what else a machine does changes nothing; `clock` can
    be another one. What a step is, the search says. `save` keeps what it has found, so that it need not end
    where it is ended from outside. `reserve` are seconds that checking the proof will take. `beside` is
    done between two batches, and says whether that ends the search.
    """

    seconds: float = inf
    most_steps: float = inf
    clock: Callable[[], float] = time.process_time
    steps: int = 0
    save: Callable[[], None] | None = None
    reserve: float = 0.0
    beside: Callable[[], bool] | None = None
    _is_settled: bool = field(init=False, default=False)
    _begun: float = field(init=False)
    _saves_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self.clock()
        self._saves_at = self._begun + SAVE_SECONDS

    def pause(self) -> None:
        """Between two batches: do what is done beside, and save what has been found, every now and then."""
        self._is_settled = self._is_settled or (self.beside is not None and self.beside())
        if self.save is not None and (before := self.clock()) >= self._saves_at:
            self.save()
            after = self.clock()
            self._saves_at = after + max(SAVE_SECONDS, SAVE_SHARE * (after - before))

    @property
    def spent(self) -> float:
        """The seconds that are spent."""
        return self.clock() - self._begun

    @property
    def left(self) -> float:
        """The seconds that are left; none if it is not positive."""
        return self._begun + self.seconds - self.reserve - self.clock()

    @property
    def end(self) -> ReachedLimit | None:
        """What ends the search now; None if it may go on."""
        if self._is_settled:
            return ReachedLimit.SETTLED
        if self.steps > self.most_steps:
            return ReachedLimit.STEPS
        return ReachedLimit.TIME if self.left <= 0 else None


# From a certificate that was found to a truth file


def proven_truth(
    instance: Instance,
    certificate: Certificate,
    label: Label,
    witness: Point | None = None,
    *,
    kinds: Registry[CertificateKind] = CERTIFICATES,
    also: Mapping[Semantics, OwnAnswer] = MappingProxyType({}),
) -> Truth:
    """The truth with everything the certificate proves, if the checker proves it from the files.

    `also` has answers with proofs of their own, each proven too. Raises InvalidProof if one is not proven,
    and other DokimosErrors if files cannot be read.
    """
    network = read_onnx(instance.network_file, name=f"{instance.name}.onnx")
    name = own_format(network).name
    own = Semantics(name) if name in (each.value for each in FLOATS) else Semantics.FLOAT32
    proven = prove(instance, certificate, label, witness, kinds=kinds, semantics=own)
    claims = claims_of(proven, semantics=own, is_quantised=network.is_quantised)
    for semantics, answer in also.items():
        margin = prove_in_floats(instance, answer, semantics, kinds=kinds)
        if margin is None:
            raise InvalidProof(f"the answer in {semantics.value} is not proven")
        claims[semantics] = Claim(True, round_down(margin), DEFAULT_ULPS, answer)
    return Truth(
        label=label,
        claims=claims,
        certificate=certificate,
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
        witness=witness,
    )


def accepted_truth(
    instance: Instance, certificate: Certificate, label: Label, witness: Point | None = None
) -> Truth:
    """The same, if no runtime contradicts it either."""
    truth = proven_truth(instance, certificate, label, witness)
    require_agreement(instance, truth)
    return truth


#: The shipped kinds, and those of installed packages.
ALL_CERTIFICATES: PluggableRegistry[CertificateKind] = PluggableRegistry(
    "certificate kind", CERTIFICATES.targets, group="dokimos.certificates", expects=CertificateKind
)


def trusted_kinds(*, plugin_proofs: bool) -> Registry[CertificateKind]:
    """The kinds of proof to accept: only the shipped ones, unless plug-ins' proofs are trusted too."""
    return ALL_CERTIFICATES if plugin_proofs else CERTIFICATES


def plugin_kind(kind: str) -> str:
    """A plug-in's kind with its package, as in "kind X of package Y 1.2"; empty for any other kind."""
    if kind not in ALL_CERTIFICATES.plugged_in:
        return ""
    return f"kind {kind} of package {ALL_CERTIFICATES.provider(kind)}"


def why_not_trusted(kind: str) -> str:
    """Why a plug-in's kind proves nothing by default; empty for any other kind."""
    if kind not in ALL_CERTIFICATES.plugged_in:
        return ""
    package = ALL_CERTIFICATES.provider(kind)
    return f"kind {kind} comes from package {package}; use `plugin_proofs` to trust it"
