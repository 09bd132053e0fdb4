"""The paper's figures and Table 1 for one's own campaigns."""

from __future__ import annotations

from pathlib import Path

import pytest

import dokimos
from dokimos.core.errors import InputError
from dokimos.difficulty.explain.rows import Explanation, Status
from dokimos_studies.veristress.figures import map_of, outcomes, page, pair_named, runtimes, single
from dokimos_studies.veristress.table1 import ROWS, TABLE_1, recipe
from tests.difficulty.explain.sample import seen
from tests.studies.running import studies

SEEN = [
    seen("a", Status.SOLVED, seconds=1.0, position=0, unstable=0.1, gradient_dimension=2.0),
    seen("b", Status.TIMEOUT, seconds=9.0, position=1, unstable=0.9, gradient_dimension=50.0),
    seen("c", Status.FAILED, seconds=4.0, position=2, unstable=0.9, gradient_dimension=50.0),
    seen(
        "a",
        Status.SOLVED,
        seconds=3.0,
        position=0,
        verifier="reference",
        unstable=0.1,
        gradient_dimension=2.0,
    ),
    seen("p", Status.SOLVED, family="polynomial", knobs={"degree": 10.0, "width": 3.0}),
    seen("q", Status.TIMEOUT, family="polynomial", knobs={"degree": 2.0, "width": 3.0}),
]


def test_a_mean_counts_what_was_solved_and_what_ran_out_of_time() -> None:
    lines = list(runtimes(SEEN, spread=False))
    assert lines[0] == "| family | marabou | reference |"
    assert lines[2] == "| f | 5.0 (1/3) | 3.0 (1/1) |"
    assert "| f | 5.0 ± 4.0 |  |" in list(runtimes(SEEN, spread=True))


def test_every_outcome_is_counted_once() -> None:
    (row,) = (line for line in outcomes(SEEN) if line.startswith("| marabou"))
    counts = [int(cell) for cell in row.split("|")[2:-1]]
    assert counts[-1] == sum(counts[:-1]) == 5


def test_one_family_by_what_differs_in_its_knobs() -> None:
    assert list(single(SEEN, "polynomial")) == [
        "| degree | marabou |",
        "| --- | ---: |",
        "| 2 | timeout |",
        "| 10 | 1.00 s |",
    ]


def test_the_map_has_the_rate_of_every_bin() -> None:
    grid = [
        seen(f"{x}{y}", Status.TIMEOUT if x == y == 3 else Status.SOLVED, unstable=x, gradient_dimension=y)
        for x in range(4)
        for y in range(4)
    ]
    figure = map_of(
        [*grid, seen("infinite", Status.TIMEOUT, unstable=float("inf"))], "unstable", "gradient_dimension"
    )
    assert figure is not None
    assert figure.body.count("1 of 4 timed out") == 1
    assert figure.body.count("0 of ") == figure.body.count("<rect") - 1
    assert map_of(SEEN, "unstable", "regions") is None


@pytest.mark.parametrize("text", ["U,d_eff", "unstable, gradient_dimension"])
def test_components_are_named_by_symbol_or_name(text: str) -> None:
    assert pair_named(text) == ("unstable", "gradient_dimension")


@pytest.mark.parametrize("text", ["U", "U,d_eff,M", "U,colour"])
def test_other_pairs_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        pair_named(text)


def test_the_page_has_every_figure_and_its_drawings() -> None:
    drawings: dict[str, str] = {}
    explained = Explanation(observations=tuple(SEEN), verifiers=(), styles=(), missing=(), remarks=())
    lines = list(page(explained, ("unstable", "gradient_dimension"), drawings))
    heads = [line for line in lines if line.startswith("## ")]
    assert len(heads) == 7
    assert all(any(f"Figure {k}" in head or f"Figures {k}" in head for head in heads) for k in (2, 3, 4, 5))
    assert set(drawings) == {"map.svg", "s.svg"}
    assert all(drawing.startswith("<svg") for drawing in drawings.values())


def test_table_1_has_the_rows_of_the_paper() -> None:
    assert len(ROWS) == 23
    assert set(ROWS) == set(TABLE_1)
    assert recipe(5).size == 5 * 20


def test_table_1_is_made_run_and_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos_studies.veristress.table1.ROWS", ((50, 2, 50, 5e-3), (50, 4, 50, 5e-3)))
    monkeypatch.setitem(TABLE_1, (50, 2, 50, 5e-3), 5)
    monkeypatch.setitem(TABLE_1, (50, 4, 50, 5e-3), 5)
    assert studies("table1", "--make", tmp_path / "suite", "--points", 1).code == 0
    settings = dokimos.RunSettings(timeout_seconds=10)
    dokimos.run(tmp_path / "suite", ["planted=ideal"], settings=settings, out=tmp_path / "run")
    printed = studies("table1", tmp_path / "run")
    assert printed.code == 0
    assert "| 50 | 2 | 50 | 0.005 | 1 |" in printed.out


def test_table_1_of_another_run_is_refused(tmp_path: Path) -> None:
    dokimos.generate(out=tmp_path / "suite", family="exclusive-pairs", knobs={"inputs": 4, "pairs": 1})
    settings = dokimos.RunSettings(timeout_seconds=10)
    dokimos.run(tmp_path / "suite", ["planted=ideal"], settings=settings, out=tmp_path / "run")
    printed = studies("table1", tmp_path / "run")
    assert printed.code == 2
    assert "no instance of Table 1" in printed.err
