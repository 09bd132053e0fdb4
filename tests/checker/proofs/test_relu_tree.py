"""Trees of case distinctions closed exactly: what the checker accepts, what it refuses, and how."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import prove
from dokimos.checker.proofs.relu_cases import upper_slope
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.suites.instance import Certificate, Label
from tests.checker.files import instance_of, model, question

#: y = 1 − |x| by two ReLUs.
HAT = model(
    [
        ("Gemm", ["X", "w", "b"], "h"),
        ("Relu", ["h"], "r"),
        ("Gemm", ["r", "v", "c"], "Y"),
    ],
    {"w": [[1.0, -1.0]], "b": [0.0, 0.0], "v": [[-1.0], [-1.0]], "c": [1.0]},
    [1, 1],
    [1, 1],
)
#: y >= 1.25 is unsat on [−1, 1]: the bound of each phase of ReLU 0 is 1 by its own line.
ASKED = question([(-1, 1)], 1, "(>= Y_0 1.25)")
LEAF = {"constraints": ["1"], "choices": {"below": {}, "above": {}}}


def proof(**changes: Any) -> dict[str, Any]:
    tree = {"splits": [0, -1, -1], "leaves": [copy.deepcopy(LEAF), copy.deepcopy(LEAF)]}
    return {"arithmetic": "exact", "trees": [{**tree, **changes}]}


def check(data: dict[str, Any], asked: bytes = ASKED) -> Fraction:
    return prove(instance_of(HAT, asked), Certificate("relu-tree", data), Label.UNSAT, None).real


def test_it_proves_what_is_so() -> None:
    assert check(proof()) == Fraction(1, 4)
    assert check(proof(splits=[-1], leaves=[LEAF])) == Fraction(1, 4)


def test_rounding_takes_something_off_in_float32() -> None:
    """1 − |x| at most 1: in float32 the sum may be off by a few units in the last place of 1."""
    proven = prove(instance_of(HAT, ASKED), Certificate("relu-tree", proof()), Label.UNSAT, None)
    assert proven.float32 is not None
    assert proven.real - Fraction(1, 2**18) < proven.float32 < proven.real


def test_what_is_proven_for_the_reals_may_be_open_in_float32() -> None:
    asked = question([(-1, 1)], 1, "(>= Y_0 1.00000011920928955078125)")
    proven = prove(instance_of(HAT, asked), Certificate("relu-tree", proof()), Label.UNSAT, None)
    assert proven.real == Fraction(1, 2**23)
    assert proven.float32 is None


def test_what_is_false_has_no_proof() -> None:
    """y >= 0.75 holds at 0, whatever the tree and the multipliers."""
    asked = question([(-1, 1)], 1, "(>= Y_0 0.75)")
    for below in ({}, {"0": "1"}, {"1": "3/2"}):
        for above in ({}, {"0": "1", "1": "1"}, {"1": "7"}):
            leaf = {"constraints": ["1"], "choices": {"below": below, "above": above}}
            with pytest.raises(InvalidProof, match="not above 0"):
                check(proof(leaves=[leaf, leaf]), asked)


def test_multipliers_of_nothing_prove_nothing() -> None:
    with pytest.raises(InvalidProof, match="not above 0"):
        check(proof(leaves=[LEAF, {**LEAF, "constraints": ["0"]}]))


def test_an_empty_case_needs_no_multipliers() -> None:
    """On [1/2, 1] the argument of ReLU 0 is never negative."""
    asked = question([("0.5", 1)], 1, "(>= Y_0 1.25)")
    nothing = {**LEAF, "constraints": ["0"]}
    assert check(proof(leaves=[LEAF, nothing]), asked) == Fraction(3, 4)


def test_conjunctions_are_refuted_together() -> None:
    """y >= 0.5 and x + y/2 >= 0.9 cannot hold together, though each can alone."""
    asked = question([(-1, 1)], 1, "(>= Y_0 0.5)", "(>= (+ X_0 (* 0.5 Y_0)) 0.9)")
    leaf = {"constraints": ["1", "2"], "choices": {"below": {"0": "2"}, "above": {}}}
    assert check(proof(splits=[-1], leaves=[leaf]), asked) == Fraction(1, 10)


def _no_leaf(data: dict[str, Any]) -> None:
    data["trees"][0]["leaves"].pop()


def _set(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["trees"][0]["leaves"][0].update(fields)


def _choose(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["trees"][0]["leaves"][0]["choices"].update(fields)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("arithmetic"),
        lambda data: data.update(arithmetic="outward"),
        lambda data: data.update(arithmetic="inward"),
        lambda data: data.update(arithmetic=["exact"]),
        lambda data: data.update(trees=[]),
        lambda data: data.update(trees={}),
        lambda data: data.update(trees=[7]),
        lambda data: data["trees"][0].update(splits=[0, -1]),
        lambda data: data["trees"][0].update(splits=[0, -1, -1, -1]),
        lambda data: data["trees"][0].update(splits=[0, 0, -1, -1, -1]),
        lambda data: data["trees"][0].update(splits=[-2]),
        lambda data: data["trees"][0].update(splits=[True, -1, -1]),
        lambda data: data["trees"][0].update(splits=[]),
        lambda data: data["trees"][0].update(leaves=7),
        lambda data: data["trees"][0].update(more=7),
        lambda data: data["trees"][0].update(leaves=[7, 7]),
        _no_leaf,
        _set(constraints=[]),
        _set(constraints=["1", "1"]),
        _set(constraints=[1]),
        _set(constraints=["nan"]),
        _set(choices={"below": {}}),
        _set(choices={"slopes": {}, "multipliers": {}}),
        _choose(more={}),
        _choose(below=[]),
        _choose(below={"x": "1"}),
        _choose(below={"-1": "1"}),
        _choose(below={"²": "1"}),
        _choose(above={"0": 0.5}),
        _choose(above={"0": "1/0"}),
    ],
)
def test_data_of_another_shape_is_unreadable(change: Callable[[dict[str, Any]], None]) -> None:
    data = proof()
    change(data)
    with pytest.raises(UnreadableFile):
        check(data)


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        (_set(constraints=["-1"]), "negative"),
        (_choose(below={"0": "-1/9"}), "negative"),
        (_choose(above={"1": "-3"}), "negative"),
        (_choose(above={"2": "1"}), "beyond the network's 2"),
        (lambda data: data["trees"][0].update(splits=[2, -1, -1]), "beyond the network's 2"),
    ],
)
def test_steps_that_are_not_sound_are_invalid(
    change: Callable[[dict[str, Any]], None], trouble: str
) -> None:
    data = proof()
    change(data)
    with pytest.raises(InvalidProof, match=trouble):
        check(data)


def test_a_property_without_inputs_has_no_proof() -> None:
    with pytest.raises(InvalidProof, match="nothing to prove"):
        check({"arithmetic": "exact", "trees": []}, question([(1, -1)], 1, "(>= Y_0 1.25)"))


def test_too_many_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.checker.proofs.relu_cases.MOST_LEAVES", 1)
    with pytest.raises(InvalidProof, match="more than 1 leaves"):
        check(proof())


@settings(deadline=None)
@given(
    st.fractions(min_value=-1000, max_value=-Fraction(1, 1000), max_denominator=10**6),
    st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6),
    st.fractions(min_value=0, max_value=1),
)
def test_the_line_above_is_above(low: Fraction, high: Fraction, share: Fraction) -> None:
    slope = upper_slope(low, high)
    at = low + share * (high - low)
    assert max(Fraction(0), at) <= slope * (at - low)
    assert slope - high / (high - low) <= Fraction(1, 2**24)
