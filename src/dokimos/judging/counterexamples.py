"""The point that shows an `unsat` to be wrong: found among known points, and written for others to try."""

from __future__ import annotations

import logging
import math
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from dokimos.core.containment import contained
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.judging.referee import double
from dokimos.judging.verdicts import Counterexample, Judgement, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays, replay_witness
from dokimos.judging.written_points import write_witness
from dokimos.properties.model import Point
from dokimos.suites.entry import SuiteEntry

_log = logging.getLogger("dokimos")

#: The folder of the counterexamples, in that of a campaign.
FOLDER = "counterexamples"


def known_counterexample(
    question: Question, witness: Point | None, given: Iterable[WitnessReplays]
) -> Counterexample | None:
    """A point that violates exactly: the label's own witness, or else one that a verifier gave.

    None if none is known, as for a label whose proof only shows that one exists.
    """
    own = [] if witness is None else [_replayed(question, witness)]
    for replays in (*own, *given):
        if replays is not None and replays.shown is not None:
            return Counterexample(*replays.shown)
    return None


def _replayed(question: Question, witness: Point) -> WitnessReplays | None:
    try:
        return replay_witness(question, witness)
    except InputError:
        return None


def located(judgement: Judgement, folder: Path, entry: SuiteEntry) -> Judgement:
    """The judgement with the place of its counterexample in the folder of its campaign, and the command
    that replays it."""
    found = judgement.counterexample
    if found is None:
        return judgement
    record = judgement.record
    file = folder / FOLDER / record.suite / f"{record.instance}.counterexample"
    words = ["dokimos", "replay", *(seen_from_here(p) for p in (entry.network_path, entry.property_path))]
    command = shlex.join([*words, seen_from_here(file)])
    return replace(judgement, counterexample=replace(found, file=str(file), command=command))


def write_counterexamples(folder: Path, judgements: Sequence[Judgement]) -> None:
    """Write the counterexamples of a campaign into its folder, one file for each instance.

    A file that cannot be written only leads to a remark: the judgements do not depend on it.
    """
    wrong = [j for j in judgements if j.verdict is Verdict.WRONG_UNSAT]
    shown = {found.file: found for j in wrong if (found := j.counterexample) is not None}
    for file, found in shown.items():
        try:
            path = contained(folder, Path(file).relative_to(folder))
            write_whole(path, counterexample_text(found), what="the counterexample")
        except InputError as error:
            _log.warning("%s", error)


def counterexample_text(found: Counterexample) -> str:
    """The counterexample in VNN-COMP's format, with the outputs that the runtime computes.

    If these are not finite, it has the exact outputs, rounded, or none if they are too large. Raises
    InputError if an input has no finite decimal expansion.
    """
    outputs: Sequence[float] = found.replay.onnxruntime_outputs
    if not outputs or not all(map(math.isfinite, outputs)):
        outputs = [double(y) for y in found.replay.exact_outputs]
    return write_witness(found.point, outputs if all(map(math.isfinite, outputs)) else ())


def seen_from_here(path: Path) -> str:
    """How a command names a file: relative to the working folder if that is shorter."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
