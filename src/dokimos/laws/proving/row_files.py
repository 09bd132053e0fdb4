"""Decisions around the rows of a data set as JSON files, and rechecking these files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, Number, Zone
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError, InvalidProof, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.models.model import Model
from dokimos.laws.proving.case_tables import CaseTables, falsify
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.network_search import search_networks
from dokimos.laws.proving.rechecking import (
    HeadForm,
    SavedHead,
    StatedLaw,
    WrittenCover,
    cover_from,
    head_fields,
    number_from,
    planned,
    read_form,
    saved_fields,
    state_law,
    written_cover,
)
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay, Tolerance, number_or_none, row_numbers
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd
from dokimos.laws.proving.tree_deciding import search_trees

# Decides a law around every row of a data set, many rows at a time, each with a proof or a case


#: Rows that are decided together.
_TOGETHER = 64
#: The share of a row's time for a guided search, if branch and bound has not decided it.
_GUIDED_SHARE = 0.25


@dataclass(frozen=True)
class RowDecision:
    """What is known about a law around one row.

    A column that is None is missing. A proven row has a cover of the cases around it; with `in_float32` the
    law holds in float32 too; with `is_empty` there are no such cases. A violated row has a case, run again
    and exact.
    """

    row: int
    columns: tuple[Number | None, ...]
    answer: LawAnswer
    cover: Cover | None = None
    case: ExactCase | None = None
    in_float32: bool = False
    is_empty: bool = False
    share: float = 0.0


@dataclass(frozen=True)
class RowsDecision:
    """What is known about a law around the rows of a data set. `outside` counts rows outside the domain.

    `over` says in words which cases of a row these are, where that is more than a tolerance.
    """

    law: Law
    domain: Domain
    model: Model
    settings: VerifySettings
    tolerance: Tolerance
    semantics: str = ""
    over: str = ""
    rows: tuple[RowDecision, ...] = ()
    outside: int = 0
    reason: str = ""
    seconds: float = 0.0

    def count(self, answer: LawAnswer) -> int:
        """How many rows have this answer, among those with cases around them."""
        return sum(each.answer is answer and not each.is_empty for each in self.rows)

    @property
    def is_proven(self) -> bool:
        """Whether no case around any row violates the law."""
        return not self.reason and all(each.answer is LawAnswer.PROVEN for each in self.rows)

    @property
    def empty(self) -> int:
        """How many rows have no case around them."""
        return sum(each.is_empty for each in self.rows)


def verify_rows(
    law: Law,
    rows: Sequence[Sequence[float]],
    tolerance: Tolerance,
    *,
    model: Any = None,
    domain: Domain | None = None,
    settings: VerifySettings | None = None,
    known: Sequence[RowDecision] = (),
    done: Callable[[RowsDecision], None] = lambda _: None,
) -> RowsDecision:
    """Decide a law for all cases around each of some rows, in `settings.seconds` of processor time each.

    Rows that are `known` are not decided again. `done` is called with what is known so far. Raises LawError
    or InputError if the law, the domain or the model is not usable.
    """
    settings = settings or VerifySettings()
    plan = planned(law, domain, constrained=settings.constrained, allow_code=settings.allow_code)
    loaded = as_domain_model(model, plan.domain)
    begun = time.process_time()
    found = RowsDecision(plan.law, plan.domain, loaded, settings, tolerance)
    try:
        stated = state_law(plan, loaded)
        given = [row_numbers(stated.question.layout, row) for row in rows]
        zones = [tolerance.over(stated.question, each) for each in given]
        work = _Rows(plan, stated, loaded, settings)
        decided = {each.row: each for each in known}
        inside = [(n, each, zone) for n, (each, zone) in enumerate(zip(given, zones, strict=True)) if zone]
        found = replace(found, semantics=stated.semantics, outside=len(given) - len(inside))
        found = replace(found, rows=tuple(decided[n] for n in sorted(decided)))
        asked = [each for each in inside if each[0] not in decided]
        for start in range(0, len(asked), _TOGETHER):
            made = work.decide(asked[start : start + _TOGETHER])
            decided |= {each.row: each for each in made}
            found = replace(found, rows=tuple(decided[n] for n in sorted(decided)))
            done(found)
    except Refusal as refusal:
        found = replace(found, reason=str(refusal))
    return replace(found, seconds=time.process_time() - begun)


class _Rows:
    def __init__(self, plan: LawPlan, stated: StatedLaw, model: Model, settings: VerifySettings) -> None:
        self._stated, self._settings = stated, settings
        closer = stated.closer
        decided = closer.reach.decided if isinstance(closer, NetworkCloser) else None
        self._replay = CaseReplay(plan, model, stated.question, decided)
        self._scores = model.made_of if callable(model.made_of) else model.scores

    def decide(self, rows: Sequence[tuple[int, tuple[Number | None, ...], Zone]]) -> list[RowDecision]:
        """What is known around each row: its number, its columns and the zone around it."""
        stated = self._stated
        zones = [zone for _, _, zone in rows]
        ends = self._ends(zones)
        covers = [(zone, end.cover) for zone, end in zip(zones, ends, strict=True) if end.cover is not None]
        proven, strict = iter(stated.proven(covers)), iter(stated.strictly_proven(covers))
        found = []
        for (row, columns, zone), end in zip(rows, ends, strict=True):
            made = RowDecision(row, columns, LawAnswer.OPEN, share=end.share)
            if end.case is not None:
                made = replace(made, answer=LawAnswer.VIOLATED, case=end.case)
            elif end.cover is not None:
                assert next(proven)  # what closed the zones has checked them
                made = replace(
                    made,
                    answer=LawAnswer.PROVEN,
                    cover=end.cover,
                    in_float32=next(strict, False),
                    is_empty=stated.question.rules_out(zone),
                )
            found.append(made)
        return found

    def _confirms(self, case: ExactCase) -> bool:
        closer = self._stated.closer
        return self._replay.violates(case) and (
            not isinstance(closer, NetworkCloser)
            or exactly_violated(self._stated.question, closer.reach, case) is True
        )

    def _tables(self, zone: Zone) -> CaseTables:
        return CaseTables(replace(self._stated.question, zone=zone), self._scores)

    def _ends(self, zones: Sequence[Zone]) -> list[SearchEnd]:
        closer, seconds = self._stated.closer, self._settings.seconds
        if not isinstance(closer, NetworkCloser):
            found = []
            for zone in zones:
                found.append(
                    search_trees(closer.statement(zone), self._confirms, Deadline.after(seconds))[1]
                )
            return found
        ends = search_networks(
            closer,
            self._tables(self._stated.question.zone),
            self._confirms,
            Deadline(np.inf),
            zones=zones,
            seconds_each=(1 - _GUIDED_SHARE) * seconds,
            seed=self._settings.seed,
        )
        return [
            self._guided(zone, end) if end.case is None and end.cover is None else end
            for zone, end in zip(zones, ends, strict=True)
        ]

    def _guided(self, zone: Zone, end: SearchEnd) -> SearchEnd:
        """A violation that a guided search finds around one row, otherwise what is already known."""
        deadline = Deadline.after(_GUIDED_SHARE * self._settings.seconds)
        found = falsify(self._tables(zone), self._confirms, seed=self._settings.seed, deadline=deadline)
        return end if found is None else SearchEnd(case=found.case)


FORMAT = "dokimos-law-rows"
_VERSION = 1


class _RowForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the data set, and what proves or violates the law around it; neither if that is open.

    A column that is null is missing.
    """

    row: int
    columns: list[str | None]
    cover: WrittenCover | None = None
    case: list[str] | None = None
    in_float32: bool = False


