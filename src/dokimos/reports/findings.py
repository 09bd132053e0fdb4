"""The data behind the sections of a report: the judged runs, and everything else that is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from dokimos.core.readable import printable
from dokimos.difficulty.explain.rows import Explanation
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.verdicts import CommonSet, Judgement, Naming, Verdict, common_set
from dokimos.reports.figures.counterexample import Scene
from dokimos.suites.facts import Facts
from dokimos.suites.folder import LintFinding

# Readable titles for instances whose own names are hashes: their family, and a few knobs


KNOBS_NAMED = 3
"""The most knobs in a title."""

_SYMBOLS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε"}
_DISGUISE = "disguise"


def instance_titles(
    instances: Iterable[tuple[tuple[str, str], str, Mapping[str, Any]]],
) -> dict[tuple[str, str], str]:
    """Titles by suite and instance, of (suite and instance, family, parameters); none without parameters.

    A title names the knobs in which instances of one family differ, in the order of the family, and if
    these are few, also its first ones: "exclusive-pairs, 20 inputs, 8 pairs, γ 0.001".
    """
    families: dict[str, list[tuple[tuple[str, str], Mapping[str, Any]]]] = {}
    for key, family, parameters in instances:
        families.setdefault(family, []).append((key, parameters))
    titles = {}
    for family, members in families.items():
        named = _worth_naming([parameters for _, parameters in members])
        for key, parameters in members:
            words = [in_words(name, parameters[name]) for name in named if name in parameters]
            if words := list(filter(None, words)):
                titles[key] = printable(", ".join([family, *words]))
    return titles


def _worth_naming(members: Sequence[Mapping[str, Any]]) -> list[str]:
    """The knobs of a title: first those that differ, then the first ones; in the order of the family."""
    names = list(dict.fromkeys(name for parameters in members for name in parameters))
    differing = [n for n in names if len({repr(parameters.get(n)) for parameters in members}) > 1]
    kept = [*differing, *(n for n in names if n not in differing)][:KNOBS_NAMED]
    if _DISGUISE in names and _DISGUISE not in kept:
        kept.append(_DISGUISE)
    return [name for name in names if name in kept]


def in_words(name: str, value: Any) -> str:
    """One parameter: "1 input", "20 inputs", "γ 0.001", "disguised", or a text as it is."""
    if name == _DISGUISE:
        return "disguised" if value else ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return f"{_symbol(name)} {' '.join(map(str, value))}" if value else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{_symbol(name)} {value}"
    if isinstance(value, int) and name.endswith("s") and not name.endswith("ss") and "_" not in name:
        return f"{value:,} {_singular(name) if value == 1 else name}"
    return f"{_symbol(name)} {value:g}" if isinstance(value, float) else f"{_symbol(name)} {value}"


def _symbol(name: str) -> str:
    return _SYMBOLS.get(name, name.replace("_", " "))


def _singular(name: str) -> str:
    return name[:-2] if name.endswith(("sses", "xes", "ches")) else name[:-1]


Known = Mapping[tuple[str, str], Facts]
"""What suites know about their instances, by suite and instance."""


@dataclass(frozen=True)
class EarlierRuns:
    """The judged runs of earlier campaigns, what was known about their instances, and their names."""

    judgements: tuple[Judgement, ...]
    known: Known
    names: tuple[str, ...]

    @classmethod
    def of_campaigns(cls, judged: JudgedCampaigns) -> EarlierRuns:
        """Earlier campaigns, judged together, as something to compare with."""
        names = tuple(printable(str(one.campaign.folder)) for one in judged.campaigns)
        return cls(judged.judgements, judged.facts, names)


@dataclass(frozen=True)
class Findings:
    """The judged runs, in the order of the page however they are given, and everything else that is known.

    `known` is what the suites know about their instances, `log_tails` has the end of each run's log by job,
    `explanation` says why verifiers slow down (None: not computed). `limit_wall_seconds` is the time limit
    of every run (None: limits differ); `repeats` is how often each instance should run. `is_published` says
    that others ran the verifiers and published the answers, `years` in which competitions. `files` has the
    problems of the benchmarks' files (None: not checked). `scenes` has drawings of wrong answers, by job;
    `earlier` is what the runs are compared with (None: nothing).
    """

    judgements: Sequence[Judgement]
    known: Known = field(default_factory=dict)
    log_tails: Mapping[str, str] = field(default_factory=dict)
    explanation: Explanation | None = None
    limit_wall_seconds: float | None = None
    repeats: int = 1
    is_published: bool = False
    years: frozenset[int] = frozenset()
    files: Sequence[LintFinding] | None = None
    scenes: Mapping[str, Scene] = field(default_factory=dict)
    earlier: EarlierRuns | None = None

    def __post_init__(self) -> None:
        given = sorted(self.judgements, key=self.naming.sort_key)
        object.__setattr__(self, "judgements", tuple(given))

    @cached_property
    def naming(self) -> Naming:
        """How verifiers and families are called."""
        return Naming.of([j.record for j in self.judgements])

    @classmethod
    def of_campaigns(cls, judged: JudgedCampaigns, *, explanation: Explanation | None = None) -> Findings:
        """The findings of campaigns that were judged together."""
        return cls(
            judged.judgements,
            known=judged.facts,
            explanation=explanation,
            is_published=judged.is_published,
            years=judged.years,
        )

    @cached_property
    def common(self) -> CommonSet:
        """The instances that verifiers are compared on."""
        return common_set(self.judgements, self.naming)

    @cached_property
    def titles(self) -> Mapping[tuple[str, str], str]:
        """A readable title for each instance whose parameters are known, by suite and instance."""
        families = {
            (j.record.suite, j.record.instance): self.naming.family(j.record) for j in self.judgements
        }
        return instance_titles(
            (key, family, self.known[key].made_by) for key, family in families.items() if key in self.known
        )

    def by_verifier(self) -> dict[str, list[Judgement]]:
        """The judgements on each verifier's runs, by its name."""
        return self._grouped(self.judgements)

    def common_by_verifier(self) -> dict[str, list[Judgement]]:
        """The judgements that verifiers are compared by, for each verifier."""
        return self._grouped(self.common.judgements)

    def _grouped(self, judgements: Sequence[Judgement]) -> dict[str, list[Judgement]]:
        groups: dict[str, list[Judgement]] = {}
        for j in judgements:
            groups.setdefault(self.naming.verifier(j.record), []).append(j)
        return dict(sorted(groups.items()))


# The outcomes that runs are counted by


class RunOutcome(Enum):
    """The columns of the table that verdicts are counted in."""

    CORRECT = "correct"
    WRONG = "wrong"
    UNDECIDED = "undecided"
    OTHER = "other"
    UNCHECKED = "unchecked"

    @classmethod
    def of(cls, verdict: Verdict) -> RunOutcome:
        """The column of a verdict; `other` is unwitnessed, rounding and clipped."""
        if verdict.is_wrong:
            return cls.WRONG
        if verdict.is_unchecked:
            return cls.UNCHECKED
        return {Verdict.CORRECT: cls.CORRECT, Verdict.UNDECIDED: cls.UNDECIDED}.get(verdict, cls.OTHER)
