"""Nothing false is accepted, whichever changes are thought of; the plain sweep is in the contract."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import CertificateKind, Problem, Proven, check
from dokimos.suites.instance import Certificate, Instance, Label, Truth
from dokimos.testing.contracts import LEAST_FALSE
from dokimos.testing.relu_oracle import ReluOracle
from dokimos.testing.statements import LabelStatement, statement_of
from dokimos.testing.sweeps import ACCEPTED, FALSE, Oracle, Sweep, with_margin
from tests.checker.statements import EXACT, SEARCHED, SWEEPS, base_statements, drafts


@pytest.mark.parametrize("kind", EXACT)
def test_a_margin_is_the_largest_that_holds(kind: str) -> None:
    """Convex corners and witnesses give exact margins; none may give more than the oracle allows."""
    oracle = ReluOracle()
    for base in base_statements(kind)[:6]:
        proven = check(base.instance, base.truth).real
        assert oracle.is_true(base.instance, with_margin(base.truth, proven), margin=True)
        if kind in ("convex-corners", "witness"):
            above = with_margin(base.truth, proven * (1 + Fraction(1, 2**40)))
            assert not oracle.is_true(base.instance, above, margin=True)


@pytest.mark.parametrize("kind", sorted(SWEEPS))
@settings(deadline=None, max_examples=25)
@given(place=st.integers(0, 2**16), choice=st.data(), seed=st.integers(0, 2**32 - 1))
def test_no_change_that_can_be_thought_of_makes_it_accept_what_is_false(
    kind: str, place: int, choice: st.DataObject, seed: int
) -> None:
    """Which instance is changed, and how often and in which ways, is searched for and shrunk."""
    sweep = SWEEPS[kind]
    changes = choice.draw(st.lists(st.sampled_from(sweep.mutators), min_size=1, max_size=3))
    bases = sweep.statements()
    base = mutant = bases[place % len(bases)]
    rng = np.random.default_rng(seed)
    for change in changes:
        mutant = change(mutant, rng, base_statements("convex-corners") + list(bases))
    sweep.judge(base, mutant, Counter())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("kind", sorted(SWEEPS))
def test_many_more_false_mutants_are_rejected(kind: str, seed: int) -> None:
    """About a third of the changes make a statement false: 977 of those of contractions with seed 1."""
    least = 6 if kind in SEARCHED else 8
    assert SWEEPS[kind].run(3000, seed=seed)[FALSE] >= least * LEAST_FALSE


@pytest.mark.parametrize("kind", ["softmax-attention", "linear-attention"])
def test_the_twin_is_rejected_with_the_proof_of_its_sibling(kind: str) -> None:
    sweep = SWEEPS[kind]
    for family, knobs in SEARCHED[kind]:
        robust, twin = drafts(family, 5, **knobs)
        base = statement_of(robust, margin=False)
        tally: Counter[str] = Counter()
        sweep.judge(base, replace(base, network=twin.network), tally)
        assert tally[FALSE] == 1


class Believer(CertificateKind):
    """Theorem. Everything is true."""

    name = "believer"
    proves = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        return Proven(Fraction(1, 10**9), None)


def believed() -> list[LabelStatement]:
    return [
        replace(base, truth=replace(base.truth, certificate=Certificate("believer")))
        for base in base_statements("convex-corners")
    ]


def test_a_kind_that_believes_everything_is_found_out() -> None:
    with pytest.raises(AssertionError, match="is false and was accepted"):
        Sweep(Believer(), believed, ReluOracle()).run(50, seed=0)


def test_an_oracle_without_an_opinion_finds_nothing_false() -> None:
    class Silent(Oracle):
        def is_true(self, instance: Instance, truth: Truth, *, margin: bool) -> None:
            return None

    tally = Sweep(Believer(), believed, Silent()).run(20, seed=0, least_false=1)
    assert tally[FALSE] == 0
    assert tally[ACCEPTED] > 0


def test_the_exact_oracle_judges_witnesses_too() -> None:
    base = base_statements("witness")[0]
    oracle = ReluOracle()
    assert oracle.is_true(base.instance, base.truth, margin=True)
    assert not oracle.is_true(base.instance, replace(base.truth, witness=()), margin=False)
