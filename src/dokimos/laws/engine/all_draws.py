"""Exhaustive tests: every draw of a law, if there are finitely many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dokimos.core.errors import InputError
from dokimos.laws.engine.drawing import Enumerator, TooMany
from dokimos.laws.engine.frame import Frame
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.sources import InputSource


class AllDraws:
    """The draws of the law that `runner` runs, from `source`, in batches of at most `batch` cases."""

    def __init__(self, runner: Runner, source: InputSource, settings: LawSettings, batch: int) -> None:
        self._runner, self._source, self._settings, self._batch = runner, source, settings, batch
        self._plan = runner.plan
        self._inputs: int = (source.size or 0) ** len(self._plan.law.inputs)
        self._limit = settings.most_draws if settings.exhaustive else settings.budget

    def are_gone_through(self) -> bool:
        """Whether all draws are tested: because that is asked for, or because there are few enough.

        Raises InputError if it is asked for and impossible.
        """
        wanted = self._settings.exhaustive
        if wanted is False:
            return False
        reason = self._plan.endless
        if self._source.size is None:
            reason = f"the source {self._source.name} is infinite"
        if reason is not None:
            if wanted:
                raise InputError(f"{self._plan.law.name}: not all draws can be enumerated: {reason}.")
            return False
        if self._inputs > self._limit or (not wanted and self._count() > self._limit):
            if wanted:
                raise self._too_many()
            return False
        return True

    def _too_many(self) -> InputError:
        return InputError(
            f"{self._plan.law.name}: more than {self._settings.most_draws:,} draws would have to be tested."
        )

    def _count(self) -> int:
        """How many draws there are, or some number above the limit if there are more than that."""
        if not self._plan.random:
            return self._inputs
        held = 0
        quiet = self._runner.alike()
        for frame in self._all_inputs():
            try:
                held += quiet.prepare(frame, Enumerator(self._limit - held)).size
            except TooMany:
                return self._limit + 1
            if held + quiet.rejected + quiet.refused > self._limit:
                break
        return held + quiet.rejected + quiet.refused

    def batches(self) -> Iterator[tuple[Frame, Enumerator]]:
        """The cases whose preconditions hold, and the drawer for them. Raises InputError if too many."""
        coming = self._all_inputs()
        pending: list[Frame] = []
        held = 0
        while (frame := pending.pop() if pending else next(coming, None)) is not None:
            enumerator = Enumerator(self._batch if frame.size > 1 else self._limit)
            rejected, refused = self._runner.rejected, self._runner.refused
            errors = self._runner.errors.copy()
            try:
                prepared = self._runner.prepare(frame, enumerator)
            except TooMany:
                if frame.size == 1:
                    raise self._too_many() from None
                self._runner.rejected, self._runner.refused = rejected, refused
                self._runner.errors = errors
                half = frame.size // 2
                pending += [frame.take(np.arange(half, frame.size)), frame.take(np.arange(half))]
                continue
            held += prepared.size
            yield prepared, enumerator
            if held + self._runner.rejected + self._runner.refused > self._settings.most_draws:
                raise self._too_many()

    def _all_inputs(self) -> Iterator[Frame]:
        names = [each.name for each in self._plan.law.inputs]
        shape = (self._source.size or 0,) * len(names)
        for start in range(0, self._inputs, self._batch):
            flat = np.arange(start, min(start + self._batch, self._inputs))
            rows = np.unravel_index(flat, shape)
            values = {name: self._source.at(row) for name, row in zip(names, rows, strict=True)}
            yield Frame(np.arange(len(flat)), np.zeros(len(flat), dtype=np.int64), dict(values))
