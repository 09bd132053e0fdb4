"""The results in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dokimos.difficulty.components import meaning, symbol
from dokimos.difficulty.explain.rows import (
    CLAIM_LEVEL,
    Account,
    Interaction,
    IsolatedAxis,
    MissingProfiles,
    Separation,
    Status,
    Uniqueness,
    UniqueResult,
)
from dokimos.difficulty.explain.strata import three_digits

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


def which_interact(rows: Sequence[Interaction]) -> str:
    """The answer to "which pair of components interacts?"."""
    tested = [row for row in rows if row.p_value is not None]
    if not tested:
        most = max(rows, key=_size)
        return f"Which components interact: {most.note}."
    found = strongest_first([row for row in tested if row.interacts])
    level = f"at a joint level of {_LEVEL} for all pairs ({len(tested)} of {len(rows)} tested)"
    if not found:
        return f"No pair of components is found to interact within families, {level}."
    others = len(found) - 1
    more = f" {others} more pair{'s interact' if others > 1 else ' interacts'}." if others else ""
    return f"{interaction_in_words(found[0])}{more} This is claimed {level}, for these families only."


def strongest_first(rows: Sequence[Interaction]) -> list[Interaction]:
    """The pairs that were tested, the least likely to be chance first; then the others."""
    return sorted(
        rows, key=lambda row: (1.0 if row.p_value is None else row.p_value, -abs(row.product or 0.0))
    )


def interaction_in_words(row: Interaction) -> str:
    """One interaction: the test's result within families, and the timeout rates of all of them together."""
    first, second = symbol(row.first), symbol(row.second)
    more = "more" if (row.product or 0.0) > 0 else "less"
    said = (
        f"{first} and {second} interact within families: the higher {second}, the {more} timeouts rise "
        f"with {first} (product term {row.product:+.2g}, p = {row.p_value:.2g}, {row.families} families)."
    )
    if not row.quarters:
        return said
    neither, only_second, only_first, both = (f"{100 * (cell.rate or 0):.0f} %" for cell in row.quarters)
    return (
        f"{said} In all families together, as {first} passes {row.first_cut:.3g}, the timeout rate goes "
        f"from {neither} to {only_first} if {second} <= {row.second_cut:.3g}, and from "
        f"{only_second} to {both} if {second} is above that."
    )


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


def _size(row: Interaction) -> int:
    return sum(cell.total for cells in row.cells for cell in cells)
