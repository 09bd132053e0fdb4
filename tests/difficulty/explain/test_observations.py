from __future__ import annotations

import math
from dataclasses import replace

import pytest

from dokimos.campaigns.journal import RunRecord
from dokimos.difficulty.explain.rows import EXPLAINING, Observation, Status, observe, status_of
from dokimos.judging.verdicts import Judgement, Naming, Verdict
from dokimos.suites.facts import Facts
from dokimos.suites.instance import Answer, Label
from dokimos.verifiers.base import CertificateStyle
from dokimos.verifiers.execution.limits import Termination
from tests.difficulty.explain.sample import Made, profile_of, record

FACTS = Facts("n", "p", 3, {"pairs": 2, "disguise": ["noop"], "odd": True}, None, "there is no profile")


def judged(verdict: Verdict, run: RunRecord) -> Judgement:
    return Judgement(run, Label.UNSAT, "stub", verdict, "", None, "")


def observed(*judgements: Judgement, facts: Facts = FACTS) -> tuple[Observation, ...]:
    keys = {(j.record.suite, j.record.instance) for j in judgements}
    return observe(judgements, dict.fromkeys(keys, facts), Naming.of([j.record for j in judgements]))


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.UNDECIDED])
def test_an_answer_is_solved_unless_it_is_wrong_or_nobody_checked_it(verdict: Verdict) -> None:
    checked = Status.UNCHECKED if verdict is Verdict.UNLABELLED else Status.SOLVED
    expected = Status.WRONG if verdict.is_wrong else checked
    assert status_of(judged(verdict, record("i", Answer.SAT))) is expected


@pytest.mark.parametrize(
    ("answer", "termination", "seconds", "expected"),
    [
        (Answer.TIMEOUT, Termination.EXITED, 1.0, Status.TIMEOUT),
        (Answer.UNSAT, Termination.WALL_LIMIT, 10.0, Status.TIMEOUT),
        (Answer.ERROR, Termination.CPU_LIMIT, 10.0, Status.TIMEOUT),
        (Answer.MEMOUT, Termination.MEMORY_LIMIT, 1.0, Status.MEMOUT),
        (Answer.MEMOUT, Termination.EXITED, 1.0, Status.MEMOUT),
        (Answer.UNKNOWN, Termination.EXITED, 1.0, Status.UNKNOWN),
        (Answer.UNKNOWN, Termination.EXITED, 9.6, Status.TIMEOUT),
        (Answer.ERROR, Termination.EXITED, 9.9, Status.FAILED),
        (Answer.UNSUPPORTED, Termination.EXITED, 1.0, Status.FAILED),
        (Answer.UNSAT, Termination.SIGNALLED, 1.0, Status.FAILED),
    ],
)
def test_what_is_undecided_is_told_apart(
    answer: Answer, termination: Termination, seconds: float, expected: Status
) -> None:
    run = record("i", answer, seconds=seconds, termination=termination)
    assert status_of(judged(Verdict.UNDECIDED, run)) is expected


def test_an_unknown_without_limits_stays_unknown() -> None:
    run = record("i", Answer.UNKNOWN, seconds=1e9, limits=None)
    assert status_of(judged(Verdict.UNDECIDED, run)) is Status.UNKNOWN


def test_repeats_are_one_observation() -> None:
    runs = [
        judged(Verdict.CORRECT, record("i", Answer.UNSAT, repeat=0, seconds=1)),
        judged(Verdict.UNDECIDED, record("i", Answer.TIMEOUT, repeat=1, seconds=10)),
        judged(Verdict.CORRECT, record("i", Answer.UNSAT, repeat=2, seconds=3)),
    ]
    (found,) = observed(*runs)
    assert (found.status, found.seconds, found.repeats) == (Status.SOLVED, 2.0, 3)
    (tied,) = observed(*runs[:2])
    assert (tied.status, tied.seconds) == (Status.TIMEOUT, 10.0)
    (wrong,) = observed(*runs, judged(Verdict.WRONG_SAT, record("i", Answer.SAT, repeat=3, seconds=7)))
    assert (wrong.status, wrong.seconds) == (Status.WRONG, 7.0)


def test_an_observation_knows_its_instance() -> None:
    made = Made("i", components={"unstable": 0.5})
    facts = replace(FACTS, profile=profile_of(made))
    (found,) = observed(judged(Verdict.CORRECT, record("i", Answer.UNSAT)), facts=facts)
    assert dict(found.knobs) == {"pairs": 2.0}
    assert "disguise" in found.variant and "odd" in found.variant
    assert found.components["unstable"] == 0.5
    assert found.components["margin"] is None
    assert dict(found.extras) == {"parameters": 7.0}
    assert (found.position, found.label, found.styles) == (3, "unsat", (CertificateStyle.SAT,))


def test_versions_of_a_verifier_are_kept_apart() -> None:
    new = record("i", Answer.UNSAT, verifier_version="2", job="other")
    found = observed(judged(Verdict.CORRECT, record("i", Answer.UNSAT)), judged(Verdict.CORRECT, new))
    assert [o.verifier for o in found] == ["marabou 1", "marabou 2"]
    assert {o.styles for o in found} == {(CertificateStyle.SAT,)}


def test_an_observation_has_everything_that_may_explain_it() -> None:
    given = {"unstable": 0.5, "attacked_margin": -1.0, "crown_gap": 3.0}
    made = Made("i", components=given, infinite=("ibp_gap",))
    facts = replace(FACTS, profile=profile_of(made), seed=4, proven_margin=0.25)
    (found,) = observed(judged(Verdict.CORRECT, record("i", Answer.UNSAT)), facts=facts)
    assert {name: found.components[name] for name in EXPLAINING[-3:]} == {
        "attacked_margin": -1.0,
        "crown_gap": 3.0,
        "proven_margin": 0.25,
    }
    assert found.components["ibp_gap"] == math.inf, "an infinite gap is known, and the largest"
    assert found.components["margin"] is None, "what does not apply is not known"
    assert dict(found.extras) == {"parameters": 7.0}
    assert (found.network_sha256, found.seed) == ("n", 4)
