"""Registries with entry points: who provides what, and what a broken package costs."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.plugins import PluggableRegistry, Provider
from tests import plugins

GROUP = "dokimos.animals"
SOURCE = """
class Animal(dict):
    pass

class Cat(dict):
    pass

ready = dict(name="ready")
number = 5

def failing():
    raise RuntimeError("no food\\nsecond line")
"""


def registry() -> PluggableRegistry[dict]:
    return PluggableRegistry("animal", {"dog": "builtins:dict"}, group=GROUP, expects=dict)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def install(folder: Path, package: str, version: str, **points: str) -> None:
    named = {name: f"{package.replace('-', '_')}:{target}" for name, target in points.items()}
    plugins.install(folder, package, version, {GROUP: named}, source=SOURCE)


def test_packages_add_elements_that_are_loaded_when_asked_for(folder: Path) -> None:
    install(folder, "my-zoo", "1.2", cat="Cat", bear="ready")
    animals = registry()
    assert animals.shipped == ("dog",)
    assert list(animals) == ["dog", "bear", "cat"]
    assert "cat" in animals
    assert "my_zoo" not in sys.modules
    assert type(animals["cat"]).__name__ == "Cat"
    assert animals["bear"] == {"name": "ready"}
    assert animals["cat"] is animals["cat"]
    assert animals.shipped == ("dog",)
    assert animals.plugged_in == ("bear", "cat")


def test_an_element_says_who_provides_it(folder: Path) -> None:
    install(folder, "my-zoo", "1.2", cat="Cat")
    animals = registry()
    assert str(animals.provider("cat")) == "my-zoo 1.2"
    assert animals.provider("dog") == Provider("dokimos", __version__)
    with pytest.raises(InputError, match="Unknown animal 'caat'; did you mean 'cat'"):
        animals.provider("caat")
    with pytest.raises(InputError, match="Unknown animal 'caat'; did you mean 'cat'"):
        animals["caat"]
    with pytest.raises(InputError, match="registered twice"):
        animals.add("cat", {})


def test_a_shipped_name_stays_with_dokimos(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(folder, "my-zoo", "1.2", dog="Cat", cat="Cat")
    animals = registry()
    with caplog.at_level(logging.WARNING):
        assert list(animals) == ["dog", "cat"]
    assert type(animals["dog"]) is dict
    assert animals.provider("dog").package == "dokimos"
    (said,) = caplog.messages
    assert "'dog' of package my-zoo 1.2 is not used: dokimos" in said


def test_a_name_of_two_packages_belongs_to_neither(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(folder, "my-zoo", "1.2", cat="Cat")
    install(folder, "your-zoo", "0.3", cat="Cat", bear="Cat")
    animals = registry()
    with caplog.at_level(logging.WARNING):
        assert list(animals) == ["dog", "bear"]
    (said,) = caplog.messages
    assert "my-zoo 1.2 and your-zoo 0.3" in said


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("failing", "RuntimeError: no food"),
        ("number", "it is int, not a dict"),
        ("missing", "AttributeError: .*missing"),
    ],
)
def test_a_broken_element_is_one_sentence_and_costs_no_other(
    folder: Path, caplog: pytest.LogCaptureFixture, target: str, reason: str
) -> None:
    install(folder, "my-zoo", "1.2", cat="Cat", bear=target)
    animals = registry()
    with pytest.raises(
        InputError, match=rf"'bear' of package my-zoo 1.2 cannot be loaded \({reason}"
    ) as found:
        animals["bear"]
    assert "\n" not in str(found.value)
    with caplog.at_level(logging.WARNING):
        assert [name for name, _ in animals.items()] == ["dog", "cat"]
        assert animals.get("bear") is animals.get("no such animal") is None
    assert caplog.messages == [str(found.value)]
    assert type(animals.get("cat")).__name__ == "Cat"


def test_a_package_that_cannot_be_imported_is_one_sentence(folder: Path) -> None:
    plugins.install(folder, "my-zoo", "1.2", {GROUP: {"cat": "my_zoo:Cat"}}, source="import not_there")
    with pytest.raises(InputError, match="ModuleNotFoundError: No module named 'not_there'"):
        registry()["cat"]


def test_what_is_broken_in_dokimos_is_not_hidden() -> None:
    animals: PluggableRegistry[dict] = PluggableRegistry(
        "animal", {"dog": "dokimos.core.errors:NoSuchDog"}, group=GROUP, expects=dict
    )
    with pytest.raises(AttributeError):
        list(animals.items())


@pytest.mark.parametrize(
    ("module", "name", "group"),
    [
        ("dokimos.engine.attacks", "ATTACKS", "dokimos.engine.attacks"),
        ("dokimos.engine.outcome", "ALL_CERTIFICATES", "dokimos.certificates"),
        ("dokimos.constructions", "CONSTRUCTIONS", "dokimos.constructions"),
        ("dokimos.verifiers.catalogue", "VERIFIERS", "dokimos.verifiers"),
        ("dokimos.difficulty.components", "EXTRAS", "dokimos.components"),
        ("dokimos.laws.domain.definition", "DOMAINS", "dokimos.domains"),
        ("dokimos.judging.rules", "RULE_SETS", "dokimos.rules"),
        ("dokimos.reports.sections.base", "SECTIONS", "dokimos.sections"),
    ],
)
def test_every_door_has_its_group(module: str, name: str, group: str) -> None:
    from importlib import import_module

    found = getattr(import_module(module), name)
    assert isinstance(found, PluggableRegistry)
    assert found.group == group
    assert found.shipped
