"""The contract of every family of instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker.check import check
from dokimos.constructions.base import Construction
from dokimos.constructions.draft import SAMPLES, Knob, knobs_of, uniform_points, violations
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.engine.outcome import ALL_CERTIFICATES
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Label, LabelledInstance, Semantics
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import write_vnnlib1

AnyConstruction = Construction[Any]
Twins = tuple[LabelledInstance, LabelledInstance]


class ConstructionContract:
    """Derive a test class from this one, and list the families in `constructions`.

    Kinds of proof that installed plug-ins add are trusted here.
    """

    constructions: ClassVar[tuple[AnyConstruction, ...]] = ()
    #: Names of families whose twin has another box for the same network, not another network.
    twins_by_box: ClassVar[frozenset[str]] = frozenset()
    #: Names of families whose twin has another number in its property, and the same network.
    twins_by_number: ClassVar[frozenset[str]] = frozenset()
    #: Families whose twin differs in more than the usual four numbers, and the most by which it may.
    most_changed: ClassVar[Mapping[str, int]] = MappingProxyType({})
    #: Families and knobs that limit the work of a draw, but do not change the instance.
    budgets: ClassVar[frozenset[tuple[str, str]]] = frozenset()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each family; or for each of its knobs."""
        if "knob" in metafunc.fixturenames:
            pairs = [(c, knob) for c in self.constructions for knob in knobs_of(c.knobs_class)]
            names = [f"{c.family}-{knob.name}" for c, knob in pairs]
            metafunc.parametrize(("construction", "knob"), pairs, ids=names)
        elif "construction" in metafunc.fixturenames:
            metafunc.parametrize("construction", self.constructions, ids=lambda c: c.family)

    def test_the_same_seed_gives_the_same_bytes(self, construction: AnyConstruction) -> None:
        """Every random choice comes from the generator that is passed."""
        first, again = twins(construction), drawn_from_text(construction)
        assert first == again
        assert not set(contents(first)) & set(contents(twins(construction, 1)))

    def test_both_labels_are_proven_for_both_semantics(self, construction: AnyConstruction) -> None:
        """With the default knobs; others may leave float32 unproven."""
        for half, label in zip(twins(construction), (Label.UNSAT, Label.SAT), strict=True):
            assert half.truth is not None
            assert half.truth.label is label
            proven = check(half.instance, half.truth, kinds=ALL_CERTIFICATES)
            assert proven.floats is not None
            assert 0 < proven.floats <= proven.real
            for semantics in (Semantics.REAL, Semantics.FLOAT32):
                claim = half.truth.claims[semantics]
                assert claim.proven
                assert claim.margin is not None
                assert claim.margin > 0

    def test_a_robust_instance_alone_is_proven(self, construction: AnyConstruction) -> None:
        """Without its twin, it may be another one; the same seed gives the same bytes then, too."""
        alone, again = (
            construction.draw(
                seed=0, timeout_seconds=60, disguise=(), with_twin=False, knobs={}, plugin_proofs=True
            ).instances
            for _ in range(2)
        )
        assert alone == again
        assert [one.truth.label for one in alone if one.truth is not None] == [Label.UNSAT]

    def test_twins_look_alike(self, construction: AnyConstruction) -> None:
        """Same shape, same size, one small change: at most four numbers."""
        robust, violated = twins(construction)
        if construction.family in self.twins_by_box:
            assert robust.instance.network_file == violated.instance.network_file
            ours_asked, theirs_asked = property_of(robust), property_of(violated)
            assert ours_asked.networks == theirs_asked.networks
            assert [c.any_of for c in ours_asked.cases] == [c.any_of for c in theirs_asked.cases]
            return
        if construction.family in self.twins_by_number:
            assert robust.instance.network_file == violated.instance.network_file
            words = [
                half.instance.property_file.replace(b")", b" )").split() for half in (robust, violated)
            ]
            assert sum(one != other for one, other in zip(*words, strict=True)) == 1
            return
        assert robust.instance.property_file == violated.instance.property_file
        assert len(robust.instance.network_file) == len(violated.instance.network_file)
        ours, theirs = tensors(robust), tensors(violated)
        assert {n: a.shape for n, a in ours.items()} == {n: a.shape for n, a in theirs.items()}
        changed = sum(int((ours[n] != theirs[n]).sum()) for n in ours)
        assert 1 <= changed <= self.most_changed.get(construction.family, 4)
        pairs = zip(robust.instance.network_file, violated.instance.network_file, strict=True)
        assert sum(a != b for a, b in pairs) <= 16

    def test_names_tell_nothing(self, construction: AnyConstruction) -> None:
        """A name is the family and a hash; what the verifier gets never contains a label."""
        names = set()
        for half in (*twins(construction), *twins(construction, 1)):
            stem, _, digest = half.instance.name.rpartition("-")
            assert stem == construction.family
            int(digest, 16)
            names.add(half.instance.name)
            for content in (half.instance.network_file, half.instance.property_file):
                assert b"sat" not in content
                assert b"twin" not in content
        assert len(names) == 4
        robust, violated = (replace(h.instance, name="", network_file=b"") for h in twins(construction))
        if construction.family in self.twins_by_box | self.twins_by_number:
            robust, violated = (replace(one, property_file=b"") for one in (robust, violated))
        assert robust == violated

    @pytest.mark.parametrize("seed", [0, 1])
    def test_the_witness_is_inside_and_clear(self, construction: AnyConstruction, seed: int) -> None:
        """It lies strictly inside the box and violates clearly; samples find it only in open families."""
        _, violated = twins(construction, seed)
        asked = property_of(violated)
        (case,) = asked.cases
        assert violated.truth is not None
        witness = violated.truth.witness
        assert witness is not None
        for x, low, high in zip(witness, case.box.lower, case.box.upper, strict=True):
            assert low < x < high
        rng = np.random.default_rng(99)
        outputs = replay(violated.instance.network_file, uniform_points(case.box, SAMPLES, rng))
        assert bool(violations(outputs, asked).any()) is not construction.hidden
        found = violation_at(read_onnx(violated.instance.network_file), asked, witness)
        assert found.violates
        assert found.margin_lower is not None
        assert float(found.margin_lower) >= 1e-3 * float(np.abs(outputs).max())

    def test_the_robust_half_is_not_violated_at_samples(self, construction: AnyConstruction) -> None:
        """As onnxruntime computes it."""
        robust, _ = twins(construction)
        asked = property_of(robust)
        points = uniform_points(asked.cases[0].box, SAMPLES, np.random.default_rng(7))
        assert not violations(replay(robust.instance.network_file, points), asked).any()

    def test_numbers_are_exact_in_float32(self, construction: AnyConstruction) -> None:
        """Weights, bounds and witnesses are float32 numbers; and the property is written as we write it."""
        for half in twins(construction):
            for array in tensors(half).values():
                assert (
                    array.dtype == np.float32 or array.dtype.kind in "iu"
                )  # axes, shapes, quantised numbers
            asked = property_of(half)
            numbers = [n for case in asked.cases for n in (*case.box.lower, *case.box.upper)]
            assert half.truth is not None
            for number in [*numbers, *(half.truth.witness or ())]:
                assert Fraction(float(np.float32(float(number)))) == number
            if construction.family not in self.twins_by_number:  # written in another way
                assert write_vnnlib1(asked).encode() == half.instance.property_file

    def test_every_knob_is_alive(self, construction: AnyConstruction, knob: Knob) -> None:
        """Some other value gives other instances."""
        assert knob.help
        assert knob.default in knob.options or knob.least <= knob.default <= knob.most
        for value in changed_values(knob):
            try:
                changed = draw(construction, 0, **{knob.name: value})
            except ConstructionFailed:
                continue
            pairs = list(zip(twins(construction), changed, strict=True))
            assert all(after.instance.parameters[knob.name] == value for _, after in pairs)
            differs = [before.instance.name != after.instance.name for before, after in pairs]
            by_box = construction.family in self.twins_by_box and any(differs)
            assert all(differs) or by_box or (construction.family, knob.name) in self.budgets
            return
        pytest.fail("no other value of this knob gives an instance")

    def test_other_knobs_are_refused_with_a_hint(self, construction: AnyConstruction) -> None:
        """Names that do not exist, and values out of range or of another type."""
        for knob in knobs_of(construction.knobs_class):
            with pytest.raises(InputError, match=f"did you mean '{knob.name}'"):
                draw(construction, 0, **{knob.name + "s": 1})
            odd = (knob.least - 1, knob.most + 1, float("nan"), float("inf"), "x", None, True, "", [1])
            for value in odd:
                with pytest.raises(InputError, match=knob.name):
                    draw(construction, 0, **{knob.name: value})
            if knob.options:
                with pytest.raises(InputError, match=f"did you mean '{knob.default}'"):
                    draw(construction, 0, **{knob.name: f"{knob.default}s"})
            elif knob.is_integer:
                with pytest.raises(InputError, match="whole number"):
                    draw(construction, 0, **{knob.name: knob.default + 0.5})

    def test_knobs_may_be_given_as_text(self, construction: AnyConstruction) -> None:
        """As the command line does."""
        assert contents(drawn_from_text(construction)) == contents(twins(construction))

    def test_a_family_explains_itself(self, construction: AnyConstruction) -> None:
        """It has a name, a summary for `dokimos families`, and a docstring."""
        assert construction.family
        assert construction.summary
        assert type(construction).__doc__


