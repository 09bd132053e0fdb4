"""Policies of stable-baselines3: what has its `predict` is a model; zip files are opened in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.models.lookup import as_model, load_model


class Policy:
    def predict(self, records: Any, deterministic: bool = False) -> Any:
        return (records[:, 0] > 0).astype(int) + 10 * deterministic, None


def test_policies_are_run_in_batches_and_deterministically() -> None:
    model = as_model(Policy(), None, name="p")
    assert model.predict(np.array([[1.0], [-1.0]])).tolist() == [11, 10]


def test_a_zip_file_says_how_to_load_it(tmp_path: Path) -> None:
    (tmp_path / "p.zip").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"stable-baselines3; load it in a Python file \(model = PPO.load"):
        load_model(tmp_path / "p.zip", None)
