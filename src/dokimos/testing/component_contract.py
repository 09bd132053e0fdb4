"""The contract of every component of a difficulty profile."""

from __future__ import annotations

import math
from functools import cache
from typing import ClassVar

import pytest

from dokimos.difficulty.components.base import Component
from dokimos.difficulty.inspection import Inspection
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.profile_file import ProfileSettings
from dokimos.testing.files import question

#: Properties over [−1, 1]² by what is odd about them; the last has no margin.
QUESTIONS = {
    "one constraint": question([(-1, 1)] * 2, 2, "(<= Y_0 Y_1)"),
    "two cases": question([(-1, 1)] * 2, 2, "(or (and (<= Y_0 Y_1) (<= Y_0 0)) (and (>= Y_1 9)))"),
    "one point": question([(0, 0)] * 2, 2, "(<= Y_0 Y_1)"),
    "nothing unsafe": question([(1, -1)] * 2, 2, "(<= Y_0 Y_1)"),
}


class ComponentContract:
    """Derive a test class from this one, and list the components in `components`. It needs torch."""

    components: ClassVar[tuple[Component, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each component."""
        if "component" in metafunc.fixturenames:
            metafunc.parametrize("component", self.components, ids=lambda component: component.name)

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="torch is not installed")

    def test_a_component_states_its_definition(self, component: Component) -> None:
        """Its name is a key of the profile's file; its docstring is the formula."""
        assert isinstance(component, Component)
        assert component.name.isidentifier()
        assert component.symbol
        assert component.meaning
        assert component.meaning
        assert type(component).__doc__
        assert type(component).measure.__doc__

    @pytest.mark.parametrize("asked", sorted(QUESTIONS))
    def test_it_is_a_number_or_says_why_not(self, component: Component, asked: str) -> None:
        """The same each time; without a margin, no component that depends on it has a value."""
        seen = inspected(asked)
        found = component(seen)
        assert found == component(seen)
        assert found == component(_inspect(asked))
        if found.value is None:
            assert found.note
        else:
            assert math.isfinite(found.value)
        if component.of_margin and seen.no_margin is not None:
            assert found.value is None


def _inspect(asked: str) -> Inspection:
    network = ModelBuilder([2]).affine([[1, 2], [3, -1]], [0, 0.5]).relu().affine([[1, -1], [2, 1]], [1, 0])
    settings = ProfileSettings(samples=50)
    return Inspection(read_onnx(network.build(2)), read_vnnlib(QUESTIONS[asked], file=asked), settings)


@cache
def inspected(asked: str) -> Inspection:
    """A small ReLU network under inspection."""
    return _inspect(asked)
