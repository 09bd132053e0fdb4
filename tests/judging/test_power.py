"""How many instances tested a tool's proofs, with its attack on and off."""

from __future__ import annotations

from dataclasses import replace

from dokimos.judging.power import Power, power_of
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.instance import Answer, Label
from tests.difficulty.explain.sample import record

QUIET = "mine:no-attack"


def run(
    instance: str,
    answer: Answer,
    verdict: Verdict = Verdict.CORRECT,
    *,
    verifier: str = "mine",
    label: Label = Label.SAT,
) -> Judgement:
    made = record(instance, answer, verifier=verifier, suite="quick")
    return Judgement(made, label, "witness", verdict, "because", None, "again")


FOUND = [run(f"f{k}", Answer.SAT) for k in range(3)]
REST = [
    run("missed", Answer.UNSAT, Verdict.WRONG_UNSAT),
    run("late", Answer.TIMEOUT, Verdict.UNDECIDED),
    run("unread", Answer.UNSUPPORTED, Verdict.UNDECIDED),
    run("crash", Answer.ERROR, Verdict.UNDECIDED),
    run("holds", Answer.UNSAT, label=Label.UNSAT),
]


def test_what_the_attack_finds_tests_no_proof() -> None:
    (found,) = power_of([*FOUND, *REST])
    assert found == Power("mine", 7, 3, 2, 2, late=1)
    assert found.in_words == (
        "mine: 3 of 7 counterexamples found by its own attack and 2 not answered: 2 instances tested its "
        "proofs (1 until its time was up); it was not asked with its attack off."
    )


def test_without_the_attack_they_do() -> None:
    quiet = [replace(one, record=replace(one.record, verifier=QUIET)) for one in FOUND]
    quiet[0] = run("f0", Answer.ERROR, Verdict.UNDECIDED, verifier=QUIET)
    (found,) = power_of([*FOUND, *REST, *quiet])
    assert (found.tested, found.tested_without_attack) == (2, 4)
    assert found.in_words.endswith(
        "2 instances tested its proofs (1 until its time was up); with the attack off, 4 did."
    )


def test_a_sat_that_is_wrong_is_not_found() -> None:
    (found,) = power_of([run("a", Answer.SAT, Verdict.BAD_WITNESS), run("b", Answer.SAT)])
    assert (found.counterexamples, found.found, found.tested) == (2, 1, 1)


def test_of_several_repetitions_one_that_finds_it_counts() -> None:
    (found,) = power_of([run("a", Answer.TIMEOUT, Verdict.UNDECIDED), run("a", Answer.SAT)])
    assert (found.counterexamples, found.found, found.tested) == (1, 1, 0)


def test_asked_without_its_attack_alone_everything_tests_its_proofs() -> None:
    (found,) = power_of([run("a", Answer.SAT, verifier=QUIET)])
    assert found.in_words == f"{QUIET}: its attack was off; 1 instance tested its proofs."


def test_without_counterexamples_there_is_nothing_to_say() -> None:
    assert power_of([run("holds", Answer.UNSAT, label=Label.UNSAT)]) == ()
