"""What each rule set gives for an answer, and where they disagree."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.judging.judge_instances import judge_all
from dokimos.judging.marks import disagreements, marks_of, scores, totals
from dokimos.judging.rules import RULE_SETS, Mark, Standing, default_rules, other_year, rule_sets
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Point
from dokimos.verifiers.execution.limits import Limits, Termination
from tests.judging.test_judge import record
from tests.scripting import StubInstance, at_least, believed, double_network, instance, relu_network

F = Fraction
NAMES = default_rules()
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
        (OUT_BY_A_LITTLE, None, (10, 10, 10, 10)),
        (OUT_BY_A_STEP, None, (10, 10, 10, 10)),
        ((F("1.00011"), F(3, 4)), None, (-150, -150, -150, -150)),
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


OLD = ("vnncomp2024", "vnncomp2023", "vnncomp2022", "vnncomp2021")


def old_points(given: StubInstance, *records: RunRecord) -> dict[str, tuple[int, ...]]:
    """The points of each run under the rules of 2021 to 2024."""
    numbered = [replace(r, job=str(k), verifier=r.verifier or f"v{k}") for k, r in enumerate(records)]
    found = judge_all(numbered, {"s": [given]}, reproduce=lambda _: "", rules=rule_sets(OLD))
    return {name: tuple(j.marks[k].points for j in found) for k, name in enumerate(OLD)}


def run(answer: Answer, seconds: float, witness: Point | None = None, **rest: object) -> RunRecord:
    return record(answer, witness, wall_seconds=seconds, verifier="", **rest)


def test_2021_and_2022_pay_for_speed(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED)
    runs = [run(Answer.UNSAT, seconds) for seconds in (0.1, 1.19, 3.0, 3.1, 9.0)]
    found = old_points(given, *runs)
    # Times below a second are a second, and those within 0.2 s are equal: two are the fastest. The second
    # time is then that of the other fastest, so that nobody is second.
    assert found["vnncomp2022"] == found["vnncomp2021"] == (12, 12, 10, 10, 10)
    assert old_points(given, *runs[1:])["vnncomp2022"] == (12, 11, 11, 10)
    assert found["vnncomp2023"] == found["vnncomp2024"] == (10,) * 5


def test_the_overhead_of_a_tool_is_taken_off_before_its_speed_is_paid() -> None:
    runs = [replace(run(Answer.UNSAT, s), verifier=name) for name, s in (("slow", 9.0), ("quick", 4.0))]
    judged = [Judgement(r, None, None, Verdict.UNLABELLED, "", None, "") for r in runs]
    marks = marks_of(RULE_SETS["vnncomp2022"], None, judged, {"slow": 8.0})
    assert [mark.points for mark in marks] == [12, 11]
    assert [mark.points for mark in marks_of(RULE_SETS["vnncomp2022"], None, judged)] == [11, 12]


def test_2022_looks_at_witnesses_only_where_answers_differ(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED)
    nothing, right = run(Answer.SAT, 1.0), run(Answer.SAT, 1.0, RIGHT)
    harmless, unsat = run(Answer.SAT, 1.0, (F(0), F(0))), run(Answer.UNSAT, 1.0)
    assert old_points(given, nothing, harmless)["vnncomp2022"] == (12, 12)
    assert old_points(given, nothing, harmless, unsat)["vnncomp2022"] == (-100, -100, 12)
    assert old_points(given, nothing, harmless, unsat, right)["vnncomp2022"] == (12, 12, -100, 12)
    # Own outputs within 1e-4, absolutely.
    off = run(Answer.SAT, 1.0, RIGHT, outputs=(F("1.75011"),))
    assert old_points(given, off, unsat)["vnncomp2022"] == (-100, 12)


def test_2023_lets_one_accepted_witness_serve_all_and_2024_refutes_nothing(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED)
    nothing, near = run(Answer.SAT, 1.0), run(Answer.SAT, 1.0, OUT_BY_A_LITTLE)
    unsat = run(Answer.UNSAT, 1.0)
    found = old_points(given, nothing, near, unsat)
    assert found["vnncomp2023"] == (10, 10, -150)
    assert found["vnncomp2024"] == (-150, 10, 10)
    assert old_points(given, nothing)["vnncomp2023"] == (-150,)


def test_2021_votes(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED)
    sat, unsat = run(Answer.SAT, 1.0), run(Answer.UNSAT, 1.0)
    for runs, expected in (
        ([sat, unsat], (0, 0)),
        ([sat, unsat, unsat], (-100, 12, 12)),
        ([sat, sat, unsat, unsat, unsat], (0,) * 5),
        ([sat, run(Answer.TIMEOUT, 9.0)], (12, 0)),
        ([sat, replace(sat, verifier="randgen"), unsat], (1, 1, -100)),
    ):
        assert old_points(given, *runs)["vnncomp2021"] == expected


def test_a_second_run_is_a_row_of_its_own(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED)
    first = [replace(run(Answer.UNSAT, 5.0), verifier=name) for name in ("a", "b")]
    second = [replace(first[0], repeat=1, answer=Answer.SAT), replace(first[1], repeat=1)]
    assert old_points(given, *first, *second)["vnncomp2021"] == (12, 12, 0, 0)


def test_each_year_has_its_rules_and_others_are_called_so() -> None:
    assert default_rules([2022]) == ("exact", "vnncomp2026", "vnncomp2022")
    assert {RULE_SETS[name].year for name in RULE_SETS.shipped} == {None, *range(2021, 2027)}
    assert other_year(RULE_SETS["vnncomp2026"], [2022]) == "rules of 2026, and these are results of 2022"
    assert not other_year(RULE_SETS["vnncomp2022"], [2022])
    assert not other_year(RULE_SETS["exact"], [2022])
    assert not other_year(RULE_SETS["vnncomp2026"], [])


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
    assert points(given, record(Answer.UNSAT), slow)[1:] == (10, *unsat_points[2:])


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
    # The script of 2025 did not look at the time again.
    assert points(given, replace(slow, limits=Limits(wall_seconds=1.5))) == (0, 0, 10, 10)
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

    monkeypatch.setattr("dokimos.judging.witness_replay.RecentNetworks.read", refuse)
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


def test_a_witness_out_of_the_box_by_what_competitions_tolerate_is_clipped(tmp_path: Path) -> None:
    given = instance(tmp_path, "i", asked=ASKED, label=Label.SAT)
    out_by_more = (F("1.000101"), F(3, 4))
    by_a_step, by_a_little, by_more = (
        judged(given, record(Answer.SAT, w))[0] for w in (OUT_BY_A_STEP, OUT_BY_A_LITTLE, out_by_more)
    )
    assert (by_a_step.verdict, by_a_little.verdict) == (Verdict.CLIPPED, Verdict.CLIPPED)
    assert (by_a_step.clipped_by, by_a_little.clipped_by) == (F(1, 2**23), F("0.00005"))
    assert "leaves the box by 5e-05, and" in by_a_little.reason
    assert by_more.verdict is Verdict.BAD_WITNESS
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
