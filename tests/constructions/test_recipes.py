from __future__ import annotations

import pytest

from dokimos.constructions.recipes import parse_recipe, shipped_recipe, with_seeds
from dokimos.core.errors import UnreadableFile
from dokimos.suites.folder import shipped_names


def test_every_shipped_recipe_can_be_read() -> None:
    assert "quick" in shipped_names()
    for name in shipped_names():
        recipe = shipped_recipe(name)
        assert recipe.about and recipe.draws


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("draw = ", "not valid TOML"),
        ("seed = 1", "has no draws"),
        ("sed = 1", "did you mean 'seed'"),
        ('[[draw]]\nfamily = "exclusive-pears"', "did you mean 'exclusive-pairs'"),
        ('[[draw]]\nfamily = "exclusive-pairs"\nknob = {}', "did you mean 'knobs'"),
        ('[[draw]]\nfamily = "exclusive-pairs"\ncount = 0', "at least 1"),
        ('[[draw]]\nfamily = "exclusive-pairs"\ncount = true', "wrong type"),
        ("[[draw]]\ncount = 1", "needs a family"),
        ('seed = -1\n[[draw]]\nfamily = "exclusive-pairs"', "at least 0"),
        ('timeout_seconds = -1\n[[draw]]\nfamily = "exclusive-pairs"', "a positive number of seconds"),
        ('timeout_seconds = inf\n[[draw]]\nfamily = "exclusive-pairs"', "a positive number of seconds"),
        ('timeout_seconds = nan\n[[draw]]\nfamily = "exclusive-pairs"', "a positive number of seconds"),
        ('[[draw]]\nfamily = "exclusive-pairs"\ncount = 1000000000000', "lower a count"),
        ('draw = ["exclusive-pairs"]', "draw 1: this must be a table"),
        ('include = ["nowhere"]', "it can include shipped suites, not 'nowhere'"),
        ("include = [1]", "it can include shipped suites, not '1'"),
        ('include = "specs"', "wrong type"),
    ],
)
def test_what_is_no_recipe_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        parse_recipe(text, file="x.toml")


def test_a_recipe_includes_the_draws_of_shipped_suites_after_its_own() -> None:
    text = 'include = ["specs", "scale"]\n[[draw]]\nfamily = "exact-radius"'
    first, *rest = parse_recipe(text, file="x.toml").draws
    assert first.family == "exact-radius"
    included = (with_seeds(shipped_recipe(name)).draws for name in ("specs", "scale"))
    assert rest == [draw for draws in included for draw in draws], "with the seeds that they have there"
    with pytest.raises(UnreadableFile, match="not 'quick'"):
        parse_recipe('include = ["quick"]', file="quick.toml")
    with pytest.raises(UnreadableFile, match="cannot include hidden"):
        parse_recipe('include = ["hidden"]', file="x.toml")


def test_what_several_suites_have_is_included_once_with_both_labels() -> None:
    both, one = (
        sum(len(shipped_recipe(name).draws) for name in names)
        for names in (("splits", "quick"), ("splits",))
    )
    included = parse_recipe('include = ["quick", "splits"]', file="x.toml").draws
    shared = [draw for draw in included if draw.family == "splits"]
    assert len(shared) == one and len(included) == both - 3
    assert {draw.labels for draw in shared} == {("unsat", "sat")}


def test_a_sweep_draws_every_combination() -> None:
    text = """
    [[draw]]
    family = "exclusive-pairs"
    count = 2
    labels = ["unsat"]
    knobs = { inputs = 20 }
    sweep = { pairs = [2, 4], gamma = [0.01, 0.001, 0.0001] }
    """
    recipe = parse_recipe(text, file="x.toml")
    assert recipe.size == 12
    assert {tuple(sorted(draw.knobs.items())) for draw in recipe.draws} == {
        (("gamma", gamma), ("inputs", 20), ("pairs", pairs))
        for pairs in (2, 4)
        for gamma in (0.01, 0.001, 0.0001)
    }


@pytest.mark.parametrize(
    "line",
    [
        "sweep = { pairs = [] }",
        "sweep = { pairs = 3 }",
        "knobs = { pairs = 3 }\nsweep = { pairs = [3] }",
        "labels = []",
        "labels = [[]]",
        'labels = ["sat", "sat"]',
        'labels = ["no"]',
    ],
)
def test_odd_sweeps_and_labels_are_refused(line: str) -> None:
    with pytest.raises(UnreadableFile, match="draw 1: "):
        parse_recipe(f'[[draw]]\nfamily = "exclusive-pairs"\n{line}', file="x.toml")


def test_another_seed_keeps_what_draws_share() -> None:
    recipe = parse_recipe(
        "seed = 5\n"
        '[[draw]]\nfamily = "exclusive-pairs"\nseed = 1\nknobs = { pairs = 2 }\n'
        '[[draw]]\nfamily = "exclusive-pairs"\nseed = 1\nknobs = { pairs = 3 }\n'
        '[[draw]]\nfamily = "exclusive-pairs"\nseed = 2\n'
        '[[draw]]\nfamily = "exclusive-pairs"\n',
        file="r.toml",
    )
    assert recipe.drawn_again(5) is recipe
    first, second, third, fourth = recipe.drawn_again(6).draws
    assert first.seed == second.seed
    assert len({first.seed, third.seed, 1, 2}) == 4
    assert fourth.seed is None
    assert recipe.drawn_again(6).seed == 6


def test_a_shipped_suite_from_another_seed_is_not_the_shipped_one() -> None:
    assert shipped_recipe("quick").name == "quick"
    assert shipped_recipe("quick").drawn_again(99).name == ""
