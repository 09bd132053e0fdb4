"""Tests a law: cases are drawn, transformed, predicted and judged in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from dokimos.core.errors import InputError
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.calls import Failures
from dokimos.laws.engine.case_frame import Column, Frame, Records, full, joined
from dokimos.laws.engine.confirmation import confirm, what_wavers
from dokimos.laws.engine.descriptions import decision_name
from dokimos.laws.engine.draws import (
    Drawer,
    Enumerator,
    InputSource,
    Pool,
    Sampler,
    TooMany,
    find_source,
    labels_of,
)
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.law_case import case_of
from dokimos.laws.engine.law_plan import LawPlan, make_plan
from dokimos.laws.engine.law_results import LawResult, LawSettings
from dokimos.laws.engine.means import MeansTally
from dokimos.laws.engine.runner import Judged, Runner
from dokimos.laws.engine.tallies import Grouping, Tally
from dokimos.laws.language.syntax import Law, Literal
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.same_decisions import expect_faithful_trees

# Exhaustive tests: every draw of a law, if there are finitely many


#: More draws than this are not counted to find whether all can be tested.
_MOST_COUNTED = 1_000_000


class AllDraws:
    """The draws of the law that `runner` runs, from `source`, in batches of at most `batch` cases."""

    def __init__(self, runner: Runner, source: InputSource, settings: LawSettings, batch: int) -> None:
        self._runner, self._source, self._settings, self._batch = runner, source, settings, batch
        self._plan = runner.plan
        self._inputs: int = (source.size or 0) ** len(self._plan.law.inputs)
        self._limit = settings.most_draws if settings.exhaustive else min(settings.budget, _MOST_COUNTED)

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


#: Testing stops if the precondition fails more than this many times for each test.
_DRAWS_PER_TEST = 100
_LEAST_DRAWS = 20_000
_LARGEST_BATCH = 32_768
_NUMBERS_PER_BATCH = 2**23
#: Cases for code are drawn in small batches, and joined as long as the pace allows.
_CODE_BATCH, _MOST_CODE = 64, 8192
_FUNCTION_BATCH = 512
#: The work between two points at which an interruption loses nothing: how long, and how much at first.
_MOMENT = 0.2
_FIRST_PART, _FIRST_OF_A_TIME = 64, 4
#: The share of a limited time that is left for violations, which are run again and made small.
_FOR_VIOLATIONS = 0.2
#: How many times what a call takes its cases take, and how many parts are remembered.
_OVERHEAD, _REMEMBERED = 10, 8


def test_law(
    law: Law, *, model: Any = None, domain: Domain | None = None, settings: LawSettings | None = None
) -> LawResult:
    """Test a law against a model (anything that `as_model` takes; None: the domain's own).

    If interrupted (Ctrl-C), it returns the result of the tests done so far. Raises LawError or InputError
    if the law, the domain or the model is not usable.
    """
    settings = settings or LawSettings()
    if not 0 <= settings.max_rate < 1:
        raise InputError(
            f"The tolerated rate of violations must be at least 0 and below 1, not {settings.max_rate:g}."
        )
    if settings.budget < 1 or settings.keep < 1:
        raise InputError("The budget of tests, and the number of violations to keep, must be at least 1.")
    domain = None if domain is None else with_table(domain, settings.source)
    plan = make_plan(law, domain, allow_code=settings.allow_code)
    source = find_source(settings.source, plan.domain)
    if settings.in_range and plan.domain.layout is None:
        raise InputError(f"{law.name}: its domain declares no FEATURES, so no record can leave its ranges.")
    loaded = as_domain_model(model, plan.domain)
    expect_faithful_trees(loaded, plan.domain.layout, source.data if isinstance(source, Pool) else None)
    runner = Runner(
        plan,
        loaded,
        labels_of(plan.domain, source),
        in_range=settings.in_range,
    )
    return _Session(runner, source, settings).run()


test_law.__test__ = False  # type: ignore[attr-defined]  # its name says what it does; it is no test


class _Pace:
    """How many cases to run next, from what earlier parts took: a time for each call, and for each case.

    A part takes a moment, or as long as makes the time for the call a tenth of it: so a model that takes
    half a second whatever it is given gets all cases at once, and one that takes half a second for each
    case gets one at a time.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[int, float]] = []

    def after(self, size: int, seconds: float, fixed: float = 0.0) -> int:
        """The size of the next part after one of this size took that long.

        `fixed` is what the calls for the first part took whatever its size, or 0 if that is not known.
        """
        if fixed and not self._parts:
            self._parts = [(0, fixed)]
        self._parts = [*self._parts[-_REMEMBERED:], (size, seconds)]
        sizes, times = np.array(self._parts, dtype=np.float64).T
        if sizes.min() == sizes.max():  # one cannot tell the two apart yet
            return int(min(max(2, _MOMENT / max(seconds, 1e-9)), 16) * size)
        each = max(float(np.polyfit(sizes, times, 1)[0]), 1e-9)
        call = max(float(np.mean(times - each * sizes)), 0.0)
        wanted = max((_MOMENT - call) / each, _OVERHEAD * call / each, 1)
        return int(min(wanted, 128 * size, _LARGEST_BATCH))


