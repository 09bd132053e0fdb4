"""Every row of the table of verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import InputError, InvalidProof, UnreadableFile, UnsupportedOp
from dokimos.judging.judge import SETTLED, judge
from dokimos.judging.judge_instances import judge_all
from dokimos.judging.label_checks import LabelCheck, LabelStanding
from dokimos.judging.verdicts import Judgement, Verdict, checked_labels
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Enclosure
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Certificate, Claim, Label, OwnAnswer, Semantics
from dokimos.suites.vnnlib.model import Point
from dokimos.verifiers.execution.limits import Termination
from tests.engine.runtimes.test_cross_check import leaky, misread, slope_of_zero
from tests.scripting import StubInstance, at_least, believed, instance

F = Fraction
#: On the property Y_0 >= 1 + 2**-23 (exactly) with inputs in [0, 1] and y = x0 + x1:
STEP = "1.00000011920928955078125"
BOUND = at_least(STEP, low="0.0")
EXACT = (F(1), F(1, 2))
FLOAT_ONLY = (F(1), F(3, 2**25))
NEITHER = (F(1), F(0))
OUTSIDE = (F(2), F(2))
#: Out of the box by one step of float32: the first violates once it is clipped, the second does not.
CLIPPED = (1 + F(1, 2**23), F(1, 2))
CLIPPED_IN_VAIN = (1 + F(1, 2**23), F(0))
#: On a property that cannot be violated at a real point, but is at FLOAT_ONLY in float32:
TIGHT = at_least(STEP, low="0.0", high="1.0").replace(
    b"(assert (<= X_1 1.0))", b"(assert (<= X_1 0.00000011))"
)


@pytest.fixture(autouse=True)
def nothing_is_kept() -> None:
    """Of networks that an earlier test has misread: they are kept by their content."""
    read_onnx.cache_clear()


def record(answer: Answer, witness: Point | None = None, **rest: object) -> RunRecord:
    plain = RunRecord(
        job="job",
        suite="s",
        instance="i",
        family="f",
        verifier="v",
        verifier_version="1",
        repeat=0,
        answer=answer,
        witness=witness,
        detail="",
        termination=Termination.EXITED,
        exit_code=0,
        wall_seconds=2.0,
        cpu_seconds=1.0,
        peak_memory_bytes=1,
        log="",
        started_at="",
    )
    return replace(plain, **rest)  # type: ignore[arg-type]


def verdicts(
    given: StubInstance, *records: RunRecord, check_label: Callable[[object], LabelCheck] = believed
) -> list[Judgement]:
    numbered = [replace(r, job=str(k), verifier=f"v{k}") for k, r in enumerate(records)]
    return list(
        judge_all(
            numbered,
            {"s": [given]},
            reproduce=lambda r: f"again {r.verifier}",
            check_label=check_label,
        )
    )


def verdict(given: StubInstance, answer: Answer, witness: Point | None = None) -> Judgement:
    return verdicts(given, record(answer, witness))[0]


UNDECIDED = [a for a in Answer if not a.decides]


@pytest.mark.parametrize("answer", UNDECIDED)
@pytest.mark.parametrize("label", [Label.SAT, Label.UNSAT, None])
def test_no_answer_is_undecided(tmp_path: Path, answer: Answer, label: Label | None) -> None:
    judgement = verdict(instance(tmp_path, "i", asked=BOUND, label=label), answer)
    assert (judgement.verdict, judgement.label) == (Verdict.UNDECIDED, label)
    assert judgement.reason == answer.value
    told = judge(record(answer, detail="why"), truth=None, replays=None, reproduce="")
    assert told.reason == f"{answer.value}: why"


@pytest.mark.parametrize("answer", [Answer.SAT, Answer.UNSAT])
@pytest.mark.parametrize("termination", [t for t in Termination if t is not Termination.EXITED])
def test_an_answer_counts_only_after_a_proper_end(
    tmp_path: Path, answer: Answer, termination: Termination
) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.SAT)
    judgement = verdicts(given, record(answer, EXACT, termination=termination))[0]
    assert judgement.verdict is Verdict.UNDECIDED
    assert termination.value in judgement.reason


@pytest.mark.parametrize(
    ("label", "real", "float32", "answer", "witness", "expected"),
    [
        (Label.UNSAT, True, True, Answer.UNSAT, None, Verdict.CORRECT),
        (Label.UNSAT, True, False, Answer.UNSAT, None, Verdict.CORRECT),
        (Label.UNSAT, False, True, Answer.UNSAT, None, Verdict.CORRECT),
        (Label.UNSAT, False, False, Answer.UNSAT, None, Verdict.UNLABELLED),
        (Label.UNSAT, True, True, Answer.SAT, None, Verdict.WRONG_SAT),
        (Label.UNSAT, True, True, Answer.SAT, NEITHER, Verdict.WRONG_SAT),
        (Label.UNSAT, True, True, Answer.SAT, OUTSIDE, Verdict.WRONG_SAT),
        (Label.UNSAT, True, True, Answer.SAT, FLOAT_ONLY, Verdict.ROUNDING),
        (Label.UNSAT, True, True, Answer.SAT, (), Verdict.WRONG_SAT),
        (Label.UNSAT, True, False, Answer.SAT, FLOAT_ONLY, Verdict.ROUNDING),
        (Label.UNSAT, True, False, Answer.SAT, NEITHER, Verdict.WRONG_SAT),
        (Label.UNSAT, True, False, Answer.SAT, OUTSIDE, Verdict.WRONG_SAT),
        (Label.UNSAT, True, False, Answer.SAT, None, Verdict.WRONG_SAT),
        (Label.UNSAT, False, True, Answer.SAT, None, Verdict.UNLABELLED),
        (Label.UNSAT, False, True, Answer.SAT, FLOAT_ONLY, Verdict.UNLABELLED),
        (Label.UNSAT, False, True, Answer.SAT, NEITHER, Verdict.BAD_WITNESS),
        (Label.SAT, True, True, Answer.UNSAT, None, Verdict.WRONG_UNSAT),
        (Label.SAT, True, False, Answer.UNSAT, None, Verdict.WRONG_UNSAT),
        (Label.SAT, False, True, Answer.UNSAT, None, Verdict.UNLABELLED),
        (Label.SAT, False, False, Answer.UNSAT, None, Verdict.UNLABELLED),
        (Label.SAT, True, True, Answer.SAT, EXACT, Verdict.CORRECT),
        (Label.SAT, True, False, Answer.SAT, EXACT, Verdict.CORRECT),
        (Label.SAT, True, True, Answer.SAT, FLOAT_ONLY, Verdict.CORRECT),
        (Label.SAT, True, False, Answer.SAT, FLOAT_ONLY, Verdict.ROUNDING),
        (Label.SAT, True, True, Answer.SAT, NEITHER, Verdict.BAD_WITNESS),
        (Label.SAT, True, True, Answer.SAT, OUTSIDE, Verdict.BAD_WITNESS),
        (Label.SAT, True, True, Answer.SAT, CLIPPED, Verdict.CLIPPED),
        (Label.SAT, True, False, Answer.SAT, CLIPPED, Verdict.CLIPPED),
        (Label.SAT, True, True, Answer.SAT, CLIPPED_IN_VAIN, Verdict.BAD_WITNESS),
        (Label.SAT, True, True, Answer.SAT, (), Verdict.BAD_WITNESS),
        (Label.SAT, True, True, Answer.SAT, (F(1),), Verdict.BAD_WITNESS),
        (Label.SAT, True, True, Answer.SAT, None, Verdict.UNWITNESSED),
        (None, True, True, Answer.UNSAT, None, Verdict.UNLABELLED),
        (None, True, True, Answer.SAT, None, Verdict.UNLABELLED),
        (None, True, True, Answer.SAT, NEITHER, Verdict.BAD_WITNESS),
        (None, True, True, Answer.SAT, OUTSIDE, Verdict.BAD_WITNESS),
        (None, True, True, Answer.SAT, (), Verdict.BAD_WITNESS),
        (None, True, True, Answer.SAT, (F(1),), Verdict.BAD_WITNESS),
        (None, True, True, Answer.SAT, CLIPPED, Verdict.CLIPPED),
        (None, True, True, Answer.SAT, FLOAT_ONLY, Verdict.UNLABELLED),
        (None, True, True, Answer.SAT, EXACT, Verdict.CORRECT),
    ],
)
def test_the_table(
    tmp_path: Path,
    label: Label | None,
    real: bool,
    float32: bool,
    answer: Answer,
    witness: Point | None,
    expected: Verdict,
) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=label, real=real, float32=float32)
    judgement = verdict(given, answer, witness)
    assert judgement.verdict is expected
    assert judgement.reproduce == "again v0"
    assert (judgement.replay is not None) == bool(witness and len(witness) == 2)
    assert judgement.reason


def test_a_refuted_label_is_no_verdict(tmp_path: Path) -> None:
    for float32 in (True, False):
        given = instance(tmp_path, "i", asked=BOUND, label=Label.UNSAT, float32=float32)
        for witness, expected in ((EXACT, Verdict.CORRECT), (CLIPPED, Verdict.CLIPPED)):
            found = verdicts(given, record(Answer.UNSAT), record(Answer.SAT, witness))
            assert [j.verdict for j in found] == [Verdict.WRONG_UNSAT, expected]
            assert {(j.label, j.certificate) for j in found} == {(Label.SAT, SETTLED)}
            assert {j.label_check for j in found} == {
                LabelCheck(LabelStanding.FAILED, "the witness of v1 lies in the box and violates exactly")
            }
        replays = replay_witness(
            Question(given.network_path.read_bytes(), given.property_path.read_bytes(), "i"), EXACT
        )
        with pytest.raises(InvalidProof, match="i: the label unsat is false: the witness of v"):
            judge(record(Answer.SAT, EXACT), truth=given.truth, replays=replays, reproduce="")


def checking(standing: LabelStanding) -> Callable[[object], LabelCheck]:
    return lambda _: LabelCheck(standing, "because")


def test_a_label_that_fails_is_no_label_for_anybody(tmp_path: Path) -> None:
    failing = checking(LabelStanding.FAILED)
    sat = instance(tmp_path, "i", asked=BOUND, label=Label.SAT)
    answers = [record(Answer.UNSAT), record(Answer.SAT), record(Answer.SAT, NEITHER)]
    found = verdicts(sat, *answers, check_label=failing)
    assert [j.verdict for j in found] == [
        Verdict.UNLABELLED,
        Verdict.UNLABELLED,
        Verdict.BAD_WITNESS,
    ]
    assert found[0].reason == "it answers unsat, and its label fails: because"
    assert {j.label for j in found} == {None}
    assert checked_labels(found, LabelStanding.FAILED) == {("s", "i"): "because"}
    unsat = instance(tmp_path, "i", asked=BOUND, label=Label.UNSAT)
    found = verdicts(unsat, record(Answer.UNSAT), record(Answer.SAT), check_label=failing)
    assert {j.verdict for j in found} == {Verdict.UNLABELLED}


def test_a_label_that_is_not_checked_blames_nobody(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.SAT)
    answers = [record(Answer.UNSAT), record(Answer.SAT), record(Answer.TIMEOUT)]
    found = verdicts(given, *answers, check_label=checking(LabelStanding.NOT_CHECKED))
    assert [j.verdict for j in found] == [
        Verdict.UNLABELLED,
        Verdict.UNWITNESSED,
        Verdict.UNDECIDED,
    ]
    assert found[0].reason == "it answers unsat, and its label is not checked: because"
    assert checked_labels(found, LabelStanding.FAILED) == {}
    assert checked_labels(found, LabelStanding.NOT_CHECKED) == {("s", "i"): "because"}
    # A witness that violates exactly is a proof, whatever becomes of the label.
    answers = [record(Answer.UNSAT), record(Answer.SAT, EXACT)]
    found = verdicts(given, *answers, check_label=checking(LabelStanding.NOT_CHECKED))
    assert [j.verdict for j in found] == [Verdict.WRONG_UNSAT, Verdict.CORRECT]
    assert {j.certificate for j in found} == {SETTLED}


def test_unless_somebody_checks_labels_nobody_is_blamed_by_them(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.SAT)
    (found,) = judge_all([record(Answer.UNSAT)], {"s": [given]}, reproduce=lambda _: "")
    assert found.verdict is Verdict.UNLABELLED


@pytest.mark.parametrize("label", Label)
def test_nobody_is_blamed_for_what_is_proven_in_float32(tmp_path: Path, label: Label) -> None:
    """Where float32 has another answer than the reals, with a proof of its own."""
    truth = instance(tmp_path, "i", asked=BOUND, label=label).truth
    assert truth is not None
    other = Label.SAT if label is Label.UNSAT else Label.UNSAT
    own = Claim(True, F(0), own=OwnAnswer(other, Certificate("runs")))
    both = replace(truth, claims={**truth.claims, Semantics.FLOAT32: own})
    given = record(Answer.SAT if label is Label.UNSAT else Answer.UNSAT)
    plain, apart = (judge(given, truth=each, replays=None, reproduce="") for each in (truth, both))
    assert plain.verdict is (Verdict.WRONG_SAT if label is Label.UNSAT else Verdict.WRONG_UNSAT)
    assert apart.verdict is Verdict.ROUNDING
    assert "is proven in float32; over the reals" in apart.reason


def test_what_rounding_does_not_explain_is_no_rounding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As it is misread, the network has the value 0 at -2, and nothing is below -0.25; it really has -1.
    network, _ = leaky()
    asked = network.property_file.replace(b"-1.25", b"-0.25")
    given = instance(tmp_path, "i", network=network.network_file, asked=asked, label=Label.UNSAT)
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    found = verdicts(given, record(Answer.SAT, (F(-2),)), record(Answer.UNSAT))
    assert [j.verdict for j in found] == [Verdict.UNLABELLED, Verdict.UNLABELLED]
    assert found[0].label_check is not None
    assert found[0].label_check.standing is LabelStanding.FAILED
    assert "onnxruntime computes Y_0 = -1 at the witness" in found[0].label_check.problem


@pytest.mark.parametrize("label", [None, Label.SAT, Label.UNSAT])
def test_a_witness_of_a_misread_network_blames_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label: Label | None
) -> None:
    # As it is misread, the network has the value 0 at -2, which is above -0.25; it really has -1.
    network, _ = leaky()
    asked = network.property_file.replace(b"(<= Y_0 -1.25)", b"(>= Y_0 -0.25)")
    given = instance(tmp_path, "i", network=network.network_file, asked=asked, label=label)
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    found = verdicts(given, record(Answer.SAT, (F(-2),)), record(Answer.UNSAT))
    assert {j.verdict for j in found} == {Verdict.UNLABELLED}
    assert {j.label_check.standing for j in found if j.label_check} == {LabelStanding.FAILED}
    assert "onnxruntime computes Y_0 = -1 at the witness" in found[1].reason


def test_a_witness_that_fails_where_the_network_is_misread_is_not_called_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # -1.05 is in the box, but no float32 number: onnxruntime is asked at a point outside.
    network, _ = leaky()
    text = b"(declare-const X_0 Real)\n(declare-const Y_0 Real)\n(assert (>= X_0 -1.05))\n"
    asked = text + b"(assert (<= X_0 -1.05))\n(assert (<= Y_0 -0.25))\n"
    given = instance(tmp_path, "i", network=network.network_file, asked=asked)
    (right,) = verdicts(given, record(Answer.SAT, (F(-105, 100),)))
    assert right.verdict is Verdict.CORRECT
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    (found,) = verdicts(given, record(Answer.SAT, (F(-105, 100),)))
    assert found.verdict is Verdict.UNLABELLED


def test_labels_are_checked_only_to_blame(tmp_path: Path) -> None:
    def never(_: object) -> LabelCheck:
        raise AssertionError("nobody is to be blamed")

    sat = instance(tmp_path, "i", asked=BOUND, label=Label.SAT)
    unsat = instance(tmp_path, "j", asked=TIGHT, label=Label.UNSAT)
    harmless = [record(Answer.SAT, EXACT), record(Answer.SAT), record(Answer.SAT, CLIPPED)]
    assert len(verdicts(sat, *harmless, record(Answer.TIMEOUT), check_label=never)) == 4
    others = [record(Answer.UNSAT, instance="j"), record(Answer.SAT, FLOAT_ONLY, instance="j")]
    assert [j.label_check for j in verdicts(unsat, *others, check_label=never)] == [None, None]
    settled = instance(tmp_path, "i", asked=BOUND)
    assert verdicts(settled, record(Answer.UNSAT), record(Answer.SAT, EXACT), check_label=never)


def test_the_numbers_are_shown(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=at_least("2.5"), label=Label.UNSAT)
    judgement = verdict(given, Answer.SAT, (F(1), F(1)))
    assert judgement.certificate == "linear"
    assert judgement.reason == (
        "it answers sat, but unsat is proven (linear, in float32 too); "
        "its witness does not violate: it falls short by 0.5"
    )
    assert judgement.replay is not None
    assert judgement.replay.exact_outputs == (2,)
    assert judgement.replay.onnxruntime_outputs == (2.0,)
    outside = verdict(given, Answer.SAT, (F(2), F(1)))
    assert outside.reason.endswith("its witness lies outside the box by 1")
    beyond = verdict(given, Answer.SAT, (F(10**400), F(1)))
    assert beyond.reason.endswith("its witness lies outside the box by 1e+400")
    rounding = verdict(instance(tmp_path, "i", asked=TIGHT, label=Label.UNSAT), Answer.SAT, FLOAT_ONLY)
    assert rounding.reason.endswith("onnxruntime rounds by more than the proof allows")


def test_a_property_that_nothing_violates(tmp_path: Path) -> None:
    asked = at_least("0.0").replace(
        b"(assert (>= Y_0 0.0))", b"(assert (or (and (>= Y_0 9.0) (<= Y_0 8.0))))"
    )
    given = instance(tmp_path, "i", asked=asked, label=Label.UNSAT)
    assert verdict(given, Answer.SAT, (F(0), F(0))).verdict is Verdict.WRONG_SAT


def test_a_witness_settles_what_has_no_label(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND)
    found = verdicts(
        given,
        record(Answer.UNSAT),
        record(Answer.SAT, EXACT),
        record(Answer.SAT),
        record(Answer.SAT, NEITHER),
        record(Answer.SAT, FLOAT_ONLY),
        record(Answer.TIMEOUT),
    )
    assert [j.verdict for j in found] == [
        Verdict.WRONG_UNSAT,
        Verdict.CORRECT,
        Verdict.UNWITNESSED,
        Verdict.BAD_WITNESS,
        Verdict.ROUNDING,
        Verdict.UNDECIDED,
    ]
    assert {(j.label, j.certificate) for j in found} == {(Label.SAT, SETTLED)}
    assert not any("matches the label" in j.reason for j in found), "there is none"


def test_a_clipped_witness_settles_what_has_no_label(tmp_path: Path) -> None:
    found = verdicts(
        instance(tmp_path, "i", asked=BOUND), record(Answer.SAT, CLIPPED), record(Answer.UNSAT)
    )
    assert [j.verdict for j in found] == [Verdict.CLIPPED, Verdict.WRONG_UNSAT]
    assert not found[0].verdict.is_wrong
    assert found[0].reason == (
        "an exact witness proves the answer; its witness leaves the box by 1.19e-07, and clipped to the "
        "box it violates exactly"
    )


def test_nobody_is_blamed_where_no_precision_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(*_: object, **__: object) -> Enclosure:
        return Enclosure((F(1),), (F(2),))

    for label, expected in ((None, Verdict.UNLABELLED), (Label.SAT, Verdict.UNWITNESSED)):
        given = instance(tmp_path, "i", asked=BOUND, label=label)
        assert verdict(given, Answer.SAT, NEITHER).verdict is Verdict.BAD_WITNESS
        with monkeypatch.context() as patched:
            patched.setattr("dokimos.networks.semantics.exact.evaluate", wide)
            assert verdict(given, Answer.SAT, NEITHER).verdict is expected


def test_a_witness_settles_what_is_proven_for_nothing(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.UNSAT, real=False, float32=False)
    found = verdicts(given, record(Answer.UNSAT), record(Answer.SAT, EXACT))
    assert [j.verdict for j in found] == [Verdict.WRONG_UNSAT, Verdict.CORRECT]
    plain = judge(record(Answer.UNSAT), truth=given.truth, replays=None, reproduce="")
    assert (plain.verdict, plain.label) == (Verdict.UNLABELLED, None)


def test_a_witness_of_a_run_that_ended_badly_settles_nothing(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND)
    late = record(Answer.TIMEOUT, EXACT, termination=Termination.WALL_LIMIT)
    assert verdicts(given, record(Answer.UNSAT), late)[0].verdict is Verdict.UNLABELLED


def test_a_network_we_cannot_evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise UnsupportedOp("Erf", "is not known")

    monkeypatch.setattr("dokimos.judging.witness_replay.RecentNetworks.read", refuse)
    judgement = verdict(instance(tmp_path, "i", asked=BOUND), Answer.SAT, EXACT)
    assert (judgement.verdict, judgement.replay) == (Verdict.UNLABELLED, None)
    found = verdict(instance(tmp_path, "i", asked=BOUND, label=Label.SAT), Answer.SAT, EXACT)
    assert (found.verdict, found.label) == (Verdict.UNLABELLED, None)
    assert found.label_check is not None
    assert found.label_check.standing is LabelStanding.FAILED
    assert "Erf" in found.label_check.problem


@pytest.mark.parametrize("which", ["network", "property"])
def test_a_label_of_other_files_fails_for_its_instance_alone(tmp_path: Path, which: str) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.UNSAT)
    assert given.truth is not None
    foreign = replace(given, truth=replace(given.truth, **{f"{which}_sha256": "0" * 64}))
    found = verdicts(foreign, record(Answer.SAT, NEITHER), record(Answer.SAT), record(Answer.UNSAT))
    assert [j.verdict for j in found] == [Verdict.BAD_WITNESS, Verdict.UNLABELLED, Verdict.UNLABELLED]
    problem = f"the {which} is not the file that it was proven for (sha256 differs)"
    assert {j.label_check for j in found} == {LabelCheck(LabelStanding.FAILED, problem)}


def test_the_files_must_be_the_ones_that_were_run(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=Label.SAT)
    given.property_path.write_bytes(at_least("0.0"))
    with pytest.raises(UnreadableFile, match="not the file that was run"):
        verdict(given, Answer.SAT, EXACT)
    given.property_path.unlink()
    with pytest.raises(UnreadableFile, match="no such file"):
        verdict(given, Answer.SAT, EXACT)


def test_a_run_of_another_suite(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="on 'i', which is not in the suite"):
        verdict(instance(tmp_path, "j"), Answer.UNSAT)


def test_the_order_of_records_is_kept(tmp_path: Path) -> None:
    one, two = instance(tmp_path, "one", label=Label.SAT), instance(tmp_path, "two", label=Label.UNSAT)
    records = [
        replace(record(Answer.UNSAT), job=str(k), instance=name)
        for k, name in enumerate(["one", "two", "one", "two"])
    ]
    found = judge_all(records, {"s": [two, one]}, reproduce=lambda _: "")
    assert [j.record for j in found] == records


def foreign(given: StubInstance) -> StubInstance:
    """The same, its label proven by a kind that Dokimos does not ship."""
    assert given.truth is not None
    return replace(given, truth=replace(given.truth, certificate=Certificate("their-kind")))


@pytest.mark.parametrize(
    ("label", "answer", "witness"),
    [
        (Label.SAT, Answer.UNSAT, None),
        (Label.SAT, Answer.SAT, None),
        (Label.UNSAT, Answer.SAT, None),
        (Label.UNSAT, Answer.UNSAT, None),
    ],
)
def test_nobody_is_judged_by_a_proof_of_a_plug_in(
    tmp_path: Path, label: Label, answer: Answer, witness: Point | None
) -> None:
    given = instance(tmp_path, "i", asked=BOUND, label=label)
    assert verdict(given, answer, witness).verdict is not Verdict.UNLABELLED
    judgement = verdict(foreign(given), answer, witness)
    assert judgement.verdict is Verdict.UNLABELLED
    assert judgement.label is None
    assert (
        "proven only by the unknown kind their-kind, which is never used against a verifier"
        in judgement.reason
    )


@pytest.mark.parametrize("label", [Label.SAT, Label.UNSAT])
def test_a_witness_that_fails_is_bad_whatever_a_plug_in_proves(tmp_path: Path, label: Label) -> None:
    judgement = verdict(foreign(instance(tmp_path, "i", asked=BOUND, label=label)), Answer.SAT, NEITHER)
    assert (judgement.verdict, judgement.label) == (Verdict.BAD_WITNESS, None)


def test_an_exact_witness_settles_what_a_plug_in_says(tmp_path: Path) -> None:
    given = foreign(instance(tmp_path, "i", asked=BOUND, label=Label.UNSAT))
    found = verdicts(given, record(Answer.SAT, EXACT), record(Answer.UNSAT))
    assert [judgement.verdict for judgement in found] == [Verdict.CORRECT, Verdict.WRONG_UNSAT]
    assert {judgement.certificate for judgement in found} == {SETTLED}


def test_the_witness_beside_a_plug_ins_label_settles_it_where_it_violates_exactly(tmp_path: Path) -> None:
    for witness, expected in ((EXACT, Verdict.WRONG_UNSAT), (NEITHER, Verdict.UNLABELLED)):
        given = foreign(instance(tmp_path, "i", asked=BOUND, label=Label.SAT, witness=witness))
        assert verdict(given, Answer.UNSAT).verdict is expected
    unknown = instance(tmp_path, "i", network=b"no network", label=Label.SAT, witness=EXACT)
    assert verdict(foreign(unknown), Answer.UNSAT).verdict is Verdict.UNLABELLED
