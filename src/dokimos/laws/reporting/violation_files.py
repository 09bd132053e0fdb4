"""Violations on disk, with everything needed to run them again."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos import __version__
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.cases import LawCase, as_record, case_of, from_json, to_json
from dokimos.laws.engine.descriptions import describe
from dokimos.laws.engine.plan import make_plan
from dokimos.laws.engine.rates import Rate
from dokimos.laws.engine.results import LawResult
from dokimos.laws.engine.runner import Runner
from dokimos.laws.engine.shrinking import run_cases
from dokimos.laws.engine.sources import find_source, labels_of
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.model import Model

FORMAT = "dokimos-law-violations"
_VERSION = 1


@dataclass(frozen=True)
class Saved:
    """A file of violations: the law itself, what names its domain and its model, and the cases."""

    law: Law
    domain: str | None
    model: str
    model_sha256: str | None
    source: str
    cases: tuple[LawCase, ...]
    words: tuple[str, ...]


def save_result(result: LawResult, path: Path) -> None:
    """Write the counts and the violations of a test as JSON."""
    law = result.law
    content = {
        "format": FORMAT,
        "version": _VERSION,
        "dokimos": __version__,
        "law": {
            "file": law.name,
            "text": law.text,
            "sha256": hashlib.sha256(law.text.encode()).hexdigest(),
        },
        "domain": _from_anywhere(result.domain.place),
        "model": {"name": _from_anywhere(result.model.name), "sha256": result.model.sha256},
        "folder": str(path.absolute().parent),
        "source": result.source,
        "seed": result.settings.seed,
        "budget": result.settings.budget,
        "counts": {
            "draws": result.draws,
            "precondition_failed": result.rejected,
            "precondition_held": result.held,
            "tested": result.tested,
            "passed": result.passed,
            "violated": result.violated,
            "unique": result.unique,
            "distinct_inputs": result.inputs,
            "failed": result.failed,
            "unconfirmed": result.unconfirmed,
        },
        "is_exhaustive": result.is_exhaustive,
        "is_in_order": result.is_in_order,
        "is_interrupted": result.is_interrupted,
        "is_starved": result.is_starved,
        "rate": _rate(result.rate),
        "rates_by_first_decision": {name: _rate(rate) for name, rate in result.classes},
        "rates_by_group": {
            group.feature: {name: _rate(rate) for name, rate in group.rates} for group in result.groups
        },
        "seconds": result.seconds,
        "errors": [{"reason": reason, "case": _case(case)} for reason, case in result.errors],
        "violations": [{"words": each.words, **_case(each.case)} for each in result.violations],
    }
    path.write_text(
        json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _split(place: str) -> tuple[str, str]:
    """FILE and :NAME of a place that is spelled FILE:NAME, else the place and nothing."""
    file, colon, name = place.rpartition(":")
    return (file, f":{name}") if colon and name.isidentifier() else (place, "")


def _from_anywhere(place: str | None) -> str | None:
    """A place such that other folders find it too; what is no file (a shipped domain) as it is."""
    if place is None:
        return None
    file, name = _split(place)
    return f"{Path(file).absolute()}{name}" if Path(file).is_file() else place


def _moved(place: str | None, saved_in: str | None, now_in: Path) -> str | None:
    """A place as it was saved; where nothing is there any more, what lies to this file as that did then."""
    if place is None or saved_in is None:
        return place
    file, name = _split(place)
    if not Path(file).is_absolute() or Path(file).exists():
        return place
    beside = now_in / os.path.relpath(file, saved_in)
    return f"{beside.resolve()}{name}" if beside.exists() else place


def _rate(rate: Rate) -> dict[str, float]:
    low, high = rate.interval
    return {
        "violated": rate.count,
        "tested": rate.total,
        "value": rate.value,
        "low_95": low,
        "high_95": high,
    }


def _case(case: LawCase) -> dict[str, Any]:
    inputs = {
        name: {"row": case.rows[name], "record": to_json(record)} for name, record in case.inputs.items()
    }
    values = {name: to_json(value) for name, value in case.values.items()}
    return {"inputs": inputs, "draws": to_json(case.draws), "case_seed": case.seed, "values": values}


def read_violations(path: Path) -> Saved:
    """A file that `save_result` wrote. Raises UnreadableFile."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UnreadableFile(path, f"cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:
        raise UnreadableFile(path, f"is not JSON: {problem}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UnreadableFile(path, "is no file of violations that `dokimos law test` wrote.")
    if content.get("version") != _VERSION:
        raise UnreadableFile(path, f"has version {content.get('version')}; this Dokimos reads {_VERSION}.")
    try:
        law = parse_law(content["law"]["text"], name=content["law"]["file"])
        cases = tuple(_read_case(each, law) for each in content["violations"])
        return Saved(
            law=law,
            domain=_moved(content["domain"], content.get("folder"), path.absolute().parent),
            model=_moved(content["model"]["name"], content.get("folder"), path.absolute().parent) or "",
            model_sha256=content["model"]["sha256"],
            source=content["source"],
            cases=cases,
            words=tuple(each["words"] for each in content["violations"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise UnreadableFile(path, f"is damaged: {type(problem).__name__} {problem}.") from None


def _read_case(content: dict[str, Any], law: Law) -> LawCase:
    names = [each.name for each in law.inputs]
    return LawCase(
        inputs={name: as_record(content["inputs"][name]["record"]) for name in names},
        rows={name: content["inputs"][name]["row"] for name in names},
        draws=tuple(from_json(each) for each in content["draws"]),
        seed=int(content["case_seed"]),
        values={},
    )


@dataclass(frozen=True)
class Replayed:
    """A saved violation run again: in words where it still violates the law, None where it does not."""

    before: str
    now: str | None


def replay_violations(
    saved: Saved, model: Model, domain: Domain | None, *, allow_code: bool = True
) -> tuple[Replayed, ...]:
    """Run every saved case again, record by record. Raises InputError where that is not possible."""
    plan = make_plan(saved.law, domain, allow_code=allow_code)
    wanted = len(plan.random)
    uses_labels = "label(" in saved.law.text and saved.source == "test" and plan.domain.inputs is not None
    labels = labels_of(plan.domain, find_source("test", plan.domain)) if uses_labels else _no_labels
    runner = Runner(plan, model, labels)
    replayed = []
    for case, words in zip(saved.cases, saved.words, strict=True):
        if len(case.draws) != wanted:
            raise InputError(f"A saved case has {len(case.draws)} draws where the law makes {wanted}.")
        frame = run_cases([case], runner, one_by_one=True)
        if runner.errors.count:
            raise InputError(f"Replaying failed: {runner.errors.kept[0].reason}.")
        now = describe(case_of(frame, 0, saved.law), saved.law, plan.domain) if frame.size else None
        replayed.append(Replayed(words, now))
    return tuple(replayed)


def _no_labels() -> Any:
    raise InputError("The saved cases come from no test set with labels.")
