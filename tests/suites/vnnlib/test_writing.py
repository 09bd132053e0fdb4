import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings

from dokimos.core.errors import InputError
from dokimos.suites.entry import read_vnnlib_file
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from dokimos.suites.vnnlib.reader import parse_vnnlib
from dokimos.suites.vnnlib.writer import Version, write_vnnlib1, write_vnnlib2, write_vnnlib_file
from tests.shared import SHARED
from tests.suites.vnnlib.strategies import flat_properties, tensor_properties

F = Fraction
ONE = Box((F(0),), (F(1),))
PLAIN = Signature("f", "X", (1,), "Y", (2,))
LESS = Linear((), ((0, F(1)), (1, F(-1))), F(0))
AT_LEAST = Linear((), ((0, F(-1)),), F(-1, 2))


def one_case(*any_of: tuple[Linear, ...], box: Box = ONE) -> Property:
    return Property((PLAIN,), (Case(box, any_of),))


@settings(deadline=None, max_examples=60)
@given(flat_properties())
def test_vnnlib1_says_what_it_was_given(property: Property) -> None:
    text = write_vnnlib1(property)
    assert parse_vnnlib(text) == property
    assert not re.search(r"[^<>]=|[0-9][eE]|<[^=]|>[^=]", text)


@settings(deadline=None, max_examples=60)
@given(tensor_properties())
def test_vnnlib2_says_what_it_was_given(property: Property) -> None:
    vnnlib = pytest.importorskip("vnnlib", reason="the standard's own parser is not installed")
    text = write_vnnlib2(property, comment="one\ntwo")
    assert parse_vnnlib(text) == property
    query = vnnlib.parse_query_string(text)
    assert [network.name for network in query.networks] == [n.name for n in property.networks]


def test_vnnlib1_in_full() -> None:
    box = Box((F(-1, 4),), (F(3),))
    assert write_vnnlib1(one_case((LESS,), (AT_LEAST, LESS), box=box), comment="a\nb") == (
        "; a\n; b\n(declare-const X_0 Real)\n(declare-const Y_0 Real)\n(declare-const Y_1 Real)\n"
        "(assert (>= X_0 -0.25))\n(assert (<= X_0 3.0))\n"
        "(assert (or\n    (and (<= Y_0 Y_1))\n    (and (>= Y_0 0.5) (<= Y_0 Y_1))\n))\n"
    )


def test_sums_have_no_factors_where_they_need_none() -> None:
    """Marabou reads sums of outputs, but no factors."""
    least = Linear((), ((0, F(-1)), (1, F(-1))), F(-1, 2))
    text = write_vnnlib1(one_case((least,)))
    assert text.endswith("(assert (>= (+ Y_0 Y_1) 0.5))\n")
    assert parse_vnnlib(text) == one_case((least,))


def test_vnnlib2_in_full() -> None:
    strict = Linear(((0, F(2)),), ((0, F(-1)),), F(1), True)
    text = write_vnnlib2(one_case((strict, LESS)), element_type="float32")
    assert text == (
        "(vnnlib-version <2.0>)\n(declare-network f\n    (declare-input X float32 [1])\n"
        "    (declare-output Y float32 [2])\n)\n(assert (>= X[0] 0.0))\n(assert (<= X[0] 1.0))\n"
        "(assert (< (+ (* 2.0 X[0]) (* -1.0 Y[0])) 1.0))\n(assert (<= Y[0] Y[1]))\n"
    )


def test_cases_carry_the_bounds_in_which_they_differ() -> None:
    cases = tuple(Case(Box((F(0), F(k)), (F(1), F(k + 1))), ((LESS,),)) for k in range(2))
    property = Property((Signature("f", "X", (2,), "Y", (2,)),), cases)
    lines = write_vnnlib1(property).splitlines()[4:]
    assert lines == [
        "(assert (>= X_0 0.0))",
        "(assert (<= X_0 1.0))",
        "(assert (or",
        "    (and (>= X_1 0.0) (<= X_1 1.0) (<= Y_0 Y_1))",
        "    (and (>= X_1 1.0) (<= X_1 2.0) (<= Y_0 Y_1))",
        "))",
    ]


@pytest.mark.parametrize(
    ("property", "reason"),
    [
        (one_case((Linear((), ((0, F(1)),), F(0), True),)), "no strict comparison"),
        (Property((PLAIN, PLAIN), ()), "only one network"),
        (one_case((Linear((), ((0, F(1, 3)),), F(0)),)), "1/3 has no finite decimal expansion"),
        (one_case(), "calls nothing unsafe"),
        (Property((PLAIN,), ()), "calls nothing unsafe"),
    ],
)
def test_vnnlib1_refuses_what_it_cannot_say(property: Property, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        write_vnnlib1(property)


@pytest.mark.parametrize(
    ("signature", "reason"),
    [
        (Signature("f-1", "X", (1,), "Y", (2,)), "'f-1' is not a name"),
        (Signature("f", "X", (1,), "X", (2,)), "must differ"),
    ],
)
def test_vnnlib2_refuses_names(signature: Signature, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        write_vnnlib2(Property((signature,), (Case(ONE, ((),)),)))


def test_vnnlib2_refuses_element_types() -> None:
    with pytest.raises(InputError, match="Unknown element type 'int8'"):
        write_vnnlib2(one_case((LESS,)), element_type="int8")


@pytest.mark.parametrize("version", list(Version))
def test_files_plain_and_compressed(version: Version, tmp_path: Path) -> None:
    property = one_case((LESS,), (AT_LEAST,))
    for name in ("p.vnnlib", "p.vnnlib.gz"):
        write_vnnlib_file(property, tmp_path / name, version=version)
        assert read_vnnlib_file(tmp_path / name) == property
    assert (tmp_path / "p.vnnlib.gz").read_bytes()[:2] == b"\x1f\x8b"
    first = (tmp_path / "p.vnnlib.gz").read_bytes()
    write_vnnlib_file(property, tmp_path / "again.gz", version=version)
    assert (tmp_path / "again.gz").read_bytes() == first


@pytest.mark.skipif(not SHARED.is_dir(), reason="no published benchmarks beside the project")
def test_published_properties_survive() -> None:
    for folder in ("acasxu_2023/1.0", "acasxu_2023/2.0", "isomorphic_acasxu_2026/2.0"):
        for path in sorted((SHARED / "2026" / folder / "vnnlib").glob("*.gz")):
            property = read_vnnlib_file(path)
            assert parse_vnnlib(write_vnnlib2(property)) == property
