from __future__ import annotations

from dataclasses import replace

from dokimos.difficulty.explain.rows import Status
from dokimos.reports.exports import report_figures
from dokimos.reports.findings import Findings
from dokimos.reports.sections.reasons import drawn_curves
from tests.reports.explanation_sample import curve, explained
from tests.reports.sample import sample_judgements


def test_without_an_explanation_there_is_the_cactus_only() -> None:
    found = report_figures(Findings(sample_judgements(), limit_wall_seconds=10))
    assert [figure.name for figure in found] == ["cactus"]
    assert list(report_figures(Findings([]))) == []


def test_every_figure_has_a_name_of_its_own() -> None:
    runs = sample_judgements()
    explanation = explained(runs)
    names = [figure.name for figure in report_figures(Findings(runs, explanation=explanation))]
    assert len(names) == len(set(names))
    assert {"cactus", "auc"} <= set(names)


def test_curves_along_which_nobody_solves_anything_come_last() -> None:
    explanation = explained(sample_judgements())
    solved = curve("marabou", (1, Status.SOLVED, 1.0), (2, Status.TIMEOUT, 9.0), breaks_at=2)
    never = replace(curve("marabou", (1, Status.FAILED, 1.0), (2, Status.FAILED, 1.0)), knob="depth")
    account = replace(explanation.verifiers[0], curves=(never, solved))
    found = drawn_curves(replace(explanation, verifiers=(account,)))
    assert [figure.name for figure in found.first] == ["breaking-exclusive-pairs-pairs"]
    assert [figure.name for figure in found.more] == ["breaking-exclusive-pairs-depth"]
