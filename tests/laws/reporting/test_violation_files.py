"""Violations are saved whole and run again as they were; words say what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.engine.cases import LawCase, as_record, from_json, to_json
from dokimos.laws.engine.descriptions import describe
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.replay import replay_violations
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.engine.shrinking import _amount
from dokimos.laws.models.lookup import as_model
from dokimos.laws.reporting.violation_files import read_violations, save_result
from tests.laws.toy import MORE_FELONIES, domain, inputs, law, risk


def saved(tmp_path: Path, text: str = MORE_FELONIES, **settings: Any) -> Path:
    result = run_law(law(text), model=risk, domain=domain(**_extras()), settings=LawSettings(**settings))
    path = tmp_path / "law.json"
    save_result(result, path)
    return path


def _extras() -> dict[str, Any]:
    def noisy(x: Any, rng: np.random.Generator) -> Any:
        x[1] = rng.integers(0, 20)
        return x

    return {"noisy": noisy, "labels": lambda: risk(inputs())}


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (MORE_FELONIES, {}),
        (MORE_FELONIES, {"source": "range", "budget": 300}),
        ("input x1; var x2 := noisy(x1);", {"budget": 300}),
        ("input x1; var x2 := x1[felonies := 13]; ENSURES label(x1) <= d2 || d1 == 0", {}),
        ("input x1; var x2 := x1[felonies := randReal(0, 20)];", {"budget": 300}),
    ],
)
def test_every_saved_violation_runs_again(tmp_path: Path, text: str, settings: dict[str, Any]) -> None:
    found = read_violations(saved(tmp_path, text, **settings))
    assert found.cases
    again = replay_violations(found, as_model(risk, None, name="risk"), domain(**_extras()))
    assert [each.now for each in again] == list(found.words)
    fixed = as_model(lambda record: 2, None, name="fixed")
    assert all(each.now is None for each in replay_violations(found, fixed, domain(**_extras())))


def test_the_file_says_everything(tmp_path: Path) -> None:
    content = json.loads(saved(tmp_path).read_text())
    assert content["law"]["text"] == law(MORE_FELONIES).text
    assert content["counts"]["tested"] == content["counts"]["passed"] + content["counts"]["violated"]
    assert content["violations"][0]["values"]["d1"] == 1
    assert content["is_exhaustive"] is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(format="x"), "is no file of violations"),
        (lambda content: content.update(version=9), "has version 9"),
        (
            lambda content: content.pop("law"),
            "missing required field `law`; this is not a file of violations",
        ),
        (lambda content: content.update(violations=[{}]), r"violations\[0\]: .* missing required field"),
        (lambda content: content["violations"][0].update(inputs={}), "is damaged: .* no input x1"),
        (lambda content: content["violations"][0].update(draws=[{"float": "?"}]), "is damaged"),
        (lambda content: content["violations"][0].update(case_seed=0.5), "case_seed: expected `int`"),
    ],
)
def test_damaged_files(tmp_path: Path, change: Any, message: str) -> None:
    path = saved(tmp_path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    with pytest.raises(UnreadableFile, match=message):
        read_violations(path)
    path.write_text(path.read_text()[:-9])
    with pytest.raises(UnreadableFile, match="not valid JSON"):
        read_violations(path)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_violations(tmp_path / "none.json")


def test_replaying_what_no_longer_fits(tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = json.loads(path.read_text())
    content["violations"][0]["draws"] = []
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="0 draws where the law makes 1"):
        replay_violations(read_violations(path), as_model(risk, None, name="risk"), domain())

    def broken(record: Any) -> Any:
        raise ValueError("broken")

    with pytest.raises(InputError, match=r"Replaying failed: .*broken"):
        replay_violations(read_violations(saved(tmp_path)), as_model(broken, None, name="b"), domain())


def test_values_survive_json() -> None:
    for value in (1, 0.1, True, None, "é", [1.5, "a"], float("inf")):
        assert from_json(json.loads(json.dumps(to_json(value)))) == value
    assert np.isnan(from_json(to_json(np.float64("nan"))))
    assert np.array_equal(as_record(to_json(np.eye(2))), np.eye(2))
    assert as_record(to_json("text")) == "text"
    with pytest.raises(InputError, match="only its description"):
        from_json(to_json(object()))


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

    assert told(c1=record[1] + 3) == "with 3 more felonies the risk falls from high to low (x1 is row 3)"
    assert told(c1=record[1] - 1).startswith("with 1 fewer felony the risk")
    assert told(c2=record[2] - 0.5).startswith("with 0.5 less income the risk")
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
    assert describe(_case("other", base="text"), parsed, plain).startswith("here the risk falls")


def test_how_much_records_differ() -> None:
    a = np.array([["ab", 1, None]], dtype=object)
    b = np.array([["abcd", 3, "x"]], dtype=object)
    assert _amount(a, b, np.array([[True, True, True]])).tolist() == [5.0]
