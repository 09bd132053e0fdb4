"""The data behind the sections of a report: the judged runs, and everything else that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dokimos.core.readable import printable
from dokimos.difficulty.explain.rows import Explanation
from dokimos.judging.common_set import CommonSet, common_set
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.naming import Naming
from dokimos.judging.verdicts import Judgement
from dokimos.reports.counterexample_scenes import Scene
from dokimos.reports.instance_titles import instance_titles
from dokimos.suites.facts import Facts
from dokimos.suites.file_findings import LintFinding

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
    """The judged runs in the order of the page, and everything else that is known.

    `known` is what the suites know about their instances, `log_tails` has the end of each run's log by job,
    `explanation` says why verifiers slow down (None: not computed). `limit_wall_seconds` is the time limit
    of every run (None: limits differ); `repeats` is how often each instance should run. `is_published` says
    that others ran the verifiers and published the answers, `years` in which competitions. `files` has the
    problems of the benchmarks' files (None: not checked). `scenes` has drawings of wrong answers, by job;
    `earlier` is what the runs are compared with (None: nothing).
    """

    judgements: tuple[Judgement, ...]
    naming: Naming
    known: Known = field(default_factory=dict)
    log_tails: Mapping[str, str] = field(default_factory=dict)
    explanation: Explanation | None = None
    limit_wall_seconds: float | None = None
    repeats: int = 1
    is_published: bool = False
    years: frozenset[int] = frozenset()
    files: tuple[LintFinding, ...] | None = None
    scenes: Mapping[str, Scene] = field(default_factory=dict)
    earlier: EarlierRuns | None = None

    @classmethod
    def of(
        cls,
        judgements: Sequence[Judgement],
        *,
        known: Known | None = None,
        log_tails: Mapping[str, str] | None = None,
        explanation: Explanation | None = None,
        limit_wall_seconds: float | None = None,
        repeats: int = 1,
        is_published: bool = False,
        years: frozenset[int] = frozenset(),
        files: Sequence[LintFinding] | None = None,
        scenes: Mapping[str, Scene] | None = None,
        earlier: EarlierRuns | None = None,
    ) -> Findings:
        """Name and sort `judgements`; the order in which they are given makes no difference."""
        naming = Naming.of([j.record for j in judgements])
        return cls(
            judgements=tuple(sorted(judgements, key=naming.sort_key)),
            naming=naming,
            known=known or {},
            log_tails=log_tails or {},
            explanation=explanation,
            limit_wall_seconds=limit_wall_seconds,
            repeats=repeats,
            is_published=is_published,
            years=years,
            files=None if files is None else tuple(files),
            scenes=scenes or {},
            earlier=earlier,
        )

    @classmethod
    def of_campaigns(cls, judged: JudgedCampaigns, *, explanation: Explanation | None = None) -> Findings:
        """The findings of campaigns that were judged together."""
        return cls.of(
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
