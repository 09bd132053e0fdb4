"""Answer x label x witness -> verdict.

A `sat` answer's witness is evaluated at two points (`witness_replay`): the point as printed, and the point
of the network's own type, float32 or float64, that is nearest to it. It *shows* the violation **exactly**
(E) if one of the two lies in the printed box and violates over the reals; **clipped** (C) if it leaves the
box by the rounding of a bound and, once clipped to the box, violates over the reals; and **in floats** (F)
if the point of the network's type lies in the printed box and violates in onnxruntime (or in ONNX's
reference evaluator, if onnxruntime has no kernel for float64: then the reason says so). There is no
tolerance anywhere. With the label's proof for the reals (R) and for float32:

================  ==================  ==========================  ===============
label             answer              witness                     verdict
================  ==================  ==========================  ===============
any               undecided           --                          `undecided`
unsat             unsat               --                          `correct`
unsat, R          sat                 none of them, or none       `wrong-sat`
unsat, R          sat                 F, neither E nor C          `rounding`
unsat, R          sat                 E or C                      the label fails
sat               unsat               --                          `wrong-unsat`
sat               sat                 E                           `correct`
sat, float32      sat                 F, not E                    `correct`
sat, R only       sat                 F, not E                    `rounding`
sat               sat                 C, neither E nor F          `clipped`
sat               sat                 none of them                `bad-witness`
sat               sat                 none                        `unwitnessed`
none              sat                 none of them                `bad-witness`
none              sat or unsat        no E or C beside it         `unlabelled`
none, settled     as for a `sat` label proven for the reals, by a witness (E or C) from any verifier;
                  as for the label of any verifier's certificate, once it is checked (`settling`)
================  ==================  ==========================  ===============

If no precision decides whether a witness violates, it does not count against the verifier: it is treated as
if there were none.

If onnxruntime's value at a witness is further from the exact one than the bound on the rounding at that
point (`misreading`), either Dokimos or onnxruntime misreads the network: it is neither `rounding` nor
`bad-witness`, refutes no `unsat`, and the label fails.

A float32 proof allows kernels a stated number of ulps, and onnxruntime may be off by more: if a witness
violates there despite such a proof, the reason says so, and this does not count against the verifier.

If a label is proven for float32 only, an answer that contradicts it may still be right about the reals: it
is `unlabelled`. A label proven for neither is not a label, nor is one whose proof is of a kind added by a
plug-in (`provers.plugin_kinds`): proofs from outside Dokimos never count against a verifier.

**An unchecked label never makes an answer wrong.** Before an answer is called wrong because of a label, and
when a witness refutes the label, the label is checked (`label_checks`). One that fails is not a label, for
all runs of the instance.

An answer counts only if its process exited on its own, within its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Protocol

from dokimos.campaigns.plan import CampaignInstance
from dokimos.campaigns.records import RunRecord
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile, UnsupportedOp
from dokimos.core.readable import exact_number, printable
from dokimos.execution.outcomes import Termination
from dokimos.judging.counterexamples import known_counterexample
from dokimos.judging.label_checks import LabelCheck, LabelStanding, nobody_checks
from dokimos.judging.marks import marks_of
from dokimos.judging.misreading import contradiction
from dokimos.judging.rules import RuleSet
from dokimos.judging.verdicts import Judgement, Replay, Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays, replay_witness
from dokimos.networks.semantics.replay import NO_RUNTIME, ONNXRUNTIME
from dokimos.provers.plugin_kinds import plugin_kind
from dokimos.suites.answers import Answer
from dokimos.suites.entry import read_content
from dokimos.suites.instance import Certificate, Claim, Label, Semantics, Truth, sha256

#: The certificate of an instance whose only proof is a witness that a verifier gave.
SETTLED = "an exact witness"


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
) -> list[Judgement]:
    """The verdicts on all runs of one instance, in their order; see `judge_all`.

    The verifiers that `not_scored` names get no marks, and their witnesses refute no answer under a rule
    set.
    """
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
        dict(zip([j.record.job for j in scored], marks_of(one, referee, scored), strict=True))
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
    if no_label or _why_no_label(truth):
        shown = any(found.proves_sat for found in replays.values())
        foreign = truth is not None and not _is_ours(truth)
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
    if truth is None or _why_no_label(truth):
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
    if truth.label is Label.UNSAT and _proven(truth, Semantics.REAL):
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


def judge(
    record: RunRecord,
    *,
    truth: Truth | None,
    replays: WitnessReplays | None,
    reproduce: str,
    no_label: str = "",
) -> Judgement:
    """The verdict on one run, by the table above; `truth` is trusted.

    `replays` is the replay of the record's witness, needed if it answers `sat` with one. `no_label` says
    why there is no truth, if there is a particular reason. Raises InvalidProof if the witness refutes the
    label.
    """
    plugin_proof = _plugin_proof(truth)
    why_no_label = no_label or _why_no_label(truth)
    if why_no_label:
        truth = None
    if not record.answer.decides or record.termination is not Termination.EXITED:
        verdict, reason = Verdict.UNDECIDED, _why_undecided(record)
    elif truth is None:
        verdict, reason = _judge_without_label(record, why_no_label, replays)
    elif record.answer is Answer.UNSAT:
        verdict, reason = _judge_unsat(truth)
    elif truth.label is Label.UNSAT:
        verdict, reason = _judge_sat_against_unsat(record, truth, replays)
    else:
        verdict, reason = _judge_sat_against_sat(truth, replays)
    return Judgement(
        record=record,
        label=truth.label if truth else None,
        certificate=truth.certificate.kind if truth else None,
        verdict=verdict,
        reason=reason + _stand_in(replays),
        replay=replays.telling if replays else None,
        reproduce=reproduce,
        clipped=replays.clipped if replays else None,
        plugin_proof=plugin_proof,
    )


def _judge_without_label(
    record: RunRecord, why_no_label: str, replays: WitnessReplays | None
) -> tuple[Verdict, str]:
    if record.answer is Answer.SAT and replays is not None and replays.is_refuted:
        return Verdict.BAD_WITNESS, f"it answers sat, but {_describe(replays)}"
    return Verdict.UNLABELLED, f"it answers {record.answer.value}, and {why_no_label}"


def _judge_unsat(truth: Truth) -> tuple[Verdict, str]:
    if truth.label is Label.UNSAT:
        return Verdict.CORRECT, "the answer matches the label"
    if not _proven(truth, Semantics.REAL):
        return Verdict.UNLABELLED, "it answers unsat, and the label sat is proven for float32 only"
    return Verdict.WRONG_UNSAT, f"it answers unsat, but a violation is proven ({truth.certificate.kind})"


def _judge_sat_against_unsat(
    record: RunRecord, truth: Truth, replays: WitnessReplays | None
) -> tuple[Verdict, str]:
    if not _proven(truth, Semantics.REAL):
        return _judge_without_label(record, "the label unsat is proven for float32 only", replays)
    if replays and replays.proves_sat:
        raise InvalidProof(
            f"{record.instance}: the label unsat is false: the witness of {record.verifier} lies in the "
            "box and violates exactly; check the suite with `dokimos check`."
        )
    both = _proven(truth, Semantics.FLOAT32)
    if replays and (found := replays.floating):
        violates = f"its witness violates in {found.float_type}"
        return Verdict.ROUNDING, f"{violates}, and unsat is proven {_how_far(truth)}"
    proof = f"unsat is proven ({truth.certificate.kind}{', in float32 too' if both else ''})"
    return Verdict.WRONG_SAT, f"it answers sat, but {proof}; {_describe(replays)}"


def _judge_sat_against_sat(truth: Truth, replays: WitnessReplays | None) -> tuple[Verdict, str]:
    if replays is None:
        return Verdict.UNWITNESSED, "the answer matches the label, but no witness was given"
    if replays.exact:
        return Verdict.CORRECT, "the answer matches the label, and its witness violates exactly"
    floating = replays.floating
    if floating and _proven(truth, Semantics.FLOAT32):
        return (
            Verdict.CORRECT,
            f"the answer matches the label, and its witness violates in {floating.float_type}",
        )
    if floating:
        only = f"its witness violates in {floating.float_type} only"
        return Verdict.ROUNDING, f"{only}, and sat is proven for the reals only"
    if replays.violates_once_clipped:
        outside = f"its witness leaves the box by a rounding{_how_far_out(replays)}"
        return (
            Verdict.CLIPPED,
            f"the answer matches the label; {outside}, and clipped to the box it violates exactly",
        )
    if not replays.is_refuted:
        return (
            Verdict.UNWITNESSED,
            "the answer matches the label, but no precision tried decides whether its witness violates",
        )
    return Verdict.BAD_WITNESS, f"the answer matches the label, but {_describe(replays)}"


def _how_far(truth: Truth) -> str:
    """The scope of a proof that a violation in onnxruntime does not contradict."""
    claim = truth.claims.get(Semantics.FLOAT32)
    if claim is None or not claim.proven:
        return "for the reals only"
    allowed = "" if claim.ulps is None else f" within {claim.ulps} ulps"
    return f"for the reals, and for float32{allowed}: onnxruntime rounds by more than the proof allows"


def _about(value: Fraction) -> str:
    """A number in three digits, however large."""
    try:
        return f"{float(value):.3g}"
    except OverflowError:
        return exact_number(value).short


def _describe(replays: WitnessReplays | None) -> str:
    """What is wrong with a witness, in words and numbers."""
    if replays is None:
        return "no witness was given"
    replay = replays.telling
    if replay is None:
        return replays.problem
    if not replay.in_box:
        outside = f"its witness lies outside the box by {_about(replay.outside_by)}"
        in_vain = ", a rounding; clipped to the box it does not violate"
        return outside if replays.clipped is None else f"{outside}{in_vain}"
    return f"its witness {_missing(replay)}"


def _stand_in(replays: WitnessReplays | None) -> str:
    """What replayed the witness, if it was not onnxruntime."""
    replay = replays.telling if replays else None
    if replay is None or replay.runtime == ONNXRUNTIME:
        return ""
    if replay.runtime == NO_RUNTIME:
        return "; no runtime can run this network, so its witness was only evaluated exactly"
    return f"; replayed by {replay.runtime}: onnxruntime cannot run this network in {replay.float_type}"


def _how_far_out(replays: WitnessReplays) -> str:
    """By how much the witness leaves every box, in brackets; empty if it lies in another one."""
    replay = replays.as_written
    return f" ({_about(replay.outside_by)})" if replay and replay.outside_by else ""


def _missing(replay: Replay) -> str:
    if replay.violates_in_onnxruntime:
        return f"violates in {replay.runtime} but not over the reals"
    if replay.violation is None:
        return "does not violate"
    return f"does not violate: it falls short by {_about(-replay.violation)}"


def _why_undecided(record: RunRecord) -> str:
    if record.answer.decides:
        return f"it answers {record.answer.value}, but did not exit on its own ({record.termination.value})"
    return f"{record.answer.value}: {record.detail}" if record.detail else record.answer.value


def _proven(truth: Truth, semantics: Semantics) -> bool:
    claim = truth.claims.get(semantics)
    return claim is not None and claim.proven


def _is_proven(truth: Truth) -> bool:
    return any(_proven(truth, semantics) for semantics in Semantics)


def _is_ours(truth: Truth) -> bool:
    """Whether its proof is of a kind that Dokimos ships, or a witness that was replayed just now."""
    return truth.certificate.kind in CERTIFICATES or truth.certificate.kind == SETTLED


def _why_no_label(truth: Truth | None) -> str:
    """Why `truth` is not used as a label; empty if it is."""
    if truth is None or not _is_proven(truth):
        return "there is no label"
    plugin_proof = _plugin_proof(truth)
    return (
        f"its label is proven only by {plugin_proof}, which is never used against a verifier"
        if plugin_proof
        else ""
    )


def _plugin_proof(truth: Truth | None) -> str:
    """The kind of proof, if it is one that Dokimos does not ship; otherwise empty."""
    if truth is None or _is_ours(truth):
        return ""
    kind = truth.certificate.kind
    return plugin_kind(kind) or f"the unknown kind {printable(kind)}"


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

    If Dokimos cannot evaluate a network, its witnesses settle nothing.
    """
    witnessed = [(r.job, r.witness) for r in records if r.answer is Answer.SAT and r.witness is not None]
    if not witnessed:
        return None, {}
    question = _question(instance)
    replays = {}
    for job, witness in witnessed:
        try:
            replays[job] = replay_witness(question, witness)
        except (UnsupportedOp, UnreadableFile) as error:
            replays[job] = WitnessReplays(
                None, None, f"its witness cannot be replayed: {error}", can_be_checked=False
            )
    return question, replays


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
