"""Results are saved whole; damaged files get one sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.engine.confirmation import replay_violations
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.models.lookup import as_model
from dokimos.laws.reporting.violation_files import read_violations, save_result
from tests.json_mutants import VALUES, mutants
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


def test_the_file_says_everything(tmp_path: Path) -> None:
    content = json.loads(saved(tmp_path).read_text())
    assert content["law"]["text"] == law(MORE_FELONIES).text
    assert content["counts"]["tested"] == content["counts"]["passed"] + content["counts"]["violated"]
    assert content["violations"][0]["values"]["d1"] == 1
    assert content["is_exhaustive"] is True


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: content.update(format="x"), "is not a file of violations"),
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


def test_whatever_a_violation_says_it_runs_or_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = saved(tmp_path, keep=1)
    document = json.loads(path.read_text())
    document["violations"][0]["values"] = {}  # these are for people only
    read = 0
    for mutant in mutants(document["violations"]):
        path.write_text(json.dumps({**document, "violations": mutant}))
        with suppress(InputError):
            found = read_violations(path)
            read += 1
            replay_violations(found, as_model(risk, None, name="risk"), domain(**_extras()))
    assert read > 50


@pytest.mark.no_cover
@pytest.mark.parametrize("part", ["law", "model", "domain", "source", "counts", "rate", "seed", "folder"])
def test_whatever_a_file_says_it_is_read_or_refused_in_one_sentence(tmp_path: Path, part: str) -> None:
    path = saved(tmp_path, keep=1, budget=1, exhaustive=False)
    document = json.loads(path.read_text())
    for value in (*VALUES, *mutants(document[part])):
        path.write_text(json.dumps({**document, part: value}))
        with suppress(UnreadableFile):
            read_violations(path)
