"""Points as people and tools write them: a VNN-COMP witness, or plain numbers."""

from __future__ import annotations

import logging
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any

from dokimos.campaigns.job import bounds_path
from dokimos.core.errors import DokimosError, InputError, UnreadableFile
from dokimos.core.files import contained, read_whole, write_whole
from dokimos.core.inputs import uncompressed
from dokimos.judging.node_bounds import first_excluded, read_bounds
from dokimos.judging.verdicts import Counterexample, Judgement, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays, double, replay_witness
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, read_content
from dokimos.suites.vnnlib.model import Point
from dokimos.suites.vnnlib.text import parse_decimal
from dokimos.suites.vnnlib.writer import exact_decimal
from dokimos.verifiers.result_file import MOST_BYTES, flat_witness, tensor_witness

_SEPARATORS = re.compile(r"[\s,;]+")
_FORMS = "a VNN-COMP witness, ((X_0 0.5) …), or numbers separated by commas or spaces"


def exact_point(coordinates: Iterable[Any]) -> Point:
    """The point with these coordinates, numbers of any type, without rounding."""
    try:
        return tuple(
            each
            if isinstance(each, Fraction)
            else Fraction(int(each) if isinstance(each, Integral) else float(each))
            for each in coordinates
        )
    except (ValueError, OverflowError):
        raise InputError(
            "The coordinates of a point must be finite; one of these is infinite, or not a number."
        ) from None


def read_point(words: str | Path | Sequence[str] | Sequence[float | Fraction]) -> Point:
    """The point in the file of that name, or the point that the text or the numbers state.

    A file may be compressed; it holds a witness in VNN-COMP's format (of VNN-LIB 1.0 or 2.0, with or
    without a line `sat` before it), or numbers. Raises InputError, or UnreadableFile for a file, if it is
    neither.
    """
    given = [str(each) for each in ([words] if isinstance(words, str | Path) else words)]
    if not isinstance(words, str | Path) and not any(isinstance(each, str) for each in words):
        return exact_point(words)
    if isinstance(words, Path) or (len(given) == 1 and _is_file(given[0])):
        content = uncompressed(read_whole(Path(given[0]), most_bytes=MOST_BYTES), file=given[0])
        try:
            return _parse(content.decode("utf-8"))
        except (InputError, UnicodeDecodeError) as error:
            why = f": {error}" if isinstance(error, InputError) else ""
            raise UnreadableFile(given[0], f"holds no point, which is {_FORMS}{why}") from None
    try:
        return _parse(" ".join(given))
    except InputError as error:
        raise InputError(
            f"The point {_shortened(' '.join(given))!r} is neither a file nor {_FORMS}: {error}"
        ) from None


def write_witness(point: Point, outputs: Sequence[float]) -> str:
    """A counterexample in VNN-COMP's format: every input exactly, every output in its shortest digits.

    Raises InputError if an input has no finite decimal expansion.
    """
    pairs = [f"(X_{i} {exact_decimal(x)})" for i, x in enumerate(point)]
    pairs += [f"(Y_{j} {y!r})" for j, y in enumerate(outputs)]
    return "({})\n".format("\n ".join(pairs))


def _parse(text: str) -> Point:
    text = text.strip()
    first, _, rest = text.partition("\n")
    if first.strip() == "sat":
        text = rest.strip()
    if text.startswith("("):
        found = flat_witness(text)
        if found is None:
            raise InputError("the witness has not exactly one finite value for each X_0, X_1, ….")
        return found.inputs
    tensors = tensor_witness(text, "X", "Y")
    if tensors is not None:
        return tensors.inputs
    values: list[Fraction] = [parse_decimal(word) for word in _SEPARATORS.split(text) if word]
    if not values:
        raise InputError("it contains no number.")
    return tuple(values)


def _is_file(words: str) -> bool:
    try:
        return bool(words) and Path(words).exists()
    except (OSError, ValueError):  # too long for a name, or none that a file can have
        return False


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


# The point that shows an `unsat` to be wrong: found among known points, and written for others to try


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
    """The judgement with the place of its counterexample in the folder of its campaign, the command that
    replays it, and, if the verifier wrote its bounds, the first node whose interval excludes it."""
    found = judgement.counterexample
    if found is None:
        return judgement
    record = judgement.record
    file = folder / FOLDER / record.suite / f"{record.instance}.counterexample"
    words = ["dokimos", "replay", *(seen_from_here(p) for p in (entry.network_path, entry.property_path))]
    command = shlex.join([*words, seen_from_here(file)])
    return replace(
        judgement,
        counterexample=replace(found, file=str(file), command=command),
        reason=judgement.reason + _blamed(bounds_path(folder, record.job), entry, found.point),
    )


def _blamed(path: Path, entry: SuiteEntry, point: Point) -> str:
    """Which node's bounds exclude a counterexample, or that none do; "" if there are none."""
    if not path.exists():
        return ""
    try:
        excluded = first_excluded(read_content(entry.network_path), point, read_bounds(path))
    except DokimosError as error:
        _log.warning("%s", error)
        return ""
    return f"; {'the bounds that it wrote allow it' if excluded is None else excluded.in_words}"


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


# How good the witness of a `sat` is, in one word


class WitnessQuality(Enum):
    """What a witness shows: the first of these that applies."""

    EXACT = "exact"
    CLIPPED = "exact once clipped"
    FLOATS = "in floats only"
    UNDECIDED = "cannot be decided"
    NOTHING = "nothing"
    MISSING = "none given"


def witness_quality(judgement: Judgement) -> WitnessQuality | None:
    """What the witness of a judged run shows; None if the run does not answer `sat`.

    `EXACT`: it lies in the box and violates over the reals, as printed or at the nearest point of the
    network's type. `CLIPPED`: it does so once clipped to the box, which it leaves by no more than the
    competitions tolerate. `FLOATS`: it is a point of the network's type, lies in the box, and violates only
    in onnxruntime's floats. `UNDECIDED`: no precision decides, or
    Dokimos cannot evaluate the network.
    """
    record, replay, clipped = judgement.record, judgement.replay, judgement.clipped
    if record.answer is not Answer.SAT:
        return None
    if record.witness is None:
        return WitnessQuality.MISSING
    if replay is not None and replay.in_box and replay.violates_exactly:
        return WitnessQuality.EXACT
    if clipped is not None and clipped.violates_exactly:
        return WitnessQuality.CLIPPED
    if replay is not None and replay.witness_in_float32 and replay.violates_in_onnxruntime:
        return WitnessQuality.FLOATS
    looked_at = [found for found in (replay, clipped) if found is not None]
    if all(found.is_decided for found in looked_at) and judgement.verdict.is_wrong:
        return WitnessQuality.NOTHING
    return WitnessQuality.UNDECIDED
