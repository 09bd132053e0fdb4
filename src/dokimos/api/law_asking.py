"""`ask_law`: laws decided by a verifier, through the product of copies of the network."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from math import ceil, floor
from pathlib import Path
from typing import Any

from dokimos.api.campaigns import run
from dokimos.api.law_export import export_law
from dokimos.api.law_instances import AskedInstance
from dokimos.api.laws import LawSource
from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.campaigns.records import RunRecord
from dokimos.core.brief import Brief
from dokimos.laws.domain.features import Kind
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.replaying import CaseReplay
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.row_zones import chosen as chosen_option
from dokimos.laws.proving.searching import ExactCase
from dokimos.laws.proving.zones import Number, exact
from dokimos.properties.model import Point
from dokimos.suites.answers import Answer
from dokimos.verifiers.base import Verifier

#: How many cases around a point are tried.
_MOST_CASES = 1000


@dataclass(frozen=True, repr=False)
class AskedLaw(Brief):
    """What a verifier says of a law in a set of cases: `place` names the law, and the row and tolerance.

    PROVEN is the verifier's word, which nobody has checked. VIOLATED has `words`: a case that was run
    again, exactly and in onnxruntime. OPEN has a `reason`.
    """

    place: str
    verifier: str
    answer: LawAnswer
    words: str = ""
    reason: str = ""
    seconds: float = 0.0


def ask_law(
    laws: LawSource,
    verifier: str | Verifier,
    *,
    model: Any = None,
    domain: str | Path | None = None,
    rows: int | None = None,
    tolerances: Sequence[float | Fraction] = (Fraction(1, 100),),
    free: Sequence[str] = (),
    settings: VerifySettings | None = None,
    progress: ProgressCallback[AskedLaw] = ignore,
) -> tuple[AskedLaw, ...]:
    """Ask a verifier whether a case violates laws on a network: `dokimos law verify --verifier`.

    Each law, or each law around each row, is written as one product network with a property in VNN-LIB 1.0
    (see `export_law`), and the verifier has `settings.seconds` for each. What it calls `unsat` is proven by
    it alone. What it calls `sat` counts where its point is a case of the law, or rounds to one, that
    violates the law when the network is run again, exactly and in onnxruntime.

    >>> dokimos.ask_law("older.law", "reference", model="older.json")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: older.json: is not a network; only laws on networks are exported.
    """
    settings = VerifySettings() if settings is None else settings
    with tempfile.TemporaryDirectory(prefix="dokimos-law-") as folder:
        exported = export_law(
            laws,
            out=Path(folder) / "laws",
            model=model,
            domain=domain,
            rows=rows,
            tolerances=tolerances,
            free=free,
            settings=settings,
            labelled=False,
        )
        known = {each.name: each for each in exported.asked}
        found: list[AskedLaw] = []

        def tell(update: ProgressUpdate[object]) -> None:
            if isinstance(update.item, RunRecord):
                found.append(_answer(known[update.item.instance], update.item))
                progress(ProgressUpdate("asking", len(found), len(known), found[-1].place, found[-1]))

        run(
            exported.suite.folder,
            verifier,
            Path(folder) / "run",
            timeout_seconds=settings.seconds,
            progress=tell,
        )
    return tuple(found)


def _answer(asked: AskedInstance, record: RunRecord) -> AskedLaw:
    said = (record.detail or record.answer.value).strip().splitlines()
    answer, words, reason = LawAnswer.OPEN, "", said[-1].strip()  # of a traceback, the error
    if record.answer is Answer.UNSAT:
        answer, reason = LawAnswer.PROVEN, ""
    elif record.answer is Answer.SAT:
        words = "" if record.witness is None else _violation(asked, record.witness)
        answer = LawAnswer.VIOLATED if words else LawAnswer.OPEN
        reason = "" if words else "its counterexample is not a case that violates the law"
    return AskedLaw(asked.place, record.verifier, answer, words, reason, record.wall_seconds)


def _violation(asked: AskedInstance, witness: Point) -> str:
    """A violation at, or next to, a point of the product, in words; empty where there is none."""
    question, closer = asked.stated.question, asked.stated.closer
    assert isinstance(closer, NetworkCloser)  # only laws on networks are exported
    if len(witness) != 1 + max(k for parts in asked.inputs for k in parts):
        return ""
    columns = [sum((witness[k] for k in parts), Fraction(0)) for parts in asked.inputs]
    replay = CaseReplay(asked.plan, asked.model, question, closer.reach.decided)
    for case in _cases(question, columns):
        if (
            case in asked.zone
            and exactly_violated(question, closer.reach, case) is True
            and replay.violates(case)
        ):
            return replay.violation(case).words
    return ""


def _cases(question: LawQuestion, columns: Sequence[Fraction]) -> Iterator[ExactCase]:
    """The cases next to these columns of the records, the nearest first: whole numbers up, or down."""
    width = question.layout.width
    known: dict[int, list[Number]] = {}
    for number, record in enumerate(question.records):
        own = columns[number * width : (number + 1) * width]
        for slot, feature in zip(question.layout.slots, record.features, strict=True):
            if feature.variable is None or feature.variable in known:
                continue
            if slot.feature.kind is Kind.CHOICE:
                values: list[Number] = [chosen_option(slot, [round(each) for each in own])]
            elif slot.feature.kind is Kind.INTEGER:
                here = own[slot.start]
                values = sorted({floor(here), ceil(here)}, key=lambda each: abs(each - here))
            else:
                values = [exact(own[slot.start])]
            known[feature.variable] = values
    if len(known) == len(question.variables):
        yield from islice(product(*(known[k] for k in range(len(known)))), _MOST_CASES)
