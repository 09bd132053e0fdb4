"""The rule sets give the classes and penalties that the organisers of the competition gave.

The tables lie beside the project, or these tests have nothing to compare with. All rows are compared under
`slow`; by default one of each kind, and every odd one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import pytest

from dokimos.judging.judge import judge
from dokimos.judging.marks import WitnessClass, classify_witness, marks_of
from dokimos.judging.rules import RULE_SETS, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.judging.witness_replay import replay_witness
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Certificate, Claim, Label, Semantics, Truth
from tests.judging.published import NOT_SCORED, PublishedInstance, instance_of, rows, runs_of

RULES = {"small": "vnncomp2025-small", "zero": "vnncomp2025-zero", "rule2026": "vnncomp2026"}
#: Published `unsat` where the rule gives `sat`: one witness meets the limit on its own outputs by rounding
#: alone (a relative error of 9.6e-7 against 1e-6; exactly 0 against 0). No penalty depends on it.
RESULT_DIFFERS = {
    ("small", "dist_shift_2023", 24),
    ("zero", "dist_shift_2023", 15),
    ("zero", "dist_shift_2023", 46),
    ("zero", "dist_shift_2023", 69),
}

SAT = Truth(Label.SAT, {Semantics.REAL: Claim(proven=True)}, Certificate("witness"), "", "")

needs_results = pytest.mark.skipif(not rows("official"), reason="the published results are not here")


def differing(official: Sequence[Mapping[str, str]]) -> list[str]:
    """The rows whose class we do not reproduce."""
    found = []
    for row in official:
        instance = instance_of(row)
        run = instance.run(row["tool"], Answer.SAT)
        for column, name in RULES.items():
            classified = classify_witness(RULE_SETS[name], instance.referee, run)
            if classified.kind.value != row[column]:
                found.append(f"{instance} {row['tool']} {name}: {row[column]}, not {classified}")
    return found


def is_odd(row: Mapping[str, str]) -> bool:
    return bool({row[c] for c in RULES} & {"exec_doesnt_match", "spec_not_violated"})


@needs_results
def test_each_kind_of_witness_gets_the_class_of_the_organisers() -> None:
    official = rows("official")
    kinds = {(row["category"], *(row[c] for c in RULES)): row for row in official}
    assert len(kinds) == 29
    assert differing([*kinds.values(), *filter(is_odd, official)]) == []


@needs_results
@pytest.mark.slow
def test_every_witness_gets_the_class_of_the_organisers() -> None:
    official = rows("official")
    assert len(official) == 1018
    assert differing(official) == []


Cell = tuple[str, str, int]
"""A row of the published table: a rule, a category, and an index there."""


def compared(chosen: Iterator[Cell]) -> tuple[set[Cell], set[Cell]]:
    """Where penalties differ from those published, and where the result does."""
    instances = {(r["category"], int(r["instance_index"])): instance_of(r) for r in rows("instances")}
    published: dict[Cell, dict[str, bool]] = defaultdict(dict)
    results: dict[Cell, str] = {}
    for row in rows("penalties"):
        cell = (row["rule"], row["category"], int(row["instance_index"]))
        published[cell][row["tool"]] = row["penalty"] == "1"
        results[cell] = row["result"]
    penalties: set[Cell] = set()
    others: set[Cell] = set()
    for cell in chosen:
        rule, *place = cell
        given, result = scored(rule, instances[place[0], place[1]], iter(published[cell]))
        if given != published[cell]:
            penalties.add(cell)
        if result != results[cell]:
            others.add(cell)
    return penalties, others


def scored(rule: str, instance: PublishedInstance, tools: Iterator[str]) -> tuple[dict[str, bool], str]:
    """Who is penalised for their answer, and the result that the answers establish."""
    rules = RULE_SETS[RULES[rule]]
    runs = runs_of(instance, tools)
    judged = [Judgement(run, None, None, Verdict.UNLABELLED, "", None, "") for run in runs]
    marks = marks_of(rules, instance.referee, judged)
    penalties = {
        run.verifier: mark.standing is Standing.INCORRECT for run, mark in zip(runs, marks, strict=True)
    }
    assert NOT_SCORED not in penalties
    witnesses = [
        classify_witness(rules, instance.referee, run).kind for run in runs if run.answer is Answer.SAT
    ]
    decided = "unsat" if any(run.answer.decides for run in runs) else "?"
    return penalties, "sat" if WitnessClass.CORRECT in witnesses else decided


def cells() -> list[tuple[Cell, bool]]:
    """Every row of the published table, and whether somebody is penalised there."""
    found: dict[Cell, bool] = {}
    for row in rows("penalties"):
        cell = (row["rule"], row["category"], int(row["instance_index"]))
        found[cell] = found.get(cell, False) or row["penalty"] == "1"
    return list(found.items())


@needs_results
def test_penalties_are_those_published() -> None:
    odd = {cell for cell, is_penalised in cells() if is_penalised} | RESULT_DIFFERS
    quiet = {cell[:2]: cell for cell, is_penalised in cells() if not is_penalised}
    assert compared(iter(odd | set(quiet.values()))) == (set(), RESULT_DIFFERS)


@needs_results
@pytest.mark.slow
def test_all_penalties_are_those_published() -> None:
    assert compared(cell for cell, _ in cells()) == (set(), RESULT_DIFFERS)


@needs_results
def test_most_published_witnesses_leave_the_box_by_a_rounding_and_none_is_held_against_its_tool() -> None:
    found = []
    for row in rows("official"):
        if (row["category"], row["tool"]) == ("safenlp_2024", "pyrat"):
            instance = instance_of(row)
            run = instance.run(row["tool"], Answer.SAT)
            replays = replay_witness(instance.question, run.witness or ())
            found.append(judge(run, truth=SAT, replays=replays, reproduce="").verdict)
    assert Counter(found) == {Verdict.CLIPPED: 38, Verdict.CORRECT: 12}
