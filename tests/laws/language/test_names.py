from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.laws.domain.definition import DOMAINS
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.syntax import LIBRARY, name_of
from dokimos.laws.law_sources import law_files

SHIPPED = sorted(LIBRARY.rglob("*.law"))


def test_every_shipped_domain_has_laws() -> None:
    assert {name_of(path).partition("/")[0] for path in SHIPPED} == set(DOMAINS.shipped)
    assert len({name_of(path) for path in SHIPPED}) == len(SHIPPED)


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_commands_take_the_name_that_they_print(path: Path) -> None:
    assert read_law(path).name == name_of(path)
    assert law_files(name_of(path)) == [path]


def test_a_law_of_the_user_is_called_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "library" / "compas" / "mine.law"
    assert name_of(path) == str(path)
    assert name_of(Path("compas/mine.law")) == "compas/mine.law"
