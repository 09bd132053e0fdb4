"""Proofs of laws, and decisions around rows, as JSON files; and these files checked again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct
from numpy.typing import NDArray

from dokimos import __version__
from dokimos.checker.lemmas.zones import Cover, Cut, Number, Zone, exact
from dokimos.core import strict_json
from dokimos.core.documents import expect_format
from dokimos.core.errors import DokimosError, InputError, InvalidProof, UnreadableFile
from dokimos.core.files import read_whole, write_whole
from dokimos.core.typed_values import convert
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import domain_file, load_domain
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.pools import data_of
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, is_code, load_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.question import LinearCover
from dokimos.laws.proving.results import LawAnswer, LawDecision, RowDecision, RowsDecision
from dokimos.laws.proving.row_zones import Tolerance, number_or_none
from dokimos.laws.proving.stated_laws import StatedLaw, planned, state_law

# What all files of proofs of laws begin with: which law, of which domain and model, in which set


PROOF, ROWS = "dokimos-law-proof", "dokimos-law-rows"
_VERSION = 1
#: What a double is, written as a fraction, has at most some 310 digits before and 1,100 digits behind.
_FRACTION = re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,1200})?")

#: A cover as a file has it: a cut, its variable and where, or null for a leaf, in preorder.
_WrittenCover = list[tuple[int, str] | None]


class HeadForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that every such file has: believed of nothing but what is checked against them."""

    format: str
    version: int = _VERSION
    dokimos: str = __version__
    law: str
    text: str
    text_sha256: str
    domain: str | None
    model: str
    model_sha256: str | None
    constrained: bool

    @property
    def stated(self) -> Law:
        """The law. Raises LawError."""
        return parse_law(self.text, name=self.law)


Form = TypeVar("Form", bound=HeadForm)


def _head(decision: LawDecision | RowsDecision) -> dict[str, Any]:
    """The fields of a file to be written that are those of `HeadForm`."""
    law, model = decision.law, decision.model
    return {
        "law": law.name,
        "text": law.text,
        "text_sha256": hashlib.sha256(law.text.encode()).hexdigest(),
        "domain": _place_of(decision.domain.place),
        "model": _place_of(model.name) or "",
        "model_sha256": model.sha256,
        "constrained": decision.settings.constrained,
    }


def _place_of(named: str | None) -> str | None:
    """What names a domain or a model, from any folder: the whole path where it is a file."""
    return str(Path(named).absolute()) if named is not None and Path(named).is_file() else named


def _read(path: Path, form: type[Form], format_: str, what: str) -> Form:
    """A file as a form that begins with a head. Raises UnreadableFile."""
    document = strict_json.parse(read_whole(path), file=path)
    expect_format(document, format_, _VERSION, file=path, otherwise=f"is not {what}")
    found = convert(document, form, file=path, what=what)
    if hashlib.sha256(found.text.encode()).hexdigest() != found.text_sha256:
        raise UnreadableFile(path, "is damaged: the text of the law was changed.")
    return found


def format_of(path: Path) -> str:
    """What a file says it is; empty where it says nothing. Raises UnreadableFile."""
    document = strict_json.parse(read_whole(path), file=path)
    found = document.get("format") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def _written_cover(cover: Cover) -> _WrittenCover:
    return [None if step is None else (step.variable, str(step.at)) for step in cover.steps]


def _cover_from(steps: _WrittenCover, path: Path) -> Cover:
    return Cover(tuple(None if each is None else Cut(each[0], _number(each[1], path)) for each in steps))


def _number(text: str, path: Path) -> Number:
    """A fraction as `str` writes it: no exponents, whose digits might be without end."""
    if not _FRACTION.fullmatch(text):
        raise UnreadableFile(path, f"is damaged: {text[:40]!r} is not a number.")
    return exact(Fraction(text))


# What was proven for every case of a set, and the cover that proves it


