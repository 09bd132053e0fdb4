"""Decisions around the rows of a data set as JSON files, and rechecking these files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, Number, Zone
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError, InvalidProof, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.rechecking import (
    HeadForm,
    SavedHead,
    StatedLaw,
    WrittenCover,
    cover_from,
    head_fields,
    number_from,
    read_form,
    saved_fields,
    state_law,
    written_cover,
)
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_zones import CaseReplay, Tolerance, number_or_none
from dokimos.laws.proving.searching import ExactCase


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
    """What is known about a law around the rows of a data set. `outside` counts rows outside the domain."""

    law: Law
    domain: Domain
    model: Model
    settings: VerifySettings
    tolerance: Tolerance
    semantics: str = ""
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
    decided = closer.decided if isinstance(closer, NetworkCloser) else None
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
