"""Mixing: neither the class that should win nor the place of a violation in the property can be guessed.

Families write networks whose class 0 should win, and a twin that often loses to class 1, or to all others
at once. A tool that reads only the first disjunct, or only some of the classes, could be right by luck. So
both drafts of a draw are mixed, in the same way: only one class is left that wins at the witness, the
classes are renumbered, and the disjuncts are reordered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.checker.proofs.witness import EXACT_LATER
from dokimos.constructions.draft import Draft
from dokimos.constructions.parts.robustness import float32_below
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import enclosures
from dokimos.properties.model import Linear, Point, Property

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
    """The disjuncts in this order, and with them the trees of a proof that has one for each."""
    (case,) = draft.question.cases
    question = replace(draft.question, cases=(replace(case, any_of=tuple(case.any_of[k] for k in order)),))
    data = _in_order(draft.certificate.data, order)
    return replace(draft, question=question, certificate=replace(draft.certificate, data=data))


def _in_order(data: Mapping[str, Any], order: Sequence[int]) -> dict[str, Any]:
    """The data of a proof, or of one inside it, with its trees in this order."""
    found = dict(data)
    trees = found.get("trees")
    if isinstance(trees, list) and len(trees) == len(order):
        found["trees"] = [trees[k] for k in order]
    if isinstance(found.get("data"), Mapping):
        found["data"] = _in_order(found["data"], order)
    return found
