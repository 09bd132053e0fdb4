"""The wrong answers, each with everything needed to check and reproduce it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from rich.text import Text

from dokimos.core.readable import (
    Number,
    enclosed_number,
    exact_number,
    float_number,
    least_number,
    printable,
)
from dokimos.core.tables import HIDDEN, Column, TableRows, table
from dokimos.judging.verdicts import Judgement, Replay, Verdict
from dokimos.reports.figures.counterexample import Scene, data_address, input_bars, png, thresholds
from dokimos.reports.figures.frame import Figure
from dokimos.reports.findings import Findings
from dokimos.reports.sections.base import Section
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Point

OUTPUTS_SHOWN = 64
INPUTS_SHOWN = 64
#: How many coordinates and outputs of a point a terminal shows.
_IN_A_LINE = 8
SEVERITY = (Verdict.WRONG_UNSAT, Verdict.WRONG_SAT, Verdict.BAD_WITNESS)


@dataclass(frozen=True)
class InputRow:
    """One coordinate of a witness, exactly."""

    index: int
    exact: Number


@dataclass(frozen=True)
class OutputRow:
    """One output of the network at a witness: exact, and as computed by onnxruntime or its stand-in."""

    index: int
    exact: Number | None
    onnxruntime: Number | None


@dataclass(frozen=True)
class ReplayRow:
    """What really happens at the witness, for display; `…_left_off` is how many are not listed."""

    in_box: bool
    outside_by: Number
    violates_exactly: bool
    violation: Annotated[Number | None, Column("slack")]
    violates_in_onnxruntime: bool
    witness_in_float32: Annotated[bool, HIDDEN]
    runtime: Annotated[str, HIDDEN]
    outputs: tuple[OutputRow, ...]
    outputs_left_off: Annotated[int, HIDDEN]
    inputs: Annotated[tuple[InputRow, ...], HIDDEN]
    inputs_left_off: Annotated[int, HIDDEN]


@dataclass(frozen=True)
class WrongRow:
    """A wrong answer with everything needed to check and reproduce it.

    `anchor` is its place in the page, `own_name` the instance's name in its suite, `title` a readable name.
    `replay` is at the verifier's witness, or, for an `unsat`, at the known point that shows it wrong: then
    `counterexample` is the file of that point, and `replay_command` evaluates it again.
    """

    verdict: Verdict
    instance: str
    family: str
    verifier: str
    claim: Answer
    truth: Label | None
    certificate: str | None
    reason: str
    reproduce: str
    replay: Annotated[ReplayRow | None, HIDDEN]
    wall_seconds: Annotated[float, HIDDEN]
    own_name: Annotated[str, HIDDEN]
    anchor: Annotated[str, HIDDEN]
    title: str = ""
    counterexample: str = ""
    replay_command: Annotated[str, HIDDEN] = ""
    scene: Annotated[Scene | None, HIDDEN] = None


@dataclass(frozen=True)
class DrawnScene:
    """A point as drawings: `picture` is a data URL, empty if `bars` show the inputs."""

    picture: str
    bars: Figure | None
    thresholds: Figure | None


def wrong_anchors(judgements: Sequence[Judgement]) -> dict[int, str]:
    """The anchor of each wrong one of `judgements`, by its position; the most serious first."""
    positions = [k for k, j in enumerate(judgements) if j.verdict.is_wrong]
    positions.sort(key=lambda k: SEVERITY.index(judgements[k].verdict))
    return {k: f"wrong-{number}" for number, k in enumerate(positions, start=1)}


def _wrong_row(judgement: Judgement, findings: Findings, anchor: str) -> WrongRow:
    record, shown_by, naming = judgement.record, judgement.counterexample, findings.naming
    if shown_by is not None:
        replay: ReplayRow | None = replay_row(shown_by.replay, shown_by.point)
    else:
        replay = None if judgement.replay is None else replay_row(judgement.replay)
    return WrongRow(
        instance=naming.instance(record),
        family=naming.family(record),
        verifier=naming.verifier(record),
        claim=record.answer,
        truth=judgement.label,
        verdict=judgement.verdict,
        reason=printable(judgement.reason),
        certificate=judgement.certificate,
        replay=replay,
        reproduce=printable(judgement.reproduce),
        wall_seconds=record.wall_seconds,
        own_name=printable(record.instance),
        anchor=anchor,
        title=findings.titles.get((record.suite, record.instance), ""),
        scene=findings.scenes.get(record.job),
        counterexample="" if shown_by is None else printable(shown_by.file),
        replay_command="" if shown_by is None else printable(shown_by.command),
    )


def replay_row(replay: Replay, point: Point = ()) -> ReplayRow:
    """A replay for display, with its point if that is to be shown too."""
    exact, floats = replay.exact_outputs, replay.onnxruntime_outputs
    size = max(len(exact), len(floats))
    outputs = tuple(
        OutputRow(
            index=i,
            exact=enclosed_number(exact[i], replay.output_error) if i < len(exact) else None,
            onnxruntime=float_number(floats[i]) if i < len(floats) else None,
        )
        for i in range(min(size, OUTPUTS_SHOWN))
    )
    return ReplayRow(
        in_box=replay.in_box,
        outside_by=exact_number(replay.outside_by),
        violates_exactly=replay.violates_exactly,
        violation=_slack(replay),
        violates_in_onnxruntime=replay.violates_in_onnxruntime,
        witness_in_float32=replay.witness_in_float32,
        runtime=replay.runtime,
        outputs=outputs,
        outputs_left_off=size - len(outputs),
        inputs=tuple(InputRow(i, exact_number(x)) for i, x in enumerate(point[:INPUTS_SHOWN])),
        inputs_left_off=max(len(point) - INPUTS_SHOWN, 0),
    )


def _slack(replay: Replay) -> Number | None:
    """The slack for display; if only a lower bound is known, it says so."""
    if replay.violation is None:
        return None
    return (least_number if replay.output_error else exact_number)(replay.violation)


class WrongAnswers(Section[tuple[WrongRow, ...]]):
    """Who said what, what is true, what was replayed, and how to reproduce it."""

    name = "wrong_answers"
    title = "Wrong answers"
    link = "Wrong answers"

    def rows(self, findings: Findings) -> tuple[WrongRow, ...]:
        judgements = findings.judgements
        return tuple(
            _wrong_row(judgements[k], findings, anchor) for k, anchor in wrong_anchors(judgements).items()
        )

    def view(self, rows: tuple[WrongRow, ...]) -> Mapping[str, Any]:
        return {"drawn": {row.anchor: drawn_scene(row.scene) for row in rows if row.scene is not None}}

    def tables(self, rows: tuple[WrongRow, ...]) -> Iterator[TableRows]:
        yield table("wrong_answers", [WrongRow, ReplayRow], [(row, row.replay) for row in rows])

    def lines(self, rows: tuple[WrongRow, ...]) -> Iterator[Text]:
        for row in rows:
            head, *rest = wrong_answer_lines(row)
            yield head
            yield from (Text("    ").append_text(line) for line in rest)
            yield Text()


def drawn_scene(scene: Scene) -> DrawnScene:
    """The drawings of a scene: the input as a picture if it is one, as bars otherwise."""
    picture = "" if scene.sides is None else picture_address(scene)
    return DrawnScene(picture, None if picture else input_bars(scene), thresholds(scene))


def picture_address(scene: Scene) -> str:
    """The point as a picture, its smallest value black and its largest white, as a data URL."""
    assert scene.sides is not None
    height, width, colours = scene.sides
    values = np.array([place.value for place in scene.inputs])
    low, high = float(values.min()), float(values.max())
    grey = np.round(255 * (values - low) / (high - low if high > low else 1.0)).astype(np.uint8)
    if scene.is_channels_first:
        pixels = grey.reshape(colours, height, width).transpose(1, 2, 0)
    else:
        pixels = grey.reshape(height, width, colours)
    return data_address(png(pixels))


def wrong_answer_lines(wrong: WrongRow) -> list[Text]:
    """One wrong answer in a few lines: who said what, what is true, what was replayed, how to see it."""
    proof = "" if wrong.certificate is None else f" (proven by {wrong.certificate})"
    truth = "there is no label" if wrong.truth is None else f"the truth is {wrong.truth.value}{proof}"
    lines = [
        Text.assemble(
            (wrong.verdict.value, "bold red"),
            f"  {wrong.verifier} answers {wrong.claim.value} on {wrong.instance}; ",
            truth,
        ),
        Text(wrong.reason),
    ]
    replay = wrong.replay
    if replay is not None:
        where = "in the box" if replay.in_box else f"outside the box by {replay.outside_by.short}"
        if wrong.claim is Answer.UNSAT:
            margin = "" if replay.violation is None else f", margin {replay.violation.short}"
            lines.append(Text(f"this point is {where} and violates{margin}: {_point(replay)}"))
        else:
            slack = replay.violation and f", slack {replay.violation.short} (>= 0 would violate)"
            lines.append(Text(f"replayed: {where}{slack or ''}"))
        for output in replay.outputs:
            exact = "-" if output.exact is None else output.exact.short
            runtime = "-" if output.onnxruntime is None else output.onnxruntime.short
            lines.append(Text(f"  Y_{output.index} = {exact} exactly, {runtime} in {replay.runtime}"))
    if wrong.replay_command:
        lines.append(Text(f"counterexample: {wrong.replay_command}"))
    if wrong.reproduce:
        lines.append(Text(f"reproduce: {wrong.reproduce}"))
    return lines


def _point(replay: ReplayRow) -> str:
    """The first coordinates of a point."""
    shown = [f"X_{x.index} = {x.exact.short}" for x in replay.inputs[:_IN_A_LINE]]
    left_off = len(replay.inputs) - len(shown) + replay.inputs_left_off
    return ", ".join(shown) + (f", … ({left_off} more)" if left_off else "")
