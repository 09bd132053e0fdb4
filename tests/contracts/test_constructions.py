"""What every registered family must keep to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dokimos.checker import check
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.knobs import Knob, knobs_of
from dokimos.constructions.parts.hiding import SAMPLES, uniform_points, violations
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.replay import replay
from dokimos.properties.model import Property
from dokimos.properties.reading import read_vnnlib
from dokimos.properties.violation import violation_at
from dokimos.properties.writing import write_vnnlib1
from dokimos.suites.instance import Label, LabelledInstance, Semantics

FAMILIES = tuple(CONSTRUCTIONS)
#: The twin of a radius is a larger box for the same network; every other twin is another network.
TWINS_BY_BOX = {"exact-radius"}
#: Families whose twins are not hidden: samples find them.
OPEN = {"ops"}
#: Knobs that say how much work a draw may take, and not what it is.
BUDGETS = {("exact-radius", "budget")}
Twins = tuple[LabelledInstance, LabelledInstance]


@cache
def twins(family: str, seed: int = 0) -> Twins:
    return CONSTRUCTIONS[family](seed=seed)


def property_of(labelled: LabelledInstance) -> Property:
    return read_vnnlib(labelled.instance.property_file, file="property")


def tensors(labelled: LabelledInstance) -> dict[str, Any]:
    model = onnx.load_from_string(labelled.instance.network_file)
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def contents(pair: Twins) -> list[bytes]:
    return [part for half in pair for part in (half.instance.network_file, half.instance.property_file)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_bytes(family: str) -> None:
    first, again = twins(family), CONSTRUCTIONS[family](seed=0)
    assert first == again
    assert not set(contents(first)) & set(contents(twins(family, 1)))


@pytest.mark.parametrize("family", FAMILIES)
def test_both_labels_are_proven_for_both_semantics(family: str) -> None:
    for half, label in zip(twins(family), (Label.UNSAT, Label.SAT), strict=True):
        assert half.truth is not None
        assert half.truth.label is label
        proven = check(half.instance, half.truth)
        assert proven.float32 is not None
        assert 0 < proven.float32 <= proven.real
        for semantics in Semantics:
            claim = half.truth.claims[semantics]
            assert claim.proven
            assert claim.margin is not None
            assert claim.margin > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_twins_look_alike(family: str) -> None:
    robust, violated = twins(family)
    if family in TWINS_BY_BOX:
        assert robust.instance.network_file == violated.instance.network_file
        ours_asked, theirs_asked = property_of(robust), property_of(violated)
        assert ours_asked.networks == theirs_asked.networks
        assert [c.any_of for c in ours_asked.cases] == [c.any_of for c in theirs_asked.cases]
        return
    assert robust.instance.property_file == violated.instance.property_file
    assert len(robust.instance.network_file) == len(violated.instance.network_file)
    ours, theirs = tensors(robust), tensors(violated)
    assert {n: a.shape for n, a in ours.items()} == {n: a.shape for n, a in theirs.items()}
    assert 1 <= sum(int((ours[n] != theirs[n]).sum()) for n in ours) <= 4
    pairs = zip(robust.instance.network_file, violated.instance.network_file, strict=True)
    assert sum(a != b for a, b in pairs) <= 16


@pytest.mark.parametrize("family", FAMILIES)
def test_names_tell_nothing(family: str) -> None:
    """A name is the family and a hash; what the verifier gets never spells a label."""
    names = set()
    for half in (*twins(family), *twins(family, 1)):
        stem, _, digest = half.instance.name.rpartition("-")
        assert stem == family
        int(digest, 16)
        names.add(half.instance.name)
        for content in (half.instance.network_file, half.instance.property_file):
            assert b"sat" not in content
            assert b"twin" not in content
    assert len(names) == 4
    robust, violated = twins(family)
    emptied = {"name": "", "network_file": b""}
    if family in TWINS_BY_BOX:
        emptied["property_file"] = b""
    assert replace(robust.instance, **emptied) == replace(violated.instance, **emptied)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_witness_is_inside_and_clear(family: str, seed: int) -> None:
    _, violated = twins(family, seed)
    asked = property_of(violated)
    (case,) = asked.cases
    assert violated.truth is not None
    witness = violated.truth.witness
    assert witness is not None
    for x, low, high in zip(witness, case.box.lower, case.box.upper, strict=True):
        assert low < x < high
    rng = np.random.default_rng(99)
    outputs = replay(violated.instance.network_file, uniform_points(case.box, SAMPLES, rng))
    assert CONSTRUCTIONS[family].hidden is (family not in OPEN)
    assert bool(violations(outputs, asked).any()) is (family in OPEN)
    found = violation_at(read_onnx(violated.instance.network_file), asked, witness)
    assert found.violates
    assert found.margin_lower is not None
    assert float(found.margin_lower) >= 1e-3 * float(np.abs(outputs).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_robust_half_is_not_violated_at_samples(family: str) -> None:
    robust, _ = twins(family)
    asked = property_of(robust)
    points = uniform_points(asked.cases[0].box, SAMPLES, np.random.default_rng(7))
    assert not violations(replay(robust.instance.network_file, points), asked).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_are_exact_in_float32(family: str) -> None:
    for half in twins(family):
        for array in tensors(half).values():
            assert array.dtype in (np.float32, np.int64)  # integers are axes and shapes
        asked = property_of(half)
        numbers = [n for case in asked.cases for n in (*case.box.lower, *case.box.upper)]
        assert half.truth is not None
        for number in [*numbers, *(half.truth.witness or ())]:
            assert Fraction(float(np.float32(float(number)))) == number
        assert write_vnnlib1(asked).encode() == half.instance.property_file


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


ALL_KNOBS = [(f, k.name) for f in FAMILIES for k in knobs_of(CONSTRUCTIONS[f].knobs_class)]


@pytest.mark.parametrize(("family", "name"), ALL_KNOBS)
def test_every_knob_is_alive(family: str, name: str) -> None:
    (knob,) = (k for k in knobs_of(CONSTRUCTIONS[family].knobs_class) if k.name == name)
    assert knob.help
    assert knob.default in knob.options or knob.least <= knob.default <= knob.most
    for value in changed_values(knob):
        try:
            changed = CONSTRUCTIONS[family](seed=0, **{name: value})
        except ConstructionFailed:
            continue
        pairs = list(zip(twins(family), changed, strict=True))
        assert all(after.instance.parameters[name] == value for _, after in pairs)
        differs = [before.instance.name != after.instance.name for before, after in pairs]
        assert all(differs) or (family in TWINS_BY_BOX and any(differs)) or (family, name) in BUDGETS
        return
    pytest.fail("no other value of this knob gives an instance")


@pytest.mark.parametrize("family", FAMILIES)
def test_other_knobs_are_refused_with_a_hint(family: str) -> None:
    construction = CONSTRUCTIONS[family]
    for knob in knobs_of(construction.knobs_class):
        with pytest.raises(InputError, match=f"did you mean '{knob.name}'"):
            construction(seed=0, **{knob.name + "s": 1})
        for value in (knob.least - 1, knob.most + 1, float("nan"), float("inf"), "x", None, True, "", [1]):
            with pytest.raises(InputError, match=knob.name):
                construction(seed=0, **{knob.name: value})
        if knob.options:
            with pytest.raises(InputError, match=f"did you mean '{knob.default}'"):
                construction(seed=0, **{knob.name: f"{knob.default}s"})
        elif knob.is_integer:
            with pytest.raises(InputError, match="whole number"):
                construction(seed=0, **{knob.name: knob.default + 0.5})


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_seeds_are_whole_numbers(seed: Any) -> None:
    with pytest.raises(InputError, match="seed"):
        CONSTRUCTIONS[FAMILIES[0]](seed=seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_knobs_may_be_spelt_as_text(family: str) -> None:
    spelt = {k.name: str(k.default) for k in knobs_of(CONSTRUCTIONS[family].knobs_class)}
    assert contents(CONSTRUCTIONS[family](seed=0, **spelt)) == contents(twins(family))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_explains_itself(family: str) -> None:
    construction = CONSTRUCTIONS[family]
    assert construction.family == family
    assert construction.summary
    assert type(construction).__doc__


def test_margins_follow_their_knobs() -> None:
    for family, knob, values in (
        ("exclusive-pairs", "gamma", (0.001, 0.0005)),
        ("convex-corners", "margin", (0.02, 0.01)),
        ("paired-bias", "margin", (0.01, 0.005)),
    ):
        margins = []
        for value in values:
            robust, _ = CONSTRUCTIONS[family](seed=0, **{knob: value})
            assert robust.truth is not None
            margins.append(robust.truth.claims[Semantics.REAL].margin)
        assert margins[0] is not None
        assert margins[1] is not None
        assert margins[0] > margins[1] > margins[0] / 3
