"""The contract of a family: its author writes the draw, the base class proves the labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar, cast, final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.checker.base import CertificateKind
from dokimos.checker.linear.cover import LEAF, pack
from dokimos.checker.proofs.witness import EXACT_LATER
from dokimos.constructions.draft import (
    Draft,
    Origin,
    disguise_drafts,
    float32_below,
    instance_of,
    is_easily_found,
    make_knobs,
)
from dokimos.constructions.locked_networks import LEAST_INPUTS, lock_draft, shape_of
from dokimos.core.errors import ConstructionFailed, InputError, InvalidProof
from dokimos.core.registry import Registry
from dokimos.engine.outcome import NoProof, SearchEffort, proven_truth, trusted_kinds, why_not_trusted
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import enclosures
from dokimos.networks.writing.builder import NotFloat32
from dokimos.suites.instance import Certificate, LabelledInstance
from dokimos.suites.vnnlib.model import Linear, Point, Property

# Mixing: neither the class that should win nor the place of a violation in the property can be guessed


Array = NDArray[np.float32]

#: Scores that are known this well tell which classes win.
NARROW_ENOUGH = Fraction(1, 2**20)


def mixed(drafts: Sequence[Draft], rng: np.random.Generator) -> tuple[Draft, ...]:
    """The robust draft and its twin with classes and disjuncts in an order drawn from `rng`.

    If the last node of a network is not a Gemm with its own weights, or there is only one output, the
    classes keep their order. Properties with several boxes or with products are left unchanged.
    """
    questions = [draft.question for draft in drafts]
    if any(q.products or len(q.networks) != 1 or len(q.cases) != 1 for q in questions):
        return tuple(drafts)
    heads = [_Head.of(draft.network) for draft in drafts]
    count = questions[0].output_size
    if count > 1 and all(head is not None for head in heads):
        lowered = _lowered(drafts[-1])
        classes = [int(k) for k in rng.permutation(count)]
        drafts = [
            replace(
                draft,
                network=head.rearranged(classes, lowered),
                question=_renumbered(draft.question, classes),
            )
            for draft, head in zip(drafts, heads, strict=True)
            if head is not None
        ]
    order = [int(k) for k in rng.permutation(len(questions[0].cases[0].any_of))]
    return tuple(_reordered(draft, order) for draft in drafts)


class _Head:
    """The last node of a network: a Gemm whose weights nothing else reads."""

    def __init__(self, model: onnx.ModelProto, weight: int, bias: int, axis: int) -> None:
        self._model, self._weight, self._bias, self._axis = model, weight, bias, axis

    @classmethod
    def of(cls, network: bytes) -> _Head | None:
        """The head of a network, None if it has no such node."""
        model = onnx.load_from_string(network)
        graph = model.graph
        last = next((node for node in graph.node if graph.output[0].name in node.output), None)
        if last is None or last.op_type != "Gemm" or len(last.input) != 3:
            return None
        names = [constant.name for constant in graph.initializer]
        reads = [name for node in graph.node for name in node.input]
        if any(reads.count(name) != 1 or name not in names for name in last.input[1:]):
            return None
        turned = any(a.name == "transB" and a.i == 1 for a in last.attribute)
        weight, bias = (names.index(name) for name in last.input[1:])
        return cls(model, weight, bias, 0 if turned else 1)

    def rearranged(self, classes: Sequence[int], lowered: dict[int, Fraction]) -> bytes:
        """The network whose output k is the output classes[k] of this one, minus lowered[classes[k]]."""
        constants = self._model.graph.initializer
        weight: Array = numpy_helper.to_array(constants[self._weight])
        bias: Array = numpy_helper.to_array(constants[self._bias]).copy()
        for number, by in lowered.items():
            bias[number] = float(float32_below(Fraction(float(bias[number])) - by))
        for place, array in (
            (self._weight, weight.take(classes, axis=self._axis)),
            (self._bias, bias[classes]),
        ):
            name = constants[place].name
            constants[place].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), name))
        written: bytes = self._model.SerializeToString(deterministic=True)
        return written


def _lowered(twin: Draft) -> dict[int, Fraction]:
    """How far to lower the classes that win at the witness beside the one that wins most there.

    Each then loses by as much as that one wins by. The robust draft only gets more robust by this.
    """
    rivals = [_rival(conjunction) for conjunction in twin.question.cases[0].any_of]
    winners = {pair[0] for pair in rivals if pair is not None}
    if twin.witness is None or len(rivals) < 2 or None in rivals or len(winners) != 1:
        return {}
    scores = _scores(read_onnx(twin.network), twin.witness)
    (winner,) = winners
    leads = {pair[1]: scores[pair[1]] - scores[winner] for pair in rivals if pair is not None}
    first = max(leads, key=lambda rival: (leads[rival], -rival))
    return {rival: lead + leads[first] for rival, lead in leads.items() if rival != first and lead >= 0}


def _scores(network: Network, point: Point) -> tuple[Fraction, ...]:
    """The outputs at a point: of large networks by outward-rounded float64, if that is enough."""
    floats_first = network.multiplications > EXACT_LATER
    found = enclosures(network, point, floats_first=floats_first)
    return next(scores.upper for scores in found if scores.width < NARROW_ENOUGH)


def _rival(conjunction: Sequence[Linear]) -> tuple[int, int] | None:
    """(w, k) where the conjunction says that class k is at least as high as class w, and nothing else."""
    if len(conjunction) != 1 or conjunction[0].inputs or conjunction[0].bound != 0:
        return None
    signs = {factor: output for output, factor in conjunction[0].outputs}
    return (
        (signs[Fraction(1)], signs[Fraction(-1)]) if signs.keys() == {Fraction(1), Fraction(-1)} else None
    )


def _renumbered(question: Property, classes: Sequence[int]) -> Property:
    (case,) = question.cases
    place = {old: new for new, old in enumerate(classes)}
    any_of = tuple(
        tuple(
            replace(each, outputs=tuple(sorted((place[output], factor) for output, factor in each.outputs)))
            for each in conjunction
        )
        for conjunction in case.any_of
    )
    return replace(question, cases=(replace(case, any_of=any_of),))


def _reordered(draft: Draft, order: Sequence[int]) -> Draft:
    """The disjuncts in this order, and with them the questions of a proof that has one for each."""
    (case,) = draft.question.cases
    question = replace(draft.question, cases=(replace(case, any_of=tuple(case.any_of[k] for k in order)),))
    data = _in_order(draft.certificate.data, order)
    return replace(draft, question=question, certificate=replace(draft.certificate, data=data))


def _in_order(data: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The data of a proof, or of one inside it, with its questions in this order."""
    found = dict(data)
    questions = found.get("questions")
    if isinstance(questions, list) and len(questions) == len(order):
        found["questions"] = [questions[k] for k in order]
    if isinstance(found.get("data"), Mapping):
        found["data"] = _in_order(found["data"], order)
    return found


