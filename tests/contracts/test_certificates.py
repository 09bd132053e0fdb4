"""What every registered kind of proof must keep to."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dokimos.checker import CERTIFICATES, CertificateKind, Problem
from dokimos.core.errors import UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.instance import Label
from tests.checker.files import model, question

KINDS = tuple(CERTIFICATES)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_states_its_theorem(name: str) -> None:
    kind = CERTIFICATES[name]
    assert isinstance(kind, CertificateKind)
    assert kind.name == name
    assert kind.proves in Label
    assert "Theorem" in (type(kind).__doc__ or "")
    assert type(kind).prove.__doc__


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_refuses_data_that_it_does_not_know(name: str) -> None:
    network = model([("Relu", ["X"], "Y")], {}, [1, 1], [1, 1])
    asked = read_vnnlib(question([(0, 1)], 1, "(<= Y_0 -1)"), file="p")
    problem = Problem(read_onnx(network), asked, witness=(Fraction(0),))
    with pytest.raises(UnreadableFile):
        CERTIFICATES[name].prove(problem, {"unheard of": 1})


def test_each_label_has_a_kind() -> None:
    assert {CERTIFICATES[name].proves for name in KINDS} == set(Label)
