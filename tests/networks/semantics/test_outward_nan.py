"""An end that is nan says nothing, so nothing may be concluded from it."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.networks.semantics.outward import Interval, divide, multiply


@pytest.mark.parametrize("operation", [multiply, divide])
@pytest.mark.parametrize("broken", [(np.nan, 1.0), (1.0, np.nan), (np.nan, np.nan)])
def test_nan_gives_the_whole_line(operation: object, broken: tuple[float, float]) -> None:
    assert operation in (multiply, divide)
    bad = Interval(np.array([broken[0]]), np.array([broken[1]]))
    good = Interval(np.array([1.0]), np.array([2.0]))
    for a, b in ((bad, good), (good, bad)):
        result = multiply(a, b) if operation is multiply else divide(a, b)
        assert result.lower[0] == -np.inf
        assert result.upper[0] == np.inf
