"""Policies that stable-baselines3 saved. The package stands in for itself: tests do not need it."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.models.lookup import load_model


def saved(path: Path, **settings: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(settings))
    return path


class Algorithm:
    def __init__(self, name: str) -> None:
        self.name = name

    def load(self, path: Path, device: str) -> Algorithm:
        if self.name == "SAC":
            raise RuntimeError("another version")
        return self

    def predict(self, records: Any, deterministic: bool = False) -> Any:
        return (records[:, 0] > 0).astype(int) + 10 * deterministic + 100 * (self.name == "A2C"), None


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("PPO", "A2C", "DQN", "SAC", "TD3")
    made = SimpleNamespace(**{name: Algorithm(name) for name in names})
    monkeypatch.setitem(sys.modules, "stable_baselines3", made)


def test_policies_are_run_in_batches_and_deterministically(tmp_path: Path, package: None) -> None:
    rows = np.array([[1.0], [-1.0]])
    model = load_model(saved(tmp_path / "p.zip", clip_range=0.2, gae_lambda=0.9), None)
    assert model.predict(rows).tolist() == [11, 10] and model.sha256 is not None
    model = load_model(saved(tmp_path / "p.zip", gae_lambda=0.9), None)
    assert model.predict(rows).tolist() == [111, 110]


def test_a_policy_warns_before_it_is_opened(
    tmp_path: Path, package: None, caplog: pytest.LogCaptureFixture
) -> None:
    path = saved(tmp_path / "warns.zip", clip_range=0.2)
    load_model(path, None)
    [warning] = [record.getMessage() for record in caplog.records if record.name == "dokimos"]
    assert warning.startswith(f"{path}: opening a policy that stable-baselines3 saved")
    assert "trust" in warning


def test_what_is_no_policy_gets_one_sentence(tmp_path: Path, package: None) -> None:
    (tmp_path / "text.zip").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "")
    for path, said in (
        (tmp_path / "text.zip", "is not a policy"),
        (tmp_path / "other.zip", "is not a policy"),
        (tmp_path / "none.zip", "cannot be read"),
        (saved(tmp_path / "new.zip", something=1), "an unknown algorithm"),
        (saved(tmp_path / "sac.zip", target_entropy=1), "cannot be loaded: RuntimeError: another version"),
    ):
        with pytest.raises(InputError, match=said):
            load_model(path, None)
    with pytest.raises(InputError, match="allow_code=False"):
        load_model(tmp_path / "new.zip", None, allow_code=False)


def test_the_package_may_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(InputError, match="needs the package stable-baselines3"):
        load_model(saved(tmp_path / "p.zip", clip_range=0.2), None)
