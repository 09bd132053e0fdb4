"""All draws are gone through where there is an end of them, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.engine.case_frame import Records, Rows
from dokimos.laws.engine.draws import Pool
from dokimos.laws.reporting.terminal import summary
from tests.laws.toy import MORE_FELONIES, brute_force, domain, inputs, risk, run


def test_going_through_all_draws_agrees_with_loops() -> None:
    draws, violations, rows = brute_force()
    found = run(MORE_FELONIES, exhaustive=True)
    assert violations > 0
    assert (found.draws, found.violated, found.unique) == (draws, violations, violations)
    assert {each.case.rows["x1"] for each in found.violations} == rows
    assert found.inputs == len(rows) and found.is_exhaustive and found.is_violated
    assert found.held == found.tested == found.passed + found.violated
    automatic = run(MORE_FELONIES)
    assert automatic.is_exhaustive and automatic.violated == violations
    assert not run(MORE_FELONIES, budget=100).is_exhaustive
    assert not run(MORE_FELONIES, exhaustive=False).is_exhaustive


def test_a_law_that_holds_for_all_draws() -> None:
    found = run("input x1; var x2 := x1[age := randInt(18, 40)]; ENSURES d1 == d2")
    assert (found.violated, found.is_exhaustive, found.is_violated) == (0, True, False)
    assert "holds for every draw from the source test" in summary(found)
    sampled = run("input x1; var x2 := x1[age := randInt(18, 40)]; ENSURES d1 == d2", exhaustive=False)
    assert "no violation found" in summary(sampled) and "0.00 %" in summary(sampled)


def test_all_pairs_of_inputs() -> None:
    text = "input x1; input x2; requires x1.felonies < x2.felonies;"
    found = run(text, exhaustive=True)
    data = inputs()
    pairs = [(a, b) for a in range(40) for b in range(40) if data[a, 1] < data[b, 1]]
    assert (found.draws, found.held) == (1600, len(pairs))
    assert found.violated == sum(risk(data[[a]])[0] > risk(data[[b]])[0] for a, b in pairs) > 0
    assert "with x2 instead of x1 the risk falls" in found.violations[0].words


def test_what_cannot_be_gone_through() -> None:
    with pytest.raises(InputError, match="randReal draws from infinitely many numbers"):
        run("input x1; var x2 := x1[income := randReal(0, 1)];", exhaustive=True)
    with pytest.raises(InputError, match="shake draws at random itself"):
        run("input x1; var x2 := shake(x1);", of=domain(shake=lambda x, rng: x), exhaustive=True)
    with pytest.raises(InputError, match="range is infinite"):
        run(MORE_FELONIES, exhaustive=True, source="range")
    with pytest.raises(InputError, match="more than 20,000,000 draws"):
        run("input x1; var x2 := x1[income := randInt(0, 90000000)];", exhaustive=True)
    five = "input a; input b; input c; input x1; input x2; requires a != b; requires b != c;"
    with pytest.raises(InputError, match="more than 20,000,000 draws"):
        run(five, exhaustive=True)
    with pytest.raises(InputError, match="at least 1"):
        run(MORE_FELONIES, budget=0)


def test_large_expansions_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.laws.engine.law_test._LARGEST_BATCH", 64)
    draws, violations, _ = brute_force()
    found = run(MORE_FELONIES, exhaustive=True)
    assert (found.draws, found.violated) == (draws, violations)


def test_pairs_are_made_as_they_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all before the first of them is."""
    monkeypatch.setattr("dokimos.laws.engine.law_test._LARGEST_BATCH", 64)
    made: list[int] = []
    at = Pool.at

    def counted(pool: Pool, rows: Rows) -> Records:
        made.append(len(rows))
        return at(pool, rows)

    def model(records: NDArray[np.float64]) -> NDArray[np.int64]:
        assert sum(made) <= 2 * 64 + 2  # a batch of pairs, and the one record whose size is measured
        made.clear()
        return risk(records)

    model.batched = True  # type: ignore[attr-defined]
    monkeypatch.setattr(Pool, "at", counted)
    found = run("input x1; input x2;", model=model, exhaustive=True, keep=1, shrink=False)
    assert found.tested == 1600 and found.is_exhaustive
