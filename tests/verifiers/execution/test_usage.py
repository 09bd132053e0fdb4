"""What a tree uses is counted by the kernel where there is a control group, and sampled elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dokimos.verifiers.execution.limits import Limits, Termination
from dokimos.verifiers.execution.usage import ControlGroup, GroupUsage, SampledUsage, usage

ROOMY = Limits(wall_seconds=60, memory_bytes=1 << 40)


@dataclass
class Account:
    """What BenchExec would say of a group."""

    cpu: float = 0.0
    peak: int | None = 0
    killed: int = 0
    version: int = 2

    def read_cputime(self) -> float:
        return self.cpu

    def read_max_mem_usage(self) -> int | None:
        return self.peak

    def read_oom_kill_count(self) -> int:
        return self.killed


def grouped(limits: Limits = ROOMY, **account: Any) -> GroupUsage:
    return GroupUsage(limits, ControlGroup(Account(**account)))


def test_the_group_decides_where_there_is_one() -> None:
    assert isinstance(usage(ROOMY, None), SampledUsage)
    assert isinstance(usage(ROOMY, ControlGroup(Account())), GroupUsage)


def test_what_the_kernel_counts_is_believed() -> None:
    assert grouped(cpu=5.0).reached(os.getpid()) is None
    limits = Limits(wall_seconds=60, cpu_seconds=4)
    assert grouped(limits, cpu=5.0).reached(os.getpid()) is Termination.CPU_LIMIT
    assert grouped(limits, cpu=5.0, killed=1).reached(os.getpid()) is Termination.MEMORY_LIMIT
    used = grouped(cpu=5.0, peak=10, killed=1).in_all(cpu_seconds=3.0, largest_bytes=7)
    assert (used.cpu_seconds, used.peak_bytes) == (5.0, 10)
    assert used.is_out_of_memory
    assert used.comes_first
    assert grouped(peak=None).in_all(cpu_seconds=None, largest_bytes=7).peak_bytes == 7


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A child that has taken its memory and some time, and waits."""
    code = "x = bytearray(50_000_000); s = sum(range(10**6)); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_samples_find_members_memory_and_time(child: subprocess.Popen[bytes]) -> None:
    followed = SampledUsage(ROOMY)
    assert followed.reached(os.getpid()) is None
    assert child.pid in [member.pid for member in followed.members]
    assert followed.peak_bytes >= 50_000_000
    assert followed.cpu_seconds > 0


def test_a_sample_may_reach_a_limit(child: subprocess.Popen[bytes]) -> None:
    small = Limits(wall_seconds=60, memory_bytes=40_000_000)
    assert SampledUsage(small).reached(os.getpid()) is Termination.MEMORY_LIMIT
    short = Limits(wall_seconds=60, memory_bytes=1 << 40, cpu_seconds=1e-6)
    assert SampledUsage(short).reached(os.getpid()) is Termination.CPU_LIMIT


def test_a_tree_that_is_gone_uses_nothing(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    followed = SampledUsage(Limits(wall_seconds=60, memory_bytes=1))
    assert followed.reached(child.pid) is None
    assert followed.members == ()


def test_what_samples_missed_is_in_the_systems_account() -> None:
    followed = SampledUsage(Limits(wall_seconds=60, memory_bytes=10), peak_bytes=4, cpu_seconds=1.0)
    used = followed.in_all(cpu_seconds=2.0, largest_bytes=11)
    assert (used.cpu_seconds, used.peak_bytes, used.is_out_of_memory) == (2.0, 11, True)
    assert not used.comes_first
    used = followed.in_all(cpu_seconds=None, largest_bytes=0)
    assert (used.cpu_seconds, used.peak_bytes, used.is_out_of_memory) == (1.0, 4, False)


def test_the_record_says_by_which_means() -> None:
    assert usage(ROOMY, None).means() == "resident memory sampled every 0.05 s"
    limited = usage(Limits(wall_seconds=1, cpu_seconds=1), None).means()
    assert limited.endswith("; CPU time sampled every 0.05 s and by rlimit")
    assert grouped().means() == "memory limited and CPU time counted by a control group (version 2)"
