"""From one wrong answer to a folder that shows it to whoever makes the tool.

The question is made small, the answer confirmed by a cold run, and explained by controls.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct

from dokimos.campaigns.job import remove_folder
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError, InvalidProof
from dokimos.core.files import write_whole
from dokimos.core.readable import exact_number, markdown_lines, markdown_text
from dokimos.engine.label import find_label
from dokimos.engine.outcome import accepted_truth, proven_truth
from dokimos.hunting.asking import Asker, Wrong, crash_key, judged, replays_of
from dokimos.hunting.file_graph import formula
from dokimos.hunting.reduction import Cause, Reducer, ReductionStep, cause_of
from dokimos.hunting.specimen import LEAST_MARGIN, LabelProver, Specimen, margin_of, specimen_of
from dokimos.judging.verdicts import Verdict
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.judging.written_points import write_witness
from dokimos.suites.instance import Instance, Label, LabelledInstance, Semantics, Truth
from dokimos.suites.suite_files import files_of
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.writer import exact_decimal
from dokimos.verifiers.base import Query, Verifier, log_tail
from dokimos.verifiers.execution.process import run_limited
from dokimos.verifiers.script_guard import allowed_environment, room_for

#: The names of the files of a folder.
NETWORK, PROPERTY, TRUTH, QUERY = "network.onnx", "property.vnnlib", "truth.json", "query.py"
FORMULA, POINT, ISSUE, FINDING = "formula.txt", "counterexample", "issue.md", "finding.json"
_SHOWN = 12
MOST_LINES = 20


class FindingForm(Struct, forbid_unknown_fields=True):
    """`finding.json`: a finding for programs, and what groups are made by."""

    name: str
    tool: str
    version: str
    wrong: str
    needed: tuple[str, ...]
    operators: tuple[str, ...]
    margin_size: int
    attack_off: bool
    node: str
    margin: str
    numbers: int
    before: int
    asked: int
    cpu_seconds: float
    answer: str
    own_answer: str
    agrees: bool
    origin: str = ""
    schema: int = 1

    @property
    def cause(self) -> Cause:
        """The cause."""
        return Cause(
            self.tool, self.wrong, self.needed, self.operators, self.margin_size, self.attack_off, self.node
        )


@dataclass(frozen=True)
class Reduced:
    """A reduction that is done: the question, its proof, its cause, and what it cost.

    `cold` is the answer of a process of its own, `before` how many numbers the network had; `excluded` says
    which of the tool's bounds exclude the witness, where it writes them.
    """

    specimen: Specimen
    labelled: LabelledInstance
    cause: Cause
    margin: Fraction
    cold: RunRecord
    before: int
    asked: int
    cpu_seconds: float
    origin: str = ""
    excluded: str = ""
    own_answer: str = ""
    agrees: bool = False
    outputs: tuple[Fraction, ...] = ()
    onnxruntime: tuple[float, ...] = field(default=())

    @property
    def form(self) -> FindingForm:
        """The finding for programs."""
        cause = self.cause
        return FindingForm(
            name=self.labelled.instance.name,
            tool=cause.tool,
            version=self.cold.verifier_version,
            wrong=cause.wrong,
            needed=cause.needed,
            operators=cause.operators,
            margin_size=cause.margin_size,
            attack_off=cause.attack_off,
            node=cause.node,
            margin=str(self.margin),
            numbers=self.specimen.numbers,
            before=self.before,
            asked=self.asked,
            cpu_seconds=self.cpu_seconds,
            answer=self.cold.answer.value,
            own_answer=self.own_answer,
            agrees=self.agrees,
            origin=self.origin,
        )


def exact_values(labelled: LabelledInstance) -> Mapping[str, Any]:
    """The outputs at the witness, exactly and in onnxruntime; nothing where there is no witness."""
    truth = labelled.truth
    if truth is None or truth.witness is None:
        return {}
    instance = labelled.instance
    question = Question(instance.network_file, instance.property_file, instance.name)
    shown = replay_witness(question, truth.witness).shown
    if shown is None:
        return {}
    _, replay = shown
    agrees = replay.violates_in_onnxruntime or not replay.witness_in_float32
    return {
        "outputs": replay.exact_outputs,
        "onnxruntime": replay.onnxruntime_outputs,
        "agrees": agrees,
    }


def ask_by_itself(verifier: Verifier, folder: Path, settings: RunSettings) -> str:
    """What `query.py` prints when the tool's own interpreter runs it in its folder."""
    program = verifier.program(folder, settings.limits(60.0).wall_seconds)
    if program is None:
        return ""
    remove_folder(place := folder / "own")
    place.mkdir()
    limits, log = settings.limits(60.0), folder / "own.log"
    for name in (NETWORK, PROPERTY, QUERY):
        write_whole(place / name, (folder / name).read_bytes(), what="a copy")
    query = Query(
        name="own",
        network_file=(place / NETWORK).absolute(),
        property_file=(place / PROPERTY).absolute(),
        folder=place.absolute(),
        wall_seconds=limits.wall_seconds,
        memory_bytes=limits.memory_bytes,
        trust=settings.trust,
    )
    invocation = verifier.command(query)
    passed = allowed_environment(verifier.variables, settings.pass_env)
    run_limited(
        (invocation.command[0], QUERY),
        limits=limits,
        log=log,
        cwd=place.absolute(),
        environment={**passed, "TMPDIR": str(place.absolute()), **invocation.environment},
        cancel=threading.Event(),
        room=room_for(verifier, invocation, limits, trust=settings.trust),
    )
    said = log_tail(log, characters=2000)
    log.unlink(missing_ok=True)
    remove_folder(place)
    return said


