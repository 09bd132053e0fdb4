from __future__ import annotations

from dataclasses import replace

from dokimos.difficulty.explain.rows import Status
from dokimos.reports.figures.gallery import gallery, strongest_first
from dokimos.reports.rows import report_rows
from tests.reports.explained_sample import INTERACTION, curve, explained
from tests.reports.sample import sample_judgements


def test_without_an_explanation_there_is_the_cactus_only() -> None:
    found = gallery(report_rows(sample_judgements()), limit_wall_seconds=10)
    assert [figure.name for figure in found] == ["cactus"]
    assert list(gallery(report_rows([]), limit_wall_seconds=None)) == []


def test_every_figure_has_a_name_of_its_own() -> None:
    runs = sample_judgements()
    found = gallery(report_rows(runs, explanation=explained(runs)), limit_wall_seconds=10)
    names = [figure.name for figure in found]
    assert len(names) == len(set(names))
    assert {"cactus", "auc", "trajectory-quick"} <= set(names)
    assert [figure.title for figure in found.maps] == [
        figure.title for figure in found.maps if figure.title.startswith(("marabou", "scripted"))
    ]
    assert len(found.maps) == 2


def test_curves_along_which_nobody_solves_anything_come_last() -> None:
    explanation = explained(sample_judgements())
    solved = curve("marabou", (1, Status.SOLVED, 1.0), (2, Status.TIMEOUT, 9.0), breaks_at=2)
    never = replace(curve("marabou", (1, Status.FAILED, 1.0), (2, Status.FAILED, 1.0)), knob="depth")
    account = replace(explanation.verifiers[0], curves=(never, solved))
    rows = report_rows(
        sample_judgements(), explanation=replace(explanation, verifiers=(account,), trajectories=())
    )
    found = gallery(rows, limit_wall_seconds=10)
    assert [figure.name for figure in found.curves] == ["breaking-exclusive-pairs-pairs"]
    assert [figure.name for figure in found.more_curves] == ["breaking-exclusive-pairs-depth"]
    assert found.trajectories == ()


def test_the_strongest_pair_comes_first() -> None:
    weak = replace(INTERACTION, effect=0.1)
    untested = replace(INTERACTION, effect=None, low=None, high=None, note="not enough data")
    assert strongest_first([untested, weak, replace(weak, effect=-0.9)]) == [
        replace(weak, effect=-0.9),
        weak,
        untested,
    ]
