"""The verdicts, and the judgements that the report is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dokimos.campaigns.records import RunRecord
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.rules import Mark
from dokimos.networks.semantics.replay import ONNXRUNTIME
from dokimos.properties.model import Point
from dokimos.suites.instance import Label


class Verdict(Enum):
    """The judge's verdict on one answer; docs/verdicts.md says when, with an example of each."""

    CORRECT = "correct"
    WRONG_UNSAT = "wrong-unsat"
    WRONG_SAT = "wrong-sat"
    BAD_WITNESS = "bad-witness"
    UNWITNESSED = "unwitnessed"
    ROUNDING = "rounding"
    CLIPPED = "clipped"
    UNDECIDED = "undecided"
    UNLABELLED = "unlabelled"

    @property
    def is_wrong(self) -> bool:
        """Whether this verdict means exit code 1 and a place at the top of the report."""
        return self in (Verdict.WRONG_UNSAT, Verdict.WRONG_SAT, Verdict.BAD_WITNESS)

    @property
    def is_right(self) -> bool:
        """Whether the answer is proven to be the true one, with a witness that shows it once clipped."""
        return self in (Verdict.CORRECT, Verdict.CLIPPED)

    @property
    def is_unchecked(self) -> bool:
        """Whether a decided answer is neither confirmed nor refuted: it does not count as a success."""
        return self is Verdict.UNLABELLED

    @property
    def is_listed_apart(self) -> bool:
        """Whether a decided answer counts neither as correct nor as wrong."""
        return not self.is_wrong and self not in (Verdict.CORRECT, Verdict.UNDECIDED)


@dataclass(frozen=True)
class Replay:
    """What really happens at a witness.

    `violates_exactly` is about the real numbers, as is `violation`: the largest, over unsafe conjunctions,
    of the smallest slack of their constraints. The witness violates if that is >= 0 (> 0 if a strict
    constraint decides), and a negative number says by how much it fails to. `exact_outputs` and
    `onnxruntime_outputs` are what the network gives there, the latter in its own `float_type`. `runtime` is
    what computed them: onnxruntime, or its replacement if it has no kernel; `witness_in_float32` says
    whether the witness is a point of that type; if not, the runtime computes at the nearest one.
    `violates_in_onnxruntime` says whether the witness itself lies in the box and these outputs are unsafe.
    Each exact output is off by `output_error` at most; that is 0 if the exact value was computed, and
    positive if an enclosure decided the question: then `violation` is a lower bound. `outside_by` is the
    largest distance by which a coordinate leaves the box (0 when inside). `is_decided` is False if no
    precision decides whether the witness violates.
    """

    in_box: bool
    outside_by: Fraction
    violates_exactly: bool
    violation: Fraction | None
    exact_outputs: tuple[Fraction, ...]
    violates_in_onnxruntime: bool
    onnxruntime_outputs: tuple[float, ...]
    witness_in_float32: bool
    runtime: str = ONNXRUNTIME
    float_type: str = "float32"
    is_decided: bool = True
    output_error: Fraction = Fraction(0)


@dataclass(frozen=True)
class Counterexample:
    """A point of the box that violates exactly although a verifier answers `unsat`, and its replay.

    `file` is where it is, or can be, written in VNN-COMP's format; `command` replays that file.
    """

    point: Point
    replay: Replay
    file: str = ""
    command: str = ""


@dataclass(frozen=True)
class Judgement:
    """One run with its verdict and the reason for it in a sentence.

    `certificate` names the kind of proof behind the label; `reproduce` is a shell command that runs the
    same verifier on the same instance again. `clipped` is the replay at the witness clipped to a box that
    it leaves by no more than the competitions tolerate, `clipped_by` how far that moves it. `marks` has one
    mark for each rule set that was asked for. `plugin_proof` names the kind of proof and its package, if a
    plug-in's proof is the only one. `label_check` is the result of checking the label, if it counts against
    the verifier. `counterexample` is a point that shows a `wrong-unsat` to be wrong, if one is known.
    """

    record: RunRecord
    label: Label | None
    certificate: str | None
    verdict: Verdict
    reason: str
    replay: Replay | None
    reproduce: str
    clipped: Replay | None = None
    clipped_by: Fraction = Fraction(0)
    marks: tuple[Mark, ...] = ()
    plugin_proof: str = ""
    label_check: LabelCheck | None = None
    counterexample: Counterexample | None = None


def unchecked_in_words(judgements: Iterable[Judgement]) -> str:
    """How many answers nothing confirms or refutes, in a sentence; empty if there are none."""
    counts = Counter(j.record.answer.value for j in judgements if j.verdict.is_unchecked)
    parts = [
        f"{count} {answer} {'answer' if count == 1 else 'answers'}"
        for answer, count in counts.most_common()
    ]
    if not parts:
        return ""
    return f"{' and '.join(parts)} {'is' if counts.total() == 1 else 'are'} unchecked."


def checked_labels(judgements: Iterable[Judgement], standing: LabelStanding) -> dict[tuple[str, str], str]:
    """What is wrong with each label of that standing, by suite and instance."""
    return {
        (j.record.suite, j.record.instance): j.label_check.problem
        for j in judgements
        if j.label_check is not None and j.label_check.standing is standing
    }


def failed_label_in_words(suite: str, instance: str, problem: str) -> str:
    """A conspicuous sentence about a label that fails."""
    return (
        f"THE LABEL OF {suite}/{instance} FAILS: {problem.rstrip('.')}. It is not used to judge any "
        "answer; make the suite again, or run `dokimos check` on it."
    )
