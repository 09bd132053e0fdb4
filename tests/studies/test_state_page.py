from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from dokimos.campaigns.campaign import Campaign
from dokimos.campaigns.manifest import Machine, Manifest, ManifestInstance, ManifestSuite
from dokimos.campaigns.plan import Tool
from dokimos.judging.judged_campaign import JudgedCampaign
from dokimos.judging.rules import EXACT, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.facts import Facts
from dokimos.suites.instance import Label
from dokimos.verifiers.execution.limits import Limits, Termination
from dokimos_studies.state_page import is_starved, state_page
from tests.reports.sample import VERSIONS, judgement

INSTANCES = ("a", "b", "c")


def marked(judged: Judgement) -> Judgement:
    standing = {Verdict.CORRECT: Standing.CORRECT, Verdict.WRONG_UNSAT: Standing.INCORRECT}
    mark = EXACT.mark(standing.get(judged.verdict, Standing.NONE), judged.reason)
    return replace(judged, marks=(mark,))


def state(*judged: Judgement, suite: str = "quick") -> JudgedCampaign:
    manifest = Manifest(
        created_at="2026-07-01T12:00:00+00:00",
        dokimos_version="0.1.0",
        machine=Machine("Linux", "a processor", 2, 8 << 30, "3.11"),
        suites=(ManifestSuite(suite, f"/cache/{suite}"),),
        instances=tuple(ManifestInstance(suite, name, "f", "0", "1", None) for name in INSTANCES),
        verifiers=tuple(Tool(name, version) for name, version in VERSIONS.items()),
        limits=Limits(wall_seconds=10),
        own_timeouts=False,
        repeat=1,
    )
    records = tuple(j.record for j in judged)
    return JudgedCampaign(Campaign(Path("runs"), manifest, records), tuple(map(marked, judged)), {}, {})


def timeout(instance: str, *, cpu_seconds: float) -> Judgement:
    stopped = judgement(
        instance,
        verdict=Verdict.UNDECIDED,
        answer=Answer.TIMEOUT,
        wall_seconds=10,
        termination=Termination.WALL_LIMIT,
    )
    return replace(stopped, record=replace(stopped.record, cpu_seconds=cpu_seconds))


UNSOUND = judgement(
    "b", verdict=Verdict.WRONG_UNSAT, label=Label.SAT, reason="it answers unsat, but a violation is proven"
)


def cells(page: str, verifier: str) -> list[str]:
    found = re.search(rf"^\| {verifier} \|(.*)\|$", page, re.MULTILINE)
    assert found is not None
    return [cell.strip() for cell in found[1].split("|")]


def test_every_verdict_is_counted_in_its_column() -> None:
    page = state_page(
        [state(judgement("a", verdict=Verdict.CORRECT), UNSOUND, timeout("c", cpu_seconds=9.5))],
        command="make state",
    )
    # solved, wrong, listed apart, unknown, unsupported, timeout, memout, error, starved, exact
    assert cells(page, "marabou") == ["1/3", "1", "0", "0", "0", "1", "0", "0", "0", "-140"]
    assert cells(page, "scripted") == ["0/3", "0", "0", "0", "0", "0", "0", "0", "0", "0"]


def test_what_is_missing_is_said_and_nothing_where_nothing_is() -> None:
    some = state(judgement("a", verdict=Verdict.CORRECT))
    page = state_page([some], command="make state", absent=["ops"])
    assert "Nothing was run on the suite `ops`" in page
    assert "quick: 2 of 3 runs of marabou are missing" in page
    assert "quick: 3 of 3 runs of scripted are missing" in page
    whole = [judgement(i, verifier=v, verdict=Verdict.CORRECT) for i in INSTANCES for v in VERSIONS]
    assert "missing" not in state_page([state(*whole)], command="make state")


