"""What is found where nothing is, and what is found where something is."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.difficulty.explain.rows import EXPLAINING
from dokimos_studies.veristress.interaction import PAIRS
from tests.studies.simulation import NULLS, Found, find


def many(kind: str, draws: int, *, seed: int = 11) -> list[Found]:
    rng = np.random.default_rng(seed)
    return [find(kind, rng) for _ in range(draws)]


def false_findings(kind: str, draws: int) -> tuple[float, float]:
    """In which share of draws a component is said to separate that does not, or a pair to interact."""
    found = many(kind, draws)
    # Where components act, those that go together with them separate, too: only pairs can be false.
    separating = [one for one in found if one.separating and kind != "additive"]
    interacting = [one for one in found if one.interacting]
    return len(separating) / draws, len(interacting) / draws


@pytest.mark.parametrize("kind", NULLS)
def test_little_is_found_where_nothing_is(kind: str) -> None:
    """A share of 5 % exceeds 14 of 100 draws in one of 10,000 seeds."""
    assert max(false_findings(kind, 100)) <= 0.14


def test_what_acts_is_found() -> None:
    assert sum("margin" in one.separating for one in many("separating", 40)) >= 26
    assert sum(PAIRS[0] in one.interacting for one in many("interacting", 40)) >= 26


@pytest.mark.slow
@pytest.mark.parametrize("kind", NULLS)
def test_at_most_seven_in_a_hundred_findings_are_false(kind: str) -> None:
    separating, interacting = false_findings(kind, 1000)
    print(f"\n{kind}: a component separates in {separating:.1%}, a pair interacts in {interacting:.1%}")
    assert separating <= 0.07
    assert interacting <= 0.07


@pytest.mark.slow
def test_four_in_five_effects_are_found() -> None:
    """One component over whose ranks log-odds rise by 2; one pair whose product counts 10."""
    separating = sum(EXPLAINING[0] in one.separating for one in many("separating", 1000))
    interacting = sum(PAIRS[0] in one.interacting for one in many("interacting", 1000))
    print(f"\nfound: the component in {separating / 1000:.1%}, the pair in {interacting / 1000:.1%}")
    assert separating >= 800
    assert interacting >= 800
