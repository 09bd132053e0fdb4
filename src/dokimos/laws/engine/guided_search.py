"""Cases made from interesting ones: near another decision (margin), or new to the model (coverage).

The violations that it finds are real, but its cases are not a random sample: they say nothing about a rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.laws.engine.draws import Drawer, InputSource
from dokimos.laws.engine.frame import Column, Frame, Records, Value, joined
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.language.set_conditions import is_over_all_tests
from dokimos.laws.models.model import Model

#: How cases are chosen.
SEARCHES = ("random", "margin", "coverage")
#: How many cases are kept as parents, and how many cases of a batch are made from them.
_KEPT = 512
_SHARE = 0.5
#: The larger, the more the best parents are preferred; 1 prefers none.
_PREFERENCE = 3
#: The probability that each further thing changes, besides the one that always does.
_ALSO = 0.1
#: How often the range of a real number is halved, at most, to get the size of a step.
_HALVINGS = 20.0
#: Cases in a batch: few, so that each batch can learn from the one before.
GUIDED_BATCH = 256
_BINS = 16


def expect_search(search: str) -> None:
    """Raise InputError if there is no such search."""
    if search not in SEARCHES:
        raise unknown_name("search", search, list(SEARCHES))


def has_rates(plan: LawPlan) -> bool:
    """Whether a law is about all tests together: a share of them, or a mean."""
    ensures = plan.law.ensures
    return any(each.percent is not None or is_over_all_tests(each, plan.domain) for each in ensures)


class Guide:
    """Makes cases from the interesting ones that it was shown, and others at random."""

    def __init__(self, plan: LawPlan, model: Model, source: InputSource, search: str) -> None:
        self._plan, self._model, self._source = plan, model, source
        self._interest = _Margins(plan, model) if search == "margin" else _Coverage(plan, model)
        self._kept: Frame | None = None
        self._worth = np.zeros(0)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Frame, Drawer]:
        """Cases with their inputs, and the drawer for them."""
        names = [each.name for each in self._plan.law.inputs]
        fresh = {name: self._source.sample(rng, count) for name in names}
        seeds = rng.integers(0, 2**62, size=count)
        kept = self._kept
        if kept is None or kept.size == 0:
            return Frame(np.arange(count), seeds, dict(fresh)), _Mutator(rng, None, np.zeros(count), 0)
        children = rng.random(count) < _SHARE
        parents = (rng.random(count) ** _PREFERENCE * kept.size).astype(np.int64)  # the best come first
        seeded = not self._plan.is_finite  # something draws from the seed of the case
        places = len(names) + len(kept.draws) + seeded
        which = rng.integers(0, places, size=count)
        values: dict[str, Value] = {}
        for place, name in enumerate(names):
            changes = (which == place) | (rng.random(count) < _ALSO) | ~children
            values[name] = _mixed(fresh[name], _records(kept, name).take(parents), changes)
        again = children & ~(seeded & (which == places - 1))
        frame = Frame(np.arange(count), np.where(again, kept.seeds[parents], seeds), values)
        which = np.where(children, which - len(names), -1)
        return frame, _Mutator(rng, kept.take(parents), which, len(kept.draws))

    def learn(self, frame: Frame) -> None:
        """Keep those cases of a judged batch that are worth continuing from.

        The batch must be whole: the result must not depend on how it was divided to fit a time slice.
        """
        if frame.size == 0:
            return
        worth = self._interest(frame)
        chosen = np.flatnonzero(np.isfinite(worth))
        if not len(chosen):
            return
        chosen = chosen[np.argsort(-worth[chosen], kind="stable")][:_KEPT]
        names = [each.name for each in self._plan.law.inputs]
        new = Frame(frame.ids, frame.seeds, {name: frame.values[name] for name in names}, frame.draws)
        new = new.take(chosen)
        both = new if self._kept is None else joined([new, self._kept])
        worths = np.concatenate([worth[chosen], self._worth])
        best = np.argsort(-worths, kind="stable")[:_KEPT]
        self._kept, self._worth = both.take(best), worths[best]


@dataclass(frozen=True)
class _Mutator:
    """Draws uniformly if there is no parent; otherwise the parent's number, or one near it."""

    rng: np.random.Generator
    parents: Frame | None
    which: NDArray[Any]
    known: int

    def __call__(self, frame: Frame, low: Column, high: Column) -> Frame:
        """See Drawer."""
        kept = low <= high
        frame, low, high = frame.where(kept), low[kept], high[kept]
        count, place = frame.size, len(frame.draws)
        is_whole = low.dtype == np.int64
        if is_whole:
            made: Column = self.rng.integers(low, high, endpoint=True) if count else low
        else:
            made = np.minimum(low + self.rng.random(count) * (high - low), high)
        if self.parents is None or place >= self.known or count == 0:
            return frame.with_draw(made)
        old, which = self.parents.draws[place][frame.ids], self.which[frame.ids]
        # Steps of every size, from the whole range down to the smallest: none is known to be the right one.
        width = np.maximum(high.astype(np.float64) - low, 1e-12)
        halvings = self.rng.random(count) * (np.log2(np.maximum(width, 1)) if is_whole else _HALVINGS)
        steps = self.rng.choice([-1.0, 1.0], size=count) * width * 2.0**-halvings
        near = old + (np.sign(steps) * np.ceil(np.abs(steps)) if is_whole else steps)
        leaps = self.rng.random(count) < _ALSO
        changed = np.where(leaps, made, np.clip(near, low, high))
        child = np.where(which == place, changed, np.clip(old, low, high))
        made = np.where(which < 0, made, child)
        return frame.with_draw(made.astype(np.int64) if is_whole else made)


