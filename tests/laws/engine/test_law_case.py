"""Values of a case survive JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.engine.law_case import as_record, from_json, to_json


def test_values_survive_json() -> None:
    for value in (1, 0.1, True, None, "é", [1.5, "a"], float("inf")):
        assert from_json(json.loads(json.dumps(to_json(value)))) == value
    assert np.isnan(from_json(to_json(np.float64("nan"))))
    assert np.array_equal(as_record(to_json(np.eye(2))), np.eye(2))
    assert as_record(to_json("text")) == "text"
    with pytest.raises(InputError, match="only a description"):
        from_json(to_json(object()))
