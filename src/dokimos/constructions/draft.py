"""What an author of a family writes, drafts of instances and knobs; and drafts written differently."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from dokimos.core import strict_json
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.core.readable import unknown_name
from dokimos.networks.chain import (
    Chain,
    Duplicate,
    Identity,
    Merge,
    Permute,
    Rescale,
    Rewriting,
    SplitUnit,
    as_chain,
)
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import write_chain
from dokimos.suites.instance import Certificate, Instance, Label, OwnAnswer, Semantics, sha256
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.writer import write_vnnlib1

# An instance as its author intends it, before anything is proven


@dataclass(frozen=True)
class Draft:
    """A network, a question, and why the answer is what its author says.

    `text` is the VNN-LIB that asks the question, where the way it is written matters; `also` are answers
    under semantics of floats that have proofs of their own.
    """

    network: bytes
    question: Property
    certificate: Certificate
    witness: Point | None = None
    text: str | None = None
    also: Mapping[Semantics, OwnAnswer] = field(default_factory=dict)

    @property
    def label(self) -> Label:
        """What the author claims: `sat` iff there is a witness."""
        return Label.UNSAT if self.witness is None else Label.SAT


@dataclass(frozen=True)
class Origin:
    """How an instance was made, as stated in its truth file."""

    family: str
    parameters: Mapping[str, Any]
    seed: int
    timeout_seconds: float


def instance_of(draft: Draft, origin: Origin) -> Instance:
    """The draft as two files; the name does not reveal the label."""
    text = (draft.text or write_vnnlib1(draft.question)).encode("ascii")
    return Instance(
        name=f"{origin.family}-{sha256(draft.network + text)[:10]}",
        network_file=draft.network,
        property_file=text,
        timeout_seconds=origin.timeout_seconds,
        family=origin.family,
        parameters=dict(origin.parameters),
        seed=origin.seed,
    )


def siblings(
    question: Property, proof: Certificate, robust: bytes, violated: bytes, witness: Point
) -> tuple[Draft, Draft]:
    """The robust draft with its proof, and its twin, about the same question, with its counterexample."""
    return Draft(robust, question, proof), Draft(violated, question, Certificate("witness"), witness)


# Knobs: the typed, validated parameters of a family, from one dataclass of fields


P = TypeVar("P")


def knob(default: float, help: str, *, least: float, most: float) -> Any:
    """A field of a knobs class: its default, its meaning, and its range."""
    return field(default=default, metadata={"help": help, "least": least, "most": most})


def choice(default: str, help: str, *, options: Sequence[str]) -> Any:
    """A field of a knobs class that takes one of several names."""
    return field(default=default, metadata={"help": help, "options": tuple(options)})


@dataclass(frozen=True)
class Knob:
    """One knob as users see it: a number in a range, or one of `options` if there are any."""

    name: str
    default: Any
    help: str
    least: float = 0
    most: float = 0
    options: tuple[str, ...] = ()

    @property
    def is_integer(self) -> bool:
        """Whether the knob takes whole numbers only."""
        return isinstance(self.default, int)


def knobs_of(knobs_class: type[Any]) -> tuple[Knob, ...]:
    """The knobs of a knobs class, in order."""
    fields: tuple[Any, ...] = dataclasses.fields(knobs_class)
    return tuple(Knob(name=f.name, default=f.default, **f.metadata) for f in fields)


def make_knobs(knobs_class: type[P], values: Mapping[str, Any], *, family: str) -> P:
    """Knobs from names and values: numbers (or their text), or one of a knob's named options.

    Raises InputError for a knob that the family does not have, or a value outside its range.
    """
    known = {each.name: each for each in knobs_of(knobs_class)}
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise unknown_name(f"knob of {family}", name, sorted(known))
        chosen[name] = _value(known[name], value, family)
    return knobs_class(**chosen)


def _value(knob: Knob, value: Any, family: str) -> float | str:
    if knob.options:
        if value not in knob.options:
            raise unknown_name(f"{knob.name} of {family}", str(value), list(knob.options))
        return str(value)
    kind = "a whole number" if knob.is_integer else "a number"
    try:
        number: float = int(value) if knob.is_integer else float(value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            f"The knob {knob.name!r} of {family} takes {kind}, not {repr(value)[:80]}."
        ) from None
    if number != (value if isinstance(value, int | float) else number) or isinstance(value, bool):
        raise InputError(f"The knob {knob.name!r} of {family} takes {kind}, not {repr(value)[:80]}.")
    if not knob.least <= number <= knob.most:
        raise InputError(
            f"The knob {knob.name!r} of {family} is {str(value)[:40]}; "
            f"it must be in [{knob.least:g}, {knob.most:g}]."
        )
    return number


# Disguises: a chain of dense layers written differently, so that a tool cannot recognise the family


#: Neurons are scaled by 2^-LARGEST_EXPONENT up to 2^LARGEST_EXPONENT.
LARGEST_EXPONENT = 3


def _hidden(chain: Chain) -> list[int]:
    return [k for k, layer in enumerate(chain.layers[:-1]) if layer.rectified]


def _permutations(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    sizes = {k: len(chain.layers[k].bias) for k in _hidden(chain)}
    return [Permute(k, tuple(int(i) for i in rng.permutation(size))) for k, size in sizes.items()]


def _scalings(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    span = LARGEST_EXPONENT
    sizes = {k: len(chain.layers[k].bias) for k in _hidden(chain)}
    return [
        Rescale(k, tuple(int(e) for e in rng.integers(-span, span + 1, size=size)))
        for k, size in sizes.items()
    ]


def _duplications(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    return [
        Duplicate(k, int(rng.integers(len(chain.layers[k].bias))), int(rng.integers(1, 3)))
        for k in _hidden(chain)
    ]


def _splits(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    size = len(chain.layers[0].bias)
    return [SplitUnit(0, tuple(Fraction(int(t), 64) for t in rng.integers(-4, 5, size=size)))]


def _identities(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    return [Identity(int(rng.choice(_hidden(chain))))]


def _mergers(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    """From the last layer to the first, so that the numbers of earlier layers do not change."""
    plain = [k for k, layer in enumerate(chain.layers[:-1]) if not layer.rectified]
    if not plain:
        raise InputError("it has no two adjacent affine layers (without a ReLU between them) to merge")
    return [Merge(k) for k in reversed(plain)]


#: The kinds of disguise, and the steps that each draws for a chain.
DISGUISES: Mapping[str, Callable[[Chain, np.random.Generator], list[Rewriting]]] = MappingProxyType(
    {
        "permute": _permutations,
        "scale": _scalings,
        "duplicate": _duplications,
        "split": _splits,
        "identity": _identities,
        "merge": _mergers,
    }
)


def disguise_drafts(
    drafts: Sequence[Draft], kinds: Sequence[str], rng: np.random.Generator
) -> tuple[Draft, ...]:
    """The drafts, all rewritten by the same steps (drawn for the first), so that they still look alike.

    Raises InputError for an unknown kind, ConstructionFailed if the networks cannot be rewritten.
    """
    for kind in kinds:
        if kind not in DISGUISES:
            raise unknown_name("disguise", kind, sorted(DISGUISES))
    if not kinds:
        return tuple(drafts)
    try:
        chain = as_chain(read_onnx(drafts[0].network))
        steps: list[Rewriting] = []
        for kind in kinds:
            for step in DISGUISES[kind](chain, rng):
                chain = step.apply(chain)
                steps.append(step)
        return tuple(rewritten(draft, steps) for draft in drafts)
    except InputError as error:
        raise ConstructionFailed(
            f"The instance cannot be disguised by {', '.join(kinds)}: {error}. Leave out that step; "
            "disguises are for chains of dense layers, as docs/families.md says."
        ) from None


def rewritten(draft: Draft, steps: Sequence[Rewriting]) -> Draft:
    """The draft after these steps, and the proof of what it was together with them."""
    chain = as_chain(read_onnx(draft.network))
    for step in steps:
        chain = step.apply(chain)
    network = write_chain(chain)
    if draft.label is Label.SAT:
        return replace(draft, network=network)
    data = {
        "base": base64.b64encode(draft.network).decode("ascii"),
        "steps": strict_json.parse(strict_json.write(steps), file="steps"),
        "kind": draft.certificate.kind,
        "data": dict(draft.certificate.data),
    }
    return replace(draft, network=network, certificate=Certificate("rewritten", data))
