from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dokimos.campaigns.journal import RunRecord
from dokimos.difficulty.explain.explanation import explain_campaigns, explanation_to_json
from dokimos.difficulty.explain.rows import Account, Explanation, Status, Uniqueness
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.suites.answers import Answer
from dokimos.verifiers.execution.limits import Limits
from tests.difficulty.explain.sample import LIMITS, Made, record, write_campaign, write_suite

QUICK = Resampling(resamples=300)
UNSTABLE = np.linspace(0, 1, 24)
MADE = [
    Made(
        f"i{k:02}",
        knobs={"pairs": k, "gamma": 0.5},
        components={"unstable": float(u), "margin": float((k * 7) % 24)},
    )
    for k, u in enumerate(UNSTABLE)
]


THREE_FAMILIES = [
    replace(made, name=f"{made.name}{k}", family=f"pairs{k}", seed=len(made.name) + 100 * j)
    for k in range(3)
    for j, made in enumerate(MADE)
]


def runs(verifier: str, solved_below: float, made: Sequence[Made] = MADE) -> list[RunRecord]:
    """A verifier that solves what has fewer unstable units than this."""
    return [
        record(
            one.name,
            Answer.UNSAT if (one.components or {})["unstable"] < solved_below else Answer.TIMEOUT,
            verifier=verifier,
            family=one.family,
        )
        for one in made
    ]


def explained(tmp_path: Path, made: Sequence[Made] = MADE, **verifiers: float) -> Explanation:
    suite = write_suite(tmp_path / "suite", made)
    records = [one for name, below in verifiers.items() for one in runs(name, below, made)]
    write_campaign(tmp_path / "run", suite, records, verifiers=list(verifiers))
    return explain_campaigns(judge_campaigns([tmp_path / "run"]), resampling=QUICK)


def account(accounts: tuple[Account, ...], subject: str) -> Account:
    (found,) = (one for one in accounts if one.subject == subject)
    return found


def test_what_was_planted_is_found(tmp_path: Path) -> None:
    found = explained(tmp_path, marabou=0.5, reference=0.8)
    marabou = account(found.verifiers, "marabou")
    aucs = {row.component: row.pooled_auc for row in marabou.separations}
    assert aucs["unstable"] == 1.0
    assert aucs["margin"] is not None and 0.2 < aucs["margin"] < 0.8
    assert aucs["regions"] is None
    assert {row.auc for row in marabou.separations} == {None}, "one family is not enough for a claim"
    assert marabou.counts == {**dict.fromkeys(Status, 0), Status.SOLVED: 12, Status.TIMEOUT: 12}
    (curve,) = marabou.curves
    assert (curve.knob, curve.breaks_at) == ("pairs", 12.0)
    reference = account(found.verifiers, "reference")
    assert [row.lone for row in reference.alone] == [Uniqueness.SOLVED] * 7
    assert [row.lone for row in marabou.alone] == [Uniqueness.FAILED] * 7
    assert found.missing == ()


def test_what_was_planted_in_three_families_is_claimed(tmp_path: Path) -> None:
    found = explained(tmp_path, THREE_FAMILIES, marabou=0.5, neuralsat=0.8)
    for one in (*found.verifiers, account(found.styles, "SAT")):
        rows = {row.component: row for row in one.separations}
        assert (rows["unstable"].auc, rows["unstable"].families) == (1.0, 3)
        assert [name for name, row in rows.items() if row.separates] == ["unstable"]
        assert {row.subject for row in one.separations} == {one.subject}


def test_styles_pool_their_verifiers(tmp_path: Path) -> None:
    found = explained(tmp_path, marabou=0.5, neuralsat=0.8, reference=0.2)
    assert [(one.subject, one.members) for one in found.styles] == [
        ("dual relaxation", ("reference",)),
        ("partition", ("reference",)),
        ("SAT", ("marabou", "neuralsat")),
    ]
    pooled = account(found.styles, "SAT")
    assert sum(pooled.counts.values()) == 2 * len(MADE)
    unstable = next(row for row in pooled.separations if row.component == "unstable")
    assert (unstable.timeouts, unstable.solved) == (12 + 5, 12 + 19)
    (curve,) = pooled.curves
    assert curve.breaks_at == 19.0, "the breaking point of a style is that of its best verifier"
    assert {row.lone for row in pooled.alone} == {Uniqueness.SOLVED}


def test_several_campaigns_are_explained_together(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", MADE)
    short = [replace(one, limits=Limits(wall_seconds=1.0)) for one in runs("marabou", 0.2)]
    write_campaign(tmp_path / "a", suite, runs("marabou", 0.5), verifiers=["marabou"])
    write_campaign(tmp_path / "b", suite, runs("reference", 0.5), verifiers=["reference"])
    write_campaign(tmp_path / "c", suite, short, verifiers=["marabou"])
    both = explain_campaigns(judge_campaigns([tmp_path / "a", tmp_path / "b"]), resampling=QUICK)
    assert [one.subject for one in both.verifiers] == ["marabou", "reference"]
    assert both.remarks == ()
    again = explain_campaigns(judge_campaigns([tmp_path / "a", tmp_path / "a"]), resampling=QUICK)
    assert {o.repeats for o in again.observations} == {1}, "a folder given twice counts once"
    mixed = explain_campaigns(judge_campaigns([tmp_path / "a", tmp_path / "c"]), resampling=QUICK)
    assert {o.repeats for o in mixed.observations} == {2}
    assert f"1 s, {LIMITS.wall_seconds:g} s" in mixed.remarks[0]


def test_without_profiles_the_rest_is_still_explained(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "suite", [replace(made, components=None) for made in MADE])
    write_campaign(tmp_path / "run", suite, runs("marabou", 0.5), verifiers=["marabou"])
    found = explain_campaigns(judge_campaigns([tmp_path / "run"]), resampling=QUICK)
    (missing,) = found.missing
    assert len(missing.instances) == len(MADE)
    (marabou,) = found.verifiers
    assert all(row.auc is None and "no profiles" in row.note for row in marabou.separations)
    assert marabou.curves[0].breaks_at == 12.0


def test_an_infinite_gap_is_a_rank_and_still_plain_json(tmp_path: Path) -> None:
    """The hardest instances are those without a finite gap."""
    made = [
        replace(one, infinite=("ibp_gap",)) if (one.components or {})["unstable"] > 0.5 else one
        for one in THREE_FAMILIES
    ]
    made = [replace(one, components={**(one.components or {}), "ibp_gap": 1.0}) for one in made]
    found = explained(tmp_path, made, marabou=0.5)
    gap = next(row for row in found.verifiers[0].separations if row.component == "ibp_gap")
    assert (gap.auc, gap.left_out) == (1.0, 0)
    document = json.loads(json.dumps(explanation_to_json(found), allow_nan=False))
    assert {o["components"]["ibp_gap"] for o in document["observations"]} == {1.0, "inf"}


def test_an_explanation_is_plain_json(tmp_path: Path) -> None:
    found = explained(tmp_path, marabou=0.5, reference=0.8)
    document = json.loads(json.dumps(explanation_to_json(found), allow_nan=False))
    assert document["schema"] == 3
    assert document["verifiers"][0]["counts"]["timeout"] == 12
    assert document["observations"][0]["styles"] == ["SAT"]
    assert len(document["observations"]) == 2 * len(MADE)
