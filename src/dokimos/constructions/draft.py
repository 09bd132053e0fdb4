"""What an author of a family writes: knobs, boxes around points, properties, and drafts of instances; and
drafts written differently.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dokimos.core import strict_json
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.core.readable import unknown_name
from dokimos.engine.runtimes.sessions import replay
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
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point, Property, Signature
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


#: Points and bounds are multiples of 2^-POINT_BITS: exact in float32, and short decimals.
POINT_BITS = 6
BOUND_BITS = 12


def random_point(size: int, rng: np.random.Generator) -> list[Fraction]:
    """A point of [0, 1]^size on the grid."""
    steps = 2**POINT_BITS
    return [Fraction(int(step), steps) for step in rng.integers(0, steps + 1, size=size)]


def inward(epsilon: float) -> Fraction:
    """The largest radius on the grid of bounds that is not above `epsilon`."""
    return Fraction(floor(Fraction(epsilon) * 2**BOUND_BITS), 2**BOUND_BITS)


def ball(centre: Sequence[Fraction], radius: Fraction) -> Box:
    """All points within `radius` of `centre`, coordinate by coordinate."""
    return Box(tuple(x - radius for x in centre), tuple(x + radius for x in centre))


def dot(row: Sequence[Fraction], x: Sequence[Fraction]) -> Fraction:
    """Σ row_i·x_i."""
    return sum((a * b for a, b in zip(row, x, strict=True) if a), Fraction(0))


def towards(centre: Sequence[Fraction], direction: Iterable[Any], distance: Fraction) -> Point:
    """The point `distance` away in each coordinate, on the side of the sign that `direction` has there."""
    return tuple(x + distance * (int(d > 0) - int(d < 0)) for x, d in zip(centre, direction, strict=True))


def unsafe_where(ways: Sequence[Conjunction], *boxes: Box, outputs: int = 1) -> Property:
    """Unsafe: one of these conjunctions holds, in any of the boxes."""
    signature = Signature("f", "X", (boxes[0].size,), "Y", (outputs,))
    return Property((signature,), tuple(Case(box, tuple(ways)) for box in boxes))


def at_least(bound: Fraction, output: int = 0) -> Conjunction:
    """Y_output >= bound."""
    return (Linear((), ((output, Fraction(-1)),), -bound),)


def class_loses(
    box: Box, label: int, classes: int, *, input_shape: Sequence[int] | None = None
) -> Property:
    """Unsafe: some other class is at least as high as `label`. The input is flat unless a shape is
    given."""
    unsafe = tuple(
        (Linear((), tuple(sorted(((label, Fraction(1)), (other, Fraction(-1))))), Fraction(0)),)
        for other in range(classes)
        if other != label
    )
    shape = (box.size,) if input_shape is None else tuple(input_shape)
    outputs = (classes,) if input_shape is None else (1, classes)
    return Property((Signature("f", "X", shape, "Y", outputs),), (Case(box, unsafe),))


def losing_class(property: Property) -> int | None:
    """The class that a property of this form is about; None if it has another form."""
    if len(property.cases) != 1 or property.products:
        return None
    winners = set()
    for conjunction in property.cases[0].any_of:
        if len(conjunction) != 1 or conjunction[0].inputs or conjunction[0].bound:
            return None
        terms = sorted(conjunction[0].outputs, key=lambda term: -term[1])
        if len(terms) != 2 or terms[0][1] <= 0 or terms[0][1] + terms[1][1] != 0:
            return None
        winners.add(terms[0][0])
    return winners.pop() if len(winners) == 1 else None


def first_class_loses(box: Box, classes: int) -> Property:
    """Unsafe: some other class is at least as high as class 0."""
    return class_loses(box, 0, classes)


def float32_above(value: Fraction) -> Fraction:
    """The smallest float32 number that is not below `value`."""
    near = np.float32(float(value))
    while Fraction(float(near)) < value:
        near = np.nextafter(near, np.float32(np.inf))
    return Fraction(float(near))


def float32_below(value: Fraction) -> Fraction:
    """The largest float32 number that is not above `value`."""
    return -float32_above(-value)


def split_evenly(total: int, weights: NDArray[np.float64]) -> list[int]:
    """Integers proportional to `weights`, signs kept, whose absolute values sum to `total` exactly.

    The largest remainders get what rounding down leaves over.
    """
    absolute = np.abs(weights)
    shares = absolute / absolute.sum() * total
    whole = np.floor(shares).astype(int)
    for index in np.argsort(whole - shares)[: total - int(whole.sum())]:
        whole[index] += 1
    return [int(share) for share in np.copysign(whole, weights)]


def ceil_div(value: Fraction, step: Fraction) -> Fraction:
    """The smallest multiple of `step` that is not below `value`."""
    return ceil(value / step) * step


# Whether sampling finds a counterexample by chance


SAMPLES = 10_000
#: Networks of more multiplications than this see fewer samples, in proportion, but never less than a tenth.
MOST_MULTIPLICATIONS = 20_000_000


def uniform_points(box: Box, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The centre of the box and `count` uniform points, in float32 and inside the box."""
    lower = np.array([float(x) for x in box.lower])
    upper = np.array([float(x) for x in box.upper])
    points = rng.uniform(lower, upper, size=(count, box.size)).astype(np.float32)
    centre = ((lower + upper) / 2).astype(np.float32)
    ends = lower.astype(np.float32), upper.astype(np.float32)
    inside: NDArray[np.float32] = np.clip(np.vstack([centre, points]), *ends).astype(np.float32)
    return inside


def violations(outputs: NDArray[np.float32], property: Property) -> NDArray[np.bool_]:
    """Which rows of outputs are unsafe, for a property whose constraints are on outputs only."""
    values = outputs.astype(np.float64)
    unsafe = np.zeros(len(values), dtype=np.bool_)
    for case in property.cases:
        for conjunction in case.any_of:
            holds = np.ones(len(values), dtype=np.bool_)
            for constraint in conjunction:
                left = sum(float(d) * values[:, j] for j, d in constraint.outputs)
                bound = float(constraint.bound)
                holds &= (left < bound) if constraint.strict else (left <= bound)
            unsafe |= holds
    return unsafe


def is_easily_found(network: bytes, property: Property, rng: np.random.Generator) -> bool:
    """Whether the centre or one of 10,000 uniform samples of a box is a counterexample in float32."""
    share = min(1.0, MOST_MULTIPLICATIONS / read_onnx(network).multiplications)
    count = max(int(SAMPLES * share), SAMPLES // 10)
    return any(
        bool(violations(replay(network, uniform_points(case.box, count, rng)), property).any())
        for case in property.cases
    )
