"""Calls that draw at random do so independently of each other, and draw the same in the same case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.laws.engine.confirmation import replay_violations
from dokimos.laws.models.lookup import as_model
from dokimos.laws.reporting.violation_files import read_violations, save_result
from tests.laws.toy import domain, run


def jitter(x: Any, rng: np.random.Generator) -> Any:
    return x + rng.integers(0, 1_000_000)


def noisy(x: Any, rng: np.random.Generator) -> Any:
    x[1] = rng.integers(0, 20)
    return x


def noisy_batch(xs: Any, rngs: Any) -> Any:
    xs[:, 1] = [rng.integers(0, 20) for rng in rngs]
    return xs


_TWO = "input x1; var a := jitter(0); var b := jitter(0); var x2 := x1;"


@pytest.mark.parametrize(
    "text",
    [
        f"{_TWO} ENSURES d1 == d2 && a != b",
        f"{_TWO} ENSURES d1 == d2 && a != jitter(0)",
        f"{_TWO} ENSURES d1 == d2 && (forall i in -1..1: jitter(0) != a) && jitter(0) != jitter(0)",
        "input x1; output d1; { d1 = predict(x1) * 0 + int(jitter(0) != jitter(0)) } ensures d1 == 1;",
        "input x1; var a := jitter(0); output d1; { d1 = 0 * x1[0] + (a != jitter(0)) } ensures d1 > 0;",
    ],
)
def test_two_calls_differ(text: str) -> None:
    assert not run(text, of=domain(jitter=jitter), budget=50).violated


def test_a_call_under_forall_draws_for_each_integer() -> None:
    text = "input x1; var x2 := x1; ENSURES d1 == d2 && (forall i in 0..9: jitter(0) < 300000)"
    found = run(text, of=domain(jitter=jitter), budget=200)
    assert found.violated == 200  # one draw for all ten would be below in a third of the cases


@pytest.mark.parametrize("function", [noisy, noisy_batch])
def test_a_law_on_noise_is_no_longer_true_by_itself(function: Callable[..., Any]) -> None:
    of = domain(**{function.__name__: function})
    text = "input x1; var y1 := noisy(x1); var x2 := noisy(x1); output d1; output d2; "
    text += "{ d1 = predict(y1)\n d2 = predict(x2) } ensures d1 == d2;"
    assert run(text, of=of, budget=300).is_violated


def test_what_was_drawn_is_drawn_again(tmp_path: Path) -> None:
    of = domain(noisy=noisy)
    law = "input x1; var v := randInt(0, 3); var y := noisy(x1); var x2 := noisy(y)[age := 30 + v];"
    text = f"{law} ENSURES d1 <= d2"
    found = run(text, of=of, budget=300)
    assert found.is_violated
    save_result(found, tmp_path / "found.json")
    saved = read_violations(tmp_path / "found.json")
    again = replay_violations(saved, as_model(found.model, of, name="risk"), of)
    assert [each.now for each in again] == [each.words for each in found.violations]
    once = replay_violations(replace(saved, one_stream=True), found.model, of)
    assert [each.now for each in once] != [each.now for each in again]


def test_files_of_the_first_version_are_run_as_they_were(tmp_path: Path) -> None:
    """In those, all calls of a case had the same numbers."""
    path = tmp_path / "found.json"
    save_result(run("input x1; var x2 := x1[age := 1]; ENSURES d1 != d2"), path)
    assert not read_violations(path).one_stream
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    assert read_violations(path).one_stream
