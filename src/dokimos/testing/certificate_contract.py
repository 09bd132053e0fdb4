"""The contract of every kind of proof: above all, it must never prove what is false."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import pytest

from dokimos.checker.base import CertificateKind, Problem
from dokimos.checker.check import check, prove
from dokimos.core.errors import UnreadableFile
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.instance import Label
from dokimos.testing.files import question
from dokimos.testing.sweeps import ACCEPTED, FALSE, HASH, Sweep, with_margin

#: The least number of mutants that each kind is tried with.
MUTANTS = 352
#: How many of them must be false and rejected; and how many accepted, so that rejecting means something.
LEAST_FALSE, LEAST_ACCEPTED = 100, 30


class CertificateContract:
    """Derive a test class from this one, and give one `Sweep` for each kind of proof in `sweeps`."""

    sweeps: ClassVar[tuple[Sweep, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each kind."""
        if "sweep" in metafunc.fixturenames:
            metafunc.parametrize("sweep", self.sweeps, ids=lambda sweep: sweep.kind.name)

    def test_a_kind_states_its_theorem(self, sweep: Sweep) -> None:
        """In its docstring."""
        assert isinstance(sweep.kind, CertificateKind)
        assert sweep.kind.proves in Label
        assert "Theorem" in (type(sweep.kind).__doc__ or "")
        assert type(sweep.kind).prove.__doc__

    def test_a_kind_refuses_data_that_it_does_not_know(self, sweep: Sweep) -> None:
        """As unreadable, which is not the same as invalid."""
        network = read_onnx(ModelBuilder([1]).relu().build(1))
        asked = read_vnnlib(question([(0, 1)], 1, "(<= Y_0 -1)"), file="p")
        with pytest.raises(UnreadableFile):
            sweep.kind.prove(Problem(network, asked, witness=(Fraction(0),)), {"unheard of": 1})

    def test_the_unchanged_statements_are_true_and_accepted(self, sweep: Sweep) -> None:
        """And a margin that is proven is true as well."""
        assert sweep.statements()
        for base in sweep.statements():
            assert base.truth.certificate.kind == sweep.kind.name
            assert base.truth.label is sweep.kind.proves
            instance, truth = base.instance, base.truth
            assert check(instance, truth, kinds=sweep.kinds).float32 is None  # as nothing is claimed there
            proven = prove(instance, truth.certificate, truth.label, truth.witness, kinds=sweep.kinds)
            assert sweep.oracle.is_true(instance, with_margin(truth, proven.real), margin=True) is not False
            assert proven.float32 is None or proven.float32 <= proven.real

    def test_false_mutants_are_rejected(self, sweep: Sweep) -> None:
        """Hundreds of small changes: no false statement is accepted."""
        tally = sweep.run(MUTANTS, seed=0, least_false=LEAST_FALSE)
        assert tally[FALSE] >= LEAST_FALSE, tally
        assert tally[ACCEPTED] >= LEAST_ACCEPTED, tally
        assert tally[HASH] >= LEAST_FALSE, tally
