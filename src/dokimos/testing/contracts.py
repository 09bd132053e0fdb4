"""The contracts of kinds of proof, attacks, components of profiles, rule sets and adapters of verifiers."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from dokimos.campaigns.doctor import try_out
from dokimos.campaigns.journal import RunRecord
from dokimos.checker.base import CertificateKind, Problem
from dokimos.checker.check import check, prove
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import write_whole
from dokimos.difficulty.components.measurements import Component
from dokimos.difficulty.inspection import Inspection
from dokimos.engine.attacks.base import Attack, AttackResult, Budget
from dokimos.engine.attacks.target import Target
from dokimos.judging.judge_instances import judge_instance
from dokimos.judging.rules import Mark, RuleSet, Standing
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.answers import Answer
from dokimos.suites.facts import ProfileSettings
from dokimos.suites.instance import Label, sha256
from dokimos.suites.vnnlib.model import Box, Case, Linear, Point, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.testing.statements import question
from dokimos.testing.sweeps import ACCEPTED, FALSE, HASH, Sweep, with_margin
from dokimos.verifiers.base import NO_ATTACK, WARM, CertificateStyle, Query, Verifier
from dokimos.verifiers.execution.limits import Outcome, Termination

# The contract of every kind of proof: above all, it must never prove what is false


#: The least number of mutants that each kind is tried with.
MUTANTS = 200
#: How many of them must be false and rejected; and how many accepted, so that rejecting means something.
LEAST_FALSE, LEAST_ACCEPTED = 100, 30


class CertificateContract:
    """Derive a test class from this one, and give one `Sweep` for each kind of proof in `sweeps`."""

    sweeps: ClassVar[tuple[Sweep, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each kind."""
        if "sweep" in metafunc.fixturenames:
            metafunc.parametrize("sweep", self.sweeps, ids=lambda sweep: sweep.kind.name)

    def test_a_kind_states_its_theorem(self, sweep: Sweep) -> None:
        """In its docstring."""
        assert isinstance(sweep.kind, CertificateKind)
        assert sweep.kind.proves in Label
        assert "Theorem" in (type(sweep.kind).__doc__ or "")
        assert type(sweep.kind).prove.__doc__

    def test_a_kind_refuses_data_that_it_does_not_know(self, sweep: Sweep) -> None:
        """As unreadable, which is not the same as invalid."""
        network = read_onnx(ModelBuilder([1]).relu().build(1))
        asked = read_vnnlib(question([(0, 1)], 1, "(<= Y_0 -1)"), file="p")
        with pytest.raises(UnreadableFile):
            sweep.kind.prove(Problem(network, asked, witness=(Fraction(0),)), {"unheard of": 1})

    def test_the_unchanged_statements_are_true_and_accepted(self, sweep: Sweep) -> None:
        """And a margin that is proven is true as well."""
        assert sweep.statements()
        for base in sweep.statements():
            assert base.truth.certificate.kind == sweep.kind.name
            assert base.truth.label is sweep.kind.proves
            instance, truth = base.instance, base.truth
            assert check(instance, truth, kinds=sweep.kinds).floats is None  # as nothing is claimed there
            proven = prove(instance, truth.certificate, truth.label, truth.witness, kinds=sweep.kinds)
            assert sweep.oracle.is_true(instance, with_margin(truth, proven.real), margin=True) is not False
            assert proven.floats is None or proven.floats <= proven.real

    def test_false_mutants_are_rejected(self, sweep: Sweep) -> None:
        """Hundreds of small changes: no false statement is accepted."""
        tally = sweep.run(MUTANTS, seed=0, least_false=LEAST_FALSE)
        assert tally[FALSE] >= LEAST_FALSE, tally
        assert tally[ACCEPTED] >= LEAST_ACCEPTED, tally
        assert tally[HASH] >= LEAST_FALSE, tally


# The contract of every attack


