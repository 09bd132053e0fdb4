"""Saved violations run again as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dokimos.core.errors import InputError
from dokimos.laws.engine.confirmation import replay_violations
from dokimos.laws.models.lookup import as_model
from dokimos.laws.reporting.violation_files import read_violations
from tests.laws.reporting.test_violation_files import _extras, saved
from tests.laws.toy import MORE_FELONIES, domain, risk


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


def test_replaying_what_no_longer_fits(tmp_path: Path) -> None:
    path = saved(tmp_path)
    content = json.loads(path.read_text())
    content["violations"][0]["draws"] = []
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="0 draws, but the law makes 1"):
        replay_violations(read_violations(path), as_model(risk, None, name="risk"), domain())

    def broken(record: Any) -> Any:
        raise ValueError("broken")

    with pytest.raises(InputError, match=r"Replaying failed: .*broken"):
        replay_violations(read_violations(saved(tmp_path)), as_model(broken, None, name="b"), domain())
