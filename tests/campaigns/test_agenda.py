"""Which job comes next: followers after a `sat`, and what fits into a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.campaigns.campaign import Campaign, run_campaign
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.manifest import read_manifest
from dokimos.campaigns.plan import Agenda, CampaignSuite, Job, Tool, plan
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.suites.instance import Answer
from dokimos.verifiers.adapters.built_in import Scripted
from tests.difficulty.explain.sample import record
from tests.scripting import StubInstance, at_least, instance, script

LIMIT = 10.0
LOUD, QUIET = Tool("mine", "1"), Tool("mine:no-attack", "1")


def jobs(count: int, tools: Sequence[Tool]) -> tuple[Job, ...]:
    found = [StubInstance(f"i{k}", "ab"[k % 2], Path("n"), Path("p"), f"n{k}", "p") for k in range(count)]
    settings = RunSettings(timeout_seconds=LIMIT)
    return plan([CampaignSuite(Path("s"), tuple(found))], tools, settings, in_given_order=True)


def ended(job: Job, seconds: float = 1.0, answer: Answer = Answer.UNSAT) -> RunRecord:
    made = record(job.instance.name, answer, verifier=job.tool.name, seconds=seconds, suite=job.suite)
    return replace(made, job=job.id, repeat=job.repeat)


def both(count: int) -> tuple[tuple[Job, ...], dict[str, Job]]:
    planned = jobs(count, [LOUD, QUIET])
    loud = tuple(job for job in planned if job.tool == LOUD)
    quiet = {job.instance.name: job for job in planned if job.tool == QUIET}
    return loud, {job.id: quiet[job.instance.name] for job in loud}


def run_all(agenda: Agenda, times: Mapping[str, tuple[float, Answer]], jobs_at_a_time: int) -> list[str]:
    """Give out all jobs, so many at a time; the first begun ends first. Returns ids in order."""
    under_way: list[Job] = []
    order = []
    while True:
        while len(under_way) < jobs_at_a_time and (job := agenda.next()) is not None:
            under_way.append(job)
            order.append(job.id)
        if not under_way:
            return order
        job = under_way.pop(0)
        agenda.ended(ended(job, *times[job.id]))


def test_a_sat_is_followed_by_the_same_question_without_the_attack() -> None:
    loud, follower = both(3)
    agenda = Agenda(loud, follower=follower, records={})
    said = {job.id: (1.0, Answer.UNSAT) for job in follower.values()}
    said |= {job.id: (1.0, Answer.SAT if k == 1 else Answer.UNSAT) for k, job in enumerate(loud)}
    assert agenda.total == 3
    order = run_all(agenda, said, 1)
    assert order == [loud[0].id, loud[1].id, follower[loud[1].id].id, loud[2].id]
    assert (agenda.total, agenda.due, agenda.given) == (4, set(order), set(order))


def test_what_is_recorded_is_not_given_out_but_its_follower_is() -> None:
    loud, follower = both(2)
    done = {loud[0].id: ended(loud[0], answer=Answer.SAT), loud[1].id: ended(loud[1])}
    agenda = Agenda(loud, follower=follower, records=done)
    assert (agenda.recorded, agenda.total) == (2, 3)
    left = follower[loud[0].id]
    assert run_all(agenda, {left.id: (1.0, Answer.UNSAT)}, 1) == [left.id]
    assert agenda.due == {loud[0].id, loud[1].id, left.id}


def test_time_used_counts_not_limits() -> None:
    planned = jobs(50, [LOUD])
    agenda = Agenda(planned, follower={}, records={}, room_seconds=30)
    assert len(run_all(agenda, {job.id: (0.5, Answer.UNSAT) for job in planned}, 1)) == 41
    slow = Agenda(planned, follower={}, records={}, room_seconds=30)
    assert len(run_all(slow, {job.id: (10.0, Answer.TIMEOUT) for job in planned}, 1)) == 3


@given(
    times=st.lists(st.tuples(st.floats(0.1, LIMIT), st.booleans()), min_size=8, max_size=8),
    room=st.floats(2 * LIMIT, 12 * LIMIT),
    at_a_time=st.integers(1, 4),
)
def test_the_budget_is_kept_and_the_number_of_jobs_decides_nothing(
    times: list[tuple[float, bool]], room: float, at_a_time: int
) -> None:
    loud, follower = both(len(times))
    said: dict[str, tuple[float, Answer]] = {}
    for job, (seconds, is_sat) in zip(loud, times, strict=True):
        said[job.id] = (seconds, Answer.SAT if is_sat else Answer.UNSAT)
        said[follower[job.id].id] = (seconds, Answer.UNSAT)
    one, several = (Agenda(loud, follower=follower, records={}, room_seconds=room) for _ in range(2))
    order = run_all(one, said, 1)
    assert sum(said[job][0] for job in order) <= room
    assert set(run_all(several, said, at_a_time)) == set(order)
    first = [job.id for job in loud if job.id in one.due]
    assert first == [job.id for job in loud[: len(first)]]
    if len(first) < len(loud):
        assert sum(said[job][0] for job in order) + 2 * LIMIT > room
    sat = {job.id for job in loud if job.id in one.due and said[job.id][1] is Answer.SAT}
    assert one.due == set(first) | {follower[job].id for job in sat}


def test_each_verifier_has_the_whole_budget() -> None:
    slow = Tool("slow", "1")
    planned = jobs(6, [LOUD, slow])
    agenda = Agenda(planned, follower={}, records={}, room_seconds=30)
    said = {job.id: (1.0 if job.tool == LOUD else 10.0, Answer.UNSAT) for job in planned}
    ran = set(run_all(agenda, said, 1))
    assert {
        tool.name: sum(job.tool == tool and job.id in ran for job in planned) for tool in (LOUD, slow)
    } == {
        "mine": 6,
        "slow": 3,
    }


class Switchable(Scripted):
    """Follows another script when its attack is off."""

    attack_off = ("--quiet",)

    @property
    def script(self) -> Path | None:
        given = super().script
        return given if self.attacks or given is None else given.with_name("quiet.json")


@pytest.mark.parametrize("budget", [None, 30.0])
def test_a_campaign_with_followers_is_complete_and_says_how_many_runs_there_are(
    tmp_path: Path, budget: float | None
) -> None:
    """Interrupted or not: the same call runs nothing twice, and the manifest counts what was to run."""
    instances = [
        instance(tmp_path / "suite", f"i{k}", asked=at_least(f"{k}.5"), family="ab"[k % 2])
        for k in range(4)
    ]
    says = {"behaviour": "says", "answer": "unsat"}
    found = {"behaviour": "says", "answer": "sat"}
    loud = Switchable(
        script(
            tmp_path / "loud.json", default=says, instances={"i1": found}, executions=str(tmp_path / "r")
        )
    )
    script(tmp_path / "quiet.json", default=says, executions=str(tmp_path / "r"))
    quiet = loud.without_attack()
    assert quiet is not None

    def run() -> Campaign:
        return run_campaign(
            [CampaignSuite(tmp_path / "suite", tuple(instances))],
            [loud],
            following={loud.name: quiet},
            budget_seconds=budget,
            settings=RunSettings(timeout_seconds=10),
            out=tmp_path / "out",
        )

    campaign = run()
    ran = sorted((one.verifier, one.instance) for one in campaign.records)
    assert ran == [*(("scripted", f"i{k}") for k in range(4)), ("scripted:no-attack", "i1")]
    assert campaign.planned == len(campaign.records) == 5
    assert read_manifest(tmp_path / "out" / "manifest.json").runs["scripted:no-attack"] == 1
    run()
    assert len((tmp_path / "r").read_text().split()) == 5
    if budget is None:
        with pytest.raises(InputError, match="at least one instance"):
            run_campaign([], [loud], settings=RunSettings(), out=tmp_path / "none")
