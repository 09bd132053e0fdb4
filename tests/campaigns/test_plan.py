from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.campaigns.plan import CampaignSuite, Job, Tool, job_id, plan
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.verifiers.execution.limits import Limits
from tests.scripting import StubInstance

SETTINGS = RunSettings(timeout_seconds=1)
LIMITS = SETTINGS.limits(1)


def stub(name: str, family: str = "a", content: str = "") -> StubInstance:
    return StubInstance(name, family, Path("n"), Path("p"), content or f"n-{name}", "p")


def planned(instances: list[StubInstance], tools: list[Tool], *, repeat: int = 1) -> tuple[Job, ...]:
    return plan([CampaignSuite(Path("s"), tuple(instances))], tools, replace(SETTINGS, repeat=repeat))


ONE = stub("one")
TOOL = Tool("t", "1")


def test_every_part_of_the_identity_counts() -> None:
    ids = [
        job_id(ONE, TOOL, limits=LIMITS, repeat=0),
        job_id(replace(ONE, network_sha256="x"), TOOL, limits=LIMITS, repeat=0),
        job_id(replace(ONE, property_sha256="x"), TOOL, limits=LIMITS, repeat=0),
        job_id(ONE, Tool("u", "1"), limits=LIMITS, repeat=0),
        job_id(ONE, Tool("t", "2"), limits=LIMITS, repeat=0),
        job_id(ONE, TOOL, limits=replace(LIMITS, wall_seconds=2), repeat=0),
        job_id(ONE, TOOL, limits=replace(LIMITS, memory_bytes=2), repeat=0),
        job_id(ONE, TOOL, limits=replace(LIMITS, cpu_seconds=2), repeat=0),
        job_id(ONE, TOOL, limits=LIMITS, repeat=1),
    ]
    assert len(set(ids)) == len(ids)


def test_names_and_places_do_not_count() -> None:
    moved = replace(ONE, name="other", network_path=Path("elsewhere"))
    assert job_id(ONE, TOOL, limits=LIMITS, repeat=0) == job_id(moved, TOOL, limits=LIMITS, repeat=0)


def test_any_prefix_is_a_fair_comparison() -> None:
    instances = [stub(f"{family}{k}", family) for family in "abc" for k in range(4)]
    tools = [Tool("t", "1"), Tool("u", "1")]
    jobs = planned(instances, tools, repeat=2)
    assert len({job.id for job in jobs}) == len(jobs) == 48
    assert [job.repeat for job in jobs] == [0] * 24 + [1] * 24
    for length in range(len(jobs) // 2):
        prefix = jobs[:length]
        by_tool = [sum(job.tool == tool for job in prefix) for tool in tools]
        by_family = [sum(job.instance.family == family for job in prefix) for family in "abc"]
        assert max(by_tool) - min(by_tool) <= 1
        assert max(by_family) - min(by_family) <= 2
    assert [job.tool.name for job in jobs[:4]] == ["t", "u", "u", "t"]


def test_the_same_contents_under_two_names_are_two_jobs() -> None:
    jobs = planned([stub("one", content="same"), stub("two", content="same")], [TOOL])
    assert len({job.id for job in jobs}) == 2


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="instance 'one' is given twice"):
        planned([ONE, ONE], [TOOL])
    with pytest.raises(InputError, match="verifier 't' is given twice"):
        planned([ONE], [TOOL, TOOL])
    with pytest.raises(InputError, match="at least 1, not 0"):
        planned([ONE], [TOOL], repeat=0)
    same = CampaignSuite(Path("a/s"), (ONE,)), CampaignSuite(Path("b/s"), (ONE,))
    with pytest.raises(InputError, match="suite 's' is given twice"):
        plan(same, [TOOL], SETTINGS)


def test_suites_may_share_names_and_contents() -> None:
    two = [CampaignSuite(Path(name), (ONE,)) for name in ("x", "y")]
    jobs = plan(two, [TOOL], SETTINGS)
    assert [job.suite for job in jobs] == ["x", "y"]
    assert jobs[0].id != jobs[1].id
    assert {(j.suite, j.id) for j in plan(two[::-1], [TOOL], SETTINGS)} == {(j.suite, j.id) for j in jobs}


def test_a_suite_is_called_after_its_folder_unless_it_has_a_name() -> None:
    assert CampaignSuite(Path("a/s"), (ONE,)).name == "s"
    assert CampaignSuite(Path("a/s-1234"), (ONE,), name="s").name == "s"


def test_each_instance_may_have_its_own_time() -> None:
    instances = (replace(ONE, timeout_seconds=5.0), replace(stub("two"), timeout_seconds=7.0))
    jobs = plan([CampaignSuite(Path("s"), instances)], [TOOL], RunSettings())
    assert [job.limits.wall_seconds for job in jobs] == [5.0, 7.0]
    assert jobs[0].id == job_id(ONE, TOOL, limits=replace(LIMITS, wall_seconds=5.0), repeat=0)


def test_a_limit_is_the_same_however_it_is_spelt() -> None:
    whole, real = (Limits(wall_seconds=w, cpu_seconds=w) for w in (30, 30.0))
    assert job_id(ONE, TOOL, limits=whole, repeat=0) == job_id(ONE, TOOL, limits=real, repeat=0)
