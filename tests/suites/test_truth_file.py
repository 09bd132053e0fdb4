"""Truth files: what is written is read again, and everything else is refused in one sentence."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.core.errors import DokimosError, UnreadableFile
from dokimos.suites.entry import load_truth
from dokimos.suites.instance import Certificate, Claim, Label, Semantics, Truth
from dokimos.suites.suite_files import dump_truth

decimals = st.integers(-(10**12), 10**12).map(lambda n: Fraction(n, 10**6))
margins = decimals.map(abs)
claims = st.builds(
    Claim, proven=st.booleans(), margin=st.none() | margins, ulps=st.none() | st.integers(1, 65535)
)
truths = st.builds(
    Truth,
    label=st.sampled_from(Label),
    claims=st.dictionaries(st.sampled_from(Semantics), claims),
    certificate=st.builds(
        Certificate,
        kind=st.text(max_size=8),
        data=st.dictionaries(
            st.text(max_size=5), st.none() | st.booleans() | st.text(max_size=5), max_size=3
        ),
    ),
    network_sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    property_sha256=st.text("0123456789abcdef", min_size=64, max_size=64),
    witness=st.none() | st.lists(decimals, max_size=4).map(tuple),
)

EXAMPLE = Truth(
    label=Label.SAT,
    claims={
        Semantics.REAL: Claim(proven=True, margin=Fraction(1, 8)),
        Semantics.FLOAT32: Claim(proven=True, margin=Fraction(1, 16), ulps=8),
    },
    certificate=Certificate("witness"),
    network_sha256="a" * 64,
    property_sha256="b" * 64,
    witness=(Fraction(1, 2), Fraction(-3)),
)


@given(truths)
def test_round_trip(truth: Truth) -> None:
    assert load_truth(dump_truth(truth, origin={"seed": 1}), file="t.json") == truth


def _set(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = to

    return change


def _drop(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(_drop(key) for key in ("format", "label", "semantics", "certificate", "sha256")),
        *(_drop("sha256", key) for key in ("network", "property")),
        *(_drop("certificate", key) for key in ("kind", "data")),
        _drop("semantics", "real", "proven"),
        *(_set("format", to=value) for value in (1, 2, 4, "3", True, 3.0, None, [[]])),
        _set("schema", to=1),
        *(_set("label", to=value) for value in ("SAT", "", None, True, ["sat"], "unknown")),
        *(_set("semantics", to=value) for value in (None, [], {"float8": {"proven": True}})),
        *(_set("semantics", "real", to=value) for value in (None, True, [], "1")),
        *(_set("semantics", "real", "proven", to=value) for value in (1, "true", None)),
        *(
            _set("semantics", "real", "margin", to=value)
            for value in (
                *(0.125, 1, None, True, "", "1/0", "1/8", "nan", "inf", "-0.5", "1e-401", "1e401", "0x1"),
                *("9" * 5000, "1" + "0" * 400, " 1", "1_0", "١"),
            )
        ),
        *(
            _set("semantics", "float32", "ulps", to=value)
            for value in (-1, 0, 65536, 8.0, True, "8", 10**30)
        ),
        _set("semantics", "real", "slack", to="1"),
        _set("certificate", "note", to=""),
        _set("sha256", "truth", to=""),
        _set("extra", to=1),
        *(_set("sha256", "network", to=value) for value in (None, 5, [])),
        *(_set("certificate", "kind", to=value) for value in (None, 5, [])),
        *(_set("certificate", "data", to=value) for value in (None, 5, [], "x")),
        *(_set("witness", to=value) for value in ("0.5", {}, 5, [0.5], [None], ["a"], [["1"]], [True])),
    ],
)
def test_every_other_shape_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(dump_truth(EXAMPLE, origin={}))
    change(document)
    with pytest.raises(UnreadableFile, match=r"^t\.json"):
        load_truth(json.dumps(document), file="t.json")


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "1", '"x"', "{", '{"format": 2', "NaN", "\ufeff{}"),
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"format": ' * 100_000,
        "1" * 10_000,
        '{"format": ' + "9" * 10_000 + "}",
        '{"format": 3, "format": 3}',
        '{"format": 1e999}',
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UnreadableFile):
        load_truth(text, file="t.json")


@pytest.mark.parametrize("change", [_set("format", to=2), _set("format", to=4), _drop("format")])
def test_another_format_is_refused_with_the_command_that_helps(
    change: Callable[[dict[str, Any]], None],
) -> None:
    document = json.loads(dump_truth(EXAMPLE, origin={}))
    change(document)
    with pytest.raises(UnreadableFile, match=r"format 3.*`dokimos generate --suite NAME --out FOLDER`$"):
        load_truth(json.dumps(document), file="t.json")


def test_a_key_that_stands_twice_is_named() -> None:
    text = dump_truth(EXAMPLE, origin={}).replace('"label": "sat"', '"label": "unsat",\n "label": "sat"')
    with pytest.raises(UnreadableFile, match="'label' appears twice"):
        load_truth(text, file="t.json")


@given(st.data())
def test_damaged_texts_never_end_in_a_traceback(data: st.DataObject) -> None:
    text = dump_truth(EXAMPLE, origin={"family": "x"})
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:at] + data.draw(st.characters()) + text[at + 1 :]
    with contextlib.suppress(DokimosError):
        assert isinstance(load_truth(damaged, file="t.json"), Truth)


def test_a_truncated_truth_is_refused_wherever_it_ends() -> None:
    text = dump_truth(EXAMPLE, origin={}).rstrip()
    for end in range(len(text)):
        with pytest.raises(UnreadableFile):
            load_truth(text[:end], file="t.json")
