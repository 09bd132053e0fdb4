from __future__ import annotations

import pytest

from dokimos.constructions.recipes import parse_recipe, shipped_recipe, shipped_suites
from dokimos.errors import UnreadableFile


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