class _RowsForm(HeadForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file. `tolerance` is a share, as a fraction."""

    format: str = FORMAT
    version: int = _VERSION
    tolerance: str
    free: list[str]
    rows: list[_RowForm]


@dataclass(frozen=True)
class SavedRows(SavedHead):
    """The decisions around rows that a file claims: not trusted until they are checked."""

    tolerance: Tolerance
    rows: tuple[RowDecision, ...]


def save_rows(decision: RowsDecision, path: Path) -> None:
    """Write what was decided around each row."""
    form = _RowsForm(
        **head_fields(decision.law, decision.domain, decision.model, decision.settings),
        tolerance=str(decision.tolerance.share),
        free=list(decision.tolerance.free),
        rows=[
            _RowForm(
                row=each.row,
                columns=[None if value is None else str(value) for value in each.columns],
                cover=None if each.cover is None else written_cover(each.cover),
                case=None if each.case is None else [str(value) for value in each.case],
                in_float32=each.in_float32,
            )
            for each in decision.rows
        ],
    )
    write_whole(path, strict_json.write(form, indent=None))


def read_rows(path: Path) -> SavedRows:
    """What a file says. Raises UnreadableFile."""
    form = read_form(path, _RowsForm, FORMAT, _VERSION, "what was decided around rows")
    return SavedRows(
        **saved_fields(form),
        tolerance=Tolerance(Fraction(number_from(form.tolerance, path)), tuple(form.free)),
        rows=tuple(_row(each, path) for each in form.rows),
    )


def _row(form: _RowForm, path: Path) -> RowDecision:
    if form.cover is not None and form.case is not None:
        raise UnreadableFile(path, f"is damaged: row {form.row} (0-based) is both proven and violated.")
    cover = None if form.cover is None else cover_from(form.cover, path)
    case = None if form.case is None else tuple(number_from(each, path) for each in form.case)
    answer = LawAnswer.PROVEN if cover else LawAnswer.VIOLATED if case else LawAnswer.OPEN
    columns = tuple(None if each is None else number_from(each, path) for each in form.columns)
    return RowDecision(form.row, columns, answer, cover, case, form.in_float32)


def known_rows(
    path: Path, plan: LawPlan, model: Model, tolerance: Tolerance, data: NDArray[Any]
) -> tuple[RowDecision, ...]:
    """The decided rows of a file that an earlier call has left, checked again; none where one fails."""
    try:
        saved = read_rows(path)
        decided = [each for each in saved.rows if each.answer is not LawAnswer.OPEN]
        saved = replace(saved, rows=tuple(each for each in decided if each.row < len(data)))
        if saved.tolerance != tolerance or len({each.row for each in saved.rows}) != len(saved.rows):
            return ()
        compare_rows(saved, data)
        question = recheck_rows(plan, model, saved).question
    except (DokimosError, Refusal):
        return ()
    zones = [tolerance.over(question, each.columns) for each in saved.rows]
    return tuple(
        replace(each, is_empty=zone is not None and question.rules_out(zone))
        for each, zone in zip(saved.rows, zones, strict=True)
    )


def recheck_rows(plan: LawPlan, model: Model, saved: SavedRows) -> StatedLaw:
    """Check every proof and every case that a file has. Raises InvalidProof, or Refusal."""
    stated = state_law(plan, model)
    closer = stated.closer
    zones = [_zone(stated, saved.tolerance, each) for each in saved.rows]
    claims = [(each, zone, each.cover) for each, zone in zip(saved.rows, zones, strict=True) if each.cover]
    for each, is_proven in zip(
        claims, stated.proven([(zone, cover) for _, zone, cover in claims]), strict=True
    ):
        if not is_proven:
            raise InvalidProof(f"row {each[0].row} (0-based): a zone is not shown to have no violation")
    strict = [each for each in claims if each[0].in_float32]
    if strict:
        held = stated.strictly_proven([(zone, cover) for _, zone, cover in strict])
        for each, is_proven in zip(strict, held, strict=True):
            if not is_proven:
                raise InvalidProof(f"row {each[0].row} (0-based): is not shown to hold in float32")
    decided = closer.reach.decided if isinstance(closer, NetworkCloser) else None
    _require_violated(CaseReplay(plan, model, stated.question, decided), stated, saved.rows, zones)
    return stated


def _zone(stated: StatedLaw, tolerance: Tolerance, row: RowDecision) -> Zone:
    if len(row.columns) != stated.question.layout.width:
        raise InvalidProof(
            f"row {row.row} (0-based): has {len(row.columns)} columns, which is not a record"
        )
    try:
        zone = tolerance.over(stated.question, row.columns)
    except InputError as problem:
        raise InvalidProof(str(problem)) from None
    if zone is None:
        raise InvalidProof(f"row {row.row} (0-based): is not a record of the domain")
    return zone


def _require_violated(
    replay: CaseReplay, stated: StatedLaw, rows: Sequence[RowDecision], zones: Sequence[Zone]
) -> None:
    question, closer = stated.question, stated.closer
    for each, zone in zip(rows, zones, strict=True):
        if each.case is None:
            continue
        fits = len(each.case) == len(question.variables) and each.case in zone
        if not fits or not replay.violates(each.case):
            raise InvalidProof(f"row {each.row} (0-based): its case does not violate the law")
        if isinstance(closer, NetworkCloser) and not exactly_violated(question, closer.reach, each.case):
            raise InvalidProof(f"row {each.row} (0-based): its case does not violate the law exactly")


def compare_rows(saved: SavedRows, data: NDArray[Any]) -> None:
    """Check that the rows of a file are rows of the data set. Raises InvalidProof."""
    for each in saved.rows:
        own = map(number_or_none, data[each.row]) if 0 <= each.row < len(data) else ()
        if tuple(own) != each.columns:
            raise InvalidProof(f"row {each.row} (0-based): is not that row of the data set")
