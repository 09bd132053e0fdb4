"""Violations in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from dokimos.laws.engine.descriptions import describe, one_of
from dokimos.laws.engine.law_case import LawCase
from tests.laws.toy import domain, inputs, law


def _case(changed: Any, d1: Any = 2, d2: Any = 0, base: Any = None) -> LawCase:
    start = inputs()[0] if base is None else base
    return LawCase({"x1": start}, {"x1": 3}, (), 0, {"x2": changed, "d1": d1, "d2": d2})


def test_words() -> None:
    parsed = law("input x1; var x2 := x1;")
    record = inputs()[0]

    def told(**changes: float) -> str:
        other = record.copy()
        for name, value in changes.items():
            other[int(name[1:])] = value
        return describe(_case(other), parsed, domain())

    assert (
        told(c1=record[1] + 3)
        == "with 3 more felonies the risk falls from high to low (x1 is row 3, 0-based)"
    )
    assert told(c1=record[1] - 1).startswith("with 1 fewer felony the risk")
    assert told(c2=record[2] - 0.5).startswith(f"with income {record[2] - 0.5:g} instead of {record[2]:g} ")
    assert told(c2=record[2] * (1 - 1e-9)).partition(" the risk")[0].endswith("less income")
    assert told(c3=1 - record[3]).startswith(f"with recid {1 - record[3]:g} instead of {record[3]:g} ")
    hot = int(record[5])
    names = ["Female", "Male"]
    assert told(c4=hot, c5=1 - hot).startswith(f"with sex {names[1 - hot]} instead of {names[hot]} ")
    assert told(c4=0, c5=0).startswith("with sex none instead of")
    assert told().startswith("with nothing changed")
    assert "stays high" in describe(_case(record, 2, 2), parsed, domain())
    assert "rises from low to high" in describe(_case(record, 0, 2), parsed, domain())
    assert "changes from a to b" in describe(_case(record, "a", "b"), parsed, domain())
    assert "falls from 0.5 to 0.25" in describe(_case(record, 0.5, 0.25), parsed, domain())


def test_words_for_records_without_names() -> None:
    parsed = law("input x1; var x2 := x1;")
    plain = domain(FEATURES=None)
    image = np.zeros((3, 3))
    told = describe(_case(image + 0.25, base=image), parsed, plain)
    assert told.startswith("with 9 of 9 values changed, by at most 0.25 the risk")
    one = image.copy()
    one[1, 1] = np.nan
    assert describe(_case(one, base=image), parsed, plain).startswith("with feature 4 nan instead of 0 ")
    words = np.array(["x" * 100, "b"], dtype=object)
    assert "…" in describe(_case(np.array(["y" * 100, "b"], dtype=object), base=words), parsed, plain)
    assert describe(_case("other", base="text"), parsed, plain).startswith(
        "with 'other' instead of 'text' the risk falls"
    )


def test_singulars() -> None:
    things = {
        "juvenile felonies": "juvenile felony",
        "points of residence": "point of residence",
        "status": "status",
        "glass": "glass",
        "age": "age",
        "days between screening and arrest": "day between screening and arrest",
    }
    assert {many: one_of(many) for many in things} == things
