"""What an author of a family writes: drafts of instances, and knobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.suites.instance import Certificate, Instance, Label, sha256
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.writer import write_vnnlib1

# An instance as its author intends it, before anything is proven


@dataclass(frozen=True)
class Draft:
    """A network, a question, and why the answer is what its author says.

    `text` is the VNN-LIB that asks the question, where the way it is written matters.
    """

    network: bytes
    question: Property
    certificate: Certificate
    witness: Point | None = None
    text: str | None = None

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
