"""The page of survivors: what it draws, and what it says."""

from __future__ import annotations

from pathlib import Path

from dokimos.judging.survivors import SurvivorCurve
from dokimos.reports.figures.curves import MOST_CURVES, strongest, survivors
from dokimos.reports.page import AssessedSuite, write_survivor_page

CURVES = (
    *(SurvivorCurve(f"attack-{k}", 10, {0.1: 10, 1.0: k}) for k in range(8)),
    SurvivorCurve("any", 10, {0.1: 9, 1.0: 0}),
)


def test_all_attacks_come_first_then_those_that_leave_least() -> None:
    assert [one.attack for one in strongest(CURVES)] == ["any", *(f"attack-{k}" for k in range(5))]
    assert len(strongest(CURVES)) == MOST_CURVES


def test_nothing_is_drawn_where_there_is_nothing_to_find() -> None:
    assert survivors(()) is None
    assert survivors((SurvivorCurve("any", 0, {1.0: 0}),)) is None


def test_the_page_has_the_drawing_and_every_attack_in_its_table(tmp_path: Path) -> None:
    write_survivor_page(CURVES, AssessedSuite("<mine>", 1.0, 8), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "0 of 10 counterexamples survive every attack with 1 CPU-second each." in page
    assert "attack-4: 4 of 10 hidden after 1 s" in page
    assert all(f">attack-{k}<" in page for k in range(8))
    assert "&lt;mine&gt;" in page and "<mine>" not in page


def test_a_page_without_counterexamples_says_so(tmp_path: Path) -> None:
    write_survivor_page((), AssessedSuite("s", 1.0, 1), tmp_path / "page.html")
    assert "There are no counterexamples to look for." in (tmp_path / "page.html").read_text()
