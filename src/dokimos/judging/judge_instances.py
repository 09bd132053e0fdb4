"""The verdicts on all runs of an instance: witnesses are replayed, and a label is checked before it blames.

**An unchecked label never makes an answer wrong.** Before an answer is called wrong because of a label, and
when a witness refutes the label, the label is checked (`label_checks`). One that fails is not a label, for
all runs of the instance.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from dokimos.campaigns.job import proof_path
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignInstance
from dokimos.core.errors import DokimosError, InputError, UnreadableFile, UnsupportedOp
from dokimos.core.files import contained
from dokimos.engine.runtimes.cross_check import cross_check
from dokimos.judging.checked_entry import fault
from dokimos.judging.judge import SETTLED, is_ours, is_proven_for, judge, why_no_label
from dokimos.judging.label_checks import LabelCheck, LabelStanding, nobody_checks
from dokimos.judging.marks import marks_of
from dokimos.judging.rules import RuleSet, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays, replay_witness
from dokimos.judging.written_points import known_counterexample
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, exists, read_content
from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth, sha256
from dokimos.suites.vnnlib.model import Point

# Whether a verdict depends on a network that Dokimos and the runtimes read differently


def contradiction(
    question: Question,
    truth: Truth | None,
    judgements: Sequence[Judgement],
    replays: Mapping[str, WitnessReplays],
) -> LabelCheck | None:
    """Why nothing is known about an instance: a runtime contradicts the exact value that a verdict depends
    on.

    The exact value and onnxruntime's must agree within the bound on the rounding at that point. Otherwise
    one of the two misreads the network, and neither labels nor replays can be trusted. None if they agree,
    or no verdict depends on an exact value.
    """
    instance = Instance(question.name, question.network_file, question.property_file)
    for point in dict.fromkeys(_points_that_decide(judgements, replays)):
        found = cross_check(instance, _only_the_point(truth, point, instance)).contradiction
        if found:
            return LabelCheck(LabelStanding.FAILED, found)
    return None


def _points_that_decide(
    judgements: Sequence[Judgement], replays: Mapping[str, WitnessReplays]
) -> Iterator[Point]:
    """The witnesses judged `rounding` or `bad-witness`, and the one that refutes an `unsat`.

    A witness outside the box fails whatever the network computes there.
    """
    for judgement in judgements:
        replay = judgement.replay
        if (
            judgement.verdict in (Verdict.ROUNDING, Verdict.BAD_WITNESS)
            and replay is not None
            and replay.in_box
        ):
            yield replays[judgement.record.job].points[0]
    if any(judgement.verdict is Verdict.WRONG_UNSAT for judgement in judgements):
        yield from (point for found in replays.values() if found.shown for point in (found.shown[0],))


def _only_the_point(truth: Truth | None, point: Point, instance: Instance) -> Truth:
    """A truth that claims nothing, so that only the values at `point` are compared."""
    ulps = None if truth is None else truth.claim(Semantics.FLOAT32).ulps
    claims = {Semantics.FLOAT32: Claim(proven=False, ulps=ulps)}
    hashes = instance.network_sha256, instance.property_sha256
    return Truth(Label.SAT, claims, Certificate(""), *hashes, witness=point)


class JudgedInstance(CampaignInstance, Protocol):
    """What the judge needs to know about an instance."""

    @property
    def truth_path(self) -> Path:
        """The path of its truth file, which need not exist."""

    def read_truth(self) -> Truth | None:
        """Its label and proof; None if there is none."""


def judge_all(
    records: Sequence[RunRecord],
    suites: Mapping[str, Sequence[JudgedInstance]],
    *,
    reproduce: Callable[[RunRecord], str],
    rules: Sequence[RuleSet] = (),
    check_label: Callable[[JudgedInstance], LabelCheck] = nobody_checks,
) -> tuple[Judgement, ...]:
    """The verdicts on all runs of a campaign, in the order of `records`, with a mark for each of `rules`.

    `suites` gives the instances of each suite by its name. `reproduce` makes the command that runs a
    record's verifier on its instance again. `check_label` is called before a label counts against a
    verifier. A witness that replays exactly on an instance without a label settles the instance for all its
    runs.
    """
    known = {(suite, i.name): i for suite, instances in suites.items() for i in instances}
    by_instance: dict[tuple[str, str], list[RunRecord]] = {}
    for record in records:
        key = (record.suite, record.instance)
        if key not in known:
            raise InputError(
                f"The run {record.job} is on {record.instance!r}, which is not in the suite "
                f"{record.suite!r}; judge it with the suite that it was run on."
            )
        by_instance.setdefault(key, []).append(record)
    judged: dict[str, Judgement] = {}
    for key, runs in by_instance.items():
        instance = known[key]
        verdicts = judge_instance(
            instance,
            instance.read_truth(),
            runs,
            reproduce,
            rules,
            check_label=partial(check_label, instance),
        )
        judged |= {judgement.record.job: judgement for judgement in verdicts}
    return tuple(judged[record.job] for record in records)


def judge_instance(
    instance: CampaignInstance,
    truth: Truth | None,
    runs: Sequence[RunRecord],
    reproduce: Callable[[RunRecord], str],
    rules: Sequence[RuleSet] = (),
    *,
    check_label: Callable[[], LabelCheck] = nobody_checks,
    not_scored: Collection[str] = (),
    overheads: Mapping[str, float] = MappingProxyType({}),
) -> list[Judgement]:
    """The verdicts on all runs of one instance, in their order; see `judge_all`.

    The verifiers that `not_scored` names get no marks, and their witnesses refute no answer under a rule
    set. `overheads` are for `marks_of`. A bug here leaves the instance without a label, and hides no other.
    """
    try:
        return _judged(instance, truth, runs, reproduce, rules, check_label, not_scored, overheads)
    except (DokimosError, OSError):
        raise
    except Exception as error:
        return unjudged(runs, fault(error), rules, reproduce)


def unjudged(
    runs: Sequence[RunRecord],
    problem: str,
    rules: Sequence[RuleSet],
    reproduce: Callable[[RunRecord], str] = lambda _: "",
) -> list[Judgement]:
    """What is said of the runs on an instance where judging broke off."""
    checked = LabelCheck(LabelStanding.FAILED, problem)
    return [
        replace(
            judgement,
            reproduce=reproduce(judgement.record),
            label_check=checked,
            marks=tuple(one.mark(Standing.NONE, problem) for one in rules),
        )
        for judgement in _judge_by(None, runs, {}, problem)
    ]


def _judged(
    instance: CampaignInstance,
    truth: Truth | None,
    runs: Sequence[RunRecord],
    reproduce: Callable[[RunRecord], str],
    rules: Sequence[RuleSet],
    check_label: Callable[[], LabelCheck],
    not_scored: Collection[str],
    overheads: Mapping[str, float],
) -> list[Judgement]:
    witness = None if truth is None else truth.witness
    question, replays = _replays(instance, runs)
    checked, judgements = _verdicts(instance, truth, runs, replays, check_label)
    if question is not None and (found := contradiction(question, truth, judgements, replays)):
        checked = found
        replays = {job: replace(one, can_be_checked=False) for job, one in replays.items()}
        judgements = _judge_by(None, runs, replays, _no_label(found))
    referee = None if question is None else question.referee
    scored = [judgement for judgement in judgements if judgement.record.verifier not in not_scored]
    marks = [
        dict(zip([j.record.job for j in scored], marks_of(one, referee, scored, overheads), strict=True))
        for one in rules
    ]
    shown_by = None
    if any(judgement.verdict is Verdict.WRONG_UNSAT for judgement in judgements):
        shown_by = known_counterexample(question or _question(instance), witness, replays.values())
    return [
        replace(
            judgement,
            reproduce=reproduce(judgement.record),
            label_check=checked,
            counterexample=shown_by if judgement.verdict is Verdict.WRONG_UNSAT else None,
            marks=tuple(given[job] for given in marks if (job := judgement.record.job) in given),
        )
        for judgement in judgements
    ]


def _verdicts(
    instance: CampaignInstance,
    truth: Truth | None,
    runs: Sequence[RunRecord],
    replays: Mapping[str, WitnessReplays],
    check_label: Callable[[], LabelCheck],
) -> tuple[LabelCheck | None, list[Judgement]]:
    """The verdicts by a label that was checked if it matters, and the result of that check.

    A witness that violates exactly settles an instance without a valid label.
    """
    checked = _check_to_blame(instance, truth, runs, replays, check_label)
    no_label = "" if checked is None or checked.is_proven else _no_label(checked)
    settling = truth
    if no_label or why_no_label(truth):
        shown = any(found.proves_sat for found in replays.values())
        foreign = truth is not None and not is_ours(truth)
        if shown or (truth is not None and foreign and _is_shown_by_its_witness(instance, truth)):
            settling, no_label = _settled(instance), ""
    judgements = _judge_by(None if no_label else settling, runs, replays, no_label)
    if no_label and checked is not None and checked.standing is LabelStanding.NOT_CHECKED:
        by_label = _judge_by(truth, runs, replays)
        judgements = [
            own if said.verdict.is_wrong else said for own, said in zip(judgements, by_label, strict=True)
        ]
    return checked, judgements


def _judge_by(
    truth: Truth | None,
    runs: Sequence[RunRecord],
    replays: Mapping[str, WitnessReplays],
    no_label: str = "",
) -> list[Judgement]:
    return [
        judge(record, truth=truth, replays=replays.get(record.job), reproduce="", no_label=no_label)
        for record in runs
    ]


def _check_to_blame(
    instance: CampaignInstance,
    truth: Truth | None,
    runs: Sequence[RunRecord],
    replays: Mapping[str, WitnessReplays],
    check_label: Callable[[], LabelCheck],
) -> LabelCheck | None:
    """The result of checking a label that counts against some verifier; None if there is no such verifier.

    A label for other files, or for a network that Dokimos cannot evaluate, fails without a check. A witness
    that violates exactly refutes a label `unsat`, whatever proof it has.
    """
    if truth is None or why_no_label(truth):
        return None
    for what, stated, found in (
        ("network", truth.network_sha256, instance.network_sha256),
        ("property", truth.property_sha256, instance.property_sha256),
    ):
        if stated != found:
            problem = f"the {what} is not the file that it was proven for (sha256 differs)"
            return LabelCheck(LabelStanding.FAILED, problem)
    if problem := next((found.problem for found in replays.values() if not found.can_be_checked), ""):
        return LabelCheck(LabelStanding.FAILED, problem)
    if truth.label is Label.UNSAT and is_proven_for(truth, Semantics.REAL):
        refuting = [run for run in runs if run.job in replays and replays[run.job].proves_sat]
        if refuting:
            shown = f"the witness of {refuting[0].verifier} lies in the box and violates exactly"
            return LabelCheck(LabelStanding.FAILED, shown)
    is_to_blame = any(found.verdict.is_wrong for found in _judge_by(truth, runs, replays))
    return check_label() if is_to_blame else None


def _no_label(checked: LabelCheck) -> str:
    if checked.standing is LabelStanding.FAILED:
        return f"its label fails: {checked.problem}"
    return f"its label is not checked: {checked.problem}"


def _is_shown_by_its_witness(instance: CampaignInstance, truth: Truth) -> bool:
    """Whether the witness that is stored with a label violates exactly, whatever else proves the label."""
    if truth.witness is None:
        return False
    question = _question(instance)
    try:
        return replay_witness(question, truth.witness).exact is not None
    except (UnsupportedOp, UnreadableFile):
        return False


def _settled(instance: CampaignInstance) -> Truth:
    return Truth(
        label=Label.SAT,
        claims={Semantics.REAL: Claim(proven=True)},
        certificate=Certificate(SETTLED),
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
    )


def _replays(
    instance: CampaignInstance, records: Sequence[RunRecord]
) -> tuple[Question | None, Mapping[str, WitnessReplays]]:
    """The replays of all witnesses given on one instance, by job; its files are read only for those.

    Equal ones are replayed once: a tool that is run again gives the same. If Dokimos cannot evaluate a
    network, its witnesses settle nothing.
    """
    witnessed = [(r.job, r.witness) for r in records if r.answer is Answer.SAT and r.witness is not None]
    if not witnessed:
        return None, {}
    question = _question(instance)
    found = {witness: _replay(question, witness) for witness in dict.fromkeys(w for _, w in witnessed)}
    return question, {job: found[witness] for job, witness in witnessed}


def _replay(question: Question, witness: Point) -> WitnessReplays:
    try:
        return replay_witness(question, witness)
    except (UnsupportedOp, UnreadableFile) as error:
        problem = f"its witness cannot be replayed: {error}"
        return WitnessReplays(None, None, problem, can_be_checked=False)


def _question(instance: CampaignInstance) -> Question:
    """The files of an instance; raises UnreadableFile if they are not those that were run."""
    return Question(
        _content(instance.network_path, instance.network_sha256),
        _content(instance.property_path, instance.property_sha256),
        instance.name,
    )


def _content(path: Path, expected: str) -> bytes:
    content = read_content(path)
    if sha256(content) != expected:
        raise UnreadableFile(path, "it is not the file that was run; restore it.")
    return content


# An instance without a label, settled by a certificate in a campaign's folder


def settled(
    instance: JudgedInstance,
    runs: Sequence[RunRecord],
    folders: Sequence[Path],
    check_label: Callable[[JudgedInstance], LabelCheck],
) -> JudgedInstance:
    """The instance with the first certificate for it or its `runs` that is proven as its truth.

    The instance is returned unchanged if it has a truth file, or if no certificate is proven. `folders` are
    the campaigns'. Every certificate is checked as labels are; one that fails settles nothing.
    """
    if exists(instance.truth_path):
        return instance
    for place in certificates(runs, folders):
        with_proof = SuiteEntry(
            name=instance.name,
            network_path=instance.network_path,
            property_path=instance.property_path,
            timeout_seconds=instance.timeout_seconds,
            family=instance.family,
            truth_path=place,
        )
        try:
            if check_label(with_proof).is_proven:
                return with_proof
        except InputError:
            continue
    return instance


def audited_label(folder: Path, suite: str, instance: str) -> Path:
    """Where an audit keeps the label that it finds for an instance: in the folder of its campaign."""
    return contained(folder, f"labels/{suite}/{instance}.json")


def certificates(runs: Sequence[RunRecord], folders: Sequence[Path]) -> Iterator[Path]:
    """The certificates for these runs, all on one instance: an audit's, then those given for `unsat`."""
    for run in runs[:1]:
        for folder in folders:
            if exists(place := audited_label(folder, run.suite, run.instance)):
                yield place
    for run in runs:
        if run.answer is not Answer.UNSAT:
            continue
        for folder in folders:
            try:
                place = proof_path(folder, run.job.partition("@")[0])
            except InputError:
                continue
            if exists(place):
                yield place
