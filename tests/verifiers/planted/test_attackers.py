"""Attackers: right wherever their attack succeeds; each flaw of a proof denies a counterexample."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from dokimos.suites.instance import Answer
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import Task, violates
from dokimos.verifiers.planted.catalogue import ATTACKERS, FLAWED_BOUNDERS, PLANTED
from tests.networks.building import Builder
from tests.verifiers.planted.test_bounders import WRONG, network_of, task


def _proof(name: str, asked: Task) -> Answer:
    bug = PLANTED[name]
    assert isinstance(bug, Attacker)
    return bug.proof(asked).answer


def _padded(b: Builder) -> str:
    """x, by a filter (0, 1) and a pad before it; with the pad behind it, 0."""
    line = b.add("Reshape", "x", b.integers([1, 1, 1]))
    found = b.add("Conv", line, b.constant([[[0.0, 1.0]]]), kernel_shape=[2], pads=[1, 0])
    return b.add("Reshape", found, b.integers([1, 1]))


def _repeated(b: Builder) -> str:
    return b.add("MatMul", b.add("Gather", "x", b.integers([0, 0]), axis=1), b.constant([[1.0], [1.0]]))


def _normalised(b: Builder) -> str:
    """1/√(x + 1.125): 2.8 at −1, less than 1 at the middle."""
    return b.add("Div", b.constant([[1.0]]), b.add("Sqrt", b.add("Add", "x", b.constant([[1.125]]))))


def _difference(b: Builder) -> str:
    return b.add("Sub", b.add("Relu", "x"), b.add("Tanh", b.add("Mul", "x", b.constant([[0.5]]))))


#: For each flaw that only proofs have, a question with a counterexample that the flawed proof denies.
DENIED: dict[str, Callable[[], Task]] = {
    "last-input": lambda: task(lambda b: b.add("Identity", "x"), (0, ">=", 0.5)),
    "gap-between-halves": lambda: task(_needle, (0, ">=", 0.5)),
    "last-disjunct": lambda: task(lambda b: b.add("Identity", "x"), (0, ">=", 0.5), (0, ">=", 5)),
    "tolerant-proof": lambda: task(lambda b: b.add("Identity", "x"), (0, ">=", 0.999995)),
    "variance-at-centre": lambda: task(_normalised, (0, ">=", 2.5)),
    "sigmoid-to-10": lambda: task(lambda b: b.add("Sigmoid", "x"), (0, ">=", 0.99998), low=10.5, high=14.0),
    "swapped-difference": lambda: task(_difference, (0, ">=", 0.5), low=1, high=2),
    "gather-repeats": lambda: task(_repeated, (0, ">=", 1.5)),
    "late-pads": lambda: task(_padded, (0, ">=", 0.9)),
    "half-square": lambda: task(lambda b: b.add("Mul", "x", "x"), (0, ">=", 0.9)),
}


def _needle(b: Builder) -> str:
    """relu(1 − 10^7·|x|): nonzero within 10^-7 of the middle of the box only."""
    both = b.add("Add", b.add("Relu", "x"), b.add("Relu", b.add("Neg", "x")))
    near = b.add("Sub", b.constant([[1.0]]), b.add("Mul", both, b.constant([[1e7]])))
    return b.add("Relu", near)


@pytest.mark.parametrize("name", DENIED)
def test_a_flawed_proof_denies_what_is_there(name: str) -> None:
    asked = DENIED[name]()
    assert _proof(f"attacking-{name}", asked) is Answer.UNSAT
    assert _proof("attacking-bounds", asked) is not Answer.UNSAT


@pytest.mark.parametrize("bug", [b.name for b in FLAWED_BOUNDERS if b.name != "unchecked-attack"])
def test_the_flaws_of_bounders_are_those_of_attackers(bug: str) -> None:
    make, wrong = WRONG[bug]
    assert _proof(f"attacking-{bug}", make()) is wrong


def test_where_the_attack_succeeds_every_attacker_is_right() -> None:
    asked = task(lambda b: b.add("Relu", "x"), (0, ">=", 0.5))
    for bug in ATTACKERS:
        given = bug.answer(asked)
        assert given.answer is Answer.SAT, bug.name
        assert given.witness is not None and violates(asked.network, asked.property, given.witness)


def test_a_counterexample_of_a_misread_network_is_not_reported() -> None:
    """C − X read as X − C: the proof's point violates only what it read."""
    asked = task(lambda b: b.add("Sub", b.constant([[3.0]]), "x"), (0, "<=", 1.0))
    assert _proof("attacking-constant-second", asked) is Answer.UNKNOWN


def test_a_misread_property_is_misread_in_the_proof_alone() -> None:
    network = network_of(1, lambda b: b.add("Identity", "x"))
    unsafe = ((Linear((), ((0, Fraction(-1)),), Fraction(-1, 2)),),)
    never = ((Linear((), ((0, Fraction(-1)),), Fraction(-9)),),)
    cases = [Case(Box((Fraction(-1),), (Fraction(1),)), each) for each in (never, unsafe)]
    asked = Property((Signature("f", "X", (1,), "Y", (1,)),), tuple(cases))
    both = Task(network, asked, None, None, 10.0)
    assert _proof("attacking-first-box", both) is Answer.UNSAT
    assert PLANTED["attacking-first-box"].answer(both).answer is Answer.SAT


def test_only_the_first_is_sound() -> None:
    assert [bug.name for bug in ATTACKERS if bug.is_sound] == ["attacking-bounds"]
