"""Bounders with a correct attack, and one bug in their proofs: what real verifiers get wrong.

The attack comes first, reads the file correctly and replays what it finds. So such a verifier is wrong only
where the attack finds nothing: an `unsat` that its flawed proof gives for a hidden counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import enclose
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.vnnlib.margins import MarginForm
from dokimos.suites.vnnlib.model import Box, Property
from dokimos.verifiers.adapters.built_in import ATTACKING
from dokimos.verifiers.planted.base import (
    Bounds,
    PlantedVerifier,
    Sort,
    Task,
    attacked,
    unchanged,
    violates,
)
from dokimos.verifiers.planted.bounder import Bounder, PlainBounder
from dokimos.verifiers.planted.misreadings import MISREAD_NETWORKS, MISREAD_PROPERTIES, NO_ARRAYS, in_each

if TYPE_CHECKING:
    from dokimos.verifiers.planted.flawed_bounds import FloatBounds


@dataclass(frozen=True)
class Attacker(PlantedVerifier):
    """It attacks, and then asks `prover` about the network and the property as its proof reads them.

    `attacks` is False where its attack is switched off.
    """

    name: str
    about: str
    prover: Bounder = field(default_factory=PlainBounder, repr=False)
    network: Callable[[Network], Network] = field(default=unchanged, repr=False)
    property: Callable[[Property], Property] = field(default=unchanged, repr=False)
    is_sound: bool = False
    attacks: bool = True
    sort = Sort.ATTACKER

    def decide(self, task: Task) -> VerifierAnswer:
        """What the attack finds, or what the proof says."""
        found = attacked(task.network, task.property) if self.attacks else None
        return self.proof(task) if found is None else VerifierAnswer(Answer.SAT, found)

    def tensor_bounds(self, task: Task) -> Mapping[str, Bounds]:
        """Those of its proof."""
        return self.prover.tensor_bounds(self._read(task))

    def _read(self, task: Task) -> Task:
        """The task as the proof reads it."""
        return replace(task, network=self.network(task.network), property=self.property(task.property))

    def proof(self, task: Task) -> VerifierAnswer:
        """What is said where the attack finds nothing; its counterexamples are replayed on the file."""
        said = self.prover.decide(self._read(task))
        if said.answer is not Answer.SAT:
            return said
        if said.witness is not None and violates(task.network, task.property, said.witness):
            return said
        return VerifierAnswer(Answer.UNKNOWN, detail="the counterexample of the proof does not replay")


# Proofs with a flaw of their own


class _Searcher(Bounder):
    """A bounder whose attack has been done already."""

    is_sound = False

    def search(self, task: Task) -> None:
        """Nothing: the attack came first."""
        return


class LastInputIgnored(_Searcher):
    """The last input stays where it is in the middle."""

    name = "last-input"
    about = "leaves the last input at the middle of its interval"

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """Those of the box without its last dimension."""
        middle = box.centre[-1]
        return super().bounds(network, Box((*box.lower[:-1], middle), (*box.upper[:-1], middle)))


class GapBetweenHalves(_Searcher):
    """The halves of a split stop short of its middle."""

    name = "gap-between-halves"
    about = "leaves a gap of 1e-6 between the halves of a split"

    def halves(self, box: Box, at: int) -> Sequence[Box]:
        """The halves, each half a millionth smaller."""
        below, above = super().halves(box, at)
        half = Fraction(1, 2 * 10**6)
        upper = tuple(x - half if i == at else x for i, x in enumerate(below.upper))
        lower = tuple(x + half if i == at else x for i, x in enumerate(above.lower))
        return replace(below, upper=upper), replace(above, lower=lower)


class LastDisjunct(_Searcher):
    """The status of the loop's last turn is returned."""

    name = "last-disjunct"
    about = "returns what it found for the last of the disjuncts"

    def margin(self, form: MarginForm, bounds: FloatBounds) -> float:
        """That of the last conjunction."""
        rows = bounds.row_bounds(form)
        return float(max(rows[form.members[-1]]))


class Tolerant(_Searcher):
    """A margin that is a little below 0 will do."""

    name = "tolerant-proof"
    about = "takes a margin above -1e-5 for proven"

    def is_proven(self, margin: float) -> bool:
        """Whether the margin is above −1e-5."""
        return margin > -1e-5


class VarianceAtCentre(_Searcher):
    """A normalisation is linear, once its deviation is known."""

    name = "variance-at-centre"
    about = "takes the deviation of a normalisation for that at the middle of the box"

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """Those of the network with constants for its roots."""
        middle = enclose(network, box.centre, box.centre)
        roots = [node for node in network.nodes if node.op == "Pow" and node.real("exponent") == 0.5]
        known = {root.output: middle[root.output].lower for root in roots}
        others = tuple(node for node in network.nodes if node.output not in known)
        return super().bounds(replace(network, nodes=others, constants={**network.constants, **known}), box)


