"""Explanations as the analysis hands them on: small ones to look at closely, and from whole campaigns."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.difficulty.explain.explanation import explain
from dokimos.difficulty.explain.rows import (
    BreakingCurve,
    Explanation,
    MissingProfiles,
    Rung,
    Separation,
    Status,
)
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.verdicts import Judgement
from dokimos.suites.facts import COMPONENTS, Facts, Measurement, Profile, ProfileSettings


def profile(instance: str, number: int) -> Profile:
    """A profile that differs from instance to instance, with a note and something not applicable."""
    values = {"margin": 0.5 - 0.01 * number, "ibp_gap": 10.0 + number**2, "unstable": number % 10 / 10}
    components = {name: Measurement(value) for name, value in values.items()}
    components["regions"] = Measurement(6.9, ">= log N: every sample has its own")
    components["gradient_dimension"] = Measurement.not_applicable("the margin is <constant>")
    return Profile(
        instance=instance,
        network_sha256="n",
        property_sha256="p",
        settings=ProfileSettings(),
        components={name: components[name] for name in COMPONENTS},
        extras={"parameters": Measurement(100.0 + number)},
    )


def known_facts(
    judgements: Sequence[Judgement], *, without: Sequence[str] = ()
) -> dict[tuple[str, str], Facts]:
    """What the suites of `judgements` know of their instances: knobs, and a profile for most."""
    names = sorted({(j.record.suite, j.record.instance) for j in judgements})
    return {
        (suite, name): Facts(
            network_sha256=f"n{k}",
            property_sha256="p",
            position=k,
            made_by={"depth": k % 7, "gamma": 0.001, "disguise": ["permute"]},
            profile=None if name in without else profile(name, k),
            problem="there is no profile" if name in without else "",
        )
        for k, (suite, name) in enumerate(names)
    }


def explained(judgements: Sequence[Judgement]) -> Explanation:
    """What the analysis really says of `judgements`, with few resamples."""
    known = known_facts(judgements)
    missing = (MissingProfiles("quick", "there is no profile", ("a", "b"), "dokimos profile quick"),)
    return explain(judgements, known, missing=missing, resampling=Resampling(100, 0))


def separation_row(subject: str, component: str, auc: float | None) -> Separation:
    if auc is None:
        return Separation(
            subject=subject, component=component, auc=None, low=None, high=None, p_value=None, families=1,
            without_low=None, without_high=None, pooled_auc=None, solved=9, timeouts=1, left_out=0,
            note="not enough data: 1 timeout",
        )  # fmt: skip
    return Separation(
        subject=subject, component=component, auc=auc, low=auc - 0.1, high=auc + 0.1, p_value=0.01,
        families=3, without_low=auc, without_high=auc, pooled_auc=0.5, solved=9, timeouts=8, left_out=1,
    )  # fmt: skip


def curve(
    subject: str, *rungs: tuple[float, Status, float], breaks_at: float | None = None
) -> BreakingCurve:
    points = tuple(
        Rung(value, status, seconds, int(status is Status.SOLVED), 1, (f"i{value:g}",))
        for value, status, seconds in rungs
    )
    return BreakingCurve(
        subject=subject,
        suite="ladder",
        family="exclusive-pairs",
        knob="pairs",
        label="unsat",
        fixed={"gamma": 0.001},
        points=points,
        breaks_at=breaks_at,
        broken_by=None if breaks_at is None else Status.TIMEOUT,
        last_solved=points[0].value if breaks_at is not None else None,
        rising=True,
        note="" if breaks_at is not None else "it solves every step",
    )