def draw(construction: AnyConstruction, seed: int, **knobs: Any) -> Twins:
    """One pair of siblings."""
    drawn = construction.draw(
        seed=seed, timeout_seconds=60.0, disguise=(), with_twin=True, knobs=knobs, plugin_proofs=True
    )
    robust, violated = drawn.instances
    return robust, violated


@cache
def twins(construction: AnyConstruction, seed: int = 0) -> Twins:
    """The same with default knobs, drawn once."""
    return draw(construction, seed)


@cache
def drawn_from_text(construction: AnyConstruction) -> Twins:
    """The same again, with the value of every knob given as text."""
    return draw(construction, 0, **{k.name: str(k.default) for k in knobs_of(construction.knobs_class)})


def property_of(labelled: LabelledInstance) -> Property:
    """The property, read from its file."""
    return read_vnnlib(labelled.instance.property_file, file="property")


def tensors(labelled: LabelledInstance) -> dict[str, Any]:
    """The constant tensors of the network, by name."""
    model = onnx.load_from_string(labelled.instance.network_file)
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def contents(pair: Twins) -> list[bytes]:
    """The files of both siblings."""
    return [part for half in pair for part in (half.instance.network_file, half.instance.property_file)]


def changed_values(knob: Knob) -> Iterator[float | str]:
    """Values that differ from the default, the likeliest to be usable first."""
    if knob.options:
        yield from (option for option in knob.options if option != knob.default)
        return
    factors = (0.5, 1.5, 2.0, 0.75, 0.9, 1.1)
    candidates = [knob.default * f for f in factors] + [knob.default + 1, knob.default - 1, -knob.default]
    for value in candidates:
        number = round(value) if knob.is_integer else value
        if knob.least <= number <= knob.most and number != knob.default:
            yield number
