from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.campaigns.plan import Tool, job_id, plan
from dokimos.errors import InputError
from dokimos.execution.limits import Limits
from tests.scripting import StubInstance

LIMITS = Limits(wall_seconds=1)


def stub(name: str, family: str = "a", content: str = "") -> StubInstance:
    return StubInstance(name, family, Path("n"), Path("p"), content or f"n-{name}", "p")


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
        job_id(ONE, TOOL, limits=LIMITS, repeat=1),
    ]
    assert len(set(ids)) == len(ids)


def test_names_and_places_do_not_count() -> None:
    moved = replace(ONE, name="other", network_path=Path("elsewhere"))
    assert job_id(ONE, TOOL, limits=LIMITS, repeat=0) == job_id(moved, TOOL, limits=LIMITS, repeat=0)


def test_any_prefix_is_a_fair_comparison() -> None:
    instances = [stub(f"{family}{k}", family) for family in "abc" for k in range(4)]
    tools = [Tool("t", "1"), Tool("u", "1")]
    jobs = plan(instances, tools, limits=LIMITS, repeat=2)
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
    jobs = plan([stub("one", content="same"), stub("two", content="same")], [TOOL], limits=LIMITS, repeat=1)
    assert len({job.id for job in jobs}) == 2


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match="instance 'one' is there twice"):
        plan([ONE, ONE], [TOOL], limits=LIMITS, repeat=1)
    with pytest.raises(InputError, match="verifier 't' is there twice"):
        plan([ONE], [TOOL, TOOL], limits=LIMITS, repeat=1)
    with pytest.raises(InputError, match="at least 1, not 0"):
        plan([ONE], [TOOL], limits=LIMITS, repeat=0)
