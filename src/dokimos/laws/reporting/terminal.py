"""The result of testing a law, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.laws.engine.descriptions import which_case
from dokimos.laws.engine.law_results import LawResult, LawVerdict, verdict_of, why_untested
from dokimos.laws.engine.means import SetOutcome, percent
from dokimos.laws.engine.tallies import NamedRates
from dokimos.laws.proving.results import LawAnswer, LawDecision, RowsDecision
from dokimos.laws.repair.measures import ModelMeasures
from dokimos.laws.repair.repair import RepairedModel


def summary(result: LawResult, *, shown: int = 3) -> str:
    """A verdict, the counts, and the first violations in words."""
    lines = [f"{result.law.name}: {_verdict(result)}"]
    lines.append(f"  {_counts(result)}")
    if result.tested and result.is_sample and result.has_case_ensures:
        lines.append(f"  violated: {result.rate}")
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
    if result.is_out_of_time:
        order = "; draws are tested in order" if result.is_in_order else ""
        lines.append(f"  stopped when the time was up, after {result.tested:,} tests{order}")
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


# The outcome of deciding a law for every case, for a terminal


def decision_words(decision: LawDecision) -> str:
    """The answer, the set that it is about, which step decided, and the case that violates the law."""
    took = f"{decision.step}, {decision.seconds:.1f} s"
    head = f"{decision.law.name}: {decision.answer.value}"
    match decision.answer:
        case LawAnswer.PROVEN:
            zones = 0 if decision.cover is None else decision.cover.leaves
            checked = f"{zones:,} zone{'s' * (zones != 1)}, each checked"
            left_out = f"\n  but {decision.left_out}" if decision.left_out else ""
            return f"{head} for {decision.over}, {decision.semantics} ({took}; {checked}){left_out}"
        case LawAnswer.VIOLATED:
            words = "" if decision.violation is None else f"\n  - {decision.violation.words}"
            return f"{head} in {decision.over} ({took}){words}"
        case LawAnswer.REFUSED:
            return f"{head}: {decision.reason}"
    return f"{head}: {share_words(decision.share)} of {decision.over} is undecided ({took})"


def rows_words(decision: RowsDecision) -> str:
    """How many rows have which answer."""
    head = f"{decision.law.name} ± {decision.tolerance.words}"
    if decision.reason:
        return f"{head}: refused: {decision.reason}"
    answers = (LawAnswer.PROVEN, LawAnswer.VIOLATED, LawAnswer.OPEN)
    counts = ", ".join(f"{decision.count(each):,} {each.value}" for each in answers)
    single = sum(each.in_float32 and not each.is_empty for each in decision.rows)
    more = f"; {single:,} proven in float32 too" if single else ""
    if decision.empty:
        more += f"; {decision.empty:,} without cases"
    if decision.outside:
        more += f"; {decision.outside:,} outside the domain"
    took = f"{decision.seconds:.1f} s of processor time"
    return f"{head}: {counts} of {len(decision.rows):,} rows, {decision.semantics} ({took}{more})"


def share_words(share: float) -> str:
    """A share in percent, with three significant digits."""
    return f"{100 * share:.3g} %"


# The costs and benefits of repairs of a network, as a table


_HEAD = (
    "model",
    "seed",
    "laws proven / violated / open",
    "accuracy",
    "answers kept",
    "violations at held-out rows",
    "at draws from the ranges",
    "effect of the features",
)


_NO_ACCURACY = (
    "Accuracy is unknown: the domain has no `labels`, or does not say by `unseen` which rows the network "
    "was not trained on."
)


def repair_table(made: Sequence[RepairedModel]) -> str:
    """Markdown with two lines for each seed: the original model, and the repaired one."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    for each in made:
        lines.append(_line("as it was", each.seed, each.before))
        lines.append(_line(each.way.value, each.seed, each.after))
    if all(each.after.accuracy is None for each in made):
        lines += ["", _NO_ACCURACY]
    return "\n".join(lines) + "\n"


def _line(name: str, seed: int, measured: ModelMeasures) -> str:
    answers = (LawAnswer.PROVEN, LawAnswer.VIOLATED, LawAnswer.OPEN)
    cells = (
        name,
        str(seed),
        " / ".join(str(measured.count(each)) for each in answers),
        "unknown" if measured.accuracy is None else f"{100 * measured.accuracy:.1f} %",
        f"{100 * measured.agreement:.1f} %",
        f"{measured.violations:,} of {measured.cases:,}",
        f"{measured.range_violations:,}",
        f"{100 * measured.effect:.1f} %",
    )
    return "| " + " | ".join(cells) + " |"
