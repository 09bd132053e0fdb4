"""An instance, what is claimed about it, and the proof: the values that are passed between the stages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from dokimos.suites.vnnlib.model import Point

#: How far exp, tanh, erf, sigmoid and softmax may be off in float32, unless a truth says otherwise.
DEFAULT_ULPS = 8


class Label(Enum):
    """The answer to "is there an input in the set whose output is unsafe?"."""

    SAT = "sat"
    UNSAT = "unsat"


class Semantics(Enum):
    """What "the output" means: over the real numbers, or in a float type in any order of summation.

    `INTEGER` is what the quantised operators of a file compute, exactly; with `FORWARD` and `BACKWARD`
    every sum of products is added up in float32 from its first term to its last, or the other way round.
    """

    REAL = "real"
    INTEGER = "integer"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FORWARD = "float32-forward"
    BACKWARD = "float32-backward"


class Order(Enum):
    """In which order the terms of sums are added up."""

    ANY = "any"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True)
class Claim:
    """Whether a label is proven under one semantics, and by what margin.

    For `unsat` every unsafe conjunction fails by at least `margin` in one of its constraints, at every
    input of the set; for `sat` the witness satisfies all constraints of one with at least `margin` to
    spare. `ulps` is how many units in the last place exp, tanh, sigmoid and softmax were allowed to err
    (only if the float32 proof relied on it). `own` is the answer under this semantics if it has a proof of
    its own, be it another answer than that of the label or not.
    """

    proven: bool
    margin: Fraction | None = None
    ulps: int | None = None
    own: OwnAnswer | None = None


@dataclass(frozen=True)
class Certificate:
    """A proof for the checker: its kind selects the proof checker, and its data is plain JSON."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))


@dataclass(frozen=True)
class OwnAnswer:
    """The answer under one semantics, with the proof of it."""

    label: Label
    certificate: Certificate
    witness: Point | None = None


@dataclass(frozen=True)
class Truth:
    """A label with its proof, bound to two files by their hashes."""

    label: Label
    claims: Mapping[Semantics, Claim]
    certificate: Certificate
    network_sha256: str
    property_sha256: str
    witness: Point | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "claims", MappingProxyType(dict(self.claims)))

    def claim(self, semantics: Semantics) -> Claim:
        """What is claimed under one semantics; not proven if nothing is stated."""
        return self.claims.get(semantics, Claim(proven=False))

    def holds_in(self, semantics: Semantics) -> bool:
        """Whether the label, and not another answer, is proven under one semantics."""
        alone = self.under(semantics)
        return alone is not None and alone.label is self.label

    def under(self, semantics: Semantics) -> Truth | None:
        """The same as a truth about one semantics alone; None if nothing is proven there."""
        claim = self.claim(semantics)
        if not claim.proven:
            return None
        own = claim.own or OwnAnswer(self.label, self.certificate, self.witness)
        alone = {semantics: replace(claim, own=None)}
        hashes = self.network_sha256, self.property_sha256
        return Truth(own.label, alone, own.certificate, *hashes, own.witness)


@dataclass(frozen=True)
class Instance:
    """A verification problem as the verifier gets it: the bytes of two files, and their origin.

    `name` is also the stem of its files. `family`, `parameters` and `seed` say how it was made and are
    empty for published instances.
    """

    name: str
    network_file: bytes
    property_file: bytes
    timeout_seconds: float = 60.0
    family: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

    @property
    def network_sha256(self) -> str:
        """The hash of the network's file."""
        return sha256(self.network_file)

    @property
    def property_sha256(self) -> str:
        """The hash of the property's file."""
        return sha256(self.property_file)


@dataclass(frozen=True)
class LabelledInstance:
    """An instance and what is known about it (None for a published instance without a label)."""

    instance: Instance
    truth: Truth | None


def sha256(content: bytes) -> str:
    """The SHA-256 of `content`, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()
