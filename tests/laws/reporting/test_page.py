"""The page of laws: what stands on it, and that nothing from outside gets into it unescaped."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import InputError
from dokimos.laws.domain.lookup import load_domain
from dokimos.laws.engine.descriptions import one_of
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawResult, LawSettings
from dokimos.laws.engine.verdicts import LawVerdict, headline, verdict_of
from dokimos.laws.language.parser import parse_law
from dokimos.laws.reporting.case_view import Change, compare_texts, show
from dokimos.laws.reporting.page import PageContext, render_page, write_page
from dokimos.laws.reporting.pictures import data_address, png
from tests.cli.test_law import run as cli
from tests.laws.engine.test_law_test import run
from tests.laws.toy import MORE_FELONIES, domain

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
    assert headline([same, never], ["a", "b"]).startswith("Nothing could be tested of b")
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


def test_records_side_by_side() -> None:
    found = run(MORE_FELONIES, exhaustive=False, budget=2000)
    case = found.violations[0].case
    shown = show(case, found.law, found.domain)
    assert shown.names == ("x1", "x2")
    (row,) = shown.rows
    assert (row.name, row.changed) == ("felonies", (False, True))
    assert row.values == (f"{case.inputs['x1'][1]:g}", f"{case.values['x2'][1]:g}")
    (decision,) = shown.decisions
    assert decision.name == "risk" and decision.changed == (False, True)
    same = dict(shown.same)
    assert set(same) == {"age", "income", "recid", "sex"} and same["sex"] in ("Female", "Male")
    assert not shown.pictures and not shown.texts and not shown.left_off
    bare = show(case, found.law, replace(found.domain, layout=None))
    assert [each.name for each in bare.rows] == ["feature 1"] and not bare.same


def test_blocks_of_code_and_many_features() -> None:
    block = "output d; { d = 7 if len(y1) else x2 } ensures d < 7;"
    text = f"input x1; input y1; var x2 := x1[felonies := 0]; {block}"
    found = run(text, budget=5, exhaustive=False, of=domain())
    shown = show(found.violations[0].case, found.law, found.domain)
    assert shown.names == ("x1", "y1", "x2")
    assert [(row.name, row.values) for row in shown.decisions] == [("d", ("7",))]
    wide = replace(
        found.violations[0].case,
        inputs={"x1": np.zeros(40), "y1": np.ones(40)},
        values={"x2": np.zeros(40), "d": 7},
    )
    shown = show(wide, found.law, replace(found.domain, layout=None))
    assert (len(shown.rows), shown.left_off) == (14, 26)
    odd = replace(wide, inputs={"x1": {"a": 1}, "y1": "b" * 300})
    (row,) = show(odd, found.law, replace(found.domain, layout=None)).rows
    assert row.name == "record" and row.values[1].endswith("…")
    assert "colspan" in page([found])


def test_pictures() -> None:
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    content = png(grey)
    assert content.startswith(b"\x89PNG") and struct.unpack(">II", content[16:24]) == (3, 2)
    start = content.index(b"IDAT")
    length = struct.unpack(">I", content[start - 4 : start])[0]
    assert zlib.decompress(content[start + 4 : start + 4 + length]) == bytes([0, 0, 1, 2, 0, 3, 4, 5])
    assert png(np.zeros((2, 2, 3), np.uint8))[25] == 2
    assert data_address(content).startswith("data:image/png;base64,iVBOR")
    wrong: list[Any] = [np.zeros(3, np.uint8), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 2), np.uint8)]
    for each in wrong:
        with pytest.raises(ValueError, match="has the shape"):
            png(each)
    with pytest.raises(ValueError, match="made of bytes"):
        png(np.zeros((2, 2)))


def test_pictures_and_texts_of_a_domain(tmp_path: Path) -> None:
    (tmp_path / "shown.py").write_text(
        "import numpy as np\nfrom dokimos.laws import text as text_feature\n"
        "def inputs():\n    return np.arange(8.0).reshape(2, 4)\n"
        "def picture(x):\n    return (10 * x).reshape(2, 2).astype(np.uint8)\n"
        "def text(x):\n    return 'one <b>' + str(int(x[0]))\n"
        "def model():\n    return lambda x: int(x[0])\n"
    )
    law = parse_law(
        "import shown; input x1; var x2 := setFeat(x1, 0, 9); output d1; output d2;"
        "{ d1 = predict(x1)\n d2 = predict(x2) } ensures d1 == d2;"
    )
    own = load_domain("shown", folder=tmp_path)
    assert own.picture is not None and own.text is not None and not own.functions
    found = run_law(law, domain=own, settings=LawSettings(budget=10))
    shown = show(found.violations[0].case, law, own)
    assert len(shown.pictures) == 2 and not shown.rows
    text = page([found])
    assert text.count('<img src="data:image/png') == 4 and "The model of shown violates" in text
    assert "picture" not in load_domain("shown", folder=tmp_path).functions
    words = page([replace(found, domain=replace(own, picture=None))])
    assert "<del>0</del><ins>9</ins>" in words and "one &lt;b&gt;" in words

    def broken(record: Any) -> Any:
        raise OSError("no ink")

    assert "could not show the records: OSError: no ink" in page(
        [replace(found, domain=replace(own, picture=broken))]
    )
    imported = load_domain("shown", folder=tmp_path).with_functions_of(domain())
    assert imported.picture is not None


def test_texts_compared() -> None:
    pieces = compare_texts("the room was great", "the staff was great!")
    assert pieces[:3] == ((Change.KEPT, "the "), (Change.REMOVED, "room"), (Change.ADDED, "staff"))
    kept = "".join(piece for change, piece in pieces if change is not Change.ADDED)
    made = "".join(piece for change, piece in pieces if change is not Change.REMOVED)
    assert (kept, made) == ("the room was great", "the staff was great!")
    long = compare_texts("a " * 5000, "a " * 5000)
    assert sum(len(piece) for _, piece in long) < 3100 and long[0][1].endswith("…")


def test_singulars() -> None:
    things = {
        "juvenile felonies": "juvenile felony",
        "points of residence": "point of residence",
        "status": "status",
        "glass": "glass",
        "age": "age",
        "days between screening and arrest": "day between screening and arrest",
    }
    assert {many: one_of(many) for many in things} == things


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
