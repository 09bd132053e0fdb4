"""`dokimos monotone` as a user types it."""

from __future__ import annotations

import pickle
from pathlib import Path

from sklearn.tree import DecisionTreeRegressor

from tests.cli.conftest import Dokimos
from tests.laws.proving.test_monotone import fitted, frame_of


def test_the_command_exits_with_1_unless_all_is_proven(dokimos: Dokimos, tmp_path: Path) -> None:
    frame, target = frame_of()
    frame.assign(target=target).to_csv(tmp_path / "data.csv", index=False)
    for loss, answer, said in (
        ("squared_error", 0, "proven for every record"),
        ("quantile", 1, "NOT TRUE"),
    ):
        options = {"quantile": 0.9} if loss == "quantile" else {}
        (tmp_path / "model.pkl").write_bytes(pickle.dumps(fitted(loss, **options)))
        done = dokimos("monotone", tmp_path / "model.pkl", "--data", tmp_path / "data.csv")
        assert done.code == answer and said in done.out
    bad = dokimos(
        "monotone", tmp_path / "model.pkl", "--data", tmp_path / "data.csv", "--feature", "income"
    )
    assert bad.code == 2 and "NAME=1" in bad.err
    (tmp_path / "plain.pkl").write_bytes(pickle.dumps(DecisionTreeRegressor().fit([[1], [2]], [1, 2])))
    bad = dokimos("monotone", tmp_path / "plain.pkl", "--data", tmp_path / "data.csv")
    assert bad.code == 2 and "say in --feature what rises (1) or falls (-1)" in bad.err
