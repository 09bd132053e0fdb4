"""What each rule set gives for an answer, and where they disagree."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.campaigns.records import RunRecord
from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.execution.limits import Limits
from dokimos.execution.outcomes import Termination
from dokimos.judging.judge_instances import judge_all
from dokimos.judging.rules import RULE_SETS, Mark, Standing, rule_sets
from dokimos.judging.scores import disagreements, scores, totals
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.properties.model import Point
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from tests.judging.test_judge import record
from tests.scripting import StubInstance, at_least, believed, double_network, instance, relu_network

F = Fraction
NAMES = RULE_SETS.shipped
#: y = relu(x0) + relu(x1), inputs in [0, 1]; unsafe where y >= 0.75.
ASKED = at_least("0.75", low="0.0")
RIGHT = (F(1), F(3, 4))
JUST = (F(1, 2), F(1, 4))
NOT_QUITE = (F(1, 2), F(1, 4) - F(1, 2**24))
OUT_BY_A_LITTLE = (F("1.00005"), F(3, 4))
OUT_BY_A_STEP = (1 + F(1, 2**23), F(3, 4))
OUT_BY_MUCH = (F(2), F(0))


def judged(given: StubInstance, *records: RunRecord) -> tuple[Judgement, ...]:
    numbered = [replace(r, job=str(k), verifier=f"v{k}") for k, r in enumerate(records)]
    return judge_all(
        numbered,
        {"s": [given]},
        reproduce=lambda _: "",
        rules=rule_sets(NAMES),
        check_label=believed,
    )


def points(given: StubInstance, one: RunRecord, *others: RunRecord) -> tuple[int, ...]:
    return tuple(mark.points for mark in judged(given, one, *others)[0].marks)


def test_the_names() -> None:
    assert NAMES == ("exact", "vnncomp2026", "vnncomp2025-small", "vnncomp2025-zero")
    assert rule_sets(["vnncomp2026", "exact", "exact"]) == (
        RULE_SETS["vnncomp2026"],
        RULE_SETS["exact"],
    )
    with pytest.raises(InputError, match="did you mean 'vnncomp2026'"):
        rule_sets(["vnncomp2062"])


@pytest.mark.parametrize(
    ("witness", "outputs", "expected"),
    [
        (RIGHT, None, (10, 10, 10, 10)),
        (RIGHT, (F(7, 4),), (10, 10, 10, 10)),
        # Own outputs: off by 3e-5 relative, by 1.1e-3, of another number, and only printed briefly.
        (RIGHT, (F("1.75005"),), (10, 10, 10, 10)),
        (RIGHT, (F("1.752"),), (10, 10, -150, -150)),
        (RIGHT, (F(7, 4), F(0)), (10, 10, -150, -150)),
        (RIGHT, (F("1.7500000001"),), (10, 10, 10, 10)),
        # The own outputs are judged, not onnxruntime's.
        (NOT_QUITE, (F("0.7501"),), (-150, -150, 10, 10)),
        (RIGHT, (F("1.7499"),), (10, 10, 10, 10)),
        (JUST, (F("0.7496"),), (10, 10, -150, -150)),
        (OUT_BY_A_LITTLE, None, (-150, 10, 10, 10)),
        (OUT_BY_A_STEP, None, (0, 10, 10, 10)),
        (OUT_BY_MUCH, None, (-150, -150, -150, -150)),
        # Short of the bound by 2^-24, which only an output tolerance forgives.
        (NOT_QUITE, None, (-150, -150, 10, 10)),
        (None, None, (10, -150, -150, -150)),
        ((), None, (-150, -150, -150, -150)),
        ((F(1),), None, (-150, -150, -150, -150)),
        ((F(10) ** 60, F(0)), None, (-150, -150, -150, -150)),
    ],
)
def test_a_sat_on_a_sat_instance(
    tmp_path: Path, witness: Point | None, outputs: Point | None, expected: tuple[int, ...]
) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    assert points(given, record(Answer.SAT, witness, outputs=outputs)) == expected


def test_bounds_are_rounded_to_float32_as_numpy_2_does(tmp_path: Path) -> None:
    # 0.1 in float32 is larger than 0.1: outside the printed box, inside the rounded one.
    asked = at_least("0.15", low="0.0", high="0.1")
    given = instance(tmp_path, "i", asked=asked, label=Label.SAT)
    near = F(13421773, 2**27)
    assert near > F("0.1")
    assert points(given, record(Answer.SAT, (near, near)))[1:] == (10, 10, 10)
    # It establishes sat in 2026, and in 2025 within 1e-7, but not in doubles without any tolerance.
    assert points(given, record(Answer.UNSAT), record(Answer.SAT, (near, near)))[1:] == (-150, -150, 10)


def test_an_unsat_alone_is_never_checked_by_a_competition(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    alone = judged(given, record(Answer.UNSAT))
    assert [mark.points for mark in alone[0].marks] == [-150, 10, 10, 10]
    assert disagreements(alone) == alone
    assert alone[0].marks[1].reason == "no witness refutes it; an unsat is not checked"
    refuted = judged(given, record(Answer.UNSAT), record(Answer.SAT, RIGHT))
    assert [mark.points for mark in refuted[0].marks] == [-150] * 4
    assert refuted[0].marks[1].reason == "the witness of v1 shows a violation"
    assert disagreements(refuted) == ()


@pytest.mark.parametrize(
    ("witness", "outputs", "unsat_points"),
    [
        # Accepted with the tolerance of 2026, but not good enough to refute an unsat.
        (OUT_BY_A_LITTLE, None, (-150, 10, 10, 10)),
        (RIGHT, (F("1.75005"),), (-150, -150, 10, 10)),
        (RIGHT, (F("1.7500000001"),), (-150, -150, -150, 10)),
        (RIGHT, (F(7, 4),), (-150, -150, -150, -150)),
        (NOT_QUITE, None, (-150, 10, -150, 10)),
    ],
)
def test_what_refutes_an_unsat(
    tmp_path: Path, witness: Point, outputs: Point | None, unsat_points: tuple[int, ...]
) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    other = record(Answer.SAT, witness, outputs=outputs)
    assert points(given, record(Answer.UNSAT), other) == unsat_points
    late = replace(other, termination=Termination.WALL_LIMIT)
    assert points(given, record(Answer.UNSAT), late)[1:] == (10, 10, 10)
    slow = replace(other, limits=Limits(wall_seconds=1.5))
    assert points(given, record(Answer.UNSAT), slow)[1:] == (10, 10, 10)


def test_a_sat_on_an_unsat_instance(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=at_least("2.5", low="0.0"), label=Label.UNSAT)
    assert points(given, record(Answer.SAT, RIGHT)) == (-150,) * 4
    assert points(given, record(Answer.SAT)) == (-150,) * 4
    assert points(given, record(Answer.UNSAT)) == (10,) * 4
    tolerated = instance(tmp_path, "j", asked=at_least("2.00004", low="0.0"), label=Label.UNSAT)
    at_j = replace(record(Answer.SAT, (F("1.00003"), F("1.00003"))), instance="j")
    assert points(tolerated, at_j) == (-150, 10, 10, 10)


@pytest.mark.parametrize("answer", [a for a in Answer if not a.decides])
def test_what_decides_nothing_is_worth_nothing(tmp_path: Path, answer: Answer) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    assert points(given, record(answer)) == (0, 0, 0, 0)


def test_an_answer_after_the_limit_is_a_timeout(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    slow = record(Answer.SAT, RIGHT, wall_seconds=2.0)
    assert points(given, replace(slow, limits=Limits(wall_seconds=1.5))) == (0, 0, 0, 0)
    assert points(given, replace(slow, limits=Limits(wall_seconds=2.0))) == (10, 10, 10, 10)


def test_without_a_label_the_competitions_go_on_and_we_do_not(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED)
    assert points(given, record(Answer.UNSAT)) == (0, 10, 10, 10)
    assert points(given, record(Answer.SAT)) == (0, -150, -150, -150)
    assert points(given, record(Answer.UNSAT), record(Answer.SAT, RIGHT)) == (-150,) * 4


def test_a_network_that_we_cannot_evaluate_counts_where_onnxruntime_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise UnsupportedOp("Erf", "is not known")

    monkeypatch.setattr("dokimos.judging.recent_networks.RecentNetworks.read", refuse)
    given = instance(tmp_path, "i", asked=ASKED)
    assert points(given, record(Answer.SAT, RIGHT)) == (0, 10, 10, 10)
    assert points(given, record(Answer.SAT, (F(0), F(0)))) == (0, -150, -150, -150)


def test_what_onnxruntime_cannot_run_is_neither_right_nor_wrong(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", network=b"no network", asked=ASKED)
    found = judged(given, record(Answer.SAT, RIGHT), record(Answer.UNSAT))
    assert [mark.points for mark in found[0].marks] == [0, 0, 0, 0]
    assert found[0].marks[1].reason == "onnxruntime cannot replay its witness"
    assert [mark.points for mark in found[1].marks] == [0, 10, 10, 10]


def test_outputs_that_are_not_finite_violate_nothing(tmp_path: Path) -> None:
    asked = at_least("1.5", low="0.0", high="3e38")
    given = instance(tmp_path, "i", network=relu_network(2.0), asked=asked, label=Label.SAT)
    found = judged(given, record(Answer.SAT, (F(3 * 10**38), F(1))))[0]
    assert [mark.points for mark in found.marks] == [10, -150, -150, -150]
    assert found.marks[1].reason == "the outputs at its witness are not finite"


def test_constraints_over_inputs_alone_have_the_tolerance_of_inputs(tmp_path: Path) -> None:
    asked = ASKED + b"(assert (<= (+ X_0 X_1) 1.0))\n"
    given = instance(tmp_path, "i", asked=asked, label=Label.SAT)
    assert points(given, record(Answer.SAT, (F(1), F("0.00005"))))[1] == 10
    assert points(given, record(Answer.SAT, (F(1), F("0.0002"))))[1] == -150


def test_a_float64_network_is_asked_in_float64(tmp_path: Path) -> None:
    # 1 + 2^-40 is no float32 number: only in float64 does it violate, and only there it leaves the box.
    step = F(1, 2**40)
    asked = at_least("1.0000000000009094947017729282379150390625", low="0.0", high="2.0")
    double = instance(tmp_path, "i", network=double_network(), asked=asked)
    assert points(double, record(Answer.SAT, (1 + step, F(0))))[1:] == (10, 10, 10)
    single = instance(tmp_path, "i", asked=asked)
    assert points(single, record(Answer.SAT, (1 + step, F(0))))[1] == -150


def test_a_strict_constraint_is_not_met_by_equality(tmp_path: Path) -> None:
    strict = ASKED.replace(b"(assert (>= Y_0 0.75))", b"(assert (> Y_0 0.75))")
    given = instance(tmp_path, "i", asked=strict, label=Label.SAT)
    assert points(given, record(Answer.SAT, JUST)) == (-150, -150, 10, 10)
    assert points(given, record(Answer.UNSAT), record(Answer.SAT, JUST)) == (-150, 10, -150, 10)


def test_a_witness_out_of_the_box_by_a_rounding_is_clipped(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    by_a_step, by_more = (judged(given, record(Answer.SAT, w))[0] for w in (OUT_BY_A_STEP, OUT_BY_A_LITTLE))
    assert (by_a_step.verdict, by_more.verdict) == (Verdict.CLIPPED, Verdict.BAD_WITNESS)
    assert by_a_step.clipped is not None
    assert (by_a_step.clipped.in_box, by_a_step.clipped.violates_exactly) == (True, True)
    assert by_a_step.clipped.exact_outputs == (F(7, 4),)
    assert by_a_step.reason.endswith("clipped to the box it violates exactly")
    assert by_more.clipped is None
    # As Python prints it: a decimal that lies beyond the float32 number by 5e-17.
    printed = tuple(F(repr(float(x))) for x in OUT_BY_A_STEP)
    assert printed != OUT_BY_A_STEP
    assert judged(given, record(Answer.SAT, printed))[0].verdict is Verdict.CLIPPED
    in_vain = judged(given, record(Answer.SAT, (F(1, 2), -F(1, 2**149))))[0]
    assert in_vain.verdict is Verdict.BAD_WITNESS
    assert in_vain.reason.endswith("clipped to the box it does not violate")
    inside = judged(given, record(Answer.SAT, NOT_QUITE))[0]
    assert inside.clipped is None


def _run(verifier: str, suite: str, *points_given: int) -> list[Judgement]:
    standing = {10: Standing.CORRECT, 0: Standing.NONE, -150: Standing.INCORRECT}
    return [
        Judgement(
            record=replace(record(Answer.UNSAT), verifier=verifier, suite=suite),
            label=None,
            certificate=None,
            verdict=Verdict.UNLABELLED,
            reason="",
            replay=None,
            reproduce="",
            marks=(Mark("exact", standing[p], p, "why"),),
        )
        for p in points_given
    ]


def test_scores_add_up_and_are_worth_a_share_of_the_best() -> None:
    runs = [
        *_run("a", "one", 10, 10, 10, 10),
        *_run("b", "one", 10, 0, 0, 0),
        *_run("c", "one", 10, 10, 10, -150),
        *_run("a", "two", -150, 0),
        *_run("b", "two", 0, 0),
    ]
    found = {(s.suite, s.verifier): s for s in scores(runs)}
    assert [(s.points, s.worth) for s in found.values()] == [
        (40, 100.0),
        (10, 25.0),
        (-120, 0.0),
        (-150, 0.0),
        (0, 0.0),
    ]
    worst = found["one", "c"]
    assert (worst.correct, worst.incorrect, worst.penalty) == (3, 1, -150)
    assert [(t.verifier, t.points, t.worth) for t in totals(scores(runs))] == [
        ("a", -110, 100.0),
        ("b", 10, 25.0),
        ("c", -120, 0.0),
    ]
    assert scores([]) == totals([]) == ()
