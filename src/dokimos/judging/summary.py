"""Verdicts counted, for the table at the end of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dokimos.judging.verdicts import Judgement, Verdict


@dataclass(frozen=True)
class SummaryRow:
    """One verifier on one family: how many of each verdict, and the time of all its runs together."""

    family: str
    verifier: str
    verdicts: Mapping[Verdict, int]
    wall_seconds: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdicts", MappingProxyType(dict(self.verdicts)))

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return sum(self.verdicts.values())

    @property
    def correct(self) -> int:
        """How many answers were the label."""
        return self.verdicts.get(Verdict.CORRECT, 0)

    @property
    def wrong(self) -> int:
        """How many were wrong: `wrong-sat`, `wrong-unsat` or `bad-witness`."""
        return sum(count for verdict, count in self.verdicts.items() if verdict.is_wrong)

    @property
    def undecided(self) -> int:
        """How many gave no answer."""
        return self.verdicts.get(Verdict.UNDECIDED, 0)

    @property
    def other(self) -> int:
        """How many were none of these: `unwitnessed`, `rounding` or `unlabelled`."""
        return self.runs - self.correct - self.wrong - self.undecided


def summarise(judgements: Sequence[Judgement]) -> tuple[SummaryRow, ...]:
    """One row per family and verifier, sorted by both."""
    groups: dict[tuple[str, str], list[Judgement]] = {}
    for judgement in judgements:
        groups.setdefault((judgement.record.family, judgement.record.verifier), []).append(judgement)
    return tuple(
        SummaryRow(
            family,
            verifier,
            Counter(j.verdict for j in group),
            sum(j.record.wall_seconds for j in group),
        )
        for (family, verifier), group in sorted(groups.items())
    )