#: Enough for an obvious counterexample.
SMALL = Budget(restarts=20, steps=20)


class AttackContract:
    """Derive a test class from this one, and list the attacks in `attacks`. It needs torch."""

    attacks: ClassVar[tuple[Attack, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each attack."""
        if "attack" in metafunc.fixturenames:
            metafunc.parametrize("attack", self.attacks, ids=lambda attack: attack.name)

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="torch is not installed")

    def test_it_says_what_it_is(self, attack: Attack) -> None:
        """A name without blanks, and a docstring."""
        assert attack.name
        assert not set(attack.name) & set(" ,=:")
        assert type(attack).__doc__

    def test_it_finds_what_is_plain_to_see(self, attack: Attack) -> None:
        """An affine function is unsafe at a corner; what is found there holds exactly, too."""
        network, question = affine(), at_most(-2.5)
        found = attack(network, question, seed=1, budget=SMALL)
        assert found.least_margin <= 0 < found.broken
        assert found.point.dtype == np.float32
        point = tuple(Fraction(float(x)) for x in found.point)
        assert violation_at(network, question, point).violates

    def test_it_finds_nothing_where_there_is_nothing(self, attack: Attack) -> None:
        """The least value is −3."""
        found = attack(affine(), at_most(-3.5), seed=0, budget=SMALL)
        assert found.broken == 0
        assert found.least_margin >= 0.5 - 1e-6

    def test_the_same_seed_gives_the_same_search(self, attack: Attack) -> None:
        """Every random choice comes from the generator that is passed."""
        first, again = (attack(affine(), at_most(-2.5), seed=3, budget=SMALL) for _ in range(2))
        assert _numbers(first) == _numbers(again)
        assert np.array_equal(first.point, again.point)

    def test_it_keeps_to_its_budget(self, attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
        """Batches have as many points as restarts, and there is at most one more than the steps."""
        for network in (affine(), folded()):
            batches: list[int] = []
            record = Target.record

            def counted(target: Target, points: NDArray[Any], margins: NDArray[Any]) -> None:
                batches.append(len(points))  # noqa: B023
                record(target, points, margins)  # noqa: B023

            with monkeypatch.context() as patch:
                patch.setattr(Target, "record", counted)
                attack(network, at_most(-2.5), seed=0, budget=Budget(restarts=3, steps=4))
            assert set(batches) == {3}
            assert len(batches) <= 5

    def test_it_ends_with_an_exact_counterexample(self, attack: Attack) -> None:
        """A budget in seconds; the attack ends at the first counterexample."""
        network, question = folded(), at_most(-0.9)
        budget = Budget(restarts=20, steps=20, cpu_seconds=30, until_found=True)
        witness = attack(network, question, seed=0, budget=budget).witness
        assert witness is not None
        assert violation_at(network, question, witness).violates


def folded() -> Network:
    """Y_0 = |X_0 + X_1| − 1, by two ReLUs, and Y_1 = 0."""
    hidden = ModelBuilder([2]).affine([[1, 1], [-1, -1]], [0, 0]).relu()
    return read_onnx(hidden.affine([[1, 1], [0, 0]], [-1, 0]).build(2))


def affine() -> Network:
    """Y_0 = X_0 + 2·X_1 and Y_1 = 3·X_0 − X_1 + 1/2."""
    return read_onnx(ModelBuilder([2]).affine([[1, 2], [3, -1]], [0, 0.5]).build(2))


def at_most(bound: float) -> Property:
    """Unsafe where Y_0 <= bound, inputs in [−1, 1]."""
    box = Box((Fraction(-1), Fraction(-1)), (Fraction(1), Fraction(1)))
    unsafe = ((Linear((), ((0, Fraction(1)),), Fraction(bound)),),)
    return Property((Signature("f", "X", (2,), "Y", (2,)),), (Case(box, unsafe),))


def _numbers(found: AttackResult) -> tuple[float, float]:
    return found.least_margin, found.broken


# The contract of every component of a difficulty profile


#: Properties over [−1, 1]² by what is odd about them; the last has no margin.
QUESTIONS = {
    "one constraint": question([(-1, 1)] * 2, 2, "(<= Y_0 Y_1)"),
    "two cases": question([(-1, 1)] * 2, 2, "(or (and (<= Y_0 Y_1) (<= Y_0 0)) (and (>= Y_1 9)))"),
    "one point": question([(0, 0)] * 2, 2, "(<= Y_0 Y_1)"),
    "nothing unsafe": question([(1, -1)] * 2, 2, "(<= Y_0 Y_1)"),
}


class ComponentContract:
    """Derive a test class from this one, and list the components in `components`. It needs torch."""

    components: ClassVar[tuple[Component, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each component."""
        if "component" in metafunc.fixturenames:
            metafunc.parametrize("component", self.components, ids=lambda component: component.name)

    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="torch is not installed")

    def test_a_component_states_its_definition(self, component: Component) -> None:
        """Its name is a key of the profile's file; its docstring is the formula."""
        assert isinstance(component, Component)
        assert component.name.isidentifier()
        assert component.symbol
        assert component.meaning
        assert component.meaning
        assert type(component).__doc__
        assert type(component).measure.__doc__

    @pytest.mark.parametrize("asked", sorted(QUESTIONS))
    def test_it_is_a_number_or_says_why_not(self, component: Component, asked: str) -> None:
        """The same each time; without a margin, no component that depends on it has a value."""
        seen = inspected(asked)
        found = component(seen)
        assert found == component(seen)
        assert found == component(_inspect(asked))
        if found.value is None:
            assert found.note
        else:
            assert math.isfinite(found.value)
        if component.of_margin and seen.no_margin is not None:
            assert found.value is None


def _inspect(asked: str) -> Inspection:
    network = ModelBuilder([2]).affine([[1, 2], [3, -1]], [0, 0.5]).relu().affine([[1, -1], [2, 1]], [1, 0])
    settings = ProfileSettings(samples=50)
    return Inspection(read_onnx(network.build(2)), read_vnnlib(QUESTIONS[asked], file=asked), settings)


@cache
def inspected(asked: str) -> Inspection:
    """A small ReLU network under inspection."""
    return _inspect(asked)


# The contract of every rule set


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


#: The answer of a process tree that we killed, whatever it may have written before.
ENDED = {
    Termination.WALL_LIMIT: Answer.TIMEOUT,
    Termination.CPU_LIMIT: Answer.TIMEOUT,
    Termination.MEMORY_LIMIT: Answer.MEMOUT,
    Termination.SIGNALLED: Answer.ERROR,
    Termination.NOT_STARTED: Answer.ERROR,
}


class VerifierContract:
    """Derive a test class from this one, and list the verifiers in `verifiers`.

    Tests that need the tool itself are skipped if it is not installed.
    """

    verifiers: ClassVar[tuple[Verifier, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each verifier."""
        if "verifier" in metafunc.fixturenames:
            metafunc.parametrize("verifier", self.verifiers, ids=lambda verifier: verifier.name)

    @pytest.fixture
    def query(self, tmp_path: Path) -> Query:
        """A query of which only the paths matter; the property is empty."""
        folder = tmp_path / "private"
        folder.mkdir()
        write_whole(tmp_path / "property.vnnlib", "", what="the property")
        return Query(
            name="instance",
            network_file=tmp_path / "network.onnx",
            property_file=tmp_path / "property.vnnlib",
            folder=folder,
            wall_seconds=5.0,
            memory_bytes=2**30,
        )

    def test_it_says_what_it_is(self, verifier: Verifier) -> None:
        """A name for the command line, its styles, and one sentence on how to get it."""
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", verifier.name)
        assert verifier.styles
        assert all(isinstance(style, CertificateStyle) for style in verifier.styles)
        assert isinstance(verifier.limitations, str)
        assert verifier.how_to_get().strip()
        assert "\n" not in verifier.how_to_get()
        assert type(verifier).__doc__

    def test_its_version_is_a_fact(self, verifier: Verifier) -> None:
        """The same when asked again; if it is not installed, the diagnosis ends with what to do.

        One that is installed is not diagnosed here: that may take long (`dokimos verifiers doctor`).
        """
        version = verifier.version()
        assert version == verifier.version()
        if version is not None:
            assert version.strip()
            return
        *before, last = verifier.diagnose()
        assert all(finding.is_ok for finding in before)
        assert not last.is_ok
        assert last.remedy

    def test_its_command_is_one_for_the_system(self, verifier: Verifier, query: Query) -> None:
        """A list of words, the same each time; making it writes nothing, installed or not."""
        try:
            invocation = verifier.command(query)
        except InputError as error:
            pytest.skip(f"{verifier.name} cannot be called: {error}")
        assert invocation.command
        assert all(isinstance(word, str) for word in invocation.command)
        assert verifier.command(query) == invocation
        assert all(Path(name).name == name for name in invocation.files)
        assert list(query.folder.iterdir()) == []

    @pytest.mark.parametrize("termination", list(ENDED))
    def test_a_tree_that_was_ended_has_no_answer(
        self, verifier: Verifier, query: Query, termination: Termination
    ) -> None:
        """Whatever the result file says."""
        query.result.write_text("unsat\n", encoding="utf-8")
        outcome = Outcome(termination, None, 1.0, 1.0, 1)
        log = query.folder / "log"
        log.write_text("unsat\n", encoding="utf-8")
        assert verifier.answer(outcome, query, log).answer is ENDED[termination]

    @pytest.mark.parametrize("content", [None, b"", b"\xff\xfe garbage", b"{", b"maybe", b"[1, 2]"])
    def test_what_cannot_be_read_is_an_error_and_no_answer(
        self, verifier: Verifier, query: Query, content: bytes | None
    ) -> None:
        """A log that speaks of unsat is no answer either: a crash may say that word."""
        if content is not None:
            query.result.write_bytes(content)
        log = query.folder / "log"
        log.write_text("the result may be unsat, or sat\n", encoding="utf-8")
        given = verifier.answer(Outcome(Termination.EXITED, 0, 1.0, 1.0, 1), query, log)
        assert not given.answer.decides
        assert given.detail

    def test_its_own_attack_can_be_switched_off_or_not(self, verifier: Verifier) -> None:
        """The quiet one is another verifier by name, and has no quieter one."""
        quiet = verifier.without_attack()
        assert (quiet is not None) is verifier.can_switch_attack_off
        if quiet is not None:
            assert quiet.name == verifier.name + NO_ATTACK
            assert quiet.without_attack() is None

    def test_it_can_stay_warm_or_not(self, verifier: Verifier, query: Query) -> None:
        """The warm one is another verifier by name; its command says which words start the process."""
        staying = verifier.warm()
        assert (staying is not None) is verifier.can_stay_warm
        if staying is not None:
            assert staying.name == verifier.name + WARM
            assert staying.warm() is None
            if staying.version() is not None:
                given = staying.command(query)
                assert 0 < given.start_words < len(given.command)
                folder = str(query.folder)
                assert not any(folder in word for word in given.command[: given.start_words])

    def test_it_answers_two_tiny_queries(self, verifier: Verifier) -> None:
        """One is sat and one is not; `unknown` is allowed."""
        if verifier.version() is None:
            pytest.skip(f"{verifier.name} is not installed")
        if not verifier.is_tried_out:
            pytest.skip(f"{verifier.name} has a smoke test of its own, or answers by a script")
        assert [finding.what for finding in try_out(verifier) if not finding.is_ok] == []
