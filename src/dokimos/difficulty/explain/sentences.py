"""What the rows say, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dokimos.difficulty.components import meaning, symbol
from dokimos.difficulty.explain.rows import (
    Account,
    BreakingCurve,
    Interaction,
    MissingProfiles,
    Separation,
    Status,
    Uniqueness,
    UniqueResult,
)

_COUNTED = {
    Status.SOLVED: "solved",
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
    """What one component says, briefly."""
    if row.auc is None:
        return row.note
    if row.note.startswith("complete"):
        return f"every timeout has a {separation_side(row)} value than everything solved"
    if not row.separates:
        return "no better than chance"
    return f"timeouts have {separation_side(row)} values"


def which_separates(rows: Sequence[Separation]) -> str:
    """The answer to "which component separates timeouts from solved instances?"."""
    measured = [row for row in rows if row.auc is not None]
    if not measured:
        most = max(rows, key=lambda row: row.timeouts + row.solved)
        return f"What separates its timeouts from what it solves: {most.note}."
    best = max(measured, key=lambda row: row.strength)
    separating = sorted((row for row in measured if row.separates), key=lambda row: -row.strength)
    if not separating:
        return (
            "No component separates its timeouts from what it solves: every interval contains 0.5 "
            f"(farthest from it is {symbol(best.component)}, AUC {best.auc:.2f})."
        )
    first, *others = separating
    sentence = (
        f"{symbol_and_meaning(first.component)} separates its timeouts best: {separation_in_words(first)} "
        f"(AUC {first.auc:.2f}, {_interval(first)}; {first.timeouts} timed out, {first.solved} solved)."
    )
    if others:
        also = ", ".join(
            f"{symbol(row.component)} ({separation_side(row)}, {row.auc:.2f})" for row in others
        )
        sentence += f" So do {also}." if len(others) > 1 else f" So does {also}."
    return sentence


def best_separation(rows: Sequence[Separation]) -> Separation | None:
    """The component that separates best, of those that do; None where none does."""
    return max((row for row in rows if row.separates), key=lambda row: row.strength, default=None)


def which_interact(rows: Sequence[Interaction]) -> str:
    """The answer to "which pair of components interacts?"."""
    tested = [row for row in rows if row.effect is not None]
    if not tested:
        most = max(rows, key=_size)
        return f"Which components interact: {most.note}."
    found = [row for row in tested if row.interacts]
    if not found:
        return f"No pair of components interacts beyond chance ({len(tested)} of {len(rows)} pairs tested)."
    best = max(found, key=lambda row: abs(row.effect or 0))
    others = len(found) - 1
    more = f" {others} more pair{'s' if others > 1 else ''} interact." if others else ""
    return interaction_in_words(best) + more


def interaction_in_words(row: Interaction) -> str:
    """One interaction: how the first component acts where the second is low, and where it is high."""
    first, second = symbol(row.first), symbol(row.second)
    neither, only_second, only_first, both = (f"{100 * (cell.rate or 0):.0f} %" for cell in row.quarters)
    return (
        f"{first} and {second} interact: from {first} <= {row.first_cut:.3g} to above it the timeout rate "
        f"goes from {neither} to {only_first} where {second} <= {row.second_cut:.3g}, and from "
        f"{only_second} to {both} where {second} is above."
    )


def curve_in_words(curve: BreakingCurve) -> str:
    """One knob of one family: where it breaks, or that it does not."""
    name, values = f"{curve.family}: {curve.knob}", [point.value for point in curve.points]
    if curve.breaks_at is None:
        return f"{name} from {values[0]:g} to {values[-1]:g}: {curve.note}."
    way = "up" if curve.rising else "down"
    by = "" if curve.broken_by is None else f" ({_COUNTED[curve.broken_by]})"
    note = f"; {curve.note}" if curve.note else ""
    return f"{name} breaks it at {curve.breaks_at:g}{by}, solved {way} to {curve.last_solved:g}{note}."


def unique_results_in_words(rows: Sequence[UniqueResult]) -> list[str]:
    """What it is the only one to solve, and to fail, by family."""
    sentences = []
    for lone in Uniqueness:
        mine = [row for row in rows if row.lone is lone]
        if mine:
            how = {s: "" if lone is Uniqueness.SOLVED else f" ({s.value})" for s in Status}
            families = Counter(f"{row.family}{how[row.status]}" for row in mine)
            listed = ", ".join(f"{count} {family}" for family, count in sorted(families.items()))
            sentences.append(f"It is {lone.value} {len(mine)}: {listed}.")
    return sentences


def missing_in_words(row: MissingProfiles, total: int) -> str:
    """Which profiles are missing, why, and what to do."""
    count = len(row.instances)
    which = f"all {total}" if count == total else f"{count} of {total}"
    why = f"cannot be explained by a profile: {row.reason}"
    return f"{row.suite}: {which} instances {why}; `{row.remedy}` makes it."


def separation_side(row: Separation) -> str:
    """Whether timeouts have the higher or the lower values."""
    return "higher" if row.auc is not None and row.auc > 0.5 else "lower"


def _interval(row: Separation) -> str:
    return "no interval" if row.low is None else f"95 % interval {row.low:.2f} to {row.high:.2f}"


def _size(row: Interaction) -> int:
    return sum(cell.total for cells in row.cells for cell in cells)
