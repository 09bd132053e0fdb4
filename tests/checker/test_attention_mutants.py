"""Nothing false is accepted of networks with attention: small changes, judged by a search of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import check
from dokimos.core.errors import DokimosError, InvalidProof
from dokimos.suites.instance import Semantics
from tests.checker import mutants
from tests.checker.attention_oracle import contradicts, largest_violation
from tests.checker.files import repaired
from tests.checker.mutants import Rng, Statement, drafts, statement_of

LEAST_FALSE = 100
TINY: dict[str, list[dict[str, Any]]] = {
    "softmax-attention": [
        {"tokens": 2, "width": 2, "value_width": 1, "classes": 2, "hinges": 1},
        {"tokens": 2, "width": 3, "value_width": 2, "classes": 3, "hinges": 2, "epsilon": 0.1},
        {"tokens": 3, "width": 4, "value_width": 2, "classes": 2, "hinges": 2, "slack": 1.001},
    ],
    "linear-attention": [
        {"tokens": 2, "width": 2, "value_width": 1, "classes": 2, "hinges": 1, "unstable": 1},
        {"tokens": 2, "width": 3, "value_width": 2, "classes": 3, "hinges": 2, "epsilon": 0.1},
        {"tokens": 3, "width": 4, "value_width": 2, "classes": 2, "hinges": 2, "slack": 1.001},
    ],
}


@cache
def bases(family: str) -> list[Statement]:
    return [
        statement_of(drafts(family, seed, **knobs)[0], margin=bool(seed % 2))
        for knobs in TINY[family]
        for seed in range(2)
    ]


def operator(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """Another operator, axis or input where attention has its own."""
    model = onnx.load_from_string(base.network)
    changes = {
        "Softmax": lambda node: node.attribute[0].__setattr__("i", 1),
        "Div": lambda node: node.input.reverse(),
        "Relu": lambda node: setattr(node, "op_type", "Exp"),
        "Transpose": lambda node: node.attribute[0].ints.__setitem__(slice(0, 3), [0, 1, 2]),
        "ReduceSum": lambda node: node.input.__setitem__(0, model.graph.node[0].output[0]),
        "Concat": lambda node: node.input.reverse(),
        "MatMul": lambda node: node.input.reverse(),
    }
    chosen = [node for node in model.graph.node if node.op_type in changes]
    node = chosen[rng.integers(len(chosen))]
    changes[node.op_type](node)
    return replace(base, network=bytes(model.SerializeToString(deterministic=True)))


def twin_bias(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """Some bias raised as a twin raises that of its needle."""
    return mutants.nudge(mutants.bias(base, rng, all_), rng, all_)


MUTATORS = (
    *(mutants.ulp, mutants.factor, mutants.nudge, mutants.bias, mutants.bias, mutants.swap_entries),
    *(mutants.box, mutants.one_face, mutants.constraint, mutants.constraint, operator, twin_bias),
)


def sweep(family: str, count: int, seed: int) -> Counter[str]:
    rng = np.random.default_rng([seed, len(family)])
    tally: Counter[str] = Counter()
    for number in range(count):
        base = bases(family)[rng.integers(len(bases(family)))]
        mutant = MUTATORS[number % len(MUTATORS)](base, rng, bases(family))
        tally[judged(mutant, rng)] += 1
    return tally


def judged(mutant: Statement, rng: Rng) -> str:
    instance = mutant.instance
    truth = repaired(mutant.truth, instance)
    files = instance.network_file, instance.property_file
    try:
        proven = check(instance, truth).real
    except DokimosError:
        try:
            return "false, rejected" if largest_violation(*files, rng) > 1e-9 else "rejected"
        except (ValueError, IndexError, KeyError):
            return "broken, rejected"
    claimed = truth.claims[Semantics.REAL].margin or Fraction(0)
    assert not contradicts(*files, max(proven, claimed), rng), (mutant, "is false and was accepted")
    return "accepted"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("family", sorted(TINY))
def test_false_mutants_are_rejected(family: str) -> None:
    tally = sweep(family, 330, seed=0)
    assert tally["false, rejected"] >= LEAST_FALSE, tally
    assert tally["accepted"] >= 50, tally


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("family", sorted(TINY))
@settings(deadline=None, max_examples=40)
@given(
    place=st.integers(0, 2**16),
    changes=st.lists(st.sampled_from(MUTATORS), min_size=1, max_size=2),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_change_that_can_be_thought_of_makes_it_accept_what_is_false(
    family: str, place: int, changes: list[mutants.Mutator], seed: int
) -> None:
    mutant = bases(family)[place % len(bases(family))]
    rng = np.random.default_rng(seed)
    for change in changes:
        mutant = change(mutant, rng, bases(family))
    judged(mutant, rng)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("family", sorted(TINY))
@pytest.mark.parametrize("seed", range(1, 6))
def test_many_more_false_mutants_are_rejected(family: str, seed: int) -> None:
    assert sweep(family, 3000, seed=seed)["false, rejected"] >= 6 * LEAST_FALSE


@pytest.mark.parametrize("family", sorted(TINY))
def test_margins_are_never_larger_than_what_a_search_finds(family: str) -> None:
    rng = np.random.default_rng(1)
    for base in bases(family):
        instance = base.instance
        proven = check(instance, base.truth)
        assert not contradicts(instance.network_file, instance.property_file, proven.real, rng)
        assert proven.float32 is None or proven.float32 < proven.real


@pytest.mark.parametrize("family", sorted(TINY))
def test_the_twin_is_rejected_with_the_proof_of_its_sibling(family: str) -> None:
    rng = np.random.default_rng(2)
    for knobs in TINY[family]:
        robust, twin = drafts(family, 5, **knobs)
        base = statement_of(robust, margin=False)
        false = replace(base, network=twin.network)
        instance = false.instance
        assert largest_violation(instance.network_file, instance.property_file, rng) > 1e-9
        with pytest.raises(InvalidProof):
            check(instance, repaired(base.truth, instance))
