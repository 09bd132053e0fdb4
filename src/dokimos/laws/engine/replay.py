"""Violations of an earlier test, run again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain, domain_file
from dokimos.laws.engine.cases import LawCase
from dokimos.laws.engine.confirmation import put_in_words, run_cases
from dokimos.laws.engine.draws import find_source, labels_of
from dokimos.laws.engine.plan import make_plan
from dokimos.laws.engine.pools import as_records
from dokimos.laws.engine.runner import Runner
from dokimos.laws.language.formatting import predictions
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import is_code
from dokimos.laws.models.model import Model


@dataclass(frozen=True)
class SavedViolations:
    """A saved test: the law itself, the names of its domain and its model, and the cases."""

    law: Law
    domain: str | None
    model: str
    model_sha256: str | None
    source: str
    cases: tuple[LawCase, ...]
    words: tuple[str, ...]
    #: Whether all random calls of a case had the same numbers, as in files of version 1.
    one_stream: bool = False
    #: The violated conditions on all tests together, which no single case shows.
    over_all: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replayed:
    """A saved violation run again: in words if it still violates the law, otherwise None."""

    before: str
    now: str | None


def replay_violations(
    saved: SavedViolations, model: Model, domain: Domain | None, *, allow_code: bool = True
) -> tuple[Replayed, ...]:
    """Run every saved case again, record by record. Raises InputError if that is not possible."""
    plan = make_plan(saved.law, domain, allow_code=allow_code, one_stream=saved.one_stream)
    wanted = len(plan.random)
    uses_labels = "label(" in saved.law.text and saved.source == "test" and plan.domain.inputs is not None
    source = find_source("test", plan.domain) if uses_labels else None
    labels = _no_labels if source is None else labels_of(plan.domain, source)
    runner = Runner(plan, model, labels)
    replayed = []
    for case, words in zip(saved.cases, saved.words, strict=True):
        if len(case.draws) != wanted:
            raise InputError(f"A saved case has {len(case.draws)} draws, but the law makes {wanted}.")
        for name, record in case.inputs.items():
            as_records([record], plan.domain.layout, f"The saved input {name}")
        if source is not None and any(row >= (source.size or 0) for row in case.rows.values() if row):
            raise InputError(f"A saved case refers to a row outside the test set of {source.size} rows.")
        frame = run_cases([case], runner, one_by_one=True, tolerated=True)
        if runner.errors.count:
            raise InputError(f"Replaying failed: {runner.errors.kept[0].reason}.")
        now = put_in_words(frame, runner) if frame.size else None
        replayed.append(Replayed(words, now))
    return tuple(replayed)


def _no_labels() -> Any:
    raise InputError("The saved cases do not come from a test set with labels.")


# The Python code that replaying a file of violations would run


def code_named(law: Law, *, domain: str | None, model: str | None) -> tuple[str, ...]:
    """Which of the law, the domain and the model that a file names are code, in words; None if none is.

    Shipped domains are ours, and files of numbers (ONNX, trees) are not code.
    """
    found = []
    if predictions(law) is None:
        found.append(f"the block of its law (line {law.block.at.line})")
    if domain is not None and (path := domain_file(domain)) is not None:
        found.append(f"the domain {path}")
    if model is not None and is_code(model):
        found.append(f"the model {model}")
    return tuple(found)