def test_a_wrong_answer_is_listed_with_its_reproducer() -> None:
    page = state_page([state(UNSOUND)], command="make state")
    assert "### marabou on quick: 1" in page
    assert "`b`, proven `sat` (witness): **wrong-unsat**. It answers unsat" in page
    assert f"      {UNSOUND.reproduce}" in page.splitlines()
    assert "1 of them is wrong (marabou 1)" in page
    right = state_page([state(judgement("a", verdict=Verdict.CORRECT))], command="make state")
    assert "0 of them are wrong." in right
    assert "## Wrong answers\n\nNone." in right


def test_the_version_of_a_suite_and_when_it_was_run_are_shown() -> None:
    made = state(judgement("a", verdict=Verdict.CORRECT))
    assert "3 instances, 10 s each, run from 2026-" in state_page([made], command="make state")
    manifest = made.campaign.manifest
    (suite,) = manifest.suites
    limits = Limits(wall_seconds=90, cpu_seconds=20)
    named = replace(manifest, suites=(replace(suite, version="59ec69b4"),), limits=limits)
    page = state_page(
        [replace(made, campaign=replace(made.campaign, manifest=named))], command="make state"
    )
    assert "3 instances (version 59ec69b4), 20 s of CPU time each" in page
    assert "wall clock quick 90 s; CPU time quick 20 s" in page


def test_what_was_done_to_the_records_is_told() -> None:
    note = "Two runs were done again."
    assert f"- {note}\n" in state_page([state(UNSOUND)], command="make state", notes=[note])
    assert note not in state_page([state(UNSOUND)], command="make state")


def test_a_timeout_without_a_processor_is_starved() -> None:
    fed, starved = timeout("a", cpu_seconds=9.5), timeout("b", cpu_seconds=2)
    assert not is_starved(fed.record)
    assert is_starved(starved.record)
    assert not is_starved(judgement("c", verdict=Verdict.CORRECT).record)
    page = state_page([state(fed, starved)], command="make state")
    assert cells(page, "marabou")[8] == "1"
    assert "got 57% of a CPU, and 1 of them less than 50%" in page
    assert "shared with other work" in page
    assert "shared with other work" not in state_page([state(fed)], command="make state")


def test_the_suite_of_operators_has_a_matrix() -> None:
    def of(instance: str, label: Label, verdict: Verdict, answer: Answer, verifier: str) -> Judgement:
        found = judgement(instance, verdict=verdict, label=label, answer=answer, verifier=verifier)
        return replace(found, record=replace(found.record, suite="ops", family="ops"))

    runs = [
        of("a", Label.SAT, Verdict.CORRECT, Answer.SAT, "marabou"),
        of("b", Label.UNSAT, Verdict.CORRECT, Answer.UNSAT, "marabou"),
        of("a", Label.SAT, Verdict.WRONG_UNSAT, Answer.UNSAT, "scripted"),
    ]
    known = {("ops", name): Facts("0", "1", 0, {"variant": "exp"}, None) for name in ("a", "b")}
    made = replace(state(*runs, suite="ops"), facts=known)
    page = state_page([made], command="make state")
    # One of two runs of the other is missing: nothing is said of it yet.
    assert "| operator | form | marabou |" in page
    assert "| Exp | exp | both |" in page
    other = of("b", Label.UNSAT, Verdict.UNDECIDED, Answer.ERROR, "scripted")
    whole = replace(state(*runs, other, suite="ops"), facts=known)
    assert "| Exp | exp | both | wrong |" in state_page([whole], command="make state")
    assert "| operator |" not in state_page([state(UNSOUND)], command="make state")


def test_what_cannot_be_read_is_named_without_breaking_the_page() -> None:
    odd = judgement("a", verdict=Verdict.UNDECIDED, answer=Answer.UNSUPPORTED, detail="op\n`Pow` | x" * 30)
    page = state_page([state(odd)], command="make state")
    line = next(line for line in page.splitlines() if "cannot read" in line)
    assert line.startswith("- marabou cannot read: op 'Pow' / x")
    assert len(line) < 130
