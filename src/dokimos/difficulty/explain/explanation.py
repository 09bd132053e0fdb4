"""The explanation of several campaigns together, and its results in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from dokimos.core import strict_json
from dokimos.core.documents import finite
from dokimos.difficulty.components import meaning, symbol
from dokimos.difficulty.explain.breaking_points import best_of_style, breaking_curves, find_unique_results
from dokimos.difficulty.explain.rows import (
    CLAIM_LEVEL,
    EXPLAINING,
    Account,
    Explanation,
    IsolatedAxis,
    MissingProfiles,
    Observation,
    Separation,
    Status,
    Uniqueness,
    UniqueResult,
    observe,
)
from dokimos.difficulty.explain.separation import isolated_axes, separations
from dokimos.difficulty.explain.strata import Resampling, Strata, three_digits
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


_LEVEL = f"{100 * CLAIM_LEVEL:g} %"
_COUNTED = {
    Status.SOLVED: "solved",
    Status.UNCHECKED: "unchecked (no label, no proof)",
    Status.TIMEOUT: "timed out",
    Status.MEMOUT: "out of memory",
    Status.UNKNOWN: "unknown",
    Status.WRONG: "wrong",
    Status.FAILED: "failed (error or unsupported)",
}


def counts_in_words(account: Account) -> str:
    """How many of what."""
    total = sum(account.counts.values())
    parts = [f"{account.counts[s]} {word}" for s, word in _COUNTED.items() if account.counts[s]]
    what = f"instance{'' if total == 1 else 's'}"
    if len(account.members) > 1:
        what = f"results of {len(account.members)} verifiers"
    return f"{total} {what}: {', '.join(parts)}."


def symbol_and_meaning(component: str) -> str:
    """A component by symbol and meaning."""
    return f"{symbol(component)} ({meaning(component)})"


def separation_in_words(row: Separation) -> str:
    """The result for one component, briefly."""
    if row.auc is None:
        return row.note
    if not row.separates:
        return "could be chance"
    if row.note.startswith("complete"):
        return f"every timeout has a {separation_side(row)} value than everything solved in its family"
    return f"timeouts have {separation_side(row)} values"


def which_separates(rows: Sequence[Separation]) -> str:
    """The answer to "which component separates timeouts from solved instances?"."""
    measured = [row for row in rows if row.auc is not None]
    if not measured:
        most = max(rows, key=lambda row: row.timeouts + row.solved)
        return f"What separates its timeouts from what it solves: {most.note}."
    separating = sorted((row for row in measured if row.separates), key=lambda row: -row.strength)
    if not separating:
        best = max(measured, key=lambda row: row.strength)
        return (
            "No component is found to separate its timeouts from what it solves within families, at a "
            f"joint level of {_LEVEL} for all of them (farthest from 0.5 is {symbol(best.component)}, "
            f"AUC {best.auc:.2f} over {best.families} families)."
        )
    first, *others = separating
    sentence = (
        f"Within families, {symbol_and_meaning(first.component)} separates its timeouts best: "
        f"{separation_in_words(first)} (AUC {first.auc:.2f}, {_interval(first)}, p = {first.p_value:.2g}; "
        f"{first.without_low:.2f} to {first.without_high:.2f} with any one family left out)."
    )
    if others:
        also = ", ".join(
            f"{symbol(row.component)} ({separation_side(row)}, {row.auc:.2f})" for row in others
        )
        sentence += f" So do {also}." if len(others) > 1 else f" So does {also}."
    return (
        f"{sentence} This is claimed for the {first.families} families that have both outcomes, at a joint "
        f"level of {_LEVEL} for all components; nothing is claimed for other families."
    )


def family_by_family(rows: Sequence[Separation]) -> list[str]:
    """The best separating component's AUC in each family; nothing if no component separates."""
    best = best_separation(rows)
    if best is None:
        return []
    rates = [
        f"{one.family} {one.auc:.2f} ({one.timeouts} timed out, {one.solved} solved)"
        for one in best.by_family
        if one.auc is not None
    ]
    silent = len(best.by_family) - len(rates)
    rest = f"; {silent} without both outcomes" if silent else ""
    return [f"AUC of {symbol(best.component)} in each family: {', '.join(rates)}{rest}."]