P = TypeVar("P")

#: With at least this many bits in a lock, 10,000 samples should not find its cell.
HIDDEN_BITS = 20
#: How many unusable draws there may be before the family gives up on these knobs.
ATTEMPTS = 20
#: Classes are mixed by a separate generator, so that no other draw depends on mixing.
MIXING = 1


class Unusable(Exception):
    """This draw gives no instance (its counterexample cannot be hidden, say); another draw may."""


@dataclass(frozen=True)
class DrawnInstances:
    """Siblings, the robust one first, and why each earlier draw was discarded."""

    instances: tuple[LabelledInstance, ...]
    given_up: tuple[str, ...]


class Construction(ABC, Generic[P]):
    """One family of instances, in one file.

    A subclass names the family, gives its knobs as a frozen dataclass `knobs_class` (each field made by
    `knob`), and writes `construct`: from knobs and a generator, the `unsat` draft and its `sat` twin. The
    twin has the same shape and size and differs in as little as possible. Weights and bounds must be
    exact in float32; every random choice comes from `rng`; `construct` may raise `Unusable` to ask for
    another draw.

    Every label is proven: `__call__` is final; it writes the two files of each draft, has the checker prove
    the label from those files, and makes sure that neither the centre of the box nor 10,000 uniform samples
    give the twin away (unless the family says that its twins are not `hidden`). Write `construct` as if
    class 0 should win: classes and disjuncts are mixed afterwards (see `mixing`), unless the family says
    that their order matters (`mixes`).
    """

    family: ClassVar[str]
    summary: ClassVar[str]
    hidden: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    knobs_class: type[P]

    @abstractmethod
    def construct(self, knobs: P, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """One robust draft and its violated twin."""

    def alone(self, knobs: P, rng: np.random.Generator) -> Draft:
        """The robust draft where no twin is asked for; a family may leave out what only hides a twin."""
        return self.construct(knobs, rng)[0]

    def hides(self, knobs: P) -> bool:
        """Whether twins with these knobs must be hidden from samples; a family may have easy settings."""
        return self.hidden

    @final
    def __call__(
        self, *, seed: int, timeout_seconds: float = 60.0, disguise: Sequence[str] = (), **knobs: Any
    ) -> tuple[LabelledInstance, LabelledInstance]:
        """One `unsat` instance and its `sat` twin, proven. The same arguments give the same bytes.

        `disguise` names the ways in which the networks are rewritten, see `DISGUISES`.

        Raises InputError for knobs that do not exist or are out of range, ConstructionFailed if no
        draw can be proven or hidden.
        """
        drawn = self.draw(
            seed=seed, timeout_seconds=timeout_seconds, disguise=disguise, with_twin=True, knobs=knobs
        )
        robust, twin = drawn.instances
        return robust, twin

    @final
    def draw(
        self,
        *,
        seed: int,
        timeout_seconds: float,
        disguise: Sequence[str],
        with_twin: bool,
        knobs: Mapping[str, Any],
        lock: int | None = None,
        plugin_proofs: bool = False,
        mix: bool = True,
    ) -> DrawnInstances:
        """The same, with the reasons why draws were discarded.

        With `lock`, the pair is made of the robust instance alone, by a parity lock of that many bits: one
        instance with a lock that no input opens, and one with a lock that opens in one cell (see
        `locked_networks`).

        Unless `with_twin` or `lock`, the robust instance is drawn `alone`: without what only hides a twin,
        and whatever a twin would need. So it may differ from the one that comes with a twin. Kinds of proof
        that plug-ins add count only with `plugin_proofs`. Without `mix`, classes and disjuncts are
        in the order in which the family writes them.
        """
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"The seed must be a whole number, 0 or more, not {seed!r}.")
        chosen = make_knobs(self.knobs_class, knobs, family=self.family)
        origin = asdict(cast(Any, chosen)) | ({"disguise": list(disguise)} if disguise else {})
        origin |= {} if lock is None else {"lock": lock}
        kinds = trusted_kinds(plugin_proofs=plugin_proofs)
        given_up: list[str] = []
        while len(given_up) < ATTEMPTS:
            rng = np.random.default_rng([seed, len(given_up)])
            try:
                pair = with_twin or lock is not None
                drafts: Sequence[Draft] = (
                    self.construct(chosen, rng) if pair else (self.alone(chosen, rng),)
                )
                order = np.random.default_rng([seed, len(given_up), MIXING])
                if mix and self.mixes:
                    drafts = mixed(drafts, order)
                if lock is not None:
                    drafts, origin = _locked(drafts[0], lock, rng, origin)
                    if mix and self.mixes:  # a lock opens the first disjunct
                        drafts = mixed(drafts, order)
                drafts = disguise_drafts(drafts if with_twin else drafts[:1], disguise, rng)
                made_by = Origin(self.family, origin, seed, timeout_seconds)
                made = tuple(self._prove(draft, made_by, kinds) for draft in drafts)
                if (
                    with_twin
                    and (self.hides(chosen) if lock is None else lock >= HIDDEN_BITS)
                    and is_easily_found(drafts[1].network, drafts[1].question, rng)
                ):
                    raise Unusable("uniform samples find the twin's counterexample")
            except (Unusable, NoProof, InvalidProof, NotFloat32) as error:
                given_up.append(str(error))
            else:
                return DrawnInstances(made, tuple(given_up))
        raise ConstructionFailed(
            f"{self.family}: none of {ATTEMPTS} draws gave an instance ({given_up[-1]}); "
            f"run `dokimos families {self.family}` for the knobs, and move them closer to their defaults."
        )

    def _prove(self, draft: Draft, origin: Origin, kinds: Registry[CertificateKind]) -> LabelledInstance:
        kind = draft.certificate.kind
        if kind not in kinds and (problem := why_not_trusted(kind)):
            raise InputError(f"{self.family}: its labels are not proven: {problem}.")
        instance = instance_of(draft, origin)
        truth = proven_truth(
            instance, draft.certificate, draft.label, draft.witness, kinds=kinds, also=draft.also
        )
        return LabelledInstance(instance, truth)


