"""Replaying a file runs no Python that it brings or names, unless that is allowed; pickles warn."""

from __future__ import annotations

import json
import logging
import pickle
from pathlib import Path

import pytest

import dokimos
from dokimos.core.errors import InputError
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.models.model_files import read_pickle

DOMAIN = """
from dokimos.laws import integer
from pathlib import Path
Path({mark!r}).touch()
FEATURES = [integer("age", 0, 9)]
def inputs():
    return [[k] for k in range(9)]
def model():
    return falling
def falling(x):
    return int(x[0] < 4)
"""
LAW = """import people; input x1; var x2 := x1[age := x1.age + randInt(1, 3)]; output d1; output d2;
{ d1 = predict(x1)
  d2 = predict(x2) } ensures d1 <= d2;"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "people.py").write_text(DOMAIN.format(mark=str(tmp_path / "ran")))
    (tmp_path / "age.law").write_text(LAW)
    [tested] = dokimos.test_law(
        tmp_path / "age.law", settings=LawSettings(budget=50), out=tmp_path / "out"
    ).laws
    assert tested.replay_runs_code and tested.saved is not None
    (tmp_path / "ran").unlink()
    return tested.saved


def test_what_a_file_names_is_not_run(saved: Path, tmp_path: Path) -> None:
    for allowed in (None, False):
        with pytest.raises(InputError, match=rf"runs Python: the domain {tmp_path}/people\.py; .*`allow_c"):
            dokimos.replay_law(saved, allow_code=allowed)
    assert not (tmp_path / "ran").exists()
    [replayed] = dokimos.replay_law(saved, allow_code=True)
    assert replayed.is_violated and (tmp_path / "ran").exists()


def test_everything_that_would_run_is_named(saved: Path, tmp_path: Path) -> None:
    document = json.loads(saved.read_text())
    document["law"]["text"] = document["law"]["text"].replace("d1 = predict(x1)", "import os; d1 = 1")
    for model in ("os:system", "/x/model.pkl", "people.py:falling"):
        document["model"]["name"] = model
        saved.write_text(json.dumps(document))
        with pytest.raises(InputError) as caught:
            dokimos.replay_law(saved)
        named = f"the block of its law (line 2), the domain {tmp_path}/people.py and the model {model};"
        assert named in str(caught.value)


def test_what_the_user_names_may_be_code(saved: Path, tmp_path: Path) -> None:
    [replayed] = dokimos.replay_law(
        saved, domain=str(tmp_path / "people.py"), model=f"{tmp_path}/people.py:falling"
    )
    assert replayed.is_violated
    with pytest.raises(InputError, match="`allow_code=False` refuses"):
        dokimos.replay_law(saved, domain=str(tmp_path / "people.py"), allow_code=False)


def test_a_pickle_warns_before_it_is_opened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="dokimos")
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps(3))
    for _ in range(2):
        assert read_pickle(path)[0] == 3
    [record] = [r for r in caplog.records if r.name == "dokimos"]
    assert record.getMessage() == (
        f"{path}: opening a pickle runs the code in it; open only files that you trust."
    )
