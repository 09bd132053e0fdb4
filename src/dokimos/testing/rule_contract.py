"""The contract of every rule set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import pytest

from dokimos.campaigns.records import RunRecord
from dokimos.execution.outcomes import Termination
from dokimos.judging.judge_instances import judge_instance
from dokimos.judging.rules import Mark, RuleSet, Standing
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.properties.model import Point
from dokimos.suites.answers import Answer
from dokimos.suites.instance import sha256
from dokimos.testing.files import question

#: Of Y = X_0 + X_1 over [0, 1]², unsafe from 1 on:
CLEAR, HARMLESS, FAR_OUTSIDE = (
    (Fraction(1), Fraction(1, 2)),
    (Fraction(0), Fraction(1, 2)),
    (Fraction(2), Fraction(2)),
)
#: It leaves the box by one step of float32, and violates once it is clipped to the box.
OFF_BY_A_STEP = (1 + Fraction(1, 2**23), Fraction(1, 2))

_PLAIN = RunRecord(
    job="",
    suite="s",
    instance="i",
    family="f",
    verifier="",
    verifier_version="1",
    repeat=0,
    answer=Answer.UNKNOWN,
    witness=None,
    detail="",
    termination=Termination.EXITED,
    exit_code=0,
    wall_seconds=1.0,
    cpu_seconds=1.0,
    peak_memory_bytes=1,
    log="",
    started_at="",
)


@dataclass(frozen=True)
class _UnlabelledInstance:
    network_path: Path
    property_path: Path
    network_sha256: str
    property_sha256: str
    name: str = "i"
    family: str = "f"
    timeout_seconds: float = 60.0


class RuleSetContract:
    """Derive a test class from this one, and list the rule sets in `rule_sets`."""

    rule_sets: ClassVar[tuple[RuleSet, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each rule set."""
        if "rules" in metafunc.fixturenames:
            metafunc.parametrize("rules", self.rule_sets, ids=lambda rules: rules.name)

    @pytest.fixture
    def instance(self, tmp_path: Path) -> _UnlabelledInstance:
        """Y = X_0 + X_1 over [0, 1]², unsafe from 1 on, without a label."""
        network = ModelBuilder([2]).affine([[1, 1]], [0]).build(1)
        asked = question([(0, 1)] * 2, 1, "(>= Y_0 1)")
        paths = tmp_path / "network.onnx", tmp_path / "property.vnnlib"
        paths[0].write_bytes(network)
        paths[1].write_bytes(asked)
        return _UnlabelledInstance(*paths, sha256(network), sha256(asked))

    def test_it_says_what_it_is(self, rules: RuleSet) -> None:
        """A name that can stand in a list with commas, and one line for the report."""
        assert rules.name
        assert not set(rules.name) & set(" ,")
        assert rules.about
        assert "\n" not in rules.about

    def test_what_refutes_others_must_be_accepted_first(self, rules: RuleSet) -> None:
        """By verdicts or votes, or by a rule for the own witness and perhaps one for refuting others."""
        assert rules.accepts is not None or rules.establishes is None

    def test_right_is_worth_more_than_nothing_and_nothing_more_than_wrong(self, rules: RuleSet) -> None:
        """And a mark carries the name of its rules."""
        marks = [rules.mark(standing, "why") for standing in (Standing.CORRECT, Standing.NONE)]
        marks.append(rules.mark(Standing.INCORRECT, "why"))
        points = [mark.points for mark in marks]
        assert points[0] > points[1] == 0 > points[2]
        assert {mark.rules for mark in marks} == {rules.name}

    def test_a_clear_witness_is_accepted_and_refutes_an_unsat(
        self, rules: RuleSet, instance: _UnlabelledInstance
    ) -> None:
        """It lies inside the box and violates by far. A vote is a tie, and some rules refute nothing."""
        right, refuted = _marks(rules, instance, (Answer.SAT, CLEAR), (Answer.UNSAT, None))
        assert right.standing is (Standing.NONE if rules.votes else Standing.CORRECT)
        if not rules.votes and (rules.accepts is None or rules.establishes is not None):
            assert refuted.standing is Standing.INCORRECT

    @pytest.mark.parametrize("witness", [HARMLESS, FAR_OUTSIDE, (Fraction(1),), None])
    def test_what_is_no_witness_refutes_nobody(
        self, rules: RuleSet, instance: _UnlabelledInstance, witness: Point | None
    ) -> None:
        """And nobody gets points for it."""
        claimed, other = _marks(rules, instance, (Answer.SAT, witness), (Answer.UNSAT, None))
        assert claimed.standing is not Standing.CORRECT
        assert other.standing is not Standing.INCORRECT

    def test_a_witness_off_by_a_rounding_is_judged_by_the_rules_own_tolerance(
        self, rules: RuleSet, instance: _UnlabelledInstance
    ) -> None:
        """By verdicts it is `clipped`, which is not wrong; by witnesses the tolerance on inputs decides."""
        claimed, _ = _marks(rules, instance, (Answer.SAT, OFF_BY_A_STEP), (Answer.UNSAT, None))
        if rules.accepts is None or rules.accepts.inputs >= OFF_BY_A_STEP[0] - 1:
            assert claimed.standing is not Standing.INCORRECT

    def test_no_answer_is_worth_nothing(self, rules: RuleSet, instance: _UnlabelledInstance) -> None:
        """Whatever others answer."""
        undecided = (Answer.UNKNOWN, Answer.TIMEOUT, Answer.MEMOUT, Answer.ERROR, Answer.UNSUPPORTED)
        _, *others = _marks(rules, instance, (Answer.SAT, CLEAR), *((one, None) for one in undecided))
        assert {(mark.standing, mark.points) for mark in others} == {(Standing.NONE, 0)}


def _marks(
    rules: RuleSet, instance: _UnlabelledInstance, *answers: tuple[Answer, Point | None]
) -> list[Mark]:
    """What the rules give for these answers, each by a verifier of its own."""
    runs = [
        replace(_PLAIN, job=str(k), verifier=f"v{k}", answer=answer, witness=witness)
        for k, (answer, witness) in enumerate(answers)
    ]
    return [j.marks[0] for j in judge_instance(instance, None, runs, lambda _: "", (rules,))]
