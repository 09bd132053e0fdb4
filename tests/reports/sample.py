"""A small campaign as the judge hands it on: three families, two verifiers, all kinds of trouble."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from dokimos.campaigns.journal import RunRecord
from dokimos.difficulty.explain.rows import Explanation
from dokimos.judging.verdicts import Judgement, Replay, Verdict
from dokimos.reports.campaign_report import CampaignInfo, ReportContext, VerifierInfo
from dokimos.reports.findings import Findings, Known
from dokimos.reports.page import write_page
from dokimos.suites.instance import Answer, Label
from dokimos.verifiers.execution.limits import Termination

CAMPAIGN = CampaignInfo(
    folder="runs/july",
    suites=("quick",),
    verifiers=(
        VerifierInfo(name="marabou", version="2.0.0"),
        VerifierInfo(name="scripted", version="0.1.0"),
    ),
    machine="x86_64, 2 cores, 8 GB, Linux 6.1",
    wall_seconds=10.0,
    memory_bytes=4_000_000_000,
    planned=80,
    recorded=75,
)
CONTEXT = ReportContext(
    title="quick, July campaign",
    campaigns=(CAMPAIGN,),
    dokimos_version="0.1.0",
    generated_at="2026-07-01 12:00 UTC",
)
VERSIONS = {"marabou": "2.0.0", "scripted": "0.1.0"}
CERTIFICATES = {
    "exclusive-pairs": "exclusive-pairs",
    "convex-corners": "vertices",
    "paired-bias-cnn": "paired-bias",
}


def judgement(
    instance: str,
    *,
    verdict: Verdict,
    verifier: str = "marabou",
    family: str = "exclusive-pairs",
    label: Label | None = Label.UNSAT,
    answer: Answer = Answer.UNSAT,
    wall_seconds: float = 1.0,
    reason: str = "The answer matches the label.",
    replay: Replay | None = None,
    termination: Termination = Termination.EXITED,
    detail: str = "",
) -> Judgement:
    """One judged run with everything that does not matter filled in."""
    record = RunRecord(
        job=f"{verifier}-{instance}",
        suite="quick",
        instance=instance,
        family=family,
        verifier=verifier,
        verifier_version=VERSIONS.get(verifier, "1"),
        repeat=0,
        answer=answer,
        witness=None,
        detail=detail,
        termination=termination,
        exit_code=0 if termination is Termination.EXITED else None,
        wall_seconds=wall_seconds,
        cpu_seconds=wall_seconds * 0.9,
        peak_memory_bytes=120_000_000,
        log=f"logs/{verifier}-{instance}.txt",
        started_at="2026-07-01T12:00:00Z",
    )
    certificate = CERTIFICATES.get(family, "vertices") if label is Label.UNSAT else "witness"
    return Judgement(
        record=record,
        label=label,
        certificate=certificate if label else None,
        verdict=verdict,
        reason=reason,
        replay=replay,
        reproduce=f"dokimos run quick --verifier {verifier} --only {instance} --timeout 10 --out again",
    )


FALSE_SAT = Replay(
    in_box=True,
    outside_by=Fraction(0),
    violates_exactly=False,
    violation=Fraction(-1, 2048) - Fraction(1, 2**70),
    exact_outputs=(Fraction(1, 2000), Fraction(1, 3), Fraction(-5, 2**40)),
    violates_in_onnxruntime=False,
    onnxruntime_outputs=(0.0005000000237487257, 0.3333333432674408, -4.547473508864641e-12),
    witness_in_float32=False,
)
OUT_OF_BOX = Replay(
    in_box=False,
    outside_by=Fraction(1, 10**7),
    violates_exactly=True,
    violation=Fraction(3, 100),
    exact_outputs=(Fraction(53, 100), Fraction(1, 2)),
    violates_in_onnxruntime=True,
    onnxruntime_outputs=(0.5299999713897705, 0.5),
    witness_in_float32=True,
)


def wrong_judgements() -> list[Judgement]:
    """A false sat, a witness out of the box, and an unsound unsat."""
    return [
        judgement(
            "exclusive-pairs-20x8-g0.001-s1-unsat",
            verdict=Verdict.WRONG_SAT,
            answer=Answer.SAT,
            wall_seconds=0.84,
            reason="The witness does not violate the property: the slack is -4.88e-4 where it must be at "
            "least 0, in exact arithmetic and in onnxruntime alike.",
            replay=FALSE_SAT,
        ),
        judgement(
            "convex-corners-6d-s4-sat",
            verdict=Verdict.BAD_WITNESS,
            verifier="scripted",
            family="convex-corners",
            label=Label.SAT,
            answer=Answer.SAT,
            wall_seconds=0.05,
            reason="The instance is sat, but the witness given leaves the box by 1e-7.",
            replay=OUT_OF_BOX,
        ),
        judgement(
            "paired-bias-cnn-8x8-s2-sat",
            verdict=Verdict.WRONG_UNSAT,
            verifier="scripted",
            family="paired-bias-cnn",
            label=Label.SAT,
            answer=Answer.UNSAT,
            wall_seconds=0.04,
            reason="The verifier says unsat, but the recorded witness violates the property: unsound.",
        ),
    ]


def _others() -> list[Judgement]:
    runs = []
    shapes = (("exclusive-pairs", "20x8"), ("convex-corners", "6d"), ("paired-bias-cnn", "8x8"))
    for k, (family, shape) in enumerate(shapes):
        for seed in range(1, 7):
            for label in Label:
                name = f"{family}-{shape}-s{seed}-{label.value}"
                for verifier, speed in (("marabou", 0.02), ("scripted", 0.005)):
                    wall = speed * (k + 1) * 3.1**seed / (1 if label is Label.UNSAT else 1.7)
                    right = Answer(label.value)
                    run = judgement(
                        name,
                        verdict=Verdict.CORRECT,
                        verifier=verifier,
                        family=family,
                        label=label,
                        answer=right,
                        wall_seconds=round(wall, 3),
                    )
                    runs.append(_timed_out(run) if wall > 10 else run)
    return runs


def _timed_out(run: Judgement) -> Judgement:
    record = replace(
        run.record,
        answer=Answer.TIMEOUT,
        termination=Termination.WALL_LIMIT,
        exit_code=None,
        wall_seconds=10.02,
        detail="stopped after 10 s",
    )
    return replace(
        run, record=record, verdict=Verdict.UNDECIDED, reason="No answer within the limit of 10 s."
    )


def sample_judgements() -> list[Judgement]:
    """The whole campaign, in no particular order."""
    wrong = wrong_judgements()
    taken = {(j.record.instance, j.record.verifier) for j in wrong}
    unwitnessed = judgement(
        "paired-bias-cnn-16x16-s9-sat",
        verdict=Verdict.UNWITNESSED,
        family="paired-bias-cnn",
        label=Label.SAT,
        answer=Answer.SAT,
        wall_seconds=2.2,
        reason="The answer matches the label, but no witness came with it.",
    )
    crashed = judgement(
        "convex-corners-9d-s9-unsat",
        verdict=Verdict.UNDECIDED,
        family="convex-corners",
        answer=Answer.ERROR,
        termination=Termination.SIGNALLED,
        wall_seconds=0.31,
        reason="The verifier crashed.",
        detail="ended by signal 11",
    )
    rest = [j for j in _others() if (j.record.instance, j.record.verifier) not in taken]
    return [*rest, unwitnessed, *wrong, crashed]


LOG_TAILS = {
    "marabou-convex-corners-9d-s9-unsat": "\x1b[31mengine: preprocessing\x1b[0m\nSegmentation fault\n"
}


def write_report(
    judgements: Sequence[Judgement],
    context: ReportContext,
    path: Path,
    *,
    log_tails: Mapping[str, str] | None = None,
    known: Known | None = None,
    explanation: Explanation | None = None,
) -> None:
    """Write the report of `judgements` to `path`: all of it, or nothing.

    `log_tails` has the end of each run's log by job id, `known` what suites know about their instances,
    `explanation` why verifiers slow down. The folder of `path` is created if missing.
    """
    findings = Findings(
        judgements,
        known=known or {},
        log_tails=log_tails or {},
        explanation=explanation,
        limit_wall_seconds=context.wall_seconds,
    )
    write_page(findings, context, path)
