"""The knobs of the published grid: what each moves here, beside what it moves in the published ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos_studies.veristress.knobs import ROWS, Found, Row, measured, page, published_factor
from dokimos_studies.veristress.published import CONSTRUCTORS, profiles
from tests.shared import SHARED

FACTS = SHARED.parent / "veristressgt"
NAMES = [f"{row.family}-{row.knob}-{row.component}" for row in ROWS]
#: These take more than a second or two.
LONG = {
    "convex-corners-hinges-ibp_gap",
    "contractive-cnn-channels-unstable",
    "exclusive-pairs-pairs-unstable",
    "exclusive-pairs-pairs-ibp_gap",
    "exact-radius-width-ibp_gap",
    "paired-bias-size-gradient_dimension",
    "polynomial-buffer-margin",
}
PARAMETERS = [
    pytest.param(row, marks=[pytest.mark.slow] * (name in LONG), id=name)
    for row, name in zip(ROWS, NAMES, strict=True)
]


@pytest.mark.parametrize("row", PARAMETERS)
def test_every_knob_moves_the_profile_as_published_or_the_page_says_why_not(row: Row) -> None:
    found = measured(row, seeds=2, samples=300)
    assert not 2 / 3 < found.factor < 3 / 2 or 2 / 3 < row.factor < 3 / 2
    assert found.is_alike or row.why


def test_the_page_names_what_is_not_alike() -> None:
    row = next(row for row in ROWS if not row.why)
    alike, other = Found(row, 1.0, row.factor), Found(row, 1.0, 10 * row.factor)
    assert alike.is_alike
    assert not other.is_alike
    lines = list(page([alike, other], 1))
    assert "| alike |" in lines[-2]
    assert "**not alike**" in lines[-1]


def test_the_rows_cover_every_published_family() -> None:
    assert {row.family for row in ROWS} == set(CONSTRUCTORS)


@pytest.mark.skipif(not FACTS.is_dir(), reason="the published tables are not on this machine")
@pytest.mark.parametrize("row", [row for row in ROWS if row.component != "nonlinear_units"])
def test_the_recorded_factors_are_those_of_the_published_profiles(row: Row) -> None:
    known = {name: found for (_, name), found in profiles(Path(FACTS)).items()}
    assert published_factor(row, known) == pytest.approx(row.factor, rel=0.02)
