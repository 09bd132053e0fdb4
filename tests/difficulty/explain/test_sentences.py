from __future__ import annotations

from dataclasses import replace

from dokimos.difficulty.components import meaning, symbol
from dokimos.difficulty.explain.explanation import (
    family_by_family,
    missing_in_words,
    separation_in_words,
    unique_results_in_words,
    which_separates,
)
from dokimos.difficulty.explain.rows import (
    EXPLAINING,
    FamilySeparation,
    MissingProfiles,
    Separation,
    Status,
    Uniqueness,
    UniqueResult,
)
from dokimos.suites.facts import COMPONENTS

GOOD = Separation(
    subject="v",
    component="unstable",
    auc=0.9,
    low=0.8,
    high=0.97,
    p_value=0.0005,
    families=4,
    without_low=0.85,
    without_high=0.93,
    pooled_auc=0.7,
    solved=20,
    timeouts=10,
    left_out=0,
    by_family=(
        FamilySeparation(family="pairs", auc=0.8, timeouts=3, solved=4, networks=7),
        FamilySeparation(family="easy", auc=None, timeouts=0, solved=4, networks=4),
    ),
)
CHANCE = replace(GOOD, component="margin", auc=0.45, low=0.3, high=0.6, p_value=0.4)
LOWER = replace(GOOD, component="margin", auc=0.2, low=0.1, high=0.35)
FEW = replace(GOOD, auc=None, low=None, high=None, p_value=None, note="not enough data: no profiles")


def test_every_component_has_a_name() -> None:
    assert [symbol(name) for name in COMPONENTS] == ["M̂_min", "G_IBP", "U", "A_τ", "d_eff"]
    assert [symbol(name) for name in EXPLAINING[len(COMPONENTS) :]] == ["M_attacked", "G_CROWN", "M_proven"]
    assert len({meaning(name) for name in EXPLAINING}) == len(EXPLAINING)


def test_what_separates_is_said_with_its_direction_and_its_limits() -> None:
    assert which_separates([CHANCE, GOOD]) == (
        "Within families, U (share of unstable units) separates its timeouts best: timeouts have higher "
        "values (AUC 0.90, 95 % interval 0.80 to 0.97, p = 0.0005; 0.85 to 0.93 with any one family left "
        "out). This is claimed for the 4 families that have both outcomes, at a joint level of 5 % for all "
        "components; nothing is claimed for other families."
    )
    assert "So does M̂_min (lower, 0.20)." in which_separates([LOWER, GOOD])


def test_the_best_component_is_told_family_by_family() -> None:
    assert family_by_family([CHANCE, GOOD]) == [
        "AUC of U in each family: pairs 0.80 (3 timed out, 4 solved); 1 without both outcomes."
    ]
    assert family_by_family([CHANCE]) == []


def test_what_does_not_separate_is_said_too() -> None:
    assert which_separates([CHANCE]).startswith("No component is found to separate its timeouts")
    assert "not enough data: no profiles" in which_separates([FEW])


def test_complete_separation_that_may_be_chance_is_not_claimed() -> None:
    complete = replace(GOOD, auc=1.0, note="complete separation: resampling gives no interval")
    assert separation_in_words(complete).startswith("every timeout has a higher value")
    assert separation_in_words(replace(complete, p_value=0.2)) == "could be chance"


def test_standing_alone_is_counted_by_family() -> None:
    one = UniqueResult(
        subject="v",
        lone=Uniqueness.SOLVED,
        suite="s",
        instance="i",
        family="pairs",
        status=Status.SOLVED,
        seconds=1.0,
        others=2,
    )
    failed = replace(one, lone=Uniqueness.FAILED, status=Status.WRONG)
    assert unique_results_in_words([one, one, failed]) == [
        "It is the only one to solve 2 instances: 2 of pairs.",
        "It is the only one to fail 1 instance: 1 of pairs (wrong).",
    ]
    assert unique_results_in_words([]) == []


def test_what_is_missing_comes_with_its_remedy() -> None:
    row = MissingProfiles("quick", "there is no profile", ("a", "b"), "dokimos profile quick")
    assert "quick: both of its instances are left out" in missing_in_words(row, 2)
    assert "2 of its 9 instances are left out" in missing_in_words(row, 9)
    assert "because there is no profile; run `dokimos profile quick`." in missing_in_words(row, 9)
    one = replace(row, instances=("a",))
    assert "its only instance is left out" in missing_in_words(one, 1)
    assert "1 of its 9 instances is left out" in missing_in_words(one, 9)
    many = replace(row, instances=tuple("abc"))
    assert "all of its 3 instances are left out" in missing_in_words(many, 3)