def best_separation(rows: Sequence[Separation]) -> Separation | None:
    """The component that separates best; None if no component separates."""
    return max((row for row in rows if row.separates), key=lambda row: row.strength, default=None)


def which_causes(rows: Sequence[IsolatedAxis]) -> list[str]:
    """The result of each sweep in which one component moves alone; nothing if there is none."""
    return [axis_in_words(row) for row in rows]


def axis_in_words(row: IsolatedAxis) -> str:
    """One component that moves while the other four stay: whether it causes timeouts."""
    name, ends = symbol(row.component), f"from {three_digits(row.low)} to {three_digits(row.high)}"
    where = f"{row.family}, {row.knob}"
    if row.component == "regions":
        ends += f" ({row.fold:.0f} times as many regions)"
    alone = f"{name} {ends} ({where}), the other four within 10 %"
    moving = _listed([symbol(each) for each in row.moving])
    also = f" Other measurements that also move: {moving}." if row.moving else ""
    if row.auc is None or row.p_value is None:
        causes = "it causes no timeout here" if not row.timeouts else "that does not say what it causes"
        return f"{alone}: {row.note}; {causes}.{also}"
    others = sum(r.total for r in row.rungs) - row.timeouts - row.solved
    counts = f"{row.timeouts} timed out and {row.solved} solved"
    counts += f" ({others} ended in neither)" if others else ""
    if not row.causes:
        return f"{alone}: {counts}, which could be chance (AUC {row.auc:.2f}, p = {row.p_value:.2g})."
    side = "higher" if row.auc > 0.5 else "lower"
    return (
        f"{symbol_and_meaning(row.component)} causes timeouts: {alone}, {counts}, "
        f"timeouts at {side} values (AUC {row.auc:.2f}, p = {row.p_value:.2g}); "
        f"{_steps(row)}.{also}"
    )


def _steps(row: IsolatedAxis) -> str:
    return ", ".join(f"{three_digits(r.value)}: {r.solved}/{r.total} solved" for r in row.rungs)


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def unique_results_in_words(rows: Sequence[UniqueResult]) -> list[str]:
    """The instances that only this verifier solves, and that only it fails, by family."""
    sentences = []
    for lone in Uniqueness:
        mine = [row for row in rows if row.lone is lone]
        if mine:
            how = {s: "" if lone is Uniqueness.SOLVED else f" ({s.value})" for s in Status}
            families = Counter(f"{row.family}{how[row.status]}" for row in mine)
            listed = ", ".join(f"{count} of {family}" for family, count in sorted(families.items()))
            what = f"{len(mine)} instance{'' if len(mine) == 1 else 's'}"
            sentences.append(f"It is {lone.value} {what}: {listed}.")
    return sentences


def missing_in_words(row: MissingProfiles, total: int) -> str:
    """Which profiles are missing, why, and what to do."""
    count = len(row.instances)
    every = {1: "its only instance is", 2: "both of its instances are"}
    if count == total:
        which = every.get(total, f"all of its {total} instances are")
    else:
        which = f"{count} of its {total} instances {'is' if count == 1 else 'are'}"
    return (
        f"{row.suite}: {which} left out of the comparison of components, because {row.reason}; "
        f"run `{row.remedy}`."
    )


def separation_side(row: Separation) -> str:
    """Whether timeouts have the higher or the lower values."""
    return "higher" if row.auc is not None and row.auc > 0.5 else "lower"


def _interval(row: Separation) -> str:
    return "no interval" if row.low is None else f"95 % interval {row.low:.2f} to {row.high:.2f}"
