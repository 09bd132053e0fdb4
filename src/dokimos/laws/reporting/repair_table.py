"""The costs and benefits of repairs of a network, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from dokimos.laws.proving.results import LawAnswer
from dokimos.laws.repair.measuring import ModelMeasures
from dokimos.laws.repair.repairing import RepairedModel

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


def repair_table(made: Sequence[RepairedModel], way: str) -> str:
    """Markdown with two lines for each seed: the original network, and the repaired one."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    for each in made:
        lines.append(_line("as it was", each.seed, each.before))
        lines.append(_line(way, each.seed, each.after))
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
