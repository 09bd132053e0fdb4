"""The result of a test as a JSON file, with everything needed to run its violations again."""

from __future__ import annotations

import hashlib
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.documents import Count, expect_format
from dokimos.core.errors import DokimosError, UnreadableFile
from dokimos.core.files import read_whole, write_whole
from dokimos.core.typed_values import convert
from dokimos.laws.engine.confirmation import SavedViolations
from dokimos.laws.engine.law_case import LawCase, as_record, from_json, to_json
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.law_results import LawResult
from dokimos.laws.engine.means import Rate, SetOutcome, SetVerdict
from dokimos.laws.engine.pools import as_records
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.tested_model import Model
from dokimos.laws.proving import saved_proofs
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.saved_proofs import format_of, read_proof
from dokimos.laws.proving.stated_laws import StatedLaw, state_law
from dokimos.laws.reporting import violation_files

FORMAT = "dokimos-law-violations"
_VERSION = 2
#: In files of version 1, all random calls of a case had the same numbers.
_OLD_VERSION = 1
_VIOLATED = SetOutcome.VIOLATED.value


class _ResultForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file; records and values are as `to_json` writes them."""

    format: str = FORMAT
    version: int = _VERSION
    dokimos: str = __version__
    law: _LawForm
    domain: str | None
    model: _ModelForm
    folder: str | None = None
    source: str
    seed: Count
    budget: Count
    in_range: bool = False
    max_rate: float = 0.0
    counts: _CountsForm
    is_exhaustive: bool
    is_in_order: bool
    is_interrupted: bool
    is_starved: bool
    is_given_up: bool = False
    rate: _RateForm
    rates_by_first_decision: dict[str, _RateForm]
    rates_by_group: dict[str, dict[str, _RateForm]]
    over_all_tests: list[_SetForm] = []
    not_deterministic: str = ""
    seconds: float
    errors: list[_ErrorForm]
    violations: list[_ViolationForm]


class _LawForm(Struct, frozen=True, forbid_unknown_fields=True):
    file: str
    text: str
    sha256: str


class _ModelForm(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    sha256: str | None


class _CountsForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    draws: Count
    precondition_failed: Count
    precondition_held: Count
    tested: Count
    passed: Count
    violated: Count
    unique: Count
    distinct_inputs: Count
    failed: Count
    unconfirmed: Count
    unrepeatable: Count = 0
    tolerated: Count = 0
    out_of_range: Count = 0
    refused: Count = 0


class _RateForm(Struct, frozen=True, forbid_unknown_fields=True):
    violated: Count
    tested: Count
    value: float
    low_95: float
    high_95: float


class _MeanForm(Struct, frozen=True, forbid_unknown_fields=True):
    mean: str
    tests: Count
    value: float | None
    low_95: float | None
    high_95: float | None


class _SetForm(Struct, frozen=True, forbid_unknown_fields=True):
    ensures: str
    outcome: str
    means: list[_MeanForm]


class _InputForm(Struct, frozen=True, forbid_unknown_fields=True):
    row: Count | None
    record: Any


class _CaseForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    inputs: dict[str, _InputForm]
    draws: list[Any]
    case_seed: Count
    values: dict[str, Any]


class _ErrorForm(Struct, frozen=True, forbid_unknown_fields=True):
    reason: str
    case: _CaseForm


class _ViolationForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    words: str
    inputs: dict[str, _InputForm]
    draws: list[Any]
    case_seed: Count
    values: dict[str, Any]


def save_result(result: LawResult, path: Path) -> None:
    """Write the counts and the violations of a test as JSON. Raises InputError."""
    law = result.law
    form = _ResultForm(
        law=_LawForm(law.name, law.text, hashlib.sha256(law.text.encode()).hexdigest()),
        domain=_from_anywhere(result.domain.place),
        model=_ModelForm(_from_anywhere(result.model.name) or "", result.model.sha256),
        folder=str(path.absolute().parent),
        source=result.source,
        seed=result.settings.seed,
        budget=result.settings.budget,
        in_range=result.settings.in_range,
        max_rate=result.settings.max_rate,
        counts=_CountsForm(
            draws=result.draws,
            precondition_failed=result.rejected,
            precondition_held=result.held,
            tested=result.tested,
            passed=result.passed,
            violated=result.violated,
            unique=result.unique,
            distinct_inputs=result.inputs,
            failed=result.failed,
            unconfirmed=result.unconfirmed,
            unrepeatable=result.unrepeatable,
            tolerated=result.tolerated,
            out_of_range=result.outside,
            refused=result.refused,
        ),
        is_exhaustive=result.is_exhaustive,
        is_in_order=result.is_in_order,
        is_interrupted=result.is_interrupted,
        is_starved=result.is_starved,
        is_given_up=result.is_given_up,
        rate=_rate(result.rate),
        rates_by_first_decision={name: _rate(rate) for name, rate in result.classes},
        rates_by_group={
            group.feature: {name: _rate(rate) for name, rate in group.rates} for group in result.groups
        },
        over_all_tests=[_over_all(each) for each in result.over_all],
        not_deterministic=result.not_deterministic,
        seconds=result.seconds,
        errors=[_ErrorForm(reason, _CaseForm(**_case(case))) for reason, case in result.errors],
        violations=[_ViolationForm(words=each.words, **_case(each.case)) for each in result.violations],
    )
    write_whole(path, strict_json.write(form), what="the result")


def _rate(rate: Rate) -> _RateForm:
    return _RateForm(rate.count, rate.total, rate.value, *rate.interval)


def _over_all(verdict: SetVerdict) -> _SetForm:
    means = [
        _MeanForm(each.text, each.tests, *(_finite(one) for one in (each.value, each.low, each.high)))
        for each in verdict.means
    ]
    return _SetForm(verdict.text, verdict.outcome.value, means)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _case(case: LawCase) -> dict[str, Any]:
    """The fields of a case in the file."""
    return {
        "inputs": {
            name: _InputForm(case.rows[name], to_json(record)) for name, record in case.inputs.items()
        },
        "draws": to_json(case.draws),
        "case_seed": case.seed,
        "values": {name: to_json(value) for name, value in case.values.items()},
    }


def read_violations(path: Path) -> SavedViolations:
    """A file that `save_result` wrote. Raises UnreadableFile."""
    document = strict_json.parse(read_whole(path, most_bytes=strict_json.MOST_BYTES), file=path, nan=True)
    wanted = "is not a file of violations that `dokimos law test` wrote"
    is_old = isinstance(document, dict) and document.get("version") == _OLD_VERSION
    expect_format(document, FORMAT, _OLD_VERSION if is_old else _VERSION, file=path, otherwise=wanted)
    form = convert(document, _ResultForm, file=path, what="a file of violations")
    law = parse_law(form.law.text, name=form.law.file)
    folder = path.absolute().parent
    return SavedViolations(
        law=law,
        domain=_moved(form.domain, form.folder, folder),
        model=_moved(form.model.name, form.folder, folder) or "",
        model_sha256=form.model.sha256,
        source=form.source,
        cases=tuple(_read_case(each, law, path) for each in form.violations),
        words=tuple(each.words for each in form.violations),
        one_stream=is_old,
        over_all=tuple(each.ensures for each in form.over_all_tests if each.outcome == _VIOLATED),
    )


def _read_case(form: _ViolationForm, law: Law, path: Path) -> LawCase:
    names = [each.name for each in law.inputs]
    missing = [name for name in names if name not in form.inputs]
    if missing:
        raise UnreadableFile(path, f"is damaged: a violation has no input {missing[0]}.")
    try:
        return LawCase(
            inputs={name: as_record(form.inputs[name].record) for name in names},
            rows={name: form.inputs[name].row for name in names},
            draws=tuple(_draw(each) for each in form.draws),
            seed=form.case_seed,
            values={},
        )
    except (TypeError, ValueError) as problem:
        raise UnreadableFile(path, f"is damaged: {problem}.") from None


def _draw(value: Any) -> int | float:
    """The result of a random call. Raises ValueError."""
    number = from_json(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or abs(number) >= 2.0**63:
        raise ValueError("a draw is not a number")
    return number


def _split(place: str) -> tuple[str, str]:
    """FILE and :NAME of a place written as FILE:NAME; otherwise the place and an empty string."""
    file, colon, name = place.rpartition(":")
    return (file, f":{name}") if colon and name.isidentifier() else (place, "")


def _from_anywhere(place: str | None) -> str | None:
    """A place as an absolute path; what is not a file (a shipped domain) stays as it is."""
    if place is None:
        return None
    file, name = _split(place)
    return f"{Path(file).absolute()}{name}" if Path(file).is_file() else place


def _moved(place: str | None, saved_in: str | None, now_in: Path) -> str | None:
    """A place as saved; if nothing is there any more, the same path relative to where this file is now."""
    if place is None or saved_in is None:
        return place
    file, name = _split(place)
    if not Path(file).is_absolute() or Path(file).exists():
        return place
    beside = now_in / os.path.relpath(file, saved_in)
    return f"{beside.resolve()}{name}" if beside.exists() else place


# What an earlier run has decided already, read from its files


_STEP = "kept from before"


def known_decision(path: Path, plan: LawPlan, model: Model, settings: VerifySettings) -> LawDecision | None:
    """The decision in a file; None where there is none, it does not hold, or is about something else."""
    begun = time.process_time()
    none = LawDecision(plan.law, plan.domain, model, settings, LawAnswer.OPEN, step=_STEP)
    try:
        stated = state_law(plan, model)
        none = replace(none, over=stated.question.over, left_out=stated.left_out)
        match format_of(path):
            case saved_proofs.PROOF:
                found = _proven(path, none, stated)
            case violation_files.FORMAT:
                found = _violated(path, none, stated)
            case _:
                found = None
    except (DokimosError, Refusal):
        return None
    return None if found is None else replace(found, seconds=time.process_time() - begun)


def _proven(path: Path, none: LawDecision, stated: StatedLaw) -> LawDecision | None:
    saved = read_proof(path)
    about = (saved.head.text, saved.head.model_sha256, saved.head.constrained)
    if about != (none.law.text, none.model.sha256, none.settings.constrained):
        return None
    semantics = stated.check(saved.cover)
    if (saved.over, saved.semantics) != (none.over, semantics):
        return None
    return replace(none, answer=LawAnswer.PROVEN, cover=saved.cover, semantics=semantics)


def _violated(path: Path, none: LawDecision, stated: StatedLaw) -> LawDecision | None:
    saved = read_violations(path)
    about = (saved.law.text, saved.model_sha256)
    if about != (none.law.text, none.model.sha256) or len(saved.cases) != 1:
        return None
    layout = stated.question.layout
    for name, record in saved.cases[0].inputs.items():
        as_records([record], layout, name)  # refuses what is no record
    case = stated.replay.case_of(saved.cases[0])
    if case is None or not stated.confirms(case):
        return None
    return replace(none, answer=LawAnswer.VIOLATED, case=case, violation=stated.replay.violation(case))
