"""The result of testing a law, told on a terminal."""

from __future__ import annotations

from dokimos.laws.grouping import NamedRates
from dokimos.laws.results import LawResult


def summary(result: LawResult, *, shown: int = 3) -> str:
    """A verdict, the counts, and the first violations in words."""
    lines = [f"{result.law.name}: {_verdict(result)}"]
    lines.append(f"  {_counts(result)}")
    if result.tested and not result.is_exhaustive:
        lines.append(f"  violated: {result.rate}")
    if result.is_starved:
        lines.append(f"  the precondition almost never holds: in {result.held:,} of {result.draws:,} draws")
    if result.is_interrupted:
        lines.append("  interrupted: this is what was found until then")
    if result.unconfirmed:
        lines.append(f"  {result.unconfirmed} of the kept violate in batches only: rounding, not counted")
    if result.is_violated:
        lines += _table("when the first decision is", result.classes, result.is_exhaustive)
        for group in result.groups:
            lines += _table(f"when {group.feature} is", group.rates, result.is_exhaustive)
            if not group.rates:
                lines.append(f"  {group.feature} has too many values to tell rates by")
    for each in result.violations[:shown]:
        lines.append(f"  - {each.words}")
    if len(result.violations) > shown > 0:
        lines.append(f"  - … and {len(result.violations) - shown} more")
    for reason, case in result.errors:
        rows = ", ".join(f"{name} is row {row}" for name, row in case.rows.items() if row is not None)
        drawn = f"draws {list(case.draws)}" if case.draws else ""
        where = ", ".join(each for each in (rows, drawn) if each) or f"seed {case.seed}"
        lines.append(f"  ! {reason} ({where})")
    return "\n".join(lines)


def _verdict(result: LawResult) -> str:
    if result.is_violated:
        return "VIOLATED"
    if result.failed:
        return "its code failed"
    if result.tested == 0:
        return (
            "not tested: the precondition never held" if result.draws and not result.held else "not tested"
        )
    if result.violated:
        return "no violation confirmed: those found do not show when records are predicted one by one"
    if result.is_exhaustive:
        return f"holds for every draw from the source {result.source}"
    return "no violation found"


def _counts(result: LawResult) -> str:
    kind = "all " if result.is_exhaustive else ""
    parts = [f"{kind}{result.tested:,} tests in {result.seconds:.2f} s"]
    parts.append(f"{result.passed:,} passed")
    if result.rejected:
        parts.append(f"precondition failed in {result.rejected:,} of {result.draws:,} draws")
    if result.violated:
        parts.append(f"{result.violated:,} violated ({result.unique:,} unique, {result.inputs:,} inputs)")
    if result.failed:
        parts.append(f"{result.failed:,} failed")
    return ", ".join(parts)


def _table(title: str, rates: NamedRates, exact: bool) -> list[str]:
    """A line for each group; what was gone through whole needs no interval."""
    told = [(name, rate, f"{100 * rate.value:.2f} %" if exact else str(rate)) for name, rate in rates]
    return [f"  {title} {name}: {rate.count:,} of {rate.total:,}, {share}" for name, rate, share in told]
