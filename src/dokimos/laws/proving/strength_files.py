"""What was decided for any strength, or near rows, as JSON files, and these files checked again.

A file has, for each row of the data set, its number, a hash of its numbers, its label, and the strengths
cut into pieces (a proof), or one strength (a violation). The rows themselves are read from the data set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InvalidProof, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.laws.engine.plan import LawPlan
from dokimos.laws.models.model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.rechecking import (
    HeadForm,
    SavedHead,
    WrittenCover,
    cover_from,
    head_fields,
    number_from,
    read_form,
    saved_fields,
    written_cover,
)
from dokimos.laws.proving.results import LawAnswer
from dokimos.laws.proving.row_files import RowDecision, RowsDecision
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.strength_deciding import exactly_violates, runs_violate
from dokimos.laws.proving.strengths import StrengthLaw, row_fractions, state_strengths

FORMAT = "dokimos-law-strengths"
_VERSION = 1


class _StrengthForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row; neither `cover` nor `strength` where it is open."""

    row: int
    sha256: str
    label: int | str
    cover: WrittenCover | None = None
    strength: str | None = None


class _StrengthsForm(HeadForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds. `tolerance` is a share, as a fraction; None: any strength at the row itself."""

    format: str = FORMAT
    version: int = _VERSION
    tolerance: str | None
    rows: list[_StrengthForm]


@dataclass(frozen=True)
class SavedStrength:
    """What a file says of one row."""

    row: int
    sha256: str
    label: int | str
    cover: Cover | None
    strength: Fraction | None

    @property
    def answer(self) -> LawAnswer:
        """What the file says of the row."""
        if self.cover is not None:
            return LawAnswer.PROVEN
        return LawAnswer.OPEN if self.strength is None else LawAnswer.VIOLATED


@dataclass(frozen=True)
class SavedStrengths(SavedHead):
    """What a file says was decided: believed only once it is checked."""

    tolerance: Tolerance | None
    rows: tuple[SavedStrength, ...]


class StrengthsFile:
    """The file of what was decided at the rows of a data set, which is written as rows are decided."""

    def __init__(
        self, path: Path, data: NDArray[Any], labels: Sequence[Any], tolerance: Tolerance | None
    ) -> None:
        self._path, self._data, self._labels, self._tolerance = path, data, labels, tolerance
        self._hashes: dict[int, str] = {}

    def save(self, decision: RowsDecision) -> None:
        """Write what was decided at each row."""
        for each in decision.rows:
            if each.row not in self._hashes:
                self._hashes[each.row] = _hash(row_fractions(self._data[each.row]))
        form = _StrengthsForm(
            **head_fields(decision.law, decision.domain, decision.model, decision.settings),
            tolerance=None if self._tolerance is None else str(self._tolerance.share),
            rows=[
                _StrengthForm(
                    row=each.row,
                    sha256=self._hashes[each.row],
                    label=self._labels[each.row],
                    cover=None if each.cover is None else written_cover(each.cover),
                    strength=None if each.case is None else str(each.case[0]),
                )
                for each in decision.rows
            ],
        )
        write_whole(self._path, strict_json.write(form, indent=None))

    def known(self, plan: LawPlan, model: Model) -> tuple[RowDecision, ...]:
        """The decided rows of a file that an earlier call has left, checked again; none where one fails."""
        try:
            saved = read_strengths(self._path)
            decided = [each for each in saved.rows if each.answer is not LawAnswer.OPEN]
            saved = replace(saved, rows=tuple(each for each in decided if each.row < len(self._data)))
            if saved.tolerance != self._tolerance:
                return ()
            recheck_strengths(plan, model, saved, self._data, self._labels)
        except (DokimosError, Refusal):
            return ()
        return tuple(
            RowDecision(
                each.row,
                (),
                each.answer,
                each.cover,
                None if each.strength is None else (each.strength,),
            )
            for each in saved.rows
        )


def read_strengths(path: Path) -> SavedStrengths:
    """What a file says. Raises UnreadableFile."""
    form = read_form(path, _StrengthsForm, FORMAT, _VERSION, "what was decided for strengths")
    tolerance = None if form.tolerance is None else Fraction(number_from(form.tolerance, path))
    return SavedStrengths(
        **saved_fields(form),
        tolerance=None if tolerance is None else Tolerance(tolerance),
        rows=tuple(_saved(each, path) for each in form.rows),
    )


def _saved(form: _StrengthForm, path: Path) -> SavedStrength:
    if form.cover is not None and form.strength is not None:
        raise UnreadableFile(path, f"is damaged: row {form.row} (0-based) is both proven and violated.")
    cover = None if form.cover is None else cover_from(form.cover, path)
    strength = None if form.strength is None else Fraction(number_from(form.strength, path))
    return SavedStrength(form.row, form.sha256, form.label, cover, strength)


def recheck_strengths(
    plan: LawPlan, model: Model, saved: SavedStrengths, data: NDArray[Any], labels: Sequence[Any]
) -> StrengthLaw:
    """Check every proof and every case of a file on the rows of the data set. Raises InvalidProof."""
    law = state_strengths(plan, model)
    if len({each.row for each in saved.rows}) != len(saved.rows):
        raise InvalidProof("a row stands twice in the file")
    for each in saved.rows:
        place = f"row {each.row} (0-based)"
        if not 0 <= each.row < len(data):
            raise InvalidProof(f"{place}: the data set has {len(data):,} rows")
        row = row_fractions(data[each.row])
        if _hash(row) != each.sha256 or labels[each.row] != each.label:
            raise InvalidProof(f"{place}: is not that row of the data set")
        if each.cover is not None and not law.check(row, each.label, each.cover, saved.tolerance):
            raise InvalidProof(f"{place}: a piece is not shown to have no violation")
        if each.strength is not None:
            is_one = 0 <= each.strength <= 1 and (saved.tolerance is None or each.strength == 1)
            if not is_one or not exactly_violates(law, row, each.strength, each.label):
                raise InvalidProof(f"{place}: its strength does not violate the law")
            if not runs_violate(law, row, each.strength, each.label):
                raise InvalidProof(f"{place}: its strength does not violate the law as the model is run")
    return law


def _hash(row: Sequence[Fraction]) -> str:
    return hashlib.sha256(",".join(map(str, row)).encode()).hexdigest()
