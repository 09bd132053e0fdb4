"""Records that are strings: functions from text to text, tf-idf pipelines, pools of lines."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.engine.law_results import LawResult, LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import LawError
from dokimos.laws.reporting.case_view import view_case
from dokimos.laws.reporting.violation_files import read_violations, save_result

TEXTS = ["good film", "a bad film", "very good", "bad, so bad", "film", "good and bad"]
LABELS = [1, 0, 1, 0, 0, 1]
BLOCK = "output d1; output d2; { d1 = predict(x1)\n d2 = predict(x2) }"


def shout(text: str) -> str:
    return text.upper()


def language(text: str) -> str:
    return "en" if "film" in text else "??"


def _domain() -> Domain:
    module = SimpleNamespace(inputs=lambda: TEXTS, labels=lambda: LABELS, __name__=__name__)
    module.shout, module.language = shout, language
    return read_domain(module, name="reviews")


def _run(text: str, model: Any, **settings: Any) -> LawResult:
    return run_law(parse_law(text), model=model, domain=_domain(), settings=LawSettings(**settings))


def _is_good(text: str) -> str:
    return "good" if "good" in text else "bad"


def test_a_function_from_text_to_text_makes_records() -> None:
    result = _run(f"input x1; var x2 := shout(x1); {BLOCK} ensures d1 == d2;", _is_good)
    assert (result.tested, result.violated, result.failed) == (6, 3, 0)
    assert result.violations[0].words == (
        "with 'GOOD FILM' instead of 'good film' the decision changes from good to bad "
        "(x1 is row 0, 0-based)"
    )


def test_a_tf_idf_pipeline() -> None:
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=100.0)).fit(TEXTS, LABELS)
    kept = _run(f"input x1; var x2 := shout(x1); {BLOCK} ensures d1 == d2;", model)
    assert (kept.tested, kept.violated, kept.failed) == (6, 0, 0)
    text = f'input x1; var x2 := strConcat(x1, " bad"); {BLOCK} ensures proba(x2, 1) < proba(x1, 1);'
    before, after = (
        model.predict_proba(texts)[:, 1] for texts in (TEXTS, [f"{each} bad" for each in TEXTS])
    )
    assert _run(text, model).violated == int((after >= before).sum())
    assert _run(text.replace("<", ">"), model).violated == int((after <= before).sum()) > 0


def test_texts_are_strings_and_records_at_once() -> None:
    text = (
        'input x1; requires language(x1) == "en" && x1 != "film"; var x2 := shout(x1);'
        f"requires x2 != x1; {BLOCK} ensures label(x1) == label(x2) && d2 == d2;"
    )
    result = _run(text, _is_good)
    assert (result.tested, result.rejected, result.violated) == (2, 4, 0)


def test_texts_have_no_order_and_no_features() -> None:
    with pytest.raises(LawError, match="needs a number or a string, but this is a record"):
        _run(f"input x1; requires x1 < 2; var x2 := x1; {BLOCK} ensures d1 == d2;", _is_good)
    with pytest.raises(LawError, match="these records have no named features"):
        _run(f"input x1; var x2 := x1[age := 3]; {BLOCK} ensures d1 == d2;", _is_good)


def test_texts_are_compared_on_the_page_and_run_again(tmp_path: Path) -> None:
    result = _run(f"input x1; var x2 := shout(x1); {BLOCK} ensures d1 == d2;", _is_good)
    view = view_case(result.violations[0].case, result.law, result.domain)
    assert [[piece for _, piece in text] for text in view.texts][1] == ["good", "GOOD", " ", "film", "FILM"]
    save_result(result, tmp_path / "found.json")
    assert read_violations(tmp_path / "found.json").cases[0].inputs == {"x1": "good film"}


def test_a_pool_of_lines_needs_no_domain(tmp_path: Path) -> None:
    pool = tmp_path / "lines.txt"
    pool.write_text("\n".join(TEXTS) + "\n\n", encoding="utf-8")
    law = parse_law(f'input x1; var x2 := strConcat(x1, " good"); {BLOCK} ensures d1 == d2;')
    result = run_law(law, model=_is_good, settings=LawSettings(source=f"pool:{pool}"))
    assert (result.tested, result.violated) == (6, 3)
