"""The verdicts, and the judgements that the report is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from dokimos.campaigns.journal import RunRecord
from dokimos.core.readable import printable
from dokimos.engine.runtimes.sessions import ONNXRUNTIME
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.rules import Mark
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Point


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

    @property
    def is_by_onnxruntime(self) -> bool:
        """Whether onnxruntime computed the outputs, and not its replacement."""
        return self.runtime == ONNXRUNTIME


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


# The names of runs on a page: as short as keeps them distinct


@dataclass(frozen=True)
class Naming:
    """Names for verifiers, instances and families.

    A verifier that ran in several versions is shown by name and version; if runs come from several suites,
    an instance is shown by suite and name.
    """

    several_versions: frozenset[str]
    several_suites: bool

    @classmethod
    def of(cls, records: Sequence[RunRecord]) -> Naming:
        """The names that keep `records` apart."""
        versions = {(r.verifier, r.verifier_version) for r in records}
        names = [name for name, _ in versions]
        return cls(
            several_versions=frozenset(name for name in names if names.count(name) > 1),
            several_suites=len({r.suite for r in records}) > 1,
        )

    def verifier(self, record: RunRecord) -> str:
        """The name of a run's verifier."""
        if record.verifier in self.several_versions:
            return printable(f"{record.verifier} {record.verifier_version}")
        return printable(record.verifier)

    def instance(self, record: RunRecord) -> str:
        """The name of a run's instance."""
        return printable(f"{record.suite}/{record.instance}" if self.several_suites else record.instance)

    def family(self, record: RunRecord) -> str:
        """The name of a run's family; a published instance has none."""
        return printable(record.family) or "no family"

    def sort_key(self, judgement: Judgement) -> tuple[str, str, str, int, str]:
        """The order of runs on the page: by family, instance, verifier and repeat."""
        r = judgement.record
        return (self.family(r), self.instance(r), self.verifier(r), r.repeat, r.job)


# The instances that verifiers are compared on: those that all of them were run on


@dataclass(frozen=True)
class CommonSet:
    """The judgements that a comparison of verifiers may use, in their order.

    These are all judgements if every verifier was run on the same instances, or if no instance was run by
    all of them. `remark` says so if the verifiers were run on different instances; otherwise it is empty.
    """

    judgements: tuple[Judgement, ...]
    remark: str = ""


def common_set(judgements: Sequence[Judgement], naming: Naming) -> CommonSet:
    """The judgements on instances that every verifier was run on."""
    ran: dict[str, set[tuple[str, str]]] = {}
    for j in judgements:
        ran.setdefault(naming.verifier(j.record), set()).add((j.record.suite, j.record.instance))
    common = set.intersection(*ran.values()) if ran else set()
    if all(keys == common for keys in ran.values()):
        return CommonSet(tuple(judgements))
    counts = ", ".join(f"{verifier} {len(keys)}" for verifier, keys in sorted(ran.items()))
    differ = f"The verifiers were run on different instances ({counts})"
    if not common:
        nothing = "no instance was run by all of them, so the numbers here do not compare them"
        return CommonSet(tuple(judgements), f"{differ}; {nothing}.")
    which = "the 1 instance" if len(common) == 1 else f"the {len(common)} instances"
    compared = f"they are compared on {which} that all of them were run on"
    return CommonSet(
        tuple(j for j in judgements if (j.record.suite, j.record.instance) in common),
        f"{differ}; {compared}, and each verifier's own counts cover all its runs.",
    )
