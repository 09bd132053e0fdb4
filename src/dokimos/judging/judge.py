"""Answer x label x witness -> verdict.

A `sat` answer's witness is evaluated at two points (`witness_replay`): the point as printed, and the point
of the network's own type, float32 or float64, that is nearest to it. It *shows* the violation **exactly**
(E) if one of the two lies in the printed box and violates over the reals; **clipped** (C) if it leaves the
box by no more than the competitions tolerate (1e-4) and, once clipped to the box, violates over the reals;
and **in floats** (F) if the point of the network's type lies in the printed box and violates in onnxruntime
(or in ONNX's reference evaluator, if onnxruntime has no kernel for float64: then the reason says so). There
is no tolerance anywhere else. With the label's proof for the reals (R) and for float32:

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
plug-in (`engine.outcome`): proofs from outside Dokimos never count against a verifier.

An unchecked label never makes an answer wrong: `judge_instances` has it checked first.

An answer counts only if its process exited on its own, within its limits.
"""

from __future__ import annotations

from fractions import Fraction

from dokimos.campaigns.journal import RunRecord
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.errors import InvalidProof
from dokimos.core.readable import exact_number, printable
from dokimos.engine.outcome import plugin_kind
from dokimos.engine.runtimes.sessions import NO_RUNTIME, ONNXRUNTIME
from dokimos.judging.verdicts import Judgement, Replay, Verdict
from dokimos.judging.witness_replay import WitnessReplays
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label, Semantics, Truth
from dokimos.verifiers.execution.limits import Termination

# What counts as a label: a truth that is proven, by a proof of Dokimos or an exact witness


#: The certificate of an instance whose only proof is a witness that a verifier gave.
SETTLED = "an exact witness"


def is_proven_for(truth: Truth, semantics: Semantics) -> bool:
    """Whether the label is proven over the reals, or in float32, whichever is asked."""
    return truth.holds_in(semantics)


def is_proven(truth: Truth) -> bool:
    """Whether it is proven at all."""
    return any(is_proven_for(truth, semantics) for semantics in Semantics)


def is_ours(truth: Truth) -> bool:
    """Whether its proof is of a kind that Dokimos ships, or a witness that was replayed just now."""
    return truth.certificate.kind in CERTIFICATES or truth.certificate.kind == SETTLED


def why_no_label(truth: Truth | None) -> str:
    """Why `truth` is not used as a label; empty if it is."""
    if truth is None or not is_proven(truth):
        return "there is no label"
    plugin_proof = proof_of_plugin(truth)
    return (
        f"its label is proven only by {plugin_proof}, which is never used against a verifier"
        if plugin_proof
        else ""
    )


def proof_of_plugin(truth: Truth | None) -> str:
    """The kind of proof, if it is one that Dokimos does not ship; otherwise empty."""
    if truth is None or is_ours(truth):
        return ""
    kind = truth.certificate.kind
    return plugin_kind(kind) or f"the unknown kind {printable(kind)}"


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
    plugin_proof = proof_of_plugin(truth)
    unlabelled = no_label or why_no_label(truth)
    if unlabelled:
        truth = None
    if not record.answer.decides or record.termination is not Termination.EXITED:
        verdict, reason = Verdict.UNDECIDED, _why_undecided(record)
    elif truth is None:
        verdict, reason = _judge_without_label(record, unlabelled, replays)
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
        clipped_by=replays.clipped_by if replays else Fraction(0),
        plugin_proof=plugin_proof,
    )


def _judge_without_label(
    record: RunRecord, unlabelled: str, replays: WitnessReplays | None
) -> tuple[Verdict, str]:
    if record.answer is Answer.SAT and replays is not None and replays.is_refuted:
        return Verdict.BAD_WITNESS, f"it answers sat, but {_describe(replays)}"
    return Verdict.UNLABELLED, f"it answers {record.answer.value}, and {unlabelled}"


def _judge_unsat(truth: Truth) -> tuple[Verdict, str]:
    if truth.label is Label.UNSAT:
        return Verdict.CORRECT, "the answer matches the label"
    if not is_proven_for(truth, Semantics.REAL):
        return Verdict.UNLABELLED, "it answers unsat, and the label sat is proven for float32 only"
    proof = f"a violation is proven ({truth.certificate.kind})"
    if _is_right_in_float32(truth, Label.UNSAT):
        return Verdict.ROUNDING, f"it answers unsat, which is proven in float32; over the reals {proof}"
    return Verdict.WRONG_UNSAT, f"it answers unsat, but {proof}"


def _is_right_in_float32(truth: Truth, answer: Label) -> bool:
    """Whether this answer, which is not the label, is the proven one in float32."""
    alone = truth.under(Semantics.FLOAT32)
    return alone is not None and alone.label is answer


def _judge_sat_against_unsat(
    record: RunRecord, truth: Truth, replays: WitnessReplays | None
) -> tuple[Verdict, str]:
    if not is_proven_for(truth, Semantics.REAL):
        return _judge_without_label(record, "the label unsat is proven for float32 only", replays)
    if replays and replays.proves_sat:
        raise InvalidProof(
            f"{record.instance}: the label unsat is false: the witness of {record.verifier} lies in the "
            "box and violates exactly; check the suite with `dokimos check`."
        )
    both = is_proven_for(truth, Semantics.FLOAT32)
    if replays and (found := replays.floating):
        violates = f"its witness violates in {found.float_type}"
        return Verdict.ROUNDING, f"{violates}, and unsat is proven {_how_far(truth)}"
    proof = f"unsat is proven ({truth.certificate.kind}{', in float32 too' if both else ''})"
    if replays is None and _is_right_in_float32(truth, Label.SAT):
        return Verdict.ROUNDING, f"it answers sat, which is proven in float32; over the reals {proof}"
    return Verdict.WRONG_SAT, f"it answers sat, but {proof}; {_describe(replays)}"


def _judge_sat_against_sat(truth: Truth, replays: WitnessReplays | None) -> tuple[Verdict, str]:
    is_label = truth.certificate.kind != SETTLED
    right = "the answer matches the label" if is_label else f"{SETTLED} proves the answer"
    if replays is None:
        return Verdict.UNWITNESSED, f"{right}, but no witness was given"
    if replays.exact:
        return Verdict.CORRECT, f"{right}, and its witness violates exactly"
    floating = replays.floating
    if floating and is_proven_for(truth, Semantics.FLOAT32):
        return Verdict.CORRECT, f"{right}, and its witness violates in {floating.float_type}"
    if floating:
        only = f"its witness violates in {floating.float_type} only"
        return Verdict.ROUNDING, f"{only}, and sat is proven for the reals only"
    if replays.violates_once_clipped:
        outside = f"its witness leaves the box by {_about(replays.clipped_by)}"
        return Verdict.CLIPPED, f"{right}; {outside}, and clipped to the box it violates exactly"
    if not replays.is_refuted:
        return (
            Verdict.UNWITNESSED,
            f"{right}, but no precision tried decides whether its witness violates",
        )
    return Verdict.BAD_WITNESS, f"{right}, but {_describe(replays)}"


def _how_far(truth: Truth) -> str:
    """The scope of a proof that a violation in onnxruntime does not contradict."""
    claim = truth.claim(Semantics.FLOAT32)
    if not is_proven_for(truth, Semantics.FLOAT32):
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
        in_vain = ", and clipped to the box it does not violate"
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
