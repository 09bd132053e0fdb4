"""Templates are laws that check and run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dokimos.core.errors import InputError
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.language.law_layout import format_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.templates import TEMPLATES, new_law
from dokimos.laws.language.validation import check_law
from tests.laws.toy import domain, risk


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_every_template_is_a_law_that_runs(template: str) -> None:
    text = new_law(template, feature="felonies", amount=3)
    law = parse_law(text)
    assert check_law(law, domain()) == ()
    assert format_law(law) == text
    result = run_law(law, model=risk, domain=domain(), settings=LawSettings(budget=300))
    assert result.tested > 0 and result.is_violated
    assert not run_law(parse_law(new_law(template, feature="age")), model=risk, domain=domain()).is_violated


def test_what_templates_refuse() -> None:
    with pytest.raises(InputError, match="did you mean 'monotone'"):
        new_law("monoton", feature="age")
    with pytest.raises(InputError, match="not the name of a feature"):
        new_law("fair", feature="a b")
    assert parse_law(new_law("fair", feature="sex", domain="compas")).imports[0].name == "compas"


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_changes_that_are_no_integers(template: str) -> None:
    law = parse_law(new_law(template, feature="income", amount=0.25))
    assert check_law(law, domain()) == ()
    assert run_law(law, model=risk, domain=domain(), settings=LawSettings(budget=50)).tested == 50
    assert "randInt" not in law.text and ("0.25" in law.text) == (template in ("monotone", "robust"))
    for amount in (0, -1.5, float("nan"), float("inf")):
        with pytest.raises(InputError, match="The largest change must be"):
            new_law(template, feature="income", amount=amount)


@pytest.mark.parametrize("template", sorted(TEMPLATES))
def test_tolerances_are_for_models_that_give_numbers(template: str) -> None:
    def price(record: Any) -> float:
        return -0.5 * float(record[2])

    for tolerance, violated in ((0.0, True), (0.25, True), (1000, False)):
        law = parse_law(new_law(template, feature="income", amount=2, tolerance=tolerance))
        assert check_law(law, domain()) == ()
        of = replace(domain(), classes=())  # a price is none of them
        result = run_law(law, model=price, domain=of, settings=LawSettings(budget=100))
        assert result.is_violated is violated
        assert ("prediction" in law.text) is (tolerance > 0)
    with pytest.raises(InputError, match="The tolerance must be"):
        new_law(template, feature="income", tolerance=-1)
