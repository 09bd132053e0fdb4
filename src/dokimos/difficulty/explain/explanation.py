"""The explanation of several campaigns together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from dokimos.core import strict_json
from dokimos.core.documents import finite
from dokimos.difficulty.explain.breaking_points import best_of_style, breaking_curves, find_unique_results
from dokimos.difficulty.explain.rows import (
    EXPLAINING,
    Account,
    Explanation,
    MissingProfiles,
    Observation,
    Separation,
    Status,
    UniqueResult,
    observe,
)
from dokimos.difficulty.explain.separation import isolated_axes, separations
from dokimos.difficulty.explain.strata import Resampling, Strata
from dokimos.judging.judged_campaign import JudgedCampaign, JudgedCampaigns
from dokimos.judging.verdicts import Judgement, Naming, common_set, unchecked_in_words
from dokimos.suites.facts import Facts
from dokimos.verifiers.base import CertificateStyle

#: The version of what `explanation_to_json` gives.
SCHEMA = 3


def explain_campaigns(judged: JudgedCampaigns, *, resampling: Resampling | None = None) -> Explanation:
    """Explain judged campaigns together, with the knobs and profiles that their suites hold."""
    missing = dict.fromkeys(each for one in judged.campaigns for each in missing_profiles(one))
    return explain(judged.judgements, judged.facts, missing=tuple(missing), resampling=resampling)


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Everything in an explanation, with the names of its fields, as plain JSON.

    JSON has no infinite numbers: they are the texts "inf" and "-inf".
    """
    found: dict[str, Any] = finite({"schema": SCHEMA, **strict_json.plain(explanation)})
    return found


def missing_profiles(judged: JudgedCampaign) -> tuple[MissingProfiles, ...]:
    """Which instances have no usable profile, by suite and reason, with the command that makes one."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for (suite, name), facts in judged.facts.items():
        if facts.profile is None:
            by_reason.setdefault((suite, facts.problem), []).append(name)
    return tuple(
        MissingProfiles(suite, reason, tuple(names), f"dokimos profile {quote(str(judged.folders[suite]))}")
        for suite in judged.folders
        for (of, reason), names in sorted(by_reason.items())
        if of == suite
    )


def explain(
    judgements: Sequence[Judgement],
    facts: Mapping[tuple[str, str], Facts],
    *,
    missing: Sequence[MissingProfiles] = (),
    resampling: Resampling | None = None,
) -> Explanation:
    """The explanation of judged runs; `missing` is passed on unchanged."""
    naming = Naming.of([j.record for j in judgements])
    observations = observe(judgements, facts, naming)
    verifiers = sorted({o.verifier for o in observations})
    styles = [style for style in CertificateStyle if any(style in o.styles for o in observations)]
    tests = _Tests(resampling or Resampling())
    alone_among_verifiers = find_unique_results(observations)
    best = {style: best_of_style(observations, style) for style in styles}
    alone_among_styles = find_unique_results([o for style in styles for o in best[style]])
    return Explanation(
        observations=observations,
        verifiers=tuple(
            _account(name, mine, mine, alone_among_verifiers, tests)
            for name in verifiers
            if (mine := [o for o in observations if o.verifier == name])
        ),
        styles=tuple(
            _account(style.value, pooled, best[style], alone_among_styles, tests)
            for style in styles
            if (pooled := [o for o in observations if style in o.styles])
        ),
        missing=tuple(missing),
        remarks=tuple(filter(None, (*_checked_and_common(judgements, naming), *_remarks(judgements)))),
    )


class _Tests:
    """The tests on components, computed once for every set of verifiers, whatever its names."""

    def __init__(self, resampling: Resampling) -> None:
        self._resampling = resampling
        self._found: dict[tuple[str, ...], tuple[Separation, ...]] = {}

    def of(self, members: tuple[str, ...], observations: Sequence[Observation]) -> tuple[Separation, ...]:
        """The tests on all `observations` of `members`."""
        if members not in self._found:
            subject = ", ".join(members)
            strata = Strata.of(observations, EXPLAINING)
            self._found[members] = separations(subject, observations, self._resampling, strata)
        return self._found[members]


def _account(
    subject: str,
    observations: Sequence[Observation],
    best: Sequence[Observation],
    lone: Sequence[UniqueResult],
    tests: _Tests,
) -> Account:
    counts = Counter(o.status for o in observations)
    members = tuple(sorted({o.verifier for o in observations}))
    return Account(
        subject=subject,
        members=members,
        counts={status: counts[status] for status in Status},
        separations=tuple(replace(row, subject=subject) for row in tests.of(members, observations)),
        curves=breaking_curves(subject, best),
        axes=isolated_axes(subject, best),
        alone=tuple(row for row in lone if row.subject == subject),
    )


def _checked_and_common(judgements: Sequence[Judgement], naming: Naming) -> tuple[str, str]:
    """What a reader must know first: which answers are unchecked, and what verifiers are compared on."""
    unchecked = unchecked_in_words(judgements)
    why = " They have no label or proof, so they count neither as solved nor as failed."
    return unchecked and f"{unchecked}{why}", common_set(judgements, naming).remark


def _remarks(judgements: Sequence[Judgement]) -> tuple[str, ...]:
    limits = {
        (j.record.suite, j.record.instance, j.record.limits.wall_seconds)
        for j in judgements
        if j.record.limits is not None
    }
    several = [key for key, count in Counter((s, i) for s, i, _ in limits).items() if count > 1]
    if not several:
        return ()
    times = sorted({seconds for *key, seconds in limits if tuple(key) in several})
    listed = ", ".join(f"{seconds:g} s" for seconds in times)
    return (
        f"{len(several)} instances were run with different time limits ({listed}): a run that timed out "
        "with one limit might be solved with another.",
    )