def write_files(folder: Path, reduced: Reduced, verifier: Verifier, settings: RunSettings) -> None:
    """The two files, the proof, the program that asks, and the formula."""
    folder.mkdir(parents=True, exist_ok=True)
    specimen, labelled = reduced.specimen, reduced.labelled
    write_whole(folder / NETWORK, specimen.network, what="the network")
    write_whole(folder / PROPERTY, specimen.property_text, what="the property")
    if (truth := files_of(labelled).truth) is not None:
        write_whole(folder / TRUTH, truth, what="the truth file")
    program = verifier.program(folder, settings.limits(60.0).wall_seconds)
    if program is not None:
        write_whole(folder / QUERY, program, what="the program")
    if specimen.witness is not None:
        text = write_witness(specimen.witness, reduced.onnxruntime)
        write_whole(folder / POINT, text, what="the point")
    if text := formula_of(specimen):
        write_whole(folder / FORMULA, text, what="the formula")


def write_issue(folder: Path, reduced: Reduced) -> None:
    """`issue.md`, and `finding.json` for programs."""
    write_whole(folder / ISSUE, issue_text(reduced), what="the text of the issue")
    write_whole(folder / FINDING, strict_json.write(reduced.form), what="the finding")


def formula_of(specimen: Specimen) -> str:
    """The network as a formula, if it is small and can be told so."""
    try:
        return formula(specimen.graph)
    except (DokimosError, ValueError, KeyError, TypeError, RuntimeError):
        return ""


def issue_text(reduced: Reduced) -> str:
    """A report for the tool's makers, ready to paste."""
    cause, specimen = reduced.cause, reduced.specimen
    tool = markdown_text(f"{cause.tool} {reduced.cold.verifier_version}")
    lines = [f"# {markdown_text(_title(reduced))}", ""]
    lines += [f"{tool}, Python {platform.python_version()}, {platform.system()} {platform.machine()}.", ""]
    lines += ["## What it says", "", _what_it_says(reduced), ""]
    lines += ["## What is true, and why", "", *_what_is_true(reduced), ""]
    if text := formula_of(specimen):
        lines += ["The network:", "", *markdown_lines(text), ""]
    lines += ["The property:", "", *markdown_lines(specimen.property_text), ""]
    lines += ["## How to reproduce", ""]
    lines += [
        f"With `{NETWORK}` and `{PROPERTY}` beside it, run `python {QUERY}` where {tool} is installed."
    ]
    if reduced.own_answer:
        lines += ["It prints:", "", *markdown_lines(reduced.own_answer.strip())]
    if cause.needed:
        needed = markdown_text("; ".join(cause.needed))
        lines += ["", f"The answer is right as soon as one of these is made neutral: {needed}."]
    return "\n".join(lines) + "\n"


def _title(reduced: Reduced) -> str:
    cause = reduced.cause
    about = ", ".join(cause.needed) or cause.node or ", ".join(cause.operators)
    if cause.wrong.startswith("crash"):
        return f"It ends in an error: {cause.wrong.removeprefix('crash: ')}"
    said = {
        "wrong-unsat": "`unsat` although there is a counterexample",
        "wrong-sat": "`sat` although there is none",
        "bad-witness": "`sat` with a point that is no counterexample",
    }
    return f"{said.get(cause.wrong, cause.wrong)} ({about})"


