"""Judging a campaign while it grows: only what is new is looked at."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import DokimosError
from dokimos.judging.judge import JudgedInstance, judge_all
from dokimos.judging.verdicts import Judgement


class JudgeAlong:
    """Remembers its judgements. An instance is judged again when it has been run once more, for a witness
    given there may settle what others said."""

    def __init__(self, suites: Mapping[str, Sequence[JudgedInstance]]) -> None:
        self._suites = {suite: {i.name: i for i in instances} for suite, instances in suites.items()}
        self._seen: dict[tuple[str, str], int] = {}
        self._judged: dict[tuple[str, str], tuple[Judgement, ...]] = {}
        self.problems: dict[tuple[str, str], str] = {}

    def judge(self, records: Sequence[RunRecord], *, at_most_seconds: float | None = None) -> bool:
        """Take in the records so far; whether all of them are judged now, or the time was over before.

        What cannot be judged is in `problems`, by suite and instance.
        """
        began = time.monotonic()
        groups: dict[tuple[str, str], list[RunRecord]] = {}
        for record in records:
            groups.setdefault((record.suite, record.instance), []).append(record)
        for key, group in groups.items():
            if self._seen.get(key) == len(group):
                continue
            if at_most_seconds is not None and time.monotonic() - began > at_most_seconds:
                return False
            self._seen[key] = len(group)
            self._judge(key, group)
        return True

    def _judge(self, key: tuple[str, str], group: Sequence[RunRecord]) -> None:
        suite, name = key
        known = self._suites.get(suite, {}).get(name)
        try:
            self._judged[key] = judge_all(
                group, {suite: [] if known is None else [known]}, reproduce=lambda _: ""
            )
            self.problems.pop(key, None)
        except DokimosError as error:
            self._judged.pop(key, None)
            self.problems[key] = str(error)

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """All judgements so far."""
        return tuple(judgement for group in self._judged.values() for judgement in group)
