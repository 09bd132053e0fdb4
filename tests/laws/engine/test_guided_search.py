"""Searches that are guided by margins and by coverage: what they find is real, and gives no rate."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws import integer
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.models.files import neuron_function, onnx_model
from dokimos.laws.reporting.page import PageContext, render_page
from dokimos.laws.reporting.terminal import summary
from dokimos.laws.reporting.violation_files import save_result
from dokimos.laws.studies.network_training import relu_network
from tests.laws.toy import MORE_FELONIES, domain, run

GUIDED = ("margin", "coverage")
#: A wide range, and a decision that changes in a narrow part of it only.
WIDE = "input x1; var v := randInt(0, 1000000); var x2 := x1[n := v]; ENSURES d1 == d2"


def _dip(records: NDArray[Any]) -> NDArray[Any]:
    """Two scores: the second leads where n is between 730,000 and 730,200, and is nearer to it nearby."""
    distance = np.abs(records[:, 0] - 730_100.0) - 100.0
    return np.stack([distance, -distance], axis=1)


_dip.batched = True  # type: ignore[attr-defined]


def numbers() -> Domain:
    module = SimpleNamespace(FEATURES=[integer("n", 0, 10**6)], inputs=lambda: [[0], [5], [9]])
    return read_domain(module, name="numbers")


def test_margins_lead_to_what_chance_seldom_finds() -> None:
    found = {
        search: run(WIDE, model=_dip, of=numbers(), search=search, budget=3000, exhaustive=False).unique
        for search in ("random", "margin")
    }
    assert found["margin"] > 10 * max(1, found["random"])


@pytest.mark.parametrize("search", GUIDED)
def test_guided_violations_are_violations(search: str) -> None:
    random = run(MORE_FELONIES, exhaustive=True)
    found = run(MORE_FELONIES, search=search, exhaustive=False, budget=2000)
    assert found.tested == 2000 and 0 < found.unique <= random.unique
    again = run(MORE_FELONIES, search=search, exhaustive=False, budget=2000)
    assert (again.violated, again.unique) == (found.violated, found.unique)
    assert all(1 <= each.case.draws[0] <= 10 for each in found.violations)


@pytest.mark.parametrize("search", GUIDED)
def test_other_kinds_of_laws_and_models_are_searched_too(search: str) -> None:
    def name(record: Any) -> str:
        return "much" if record[1] > 5 else "little"

    said = run(MORE_FELONIES, model=name, search=search, exhaustive=False, budget=300)
    assert said.tested == 300 and said.failed == 0
    code = "input x1; output a; output b; { a = randInt(0, 3)\n b = 2 } ensures a <= b && x1.age > 0;"
    assert run(code, search=search, budget=200).violated > 0
    two = (
        "input x1; input y; var x2 := x1[income := randReal(0, 10)]; requires y.age > 20; ENSURES d1 == d2"
    )
    assert run(two, search=search, budget=200, source="range").tested == 200


def test_neurons_of_a_network_are_seen() -> None:
    layers = [[np.array([[1.0], [-1.0]]), np.zeros(2)], [np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros(2)]]
    content = relu_network(layers)
    active = neuron_function(content, name="net")
    assert active is not None
    assert active(np.array([[2.0], [-2.0]], dtype=np.float32)).tolist() == [[True, False], [False, True]]
    model = onnx_model(content, numbers(), name="net")
    assert model.neurons is not None and model.neurons(np.array([[5.0]])).tolist() == [[True, False]]
    assert neuron_function(relu_network(layers[:1]), name="net") is None
    assert run(WIDE, model=model, of=numbers(), search="coverage", budget=300).tested == 300


@pytest.mark.no_cover
@pytest.mark.parametrize("search", GUIDED)
def test_how_long_parts_take_changes_nothing(search: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for moment in (1e-9, 1e-4, 1e9):  # parts of one case; of as many as run in that time; of all
        monkeypatch.setattr("dokimos.laws.engine.law_test._MOMENT", moment)
        result = run(MORE_FELONIES, search=search, budget=700, exhaustive=False, seed=3)
        found.append([result.violated, result.unique, [each.case.draws for each in result.violations]])
    assert found[0] == found[1] == found[2] and found[0][0] > 0


def test_a_guided_search_gives_no_rate(tmp_path: Path) -> None:
    result = run(MORE_FELONIES, search="coverage", exhaustive=False, budget=500)
    text = summary(result)
    assert "searched by coverage: the cases are not a random sample" in text and "95 %" not in text
    page = render_page([result], ["command"], PageContext("title", "now", "0"))
    assert "searched by coverage" in page and "(95" not in page
    save_result(result, tmp_path / "found.json")
    saved = json.loads((tmp_path / "found.json").read_text())
    assert (saved["search"], saved["rate"]["low_95"], saved["rate"]["high_95"]) == ("coverage", 0, 1)


def test_all_draws_are_still_gone_through_where_they_are_few() -> None:
    assert run(MORE_FELONIES, search="margin").is_exhaustive
    with pytest.raises(InputError, match="Unknown search 'marign'; did you mean 'margin'"):
        run(MORE_FELONIES, search="marign", of=domain())


def test_rates_and_means_need_a_random_sample() -> None:
    with pytest.raises(InputError, match="need a random sample"):
        run(MORE_FELONIES, search="margin", max_rate=0.1)
    with pytest.raises(InputError, match="need a random sample"):
        run(f"{MORE_FELONIES} ENSURES d1 <= d2 in 90 %", search="margin")