class _ProofForm(HeadForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds."""

    format: str = PROOF
    over: str
    semantics: str
    cover: _WrittenCover | None = None
    linear: dict[str, Any] | None = None


@dataclass(frozen=True)
class SavedProof:
    """The claim in a file and its proof: not trusted until it is checked."""

    head: HeadForm
    over: str
    semantics: str
    cover: Cover | LinearCover


def save_proof(decision: LawDecision, path: Path) -> None:
    """Write the proof of a law."""
    assert decision.cover is not None  # it is proven
    form = _ProofForm(
        **_head(decision),
        over=decision.over,
        semantics=decision.semantics,
        cover=_written_cover(decision.cover) if isinstance(decision.cover, Cover) else None,
        linear=decision.cover.data if isinstance(decision.cover, LinearCover) else None,
    )
    write_whole(path, strict_json.write(form, indent=None))


def read_proof(path: Path) -> SavedProof:
    """What a file says. Raises UnreadableFile."""
    form = _read(path, _ProofForm, PROOF, "a proof of a law")
    if (form.cover is None) == (form.linear is None):
        raise UnreadableFile(path, "is damaged: it must have 'cover' or 'linear', and not both.")
    cover = _cover_from(form.cover or [], path) if form.linear is None else LinearCover(form.linear)
    return SavedProof(form, form.over, form.semantics, cover)


# Decisions around the rows of a data set


class _RowForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the data set, and what proves or violates the law around it; neither if that is open.

    A column that is null is missing.
    """

    row: int
    columns: list[str | None]
    cover: _WrittenCover | None = None
    case: list[str] | None = None
    in_float32: bool = False


class _RowsForm(HeadForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file. `tolerance` is a share, as a fraction."""

    format: str = ROWS
    tolerance: str
    free: list[str]
    rows: list[_RowForm]


@dataclass(frozen=True)
class SavedRows:
    """The decisions around rows that a file claims: not trusted until they are checked."""

    head: HeadForm
    tolerance: Tolerance
    rows: tuple[RowDecision, ...]


def save_rows(decision: RowsDecision, path: Path) -> None:
    """Write what was decided around each row."""
    form = _RowsForm(
        **_head(decision),
        tolerance=str(decision.tolerance.share),
        free=list(decision.tolerance.free),
        rows=[
            _RowForm(
                row=each.row,
                columns=[None if value is None else str(value) for value in each.columns],
                cover=None if each.cover is None else _written_cover(each.cover),
                case=None if each.case is None else [str(value) for value in each.case],
                in_float32=each.in_float32,
            )
            for each in decision.rows
        ],
    )
    write_whole(path, strict_json.write(form, indent=None))


def read_rows(path: Path) -> SavedRows:
    """What a file says. Raises UnreadableFile."""
    form = _read(path, _RowsForm, ROWS, "what was decided around rows")
    tolerance = Tolerance(Fraction(_number(form.tolerance, path)), tuple(form.free))
    return SavedRows(form, tolerance, tuple(_row(each, path) for each in form.rows))


def _row(form: _RowForm, path: Path) -> RowDecision:
    if form.cover is not None and form.case is not None:
        raise UnreadableFile(path, f"is damaged: row {form.row} (0-based) is both proven and violated.")
    cover = None if form.cover is None else _cover_from(form.cover, path)
    case = None if form.case is None else tuple(_number(each, path) for each in form.case)
    answer = LawAnswer.PROVEN if cover else LawAnswer.VIOLATED if case else LawAnswer.OPEN
    columns = tuple(None if each is None else _number(each, path) for each in form.columns)
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
    zones = [_zone(stated, saved.tolerance, each) for each in saved.rows]
    claims = [(each, zone, each.cover) for each, zone in zip(saved.rows, zones, strict=True) if each.cover]
    held = stated.proven([(zone, cover) for _, zone, cover in claims])
    strict = stated.strictly_proven([(zone, cover) for each, zone, cover in claims if each.in_float32])
    _expect(held, [each for each, _, _ in claims], "a zone is not shown to have no violation")
    _expect(strict, [each for each, _, _ in claims if each.in_float32], "is not shown to hold in float32")
    cases = [(each, zone, each.case) for each, zone in zip(saved.rows, zones, strict=True) if each.case]
    count = len(stated.question.variables)
    violated = [len(case) == count and case in zone and stated.confirms(case) for _, zone, case in cases]
    _expect(violated, [each for each, _, _ in cases], "its case does not violate the law")
    return stated


def _expect(held: Sequence[bool], rows: Sequence[RowDecision], otherwise: str) -> None:
    for holds, each in zip(held, rows, strict=True):
        if not holds:
            raise InvalidProof(f"row {each.row} (0-based): {otherwise}")


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


def compare_rows(saved: SavedRows, data: NDArray[Any]) -> None:
    """Check that the rows of a file are rows of the data set. Raises InvalidProof."""
    for each in saved.rows:
        own = map(number_or_none, data[each.row]) if 0 <= each.row < len(data) else ()
        if tuple(own) != each.columns:
            raise InvalidProof(f"row {each.row} (0-based): is not that row of the data set")


# A file checked again, without what found it


@dataclass(frozen=True)
class CheckedProof:
    """A file with a proof of a law, what that shows, and what is wrong with it (None: nothing)."""

    path: Path
    law: str
    over: str
    semantics: str
    problem: str | None = None


def check_saved(
    path: Path, *, model: str | Path | None, domain: str | Path | None, allow_code: bool
) -> CheckedProof:
    """Check the proof in a file: see `dokimos.check_proofs`. Raises InputError."""
    saved = read_rows(path) if format_of(path) == ROWS else read_proof(path)
    head, law = saved.head, saved.head.stated
    place = domain if domain is not None else head.domain
    if place is None:
        raise InputError(f"{path}: names no domain; give a `domain`.")
    named = [place] if domain is None and domain_file(place) is not None else []
    named += [head.model] if model is None and is_code(head.model) else []
    if named and not allow_code:
        raise InputError(f"{path}: names Python code, {named[0]}; `allow_code` runs it.")
    found = with_table(load_domain(place, allow_code=allow_code or domain is not None), "range")
    loaded = load_model(
        head.model if model is None else model, found, allow_code=allow_code or model is not None
    )
    plan = planned(law, found, constrained=head.constrained, allow_code=allow_code)
    shown, problem = ("", ""), None
    try:
        if head.model_sha256 != loaded.sha256:
            raise InvalidProof("the proof is about another model")
        shown = _shown(plan, as_domain_model(loaded, plan.domain), saved)
    except (InvalidProof, Refusal) as reason:
        problem = str(reason)
    return CheckedProof(path, law.name, *shown, problem)


def _shown(plan: LawPlan, model: Model, saved: SavedProof | SavedRows) -> tuple[str, str]:
    """What a file shows: for which cases, and how. Raises InvalidProof or Refusal."""
    if isinstance(saved, SavedRows):
        recheck_rows(plan, model, saved)
        single = sum(each.in_float32 for each in saved.rows)
        answers = [each.answer for each in saved.rows]
        counts = [(answers.count(answer), answer) for answer in LawAnswer]
        words = ", ".join(f"{number:,} {answer.value}" for number, answer in counts if number)
        data = data_of(plan.domain)
        if data is not None:
            compare_rows(saved, data)
        more = "" if data is not None else "; the data set is not at hand to compare rows with"
        return f"records ± {saved.tolerance.words}", f"{words} ({single:,} proven in float32 too{more})"
    stated = state_law(plan, model)
    shown = stated.question.over, stated.check(saved.cover)
    if (saved.over, saved.semantics) != shown:
        claimed = f"{saved.over}, {saved.semantics}"
        raise InvalidProof(f"it claims {claimed}; what it shows is {', '.join(shown)}")
    return shown
