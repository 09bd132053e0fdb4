"""Nothing false is accepted: thousands of small changes, each judged by an oracle of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import CERTIFICATES, check
from dokimos.core.errors import DokimosError, InvalidProof
from dokimos.suites.instance import Instance, Label, Semantics, Truth
from tests.checker import oracle
from tests.checker.files import repaired
from tests.checker.mutants import MUTATORS, Mutator, Statement, base_statements

KINDS = (
    "constant-on-box",
    "contraction",
    "convex-corners",
    "ordered-pairs",
    "relu-tree",
    "slopes-and-splits",
    "witness",
)
LEAST_FALSE = 100


def is_true(instance: Instance, truth: Truth, *, margin: bool) -> bool:
    """Whether the oracle agrees with the label, with its witness and, if asked, with its margin."""
    claimed = truth.claims[Semantics.REAL].margin or Fraction(0)
    if truth.label is Label.SAT:
        assert truth.witness is not None
        found = oracle.unsafe_by(instance.network_file, instance.property_file, truth.witness)
        return found is not None and (not margin or found >= claimed)
    wanted = claimed if margin else Fraction(0)
    return not oracle.is_sat(instance.network_file, instance.property_file, margin=wanted)


def accepted(instance: Instance, truth: Truth) -> bool:
    try:
        check(instance, truth)
    except DokimosError:
        return False
    return True


def sweep(kind: str, count: int, seed: int) -> Counter[str]:
    """Judge `count` mutants of one kind."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    bases = base_statements(kind)
    everything = [s for each in KINDS for s in base_statements(each)]
    tally: Counter[str] = Counter()
    for number in range(count):
        base = bases[rng.integers(len(bases))]
        mutant = MUTATORS[number % len(MUTATORS)](base, rng, everything)
        if rng.random() < 0.25:
            mutant = MUTATORS[rng.integers(len(MUTATORS))](mutant, rng, everything)
        judge(base, mutant, tally)
    return tally


def judge(base: Statement, mutant: Statement, tally: Counter[str]) -> None:
    instance = mutant.instance
    files = (base.instance.network_sha256, base.instance.property_sha256)
    if (instance.network_sha256, instance.property_sha256) != files:
        with pytest.raises(InvalidProof, match="sha256"):
            check(instance, mutant.truth)
        tally["refused by hash"] += 1
    truth = repaired(mutant.truth, instance)
    if accepted(instance, truth):
        assert is_true(instance, truth, margin=True), (mutant, "is false and was accepted")
        tally["true, accepted"] += 1
    elif is_true(instance, truth, margin=False):
        tally["true, or only its margin false, rejected"] += 1
    else:
        tally["false, rejected"] += 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_unchanged_statements_are_true_and_accepted(kind: str) -> None:
    for base in base_statements(kind):
        assert base.truth.certificate.kind == kind
        check(base.instance, base.truth)
        assert is_true(base.instance, base.truth, margin=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_margin_is_the_largest_that_holds(kind: str) -> None:
    """Convex corners and witnesses give exact margins; none may give more than the oracle allows."""
    for base in base_statements(kind)[:6]:
        proven = check(base.instance, base.truth).real
        claims = {Semantics.REAL: replace(base.truth.claims[Semantics.REAL], margin=proven)}
        assert is_true(base.instance, replace(base.truth, claims=claims), margin=True)
        if kind in ("convex-corners", "witness"):
            above = proven * (1 + Fraction(1, 2**40))
            claims = {Semantics.REAL: replace(base.truth.claims[Semantics.REAL], margin=above)}
            assert not is_true(base.instance, replace(base.truth, claims=claims), margin=True)


@pytest.mark.parametrize("kind", KINDS)
def test_false_mutants_are_rejected(kind: str) -> None:
    tally = sweep(kind, 352, seed=0)
    assert tally["false, rejected"] >= LEAST_FALSE, tally
    assert tally["true, accepted"] >= 10, tally
    assert tally["refused by hash"] >= LEAST_FALSE, tally


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(
    place=st.integers(0, 2**16),
    changes=st.lists(st.sampled_from(MUTATORS), min_size=1, max_size=3),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_change_that_can_be_thought_of_makes_it_accept_what_is_false(
    kind: str, place: int, changes: list[Mutator], seed: int
) -> None:
    """Which instance is changed, and how often and in which ways, is searched for and shrunk."""
    bases = base_statements(kind)
    base = mutant = bases[place % len(bases)]
    rng = np.random.default_rng(seed)
    for change in changes:
        mutant = change(mutant, rng, base_statements("convex-corners") + bases)
    judge(base, mutant, Counter())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_false_mutants_are_rejected(kind: str, seed: int) -> None:
    """About a third of the changes make a statement false: 977 of those of contractions with seed 1."""
    assert sweep(kind, 3000, seed=seed)["false, rejected"] >= 8 * LEAST_FALSE


def test_every_kind_is_swept_here_or_has_mutants_of_its_own() -> None:
    files = {
        path.stem.removeprefix("test_").replace("_", "-") for path in Path(__file__).parent.rglob("*.py")
    }
    own = files & set(CERTIFICATES)
    assert set(KINDS) | own == set(CERTIFICATES)
