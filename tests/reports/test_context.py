from __future__ import annotations

from dataclasses import replace

from tests.reports.sample import CAMPAIGN, CONTEXT


def test_what_is_missing_is_said_in_a_sentence() -> None:
    assert CONTEXT.missing_in_short == "5 of 80 runs are missing."
    assert CONTEXT.missing == ("The same `dokimos run` command continues with the missing runs.",)
    assert replace(CONTEXT, campaigns=(replace(CAMPAIGN, recorded=80),)).missing == ()
    two = replace(CONTEXT, campaigns=(CAMPAIGN, replace(CAMPAIGN, folder="runs/august", recorded=80)))
    assert two.missing == (
        "runs/july: 5 of 80 runs are missing; its `dokimos run` command continues with them.",
    )
    assert two.missing_in_short == "5 of 160 runs are missing."
    whole = replace(CONTEXT, campaigns=(replace(CAMPAIGN, recorded=80),))
    assert whole.missing_in_short == ""
    one = replace(CONTEXT, campaigns=(replace(CAMPAIGN, recorded=0, planned=1),))
    assert one.missing_in_short == "1 of 1 run is missing."


def test_several_campaigns_say_each_thing_once() -> None:
    longer = replace(
        CAMPAIGN,
        suites=("quick", "ladder"),
        machine="",
        wall_seconds=60,
        memory_bytes=2_000_000_000,
        cpu_seconds=50,
        own_timeouts=True,
    )
    both = replace(CONTEXT, campaigns=(CAMPAIGN, longer))
    assert both.suites == ("quick", "ladder")
    assert both.verifiers == ("marabou 2.0.0", "scripted 0.1.0")
    assert both.machines == ("x86_64, 2 cores, 8 GB, Linux 6.1", "not recorded")
    assert both.limits == (
        "10 s, 4000 MB",
        "the suite’s own, up to 60 s, 50 s of CPU time, 2000 MB",
    )
    assert (CONTEXT.wall_seconds, both.wall_seconds) == (10.0, None)
