"""Results that are tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dokimos.core.errors import InputError
from dokimos.core.records import Table, record_of
from dokimos.suites.instance import Label


@dataclass(frozen=True)
class Cities(Table):
    names: tuple[str, ...]

    def to_records(self) -> list[dict[str, Any]]:
        return [{"name": name, "length": float(len(name)), "note": None} for name in self.names]


def test_a_frame_has_the_records() -> None:
    frame = Cities(("Ur", "Rome")).to_frame()
    assert list(frame.columns) == ["name", "length", "note"]
    assert list(frame["length"]) == [2, 4]


def test_without_pandas_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"^A frame needs pandas .*`to_records` does not\.$"):
        Cities(()).to_frame()


def test_a_notebook_shows_the_first_rows_escaped() -> None:
    shown = Cities(("<b>", *["Ur"] * 29))._repr_html_()
    assert shown.count("<tr>") == 21 and "<p>20 of 30 rows</p>" in shown
    assert "<td>&lt;b&gt;</td><td>3</td><td></td>" in shown and "<b>" not in shown
    assert "<table>" not in Cities(())._repr_html_()


def test_cells_are_plain() -> None:
    @dataclass(frozen=True)
    class Row:
        label: Label
        place: Path
        count: int

    assert record_of(Row(Label.SAT, Path("a/b"), 3), "label", "place", "count") == {
        "label": "sat",
        "place": "a/b",
        "count": 3,
    }


def test_a_log_has_the_table_and_the_numbers_of_a_single_row(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: dict[str, Any] = {}
    fake = SimpleNamespace(
        log_table=lambda columns, name: logged.update({name: columns}),
        log_metric=lambda name, value: logged.update({name: value}),
    )
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    Cities(("Ur",)).log()
    assert logged == {
        "dokimos.json": {"name": ["Ur"], "length": ["2"], "note": [""]},
        "dokimos.length": 2.0,
    }
    Cities(("Ur", "Rome")).log("two")
    assert "two.length" not in logged and logged["two.json"]["name"] == ["Ur", "Rome"]
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(InputError, match="needs mlflow"):
        Cities(()).log()
