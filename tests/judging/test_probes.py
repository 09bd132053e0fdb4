from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import check
from dokimos.core.errors import InputError, InvalidProof
from dokimos.judging.checked_entry import check_entry
from dokimos.judging.probes import ANYTHING, FAMILY, make_probe, point_of, write_probes
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Instance, Label, LabelledInstance, Semantics
from dokimos.suites.suite_files import files_of, store_files, write_index
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.constructions.siblings import draw
from tests.scripting import at_least, relu_network


@pytest.mark.parametrize("boxes", [0, 1])
def test_a_probe_is_the_query_without_its_output_constraint(boxes: int) -> None:
    robust, _ = draw("disjuncts", boxes=boxes)
    probe = make_probe(robust.instance)
    asked, probed = (read_vnnlib(i.property_file, file="p") for i in (robust.instance, probe.instance))
    assert probe.instance.network_file == robust.instance.network_file
    assert {case.box for case in probed.cases} == {case.box for case in asked.cases}
    assert all(case.any_of == ANYTHING for case in probed.cases)
    for y in (Fraction(-7), Fraction(0), Fraction(1, 10**9)):
        assert any(all(one.holds((), (y,)) for one in part) for part in ANYTHING)
    assert (probed.input_size, probed.output_size) == (asked.input_size, asked.output_size)
    assert probe.truth is not None
    assert probe.truth.label is Label.SAT
    assert check(probe.instance, probe.truth).floats is not None
    assert probe.truth.claims[Semantics.FLOAT32].proven


def test_a_witness_outside_the_box_proves_no_probe() -> None:
    probe = make_probe(draw("disjuncts")[0].instance)
    assert probe.truth is not None
    assert probe.truth.witness is not None
    far = replace(probe.truth, witness=tuple(x + 9 for x in probe.truth.witness))
    with pytest.raises(InvalidProof, match="outside the box"):
        check(probe.instance, far)


numbers = st.fractions(min_value=-(10**6), max_value=10**6) | st.sampled_from(
    [Fraction(0), Fraction(1, 10), Fraction(2) ** -150, Fraction(2) ** 127, -(Fraction(10) ** 40)]
)


@settings(deadline=None)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=4))
def test_the_point_lies_in_the_box_and_in_float32_where_it_can(
    ends: list[tuple[Fraction, Fraction]],
) -> None:
    box = Box(tuple(min(pair) for pair in ends), tuple(max(pair) for pair in ends))
    point = point_of(box)
    assert point in box
    for low, x, high in zip(box.lower, point, box.upper, strict=True):
        near = Fraction(float(np.float32(float(low)))) if abs(low) < 2**127 else None
        if near is not None and low <= near <= high:
            assert Fraction(float(np.float32(float(x)))) == x


def test_what_has_no_probe_says_why(tmp_path: Path) -> None:
    robust, twin = draw("disjuncts")
    empty = at_least("1.5", low="1.0", high="0.0")
    odd = Instance("odd", relu_network(), empty)
    with pytest.raises(InputError, match="nothing unsafe"):
        make_probe(odd)
    (tmp_path / "suite").mkdir()
    for labelled in (robust, twin, LabelledInstance(odd, None)):
        store_files(tmp_path / "suite", files_of(labelled))
    names = [robust.instance.name, twin.instance.name, "odd"]
    write_index(tmp_path / "suite", [(n, "f") for n in names], 7.0, recipe={}, version="1")
    entries = read_suite(tmp_path / "suite").entries
    probes = write_probes(entries, tmp_path / "probes")
    assert [name for name, _ in probes.left_out] == ["odd"]
    assert probes.suite is not None
    assert len(probes.suite.entries) == 2
    for entry in probes.suite.entries:
        assert (entry.family, entry.timeout_seconds) == (FAMILY, 7.0)
        assert check_entry(entry).problem == ""
    table = tmp_path / "probes" / "instances.csv"
    before = table.stat().st_mtime_ns
    assert write_probes(entries, tmp_path / "probes").suite == probes.suite
    assert table.stat().st_mtime_ns == before
    probes.suite.entries[0].property_path.write_text("spoilt")
    restored = write_probes(entries, tmp_path / "probes").suite
    assert restored is not None
    assert [check_entry(entry).problem for entry in restored.entries] == ["", ""]
    assert write_probes(entries[2:], tmp_path / "none").suite is None


def test_probes_share_what_is_the_same(tmp_path: Path) -> None:
    robust, _ = draw("disjuncts")
    (tmp_path / "suite").mkdir()
    other = replace(robust.instance, name="other", property_file=robust.instance.property_file + b"\n")
    for labelled in (robust, LabelledInstance(other, None)):
        store_files(tmp_path / "suite", files_of(labelled))
    names = [(robust.instance.name, "f"), ("other", "f")]
    write_index(tmp_path / "suite", names, 7.0, recipe={}, version="1")
    probes = write_probes(read_suite(tmp_path / "suite").entries, tmp_path / "probes").suite
    assert probes is not None
    assert len(probes.entries) == 1
    assert json.loads((tmp_path / "probes" / "suite.json").read_text())["families"]
