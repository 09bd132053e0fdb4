"""The result of testing a law, for a terminal."""

from __future__ import annotations

from dokimos.laws.engine.descriptions import which_case
from dokimos.laws.engine.grouping import NamedRates
from dokimos.laws.engine.means import SetOutcome
from dokimos.laws.engine.rates import percent
from dokimos.laws.engine.results import LawResult
from dokimos.laws.engine.verdicts import LawVerdict, verdict_of, why_untested


def summary(result: LawResult, *, shown: int = 3) -> str:
    """A verdict, the counts, and the first violations in words."""
    lines = [f"{result.law.name}: {_verdict(result)}"]
    lines.append(f"  {_counts(result)}")
    if result.tested and result.is_sample and result.has_case_ensures:
        lines.append(f"  violated: {result.rate}")
    elif result.tested and not result.is_in_order and not result.is_sample:
        lines.append(f"  {guided_remark(result)}")
    lines += [f"  {each}" for each in over_all_remarks(result)]
    if result.not_deterministic:
        lines.append(f"  not deterministic, so draws were sampled: {result.not_deterministic}")
    if result.outside:
        lines.append(f"  {outside_remark(result)}; --in-range leaves such cases out")
    if result.is_starved:
        never = (
            "cases are almost never in range" if result.refused else "the precondition almost never holds"
        )
        lines.append(f"  {never}: in {result.held:,} of {result.draws:,} draws")
    if result.is_given_up:
        alike = " in the same way" if len(result.errors) == 1 else ""
        lines.append(f"  stopped early: the first {result.failed:,} cases all failed{alike}")
    if result.is_interrupted:
        order = "; draws are tested in order" if result.is_in_order else ""
        lines.append(f"  interrupted: these are the results so far{order}")
    if result.unconfirmed:
        lines += [f"  {each}" for each in unconfirmed_remarks(result)]
    if result.is_violated and result.violated:
        lines += _table("when the first decision is", result.classes, not result.is_sample)
        for group in result.groups:
            lines += _table(f"when {group.feature} is", group.rates, not result.is_sample)
            if not group.rates:
                lines.append(f"  {group.feature} has too many values to report rates by")
    for each in result.violations[:shown]:
        lines.append(f"  - {each.words}")
    if len(result.violations) > shown > 0:
        lines.append(f"  - … and {len(result.violations) - shown} more")
    for reason, case in result.errors:
        lines.append(f"  ! {reason} ({which_case(case)})")
    return "\n".join(lines)


def over_all_remarks(result: LawResult) -> list[str]:
    """The outcome of the law's conditions on all tests together, with their means."""
    remarks = []
    for each in result.over_all:
        more = "; raise --budget" if each.outcome is SetOutcome.UNDECIDED and result.tested else ""
        remarks.append(f"{each.text}: {each.outcome.value}{more}")
        for mean in each.means:
            if not mean.tests:
                remarks.append(f"  {mean.text}: no test satisfies its condition")
                continue
            interval = (
                f" (95 %: {_figure(mean.low)} to {_figure(mean.high)})" if mean.low != mean.high else ""
            )
            remarks.append(f"  {mean.text}: {_figure(mean.value)} over {mean.tests:,} tests{interval}")
    return remarks


def _figure(value: float) -> str:
    """Four significant digits, and more if needed to tell a share from 1."""
    texts = (f"{value:.{digits}g}" for digits in range(4, 18))
    return next(text for text in texts if value == 1 or float(text) != 1)


def unconfirmed_remarks(result: LawResult) -> list[str]:
    """What is said about violations that were not confirmed."""
    rounding, remarks = result.unconfirmed - result.unrepeatable, []
    if rounding:
        remarks.append(f"{rounding} of the kept show only in batches: rounding, not counted")
    if result.unrepeatable:
        remarks.append(
            f"{result.unrepeatable} of the kept did not show when run again, and not because of rounding: "
            "the model is not deterministic, or its answers depend on the batch"
        )
    return remarks


def guided_remark(result: LawResult) -> str:
    """Says that the cases of a guided search are not a sample."""
    return f"searched by {result.settings.search}: the cases are not a random sample, so there is no rate"


def outside_remark(result: LawResult) -> str:
    """In how many tests a record was not what its domain declares."""
    return (
        f"in {result.outside:,} of {result.tested:,} tests a record is outside what the domain "
        "declares (ranges, kinds, constraints, missing values)"
    )


def _verdict(result: LawResult) -> str:
    verdict = verdict_of(result)
    if verdict is LawVerdict.UNTESTED:
        never = result.draws and not result.held
        return f"not tested: {why_untested([result])}" if never else "not tested"
    return {
        LawVerdict.VIOLATED: "VIOLATED",
        LawVerdict.FAILED: "its code failed",
        LawVerdict.UNDECIDED: "too close to call with these tests",
        LawVerdict.UNREPEATABLE: "no violation confirmed; not deterministic",
        LawVerdict.TOLERATED: "violated no more than is tolerated",
        LawVerdict.ROUNDING: "no violation confirmed: "
        "those found do not show when records are predicted one by one",
        LawVerdict.HOLDS: f"holds for every draw from the source {result.source}",
        LawVerdict.PASSED: "no violation found",
    }[verdict]


def _counts(result: LawResult) -> str:
    kind = "all " if result.is_exhaustive else ""
    parts = [f"{kind}{result.tested:,} tests in {result.seconds:.2f} s"]
    parts.append(f"{result.passed:,} passed")
    if result.rejected:
        parts.append(f"precondition failed in {result.rejected:,} of {result.draws:,} draws")
    if result.refused:
        parts.append(f"{result.refused:,} refused as out of range")
    if result.violated:
        parts.append(f"{result.violated:,} violated ({result.unique:,} unique, {result.inputs:,} inputs)")
    if result.failed:
        parts.append(f"{result.failed:,} failed")
    return ", ".join(parts)


def _table(title: str, rates: NamedRates, exact: bool) -> list[str]:
    """A line for each group; without intervals if `exact`."""
    texts = [(name, rate, f"{percent(rate.value)} %" if exact else str(rate)) for name, rate in rates]
    return [f"  {title} {name}: {rate.count:,} of {rate.total:,}, {share}" for name, rate, share in texts]
