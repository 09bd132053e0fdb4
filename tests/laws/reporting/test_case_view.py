"""The records of a violation side by side."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.laws.domain.definition import load_domain
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.reporting.case_view import TextChange, Track, compare_texts, track_of, view_case
from tests.laws.reporting.test_law_page import page
from tests.laws.toy import MORE_FELONIES, domain, run


def test_records_side_by_side() -> None:
    found = run(MORE_FELONIES, exhaustive=False, budget=2000)
    case = found.violations[0].case
    shown = view_case(case, found.law, found.domain)
    assert shown.names == ("x1", "x2")
    (row,) = shown.rows
    assert (row.name, row.changed) == ("felonies", (False, True))
    assert row.values == (f"{case.inputs['x1'][1]:g}", f"{case.values['x2'][1]:g}")
    (decision,) = shown.decisions
    assert decision.name == "risk" and decision.changed == (False, True)
    same = dict(shown.same)
    assert set(same) == {"age", "income", "recid", "sex"} and same["sex"] in ("Female", "Male")
    assert not shown.pictures and not shown.texts and not shown.left_off
    bare = view_case(case, found.law, replace(found.domain, layout=None))
    assert [each.name for each in bare.rows] == ["feature 1"] and not bare.same


def test_a_number_that_moved_has_a_track_in_its_range() -> None:
    assert track_of(["2", "7"], 0, 10) == Track(20.0, (70.0,), "0", "10")
    assert track_of(["2", "12"], 0, 10) == Track(16.67, (100.0,), "0", "12")  # it left the range
    assert track_of(["2", "7"], None, math.inf) == Track(0.0, (100.0,), "2", "7")
    for texts in (["2", "2"], ["Athens", "Bern"], ["nan", "1"], ["1e308", "-1e308"]):
        assert track_of(texts, None, None) is None
    found = run(MORE_FELONIES, exhaustive=False, budget=2000)
    (row,) = view_case(found.violations[0].case, found.law, found.domain).rows
    assert row.track is not None and row.track.bar[1] > 0
    assert 'class="track"' in page([found])


def test_blocks_of_code_and_many_features() -> None:
    block = "output d; { d = 7 if len(y1) else x2 } ensures d < 7;"
    text = f"input x1; input y1; var x2 := x1[felonies := 0]; {block}"
    found = run(text, budget=5, exhaustive=False, of=domain())
    shown = view_case(found.violations[0].case, found.law, found.domain)
    assert shown.names == ("x1", "y1", "x2")
    assert [(row.name, row.values) for row in shown.decisions] == [("d", ("7",))]
    wide = replace(
        found.violations[0].case,
        inputs={"x1": np.zeros(40), "y1": np.ones(40)},
        values={"x2": np.zeros(40), "d": 7},
    )
    shown = view_case(wide, found.law, replace(found.domain, layout=None))
    assert (len(shown.rows), shown.left_off) == (14, 26)
    odd = replace(wide, inputs={"x1": {"a": 1}, "y1": "b" * 300})
    (row,) = view_case(odd, found.law, replace(found.domain, layout=None)).rows
    assert row.name == "record" and row.values[1].endswith("…")
    assert "colspan" in page([found])


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
    shown = view_case(found.violations[0].case, law, own)
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
    assert pieces[:3] == (
        (TextChange.KEPT, "the "),
        (TextChange.REMOVED, "room"),
        (TextChange.ADDED, "staff"),
    )
    kept = "".join(piece for change, piece in pieces if change is not TextChange.ADDED)
    made = "".join(piece for change, piece in pieces if change is not TextChange.REMOVED)
    assert (kept, made) == ("the room was great", "the staff was great!")
    long = compare_texts("a " * 5000, "a " * 5000)
    assert sum(len(piece) for _, piece in long) < 3100 and long[0][1].endswith("…")