class _Session:
    """The state of one test."""

    def __init__(self, runner: Runner, source: InputSource, settings: LawSettings) -> None:
        self._runner, self._source, self._settings = runner, source, settings
        self._plan: LawPlan = runner.plan
        self._tally = Tally(settings.keep, runner.sizes)
        self._means = MeansTally(self._plan.set_conditions)
        self._wavers = ""
        self._group_values: dict[str, Column] = {}
        self._draws = self._held = self._tested = self._outside = 0
        self._interrupted = self._starved = self._given_up = False
        self._out_of_time = False
        self._part = _FIRST_PART if settings.seconds is None else _FIRST_OF_A_TIME
        self._pace = _Pace()
        self._end = np.inf if settings.seconds is None else time.perf_counter() + settings.seconds
        self._batch = _batch_size(self._plan, source)

    def run(self) -> LawResult:
        start = time.perf_counter()
        draws = AllDraws(self._runner, self._source, self._settings, self._batch)
        exhaustive = draws.are_gone_through()
        if exhaustive:
            self._guarded(self._run_twice)
            exhaustive = not self._wavers
        if self._interrupted:
            return self._result(exhaustive, time.perf_counter() - start)
        self._guarded(partial(self._go_through, draws) if exhaustive else self._sample)
        seconds = time.perf_counter() - start
        return self._result(exhaustive, seconds)

    def _run_twice(self) -> None:
        """Check determinism: no claim about all draws is made if running them again gives other results."""
        most = _FIRST_PART if self._settings.seconds is None else _FIRST_OF_A_TIME
        self._wavers = what_wavers(self._runner, self._source, most)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except KeyboardInterrupt:
            self._interrupted = True

    def _go_through(self, draws: AllDraws) -> None:
        for prepared, enumerator in draws.batches():
            self._held += prepared.size
            self._draws = self._held + self._runner.rejected + self._runner.refused
            self._judge(prepared, enumerator)
            if self._runner.is_hopeless:
                self._given_up = True
                return
            if self._is_over():
                return

    def _sample(self) -> None:
        rng = np.random.default_rng(self._settings.seed)
        budget = self._settings.budget
        most = max(_LEAST_DRAWS, _DRAWS_PER_TEST * budget)
        waiting: list[Frame] = []
        while (missing := self._missing(waiting)) > 0 and not self._is_over():
            if self._draws >= most:
                self._starved = True
                return
            rate = max((self._held + 1) / (self._draws + 1), 1 / 64)
            count = int(min(self._batch, np.ceil(missing / rate * 1.02), most))
            frame, sampler = self._drawn(rng, count), Sampler(rng)
            prepared = self._runner.prepare(frame, sampler)
            self._draws += frame.size
            self._held += prepared.size
            if waiting and _kinds(waiting[0]) != _kinds(prepared):
                self._judge(joined(waiting), sampler)
                waiting = []
            waiting.append(prepared.first(missing))
            if not self._waits(waiting) or self._missing(waiting) <= 0 or self._draws >= most:
                self._judge(joined(waiting), sampler)
                waiting = []
            if self._runner.is_hopeless:
                self._given_up = True
                return

    def _missing(self, waiting: Sequence[Frame]) -> int:
        """How many tests are missing once these cases are judged."""
        done = self._tested + self._runner.errors.count + sum(each.size for each in waiting)
        return self._settings.budget - done

    def _waits(self, waiting: Sequence[Frame]) -> bool:
        """Whether cases for code wait for more, so that the model answers more of them at once."""
        if self._plan.code is None or self._plan.random_in_ensures or self._tested == 0:
            return False
        return sum(each.size for each in waiting) < min(self._part, _MOST_CODE)

    def _judge(self, cases: Frame, draw: Drawer) -> None:
        """Judge cases in parts that take a short time each, so that an interruption loses little.

        Dividing them changes no draw: if an `ensures` draws as well, they are not divided.
        """
        start = 0
        while start < cases.size:
            most = cases.size if self._plan.random_in_ensures else self._part
            part = cases.part(start, start + most)
            begun = time.perf_counter()
            self._record(self._runner.judge(part, draw))
            seconds = time.perf_counter() - begun
            self._part = self._pace.after(part.size, seconds, self._runner.fixed_seconds)
            if self._settings.seconds is not None:  # and no more than there is time for, as far as is known
                left = (self._testing_end - time.perf_counter()) * part.size / max(seconds, 1e-9)
                self._part = max(1, min(self._part, int(min(left, _LARGEST_BATCH))))
            start += part.size
            if self._runner.is_hopeless or self._is_over():
                return

    def _is_over(self) -> bool:
        """Whether the time is up, if there is a limit; then the tests end with what there is."""
        self._out_of_time = self._out_of_time or time.perf_counter() > self._testing_end
        return self._out_of_time

    @property
    def _testing_end(self) -> float:
        """When tests end: violations are run again after that."""
        left = _FOR_VIOLATIONS * (self._settings.seconds or 0.0) if self._tally.violated else 0.0
        return self._end - left

    def _drawn(self, rng: np.random.Generator, count: int) -> Frame:
        values = {each.name: self._source.sample(rng, count) for each in self._plan.law.inputs}
        seeds = rng.integers(0, 2**62, size=count)
        return Frame(self._draws + np.arange(count), seeds, dict(values))

    def _record(self, judged: Judged) -> None:
        """Count the judged cases."""
        self._tested += judged.frame.size
        if not self._settings.in_range and judged.frame.size:
            self._outside += int(self._runner.outside(judged.frame).sum())
        self._means.add(judged.means)
        outputs = self._plan.law.outputs
        by_class = judged.frame.values[outputs[0].name] if outputs and judged.frame.size else None
        self._tally.add(
            judged,
            [each.name for each in self._plan.law.inputs],
            uses_seeds=not self._plan.is_finite,
            by_class=None if isinstance(by_class, Records) else by_class,
            by_group=self._groups(judged.frame),
        )

    def _groups(self, frame: Frame) -> dict[str, Column]:
        """The features to report rates by, of the first input of each case."""
        features = self._settings.by or self._plan.domain.groups
        if frame.size == 0 or not features:
            return {}
        records = frame.values[self._plan.law.inputs[0].name]
        assert isinstance(records, Records)  # inputs are records
        if isinstance(self._source, Pool) and records.origin is not None:
            known = self._groups_of(self._source, features)
            return {each: column[records.origin] for each, column in known.items()}
        evaluator = Evaluator(self._plan, frame, Failures(), self._runner.labels)
        return {
            each: full(evaluator.feature(records, each, Literal(None)), frame.size) for each in features
        }

    def _groups_of(self, pool: Pool, features: Sequence[str]) -> dict[str, Column]:
        """The features to report rates by, for each record of a pool; read once."""
        if not self._group_values:
            every = pool.records
            nothing = np.zeros(len(every.data), dtype=np.int64)
            evaluator = Evaluator(self._plan, Frame(nothing, nothing, {}), Failures(), self._runner.labels)
            self._group_values = {
                each: full(evaluator.feature(every, each, Literal(None)), len(nothing)) for each in features
            }
        return self._group_values

    def _result(self, in_order: bool, seconds: float) -> LawResult:
        tally, law, domain = self._tally, self._plan.law, self._plan.domain
        exhaustive = in_order and not (self._interrupted or self._given_up or self._out_of_time)
        errors = tuple((each.reason, case_of(each.case, 0, law)) for each in self._runner.errors.kept)
        failed, rejected = self._runner.errors.count, self._runner.rejected
        refused = self._runner.refused
        confirmed = confirm(
            tally.kept, self._runner, shrinks=self._settings.shrink, guard=self._guarded, end=self._end
        )
        exact = True if exhaustive else None if in_order else False
        return LawResult(
            law=law,
            domain=domain,
            model=self._runner.model,
            settings=self._settings,
            source=self._source.name,
            draws=self._draws,
            rejected=rejected,
            refused=refused,
            outside=self._outside,
            held=self._held,
            tested=self._tested,
            violated=tally.violated,
            unique=tally.unique,
            inputs=tally.inputs,
            failed=failed,
            errors=errors,
            unconfirmed=confirmed.rounding + confirmed.unrepeatable,
            unrepeatable=confirmed.unrepeatable,
            tolerated=tally.tolerated,
            over_all=self._means.verdicts(exact),
            not_deterministic=self._wavers,
            is_exhaustive=exhaustive,
            is_in_order=in_order,
            is_interrupted=self._interrupted,
            is_starved=self._starved,
            is_given_up=self._given_up,
            classes=tally.by_class.rates(lambda value: decision_name(value, domain)),
            groups=tuple(
                Grouping(feature, counts.rates(partial(self._group_name, feature)))
                for feature, counts in tally.by_group.items()
            ),
            violations=confirmed.violations,
            seconds=seconds,
            is_out_of_time=self._out_of_time,
        )

    def _group_name(self, feature: str, value: Any) -> str:
        layout = self._plan.domain.layout
        values = () if layout is None else layout.named(feature).feature.values
        if values and isinstance(value, int) and not isinstance(value, bool):
            return values[value] if 0 <= value < len(values) else "none"
        return f"{value:g}" if isinstance(value, float) else str(value)


def _kinds(frame: Frame) -> list[np.dtype[Any]]:
    """The types of the columns: joined frames have the same, as no number is to change its type."""
    return [each.data.dtype if isinstance(each, Records) else each.dtype for each in frame.values.values()]


def _batch_size(plan: LawPlan, source: InputSource) -> int:
    """How many cases are run together."""
    if plan.code is not None:
        return _CODE_BATCH
    if plan.calls_case_by_case:
        return _FUNCTION_BATCH
    one = source.at(np.zeros(1, dtype=np.int64)).data if source.size else np.zeros(64)
    return max(64, min(_LARGEST_BATCH, _NUMBERS_PER_BATCH // max(1, one.size)))