def _locked(
    robust: Draft, bits: int, rng: np.random.Generator, origin: dict[str, Any]
) -> tuple[Sequence[Draft], dict[str, Any]]:
    """The pair that a lock makes of a robust draft, and how it was made."""
    if robust.certificate.kind == "parity-lock":
        raise ConstructionFailed("This family has its own parity lock; set its size with the knob `bits`.")
    inputs = read_onnx(robust.network).input_size
    if inputs < LEAST_INPUTS:
        raise ConstructionFailed(f"A lock needs at least {LEAST_INPUTS} inputs; this network has {inputs}.")
    shape = shape_of(bits, inputs)
    pair = lock_draft(robust, shape, rng)
    return (pair.shut, pair.opened), origin | {"proven_enlarged": pair.is_proven_enlarged}


def dyadic(value: float | Fraction, bits: int) -> Fraction:
    """The multiple of 2^-bits nearest to `value`."""
    return Fraction(round(Fraction(value) * 2**bits), 2**bits)


def by_slopes(asked: Property, slopes: Sequence[float], tree: Sequence[int] = (LEAF,)) -> Certificate:
    """The proof by one line below each ReLU, in order, given by its slope, on each leaf of a tree."""
    own = np.rint(254 * np.array(slopes)).astype(np.uint8)
    leaves = list(tree).count(LEAF)
    lines = pack(own.tobytes() + bytes((leaves - 1) * len(own)))  # differences to the leaf before
    question = {"tree": list(tree), "lines": lines}
    return Certificate("linear", {"questions": [question] * len(asked.questions())})


def by_search(
    content: bytes, question: Property, *, most_steps: int, least_margin: float = 0.0
) -> Certificate:
    """The proof that the engine's search finds in so many steps; raises Unusable without one."""
    from dokimos.engine.linear import LinearSearch

    effort = SearchEffort(most_steps=most_steps)
    found = LinearSearch(read_onnx(content), question, effort, least_margin=least_margin).run()
    if found.data is None:
        raise Unusable(f"the search finds no proof: {found.reason}")
    return Certificate("linear", found.data)
