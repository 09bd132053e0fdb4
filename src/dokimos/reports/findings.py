"""What the sections of a report draw on: the judged runs, and all that is known beside them."""

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
"""What suites know of their instances, by suite and instance."""


@dataclass(frozen=True)
class EarlierRuns:
    """The judged runs of earlier campaigns, what was known of their instances, and how these are called."""

    judgements: tuple[Judgement, ...]
    known: Known
    names: tuple[str, ...]

    @classmethod
    def of_campaigns(cls, judged: JudgedCampaigns) -> EarlierRuns:
        """What campaigns that were judged together have to be compared with."""
        names = tuple(printable(str(one.campaign.folder)) for one in judged.campaigns)
        return cls(judged.judgements, judged.facts, names)


@dataclass(frozen=True)
class Findings:
    """The judged runs in the order of the page, and what is known beside them.

    `known` is what the suites know about their instances, `log_tails` has the end of each run's log by job,
    `explanation` why verifiers slow down (None: nobody asked). `limit_wall_seconds` is the time limit of
    every run, None where there is not just one; `repeats` is how often each instance was to be run.
    `is_published` says that others ran the verifiers, and published what these answered. `files` is what
    is wrong with the files of the benchmarks (None: nobody looked). `scenes` is what can be drawn of wrong
    answers, by job; `earlier` what they are compared with (None: with nothing).
    """

    judgements: tuple[Judgement, ...]
    naming: Naming
    known: Known = field(default_factory=dict)
    log_tails: Mapping[str, str] = field(default_factory=dict)
    explanation: Explanation | None = None
    limit_wall_seconds: float | None = None
    repeats: int = 1
    is_published: bool = False
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
        files: Sequence[LintFinding] | None = None,
        scenes: Mapping[str, Scene] | None = None,
        earlier: EarlierRuns | None = None,
    ) -> Findings:
        """Name and order `judgements`; the order in which they are given makes no difference."""
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
            files=None if files is None else tuple(files),
            scenes=scenes or {},
            earlier=earlier,
        )

    @classmethod
    def of_campaigns(cls, judged: JudgedCampaigns, *, explanation: Explanation | None = None) -> Findings:
        """What was found in campaigns that were judged together."""
        return cls.of(
            judged.judgements, known=judged.facts, explanation=explanation, is_published=judged.is_published
        )

    @cached_property
    def common(self) -> CommonSet:
        """What verifiers are compared on."""
        return common_set(self.judgements, self.naming)

    @cached_property
    def titles(self) -> Mapping[tuple[str, str], str]:
        """What a person may call each instance, by suite and instance, where its parameters are known."""
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
        """The judgements that verifiers are compared by, by the name of each."""
        return self._grouped(self.common.judgements)

    def _grouped(self, judgements: Sequence[Judgement]) -> dict[str, list[Judgement]]:
        groups: dict[str, list[Judgement]] = {}
        for j in judgements:
            groups.setdefault(self.naming.verifier(j.record), []).append(j)
        return dict(sorted(groups.items()))