class _Margins:
    """How near a case is to another decision: the smallest lead of a record's best class over the next."""

    def __init__(self, plan: LawPlan, model: Model) -> None:
        self._plan, self._model = plan, model

    def __call__(self, frame: Frame) -> NDArray[np.float64]:
        """The larger, the nearer; -inf if nothing is known."""
        leads = [self._lead(records) for records in _predicted(frame, self._plan)]
        known = [each for each in leads if each is not None]
        if known:
            return np.asarray(-np.min(known, axis=0), dtype=np.float64)
        numbers = _outputs(frame, self._plan)
        if len(numbers) < 2:
            return np.full(frame.size, -np.inf)
        return -np.abs(numbers[0] - numbers[1])

    def _lead(self, records: NDArray[Any]) -> NDArray[np.float64] | None:
        try:
            scores = np.asarray(self._model.classes.scores(records))
        except InputError:
            return None
        table = scores.reshape(len(records), -1)
        if table.dtype.kind != "f" or table.shape[1] < 2:
            return None
        best = np.partition(table.astype(np.float64), -2, axis=1)
        lead = best[:, -1] - best[:, -2]
        return np.where(np.isfinite(lead), lead, np.inf)


class _Coverage:
    """Whether a case covers something new: active neurons, or else bins of scores."""

    def __init__(self, plan: LawPlan, model: Model) -> None:
        self._plan, self._model = plan, model
        self._seen: set[bytes] = set()
        self._count = 0

    def __call__(self, frame: Frame) -> NDArray[np.float64]:
        """The number of the case if it covers something new (later ones are worth more), otherwise -inf."""
        traces = [self._trace(records) for records in _predicted(frame, self._plan)]
        if not traces:
            traces = [number[:, None] for number in _outputs(frame, self._plan)]
        worth = np.full(frame.size, -np.inf)
        for trace in traces:
            for row, key in enumerate(_keys(trace)):
                if key not in self._seen:
                    self._seen.add(key)
                    self._count += 1
                    worth[row] = self._count
        return worth

    def _trace(self, records: NDArray[Any]) -> NDArray[Any]:
        if self._model.neurons is not None:
            return np.packbits(self._model.neurons(records), axis=1)
        classes = self._model.classes
        try:
            shares = np.asarray((classes.probabilities or classes.scores)(records)).reshape(
                len(records), -1
            )
        except InputError:
            shares = np.asarray(self._model.predict(records)).reshape(len(records), -1)
        return np.round(shares * _BINS) if shares.dtype.kind == "f" else shares.astype(str)


def _keys(trace: NDArray[Any]) -> list[bytes]:
    rows = np.ascontiguousarray(trace)
    return [row.tobytes() for row in rows]


def _predicted(frame: Frame, plan: LawPlan) -> list[NDArray[Any]]:
    """The records of the cases that the block predicts; none if it is other code."""
    names = dict.fromkeys(each.record for each in plan.predictions or ())
    found = [frame.values[name] for name in names]
    return [value.data for value in found if isinstance(value, Records)]


def _outputs(frame: Frame, plan: LawPlan) -> list[NDArray[np.float64]]:
    """The outputs that are numbers."""
    values = [frame.values[each.name] for each in plan.law.outputs]
    numbers = [value for value in values if not isinstance(value, Records) and value.dtype.kind in "biuf"]
    return [np.broadcast_to(value, (frame.size,)).astype(np.float64) for value in numbers]


def _records(frame: Frame, name: str) -> Records:
    value = frame.values[name]
    assert isinstance(value, Records)  # inputs are records
    return value


def _mixed(fresh: Records, old: Records, changes: NDArray[np.bool_]) -> Records:
    """The fresh records where `changes` is true, the old ones elsewhere."""
    data = old.data.copy()
    data[changes] = fresh.data[changes]
    if fresh.origin is None or old.origin is None:
        return Records(data)
    return Records(data, np.where(changes, fresh.origin, old.origin))


#: Gives the cases of a batch, and the drawer for them.
CaseMaker = Callable[[np.random.Generator, int], tuple[Frame, Drawer]]
