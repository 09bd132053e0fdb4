from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.constructions.recipes import (
    draw_instances,
    find_suite,
    generate_suite,
    parse_recipe,
    shipped_recipe,
    shipped_suites,
)
from dokimos.errors import InputError, UnreadableFile
from dokimos.instances.model import Label

TINY = """
about = "tiny"
seed = 5
timeout_seconds = 3
[[draw]]
family = "exclusive-pairs"
count = 2
knobs = { inputs = 20, pairs = 2 }
"""


def test_a_recipe_is_drawn_the_same_way_twice() -> None:
    recipe = parse_recipe(TINY, file="tiny.toml")
    first, second = draw_instances(recipe), draw_instances(recipe)
    assert [i.instance for i in first] == [i.instance for i in second]
    assert sorted(i.truth.label.value for i in first if i.truth) == ["sat", "sat", "unsat", "unsat"]
    assert {i.instance.timeout_seconds for i in first} == {3}


def test_the_order_says_nothing_about_the_label() -> None:
    recipe = parse_recipe(TINY.replace("count = 2", "count = 8"), file="tiny.toml")
    labels = [i.truth.label for i in draw_instances(recipe) if i.truth]
    assert labels not in ([Label.UNSAT, Label.SAT] * 8, [Label.SAT, Label.UNSAT] * 8)
    assert labels != sorted(labels, key=lambda label: label.value)


def test_every_shipped_recipe_can_be_read() -> None:
    assert "quick" in shipped_suites()
    for name, about in shipped_suites().items():
        assert about
        assert shipped_recipe(name).draws


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("draw = ", "not valid TOML"),
        ("seed = 1", "draws nothing"),
        ("sed = 1", "did you mean 'seed'"),
        ('[[draw]]\nfamily = "exclusive-pears"', "did you mean 'exclusive-pairs'"),
        ('[[draw]]\nfamily = "exclusive-pairs"\nknob = {}', "did you mean 'knobs'"),
        ('[[draw]]\nfamily = "exclusive-pairs"\ncount = 0', "at least 1"),
        ('[[draw]]\nfamily = "exclusive-pairs"\ncount = true', "wrong type"),
        ("[[draw]]\ncount = 1", "needs a family"),
    ],
)
def test_what_is_no_recipe_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnreadableFile, match=said):
        parse_recipe(text, file="x.toml")


def test_a_misspelt_knob_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    recipe = parse_recipe(TINY.replace("pairs = 2", "pear = 2"), file="tiny.toml")
    with pytest.raises(InputError, match="did you mean 'pairs'"):
        generate_suite(recipe, tmp_path / "suite")
    assert list(tmp_path.iterdir()) == []


def test_an_incomplete_suite_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    recipe = parse_recipe(TINY, file="tiny.toml")
    suite = generate_suite(recipe, tmp_path / "suite")
    suite.entries[0].truth_path.unlink()
    with pytest.raises(InputError, match="holds something else"):
        generate_suite(recipe, tmp_path / "suite")


def test_a_drawing_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate_suite(parse_recipe(TINY, file="tiny.toml"), tmp_path / "suite", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_shipped_suite_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    made: list[object] = []
    first = find_suite("quick", progress=made.append)
    count = len(made)
    assert count == len(first.entries)
    assert find_suite("quick", progress=made.append) == first
    assert len(made) == count
