"""A worker that is cut off from the network and comes back costs nothing but time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaigns.partitioned import INSTANCES

pytest.importorskip("distributed")
ROOT = Path(__file__).parents[2]
SHUT_IN = ("unshare", "--user", "--map-root-user", "--net", "--mount")


def can_be_shut_in() -> bool:
    """Whether we can make network namespaces and cables between them."""
    if not all(map(shutil.which, ("unshare", "ip", "mount"))):
        return False
    trial = "mount -t tmpfs tmpfs /run && ip netns add x && ip link add one type veth peer name two netns x"
    return subprocess.run([*SHUT_IN, "sh", "-c", trial], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(("times", "seconds"), [(1, 0.5), (2, 6), (1, 20)])
def test_a_worker_that_was_cut_off_and_is_back_leaves_the_same_count(
    tmp_path: Path, times: int, seconds: float
) -> None:
    """For less than Dask waits, for longer, and for so long that its connection is closed."""
    if not can_be_shut_in():
        pytest.skip("this system lets us make no network namespaces")
    command = [sys.executable, "-m", "tests.campaigns.partitioned", str(tmp_path), str(times), str(seconds)]
    done = subprocess.run(
        [*SHUT_IN, *command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["recorded"] == sorted(f"i{k}" for k in range(INSTANCES))
    assert found["lines"] == INSTANCES
    assert found["answers"] == ["unsat"]
    assert found["cuts"] == times
    assert found["executions"] >= INSTANCES