class SigmoidTo10(_Searcher):
    """A table of the sigmoid that ends at 10."""

    name = "sigmoid-to-10"
    about = "bounds a sigmoid beyond 10 by its value at 10"

    def bounds(self, network: Network, box: Box) -> FloatBounds:
        """Those of the clipped arguments."""
        return super().bounds(in_each(_clipped_sigmoid)(network), box)


def _clipped_sigmoid(network: Network, node: Node) -> Any:
    if node.op != "Sigmoid":
        return None
    name = f"{node.output} clipped"
    clip = Node("Clip", node.inputs, name, {"min": -10.0, "max": 10.0})
    return (clip, replace(node, inputs=(name,))), NO_ARRAYS


# Misreadings that only the proof has


def _swapped_difference(network: Network, node: Node) -> Any:
    """A − B of two computed tensors as B − A."""
    if node.op != "Sub" or any(name in network.constants for name in node.inputs):
        return None
    return (replace(node, inputs=node.inputs[::-1]),), NO_ARRAYS


def _without_repeats(network: Network, node: Node) -> Any:
    """Only the first of equal indices of a Gather counts."""
    if node.op != "Gather" or len(node.attributes["indices_shape"]) != 1:  # type: ignore[arg-type]
        return None
    indices = list(node.integers("indices"))
    first = [float(indices.index(each) == place) for place, each in enumerate(indices)]
    if all(first):
        return None
    shape = [1] * len(network.shapes[node.output])
    shape[node.integer("axis")] = len(first)
    taken, name = f"{node.output} taken", f"{node.output} first"
    mask = np.array(first, dtype=np.float32).reshape(shape)
    return (replace(node, output=taken), Node("Mul", (taken, name), node.output, {})), {name: mask}


def _late_pads(network: Network, node: Node) -> Any:
    """One more at the end, and one less at the beginning."""
    if node.op not in ("AveragePool", "Conv", "MaxPool"):
        return None
    pads = list(node.integers("pads"))
    space = len(pads) // 2
    moved = [k for k in range(space) if pads[k] > 0]
    if not moved:
        return None
    for k in moved:
        pads[k], pads[k + space] = pads[k] - 1, pads[k + space] + 1
    return (replace(node, attributes={**node.attributes, "pads": tuple(pads)}),), NO_ARRAYS


def _half_square(network: Network, node: Node) -> Any:
    """x·x as x·(x/2): the slope of a square without its 2."""
    if node.op != "Mul" or node.inputs[0] != node.inputs[1]:
        return None
    name, half = f"{node.output} halved", f"{node.output} half"
    first = Node("Mul", (node.inputs[0], half), name, {})
    return (first, replace(node, inputs=(node.inputs[0], name))), {half: np.float32(0.5).reshape(())}


PROOF_FLAWS: tuple[Bounder, ...] = (
    LastInputIgnored(),
    GapBetweenHalves(),
    LastDisjunct(),
    Tolerant(),
    VarianceAtCentre(),
    SigmoidTo10(),
)
PROOF_MISREADINGS: Mapping[str, tuple[str, Callable[[Network, Node], Any]]] = MappingProxyType(
    {
        "swapped-difference": ("reads A − B of two tensors as B − A", _swapped_difference),
        "gather-repeats": ("counts only the first of equal indices of a Gather", _without_repeats),
        "late-pads": ("moves pads from the beginning to the end", _late_pads),
        "half-square": ("takes x·x for half of it", _half_square),
    }
)
_OF_PROPERTIES = tuple(
    bug
    for bug in MISREAD_PROPERTIES
    if bug.name in ("first-disjunct", "first-box", "last-class", "and-for-or")
)


def attacking(name: str) -> str:
    """What a bug is called in a verifier that attacks first."""
    return f"{ATTACKING}{name}"


def attackers(flawed: Sequence[Bounder]) -> tuple[Attacker, ...]:
    """A verifier with a correct attack for each flaw of a proof; `flawed` are bounders with one each."""
    sound = Attacker(
        attacking("bounds"), "no bug: an attack, then interval and CROWN bounds", is_sound=True
    )
    return (
        sound,
        *(Attacker(attacking(each.name), f"{each.about}, in its proof", each) for each in flawed),
        *(Attacker(attacking(each.name), f"{each.about}", each) for each in PROOF_FLAWS),
        *(
            Attacker(attacking(name), f"{about}, in its proof", network=in_each(change))
            for name, (about, change) in PROOF_MISREADINGS.items()
        ),
        *(
            Attacker(attacking(bug.name), f"{bug.about}, in its proof", network=bug.network)
            for bug in MISREAD_NETWORKS
        ),
        *(
            Attacker(attacking(bug.name), f"{bug.about}, in its proof", property=bug.property)
            for bug in _OF_PROPERTIES
        ),
    )
