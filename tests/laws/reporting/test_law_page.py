"""The page of laws: what stands on it, and that nothing from outside gets into it unescaped."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.laws.engine.law_results import LawResult, LawVerdict, headline, verdict_of
from dokimos.laws.reporting.law_page import PageContext, render_page, write_page
from tests.cli.test_law import run as cli
from tests.laws.toy import MORE_FELONIES, run

CONTEXT = PageContext("Laws <put> to the test", "2026-01-02 03:04 UTC", "0.1.0")


SAME = "input x1; var x2 := x1[felonies := x1.felonies * 1]; ENSURES d1 == d2"


NEVER = "input x1; requires x1.age > 200; var x2 := x1;"


FAILING = "input x1; output d; { d = int(x1[0]) // int(x1[1] > 90) } ensures d > 0;"


def named(result: LawResult, name: str) -> LawResult:
    return replace(result, law=replace(result.law, name=name))


@pytest.fixture(scope="module")
def results() -> list[LawResult]:
    made = {
        "laws/same.law": run(SAME),
        "laws/more.law": run(MORE_FELONIES, by=("sex", "felonies"), exhaustive=False, budget=2000),
        "laws/never.law": run(NEVER),
        "laws/failing.law": run(FAILING, budget=20),
    }
    return [named(result, name) for name, result in made.items()]


def page(results: list[LawResult]) -> str:
    return render_page(results, [f"again {k} <&>" for k in range(len(results))], CONTEXT)


def test_the_worst_comes_first(results: list[LawResult]) -> None:
    text = page(results)
    assert "function violates 1 of 4 laws: more." in text
    places = [text.index(f'id="law-{k}"') for k in (2, 4, 3, 1)]
    assert places == sorted(places)
    assert "Laws &lt;put&gt; to the test" in text and "again 1 &lt;&amp;&gt;" in text
    assert "more felonies the risk falls from" in text
    assert "Violated, by sex" in text and "Violated, by first decision" in text
    assert re.search(r'class="axis"><i style="left:0.0%"></i><small style="left:0.0%">0 %</small>', text)
    assert '<a href="#law-2">more</a>' in text and '<a href="#fine">' in text
    assert "ZeroDivisionError" in text and "x1 is row" in text
    assert "(95\xa0%: " in text
    assert text == page(results)
    assert "http://" not in text and "https://" not in text


def test_verdicts_and_headlines(results: list[LawResult]) -> None:
    same, more, never, failing = results
    kinds = [verdict_of(result) for result in results]
    assert kinds == [LawVerdict.HOLDS, LawVerdict.VIOLATED, LawVerdict.UNTESTED, LawVerdict.FAILED]
    assert headline([more], ["more"]) == "function violates the law: more."
    assert headline([more] * 6, list("abcdef")) == "function violates 6 of 6 laws: a, b, c, d and 2 more."
    assert headline([same, failing], ["a", "b"]).startswith("No violation was found, but code failed")
    assert headline([same, never], ["a", "b"]).startswith("Nothing could be tested for b")
    assert headline([same], ["a"]) == "function satisfies the law in every draw from the data."
    passed = run(SAME, exhaustive=False, budget=10)
    assert verdict_of(passed) is LawVerdict.PASSED
    assert headline([same, passed], ["a", "b"]) == "No violation of all 2 laws was found in function."
    rounding = replace(more, violations=(), unconfirmed=3)
    assert verdict_of(rounding) is LawVerdict.ROUNDING
    kept = replace(more, model=replace(more.model, name="/a/compas-0123456789abcdef.onnx"))
    assert headline([kept], ["a"]).startswith("compas.onnx violates")
    assert headline([kept, more], ["a", "b"]).startswith("One of the models violates 2 of 2")
    shown = page([rounding, replace(passed, is_interrupted=True), replace(never, is_starved=True)])
    assert "rounding, not counted" in shown and "was interrupted" in shown and "almost never holds" in shown


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    (tmp_path / "people.py").write_text(
        "from dokimos.laws import integer\nFEATURES = [integer('age', 0, 9)]\n"
        "def inputs():\n    return [[k] for k in range(9)]\n"
        "def model():\n    return lambda x: int(x[0] == 4)\n"
    )
    (tmp_path / "a.law").write_text(
        "import people; input x1; var x2 := x1[age := x1.age + randInt(1, 3)]; output d1; output d2;"
        "{ d1 = predict(x1)\n d2 = predict(x2) } ensures d1 <= d2;"
    )
    html = tmp_path / "made" / "laws.html"
    problem = cli("test", tmp_path / "a.law", "--html", html).exception
    assert isinstance(problem, InputError) and f"there is no folder {html.parent}" in str(problem)
    html.parent.mkdir()
    done = cli("test", tmp_path / "a.law", "--html", html, "--source", "range", "--no-exhaustive")
    assert done.exit_code == 1 and "the page of 1 law" in done.stdout
    text = html.read_text()
    assert "--source range --no-exhaustive" in text and "The model of people violates the law: a." in text
    assert cli("test", tmp_path / "a.law", "--html", html, "--exhaustive").exit_code == 1
    assert "--exhaustive" in html.read_text()
    for place, said in ((tmp_path, "is a folder"), (html / "x.html", "cannot be written")):
        problem = cli("test", tmp_path / "a.law", "--html", place).exception
        assert isinstance(problem, InputError) and said in str(problem)


def test_a_page_that_cannot_be_written(tmp_path: Path, results: list[LawResult]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        write_page(results[:1], ["again"], CONTEXT, tmp_path / "file" / "page.html")
