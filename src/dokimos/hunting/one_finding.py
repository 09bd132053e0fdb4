"""From one wrong answer to a folder: made small, confirmed by a cold run, explained by controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import inf
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, InvalidProof
from dokimos.engine.label import find_label
from dokimos.engine.outcome import accepted_truth, proven_truth
from dokimos.hunting.asking import Asker, Wrong, crash_key, judged
from dokimos.hunting.causes import cause_of
from dokimos.hunting.reduction import Reducer, ReductionStep
from dokimos.hunting.specimen import LEAST_MARGIN, LabelProver, margin_of, specimen_of
from dokimos.hunting.write_up import Reduced, ask_by_itself, exact_values, write_files, write_issue
from dokimos.suites.instance import Instance, LabelledInstance, Semantics, Truth
from dokimos.verifiers.base import Verifier

#: Where a reduction keeps what it asked.
ASKED = "asked"
#: What finding a label of files that have none may take.
_LABEL_SECONDS = 30.0
#: A smaller question gets so many times the CPU time of the first one, and at least this.
_MORE_CPU, _LEAST_CPU_SECONDS = 2.0, 0.5


class NotWrong(InputError):
    """The tool is not wrong about the question, or not when it is asked by a process of its own."""


def labelled(instance: Instance, truth: Truth | None) -> tuple[Instance, Truth]:
    """The instance with a label that has just been proven: the given one, or one that is looked for."""
    if truth is not None:
        return instance, proven_truth(instance, truth.certificate, truth.label, truth.witness)
    found = find_label(instance, seconds=_LABEL_SECONDS)
    if found.truth is None:
        raise InputError(
            f"{instance.name} has no label, and none is found in {_LABEL_SECONDS:g} s: {found.reason}; "
            "`dokimos label` may find one in more time."
        )
    return instance, found.truth


def wrong_of(record: RunRecord, labelled: LabelledInstance) -> Wrong | None:
    """What is wrong about an answer; None if nothing is."""
    if crash := crash_key(record):
        return Wrong(judged(record, labelled).verdict, crash)
    verdict = judged(record, labelled).verdict
    return Wrong(verdict) if verdict.is_wrong else None


def reduce_one(
    instance: Instance,
    truth: Truth,
    verifier: Verifier,
    *,
    folder: Path,
    settings: RunSettings,
    wanted: Wrong | None = None,
    origin: str = "",
    most_seconds: float = inf,
    seen: Callable[[ReductionStep], None] = lambda _: None,
) -> Reduced:
    """Make the wrong answer as small as it gets, and write it to `folder`.

    What was asked is kept there: the same call continues. After `most_seconds` of CPU time it is as small
    as it is. Raises NotWrong if the answer is not wrong (in the way that is `wanted`), warm or cold.
    """
    asker = Asker(verifier.warm() or verifier, settings, folder / ASKED)
    start = LabelledInstance(instance, truth)
    with asker.open():
        record = asker.ask(start)
        wrong = wrong_of(record, start)
        if wrong is None or (wanted is not None and wrong != wanted):
            asks = wanted.in_words if wanted else "a wrong answer"
            found = wrong.in_words if wrong else judged(record, start).reason
            raise NotWrong(f"{verifier.name} on {instance.name}: not {asks}: {found}.")
        asker.limit_cpu(max(_LEAST_CPU_SECONDS, _MORE_CPU * record.cpu_seconds))
        specimen = specimen_of(instance, truth)
        least = Fraction(0) if wrong.crash else min(LEAST_MARGIN, margin_of(truth))
        prover = LabelProver(least, is_float32=truth.claim(Semantics.FLOAT32).proven)
        small = Reducer(asker, wrong, prover, seen, most_seconds=most_seconds).run(specimen)
        known = LabelledInstance(small.instance, truth) if small is specimen else prover.proven(small)
        labelled = LabelledInstance(small.instance, None) if wrong.crash else _proven_again(known)
        cause = cause_of(small, wrong, asker, prover, least)
        cpu_seconds, asked = asker.cpu_seconds, asker.asked
    cold = Asker(verifier, settings, folder / f"{ASKED}-cold")
    with cold.open():
        again = cold.ask(labelled)
        if not wrong.holds(again, labelled):
            raise NotWrong(
                f"{verifier.name} on {labelled.instance.name}: not {wrong.in_words} once asked cold."
            )
    reduced = Reduced(
        specimen=small,
        labelled=labelled,
        cause=replace(cause, tool=cause.tool),
        margin=Fraction(0) if labelled.truth is None else margin_of(labelled.truth),
        cold=again,
        before=specimen.numbers,
        asked=asked + 1,
        cpu_seconds=cpu_seconds + again.cpu_seconds,
        origin=origin or instance.name,
        **exact_values(labelled),
    )
    write_files(folder, reduced, verifier, settings)
    reduced = replace(reduced, own_answer=ask_by_itself(verifier, folder, settings))
    write_issue(folder, reduced)
    return reduced


def _proven_again(found: LabelledInstance | None) -> LabelledInstance:
    """The label with its proof, which no runtime contradicts. Raises InvalidProof if there is none."""
    if found is None or found.truth is None:
        raise InvalidProof("the proof of the smallest instance is not found a second time; try again")
    truth = found.truth
    return replace(
        found, truth=accepted_truth(found.instance, truth.certificate, truth.label, truth.witness)
    )