def _what_it_says(reduced: Reduced) -> str:
    cold = reduced.cold
    said = f"`{cold.answer.value}`"
    if cold.witness is not None:
        said += f" with the point {_point(cold.witness)}"
    if reduced.cause.attack_off:
        said += ", with its own attack switched off"
    if cold.detail and not cold.answer.decides:
        return "\n".join([f"{said}:", "", *markdown_lines(cold.detail.strip())])
    bounds = f" By the bounds that it wrote, {markdown_text(reduced.excluded)}." if reduced.excluded else ""
    return f"{said}.{bounds}"


def _what_is_true(reduced: Reduced) -> list[str]:
    witness, truth = reduced.specimen.witness, reduced.labelled.truth
    if truth is None:
        return ["The files are read and run by onnxruntime; an error is not an answer."]
    if truth.label is Label.UNSAT:
        kind = truth.certificate.kind
        return [
            f"`unsat`: no input of the box satisfies the property, by at least {_number(reduced.margin)}. "
            f"The proof (kind `{kind}`) is in `{TRUTH}`; `dokimos check` checks it in exact arithmetic."
        ]
    assert witness is not None
    outputs = ", ".join(f"Y_{j} = {_number(y)}" for j, y in enumerate(reduced.outputs[:_SHOWN]))
    computed = ", ".join(f"{y!r}" for y in reduced.onnxruntime[:_SHOWN])
    return [
        f"`sat`: at {_point(witness)}, which is in the box, the exact outputs are {outputs}. "
        f"onnxruntime computes {computed}. Every constraint holds there with at least "
        f"{_number(reduced.margin)} to spare."
    ]


def _point(point: Point) -> str:
    shown = ", ".join(f"X_{i} = {_number(x)}" for i, x in enumerate(point[:_SHOWN]))
    return shown + (f", … ({len(point) - _SHOWN} more)" if len(point) > _SHOWN else "")


def _number(value: Fraction) -> str:
    try:
        text = exact_decimal(value)
    except DokimosError:
        return exact_number(value).short
    return text if len(text) <= 24 else exact_number(value).short


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
    replays = replays_of(record, labelled) if verdict is Verdict.BAD_WITNESS else None
    return (
        Wrong(verdict, misses_by=replays.misses_by if replays else Fraction(0))
        if verdict.is_wrong
        else None
    )


def reduce_one(
    instance: Instance,
    truth: Truth,
    verifier: Verifier,
    *,
    folder: Path,
    settings: RunSettings,
    wanted: Wrong | None = None,
    origin: str = "",
    earlier: FindingForm | None = None,
    most_seconds: float = inf,
    seen: Callable[[ReductionStep], None] = lambda _: None,
) -> Reduced:
    """Make the wrong answer as small as it gets, and write it to `folder`.

    What was asked is kept there: the same call continues. After `most_seconds` of CPU time it is as small
    as it is. `earlier` is the finding that this goes on from. Raises NotWrong if the answer is not wrong
    (in the way that is `wanted`), warm or cold.
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
        prover = LabelProver(least, is_float32=truth.holds_in(Semantics.FLOAT32))
        small = Reducer(asker, wrong, prover, seen, most_seconds=most_seconds).run(specimen)
        known = LabelledInstance(small.instance, truth) if small is specimen else prover.proven(small)
        labelled = LabelledInstance(small.instance, None) if wrong.crash else _proven_again(known)
        excluded = asker.excluded(labelled, asker.ask(labelled))
        cause = cause_of(small, wrong, asker, prover, least, node=excluded.operator if excluded else "")
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
        cause=cause,
        margin=Fraction(0) if labelled.truth is None else margin_of(labelled.truth),
        cold=again,
        before=earlier.before if earlier else specimen.numbers,
        asked=asked + 1 + (earlier.asked if earlier else 0),
        cpu_seconds=cpu_seconds + again.cpu_seconds + (earlier.cpu_seconds if earlier else 0.0),
        origin=earlier.origin if earlier else origin or instance.name,
        excluded=excluded.in_words if excluded else "",
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
    was = found.truth
    return replace(found, truth=accepted_truth(found.instance, was.certificate, was.label, was.witness))
