"""Which ports listen: none of ours, and of a cluster those that the page on scale names, where it says."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import dokimos
from tests.campaigns.clusters import ON_LOOPBACK, Cluster, cluster
from tests.campaigns.test_campaign import saying, suite

pytest.importorskip("distributed")


def listening(processes: list[psutil.Process]) -> set[tuple[str, int]]:
    """Where these processes wait for connections."""
    found = set()
    for process in processes:
        for each in process.net_connections("all"):
            if each.status == psutil.CONN_LISTEN or (each.type == 2 and each.family in (2, 10)):
                found.add((each.laddr.ip, each.laddr.port))
    return found


def family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def seen_while_running(folder: Path, *, dask: str | None) -> set[tuple[str, int]]:
    """What listens while a campaign runs, in its process and all below it."""
    saying(folder, default={"behaviour": "slow", "seconds": 0.4, "label": "unsat"})
    suite(folder, 3)
    code = (
        "from pathlib import Path\nfrom tests.campaigns.test_campaign import *\n"
        f"folder = Path({str(folder)!r})\n"
        f"run(folder, suite(folder, 3), [Scripted(folder / 'script.json')], dask={dask!r})"
    )
    paths = [str(Path(dokimos.__file__).parents[1]), str(Path(__file__).parents[2])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    found: set[tuple[str, int]] = set()
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as process:
        while process.poll() is None:
            try:
                found |= listening(family(psutil.Process(process.pid)))
            except psutil.Error:
                continue
            time.sleep(0.05)
    assert process.returncode == 0
    return found


def test_a_campaign_here_listens_on_no_port(tmp_path: Path) -> None:
    assert seen_while_running(tmp_path, dask=None) == set()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), workers=2) as made:
        yield made


def test_a_campaign_on_a_cluster_listens_on_no_port_itself(two: Cluster, tmp_path: Path) -> None:
    assert seen_while_running(tmp_path, dask=two.address) == set()


def test_a_cluster_started_as_documented_listens_on_loopback_alone(two: Cluster) -> None:
    """Each has a port for its protocol and one for its web server, and none on other interfaces."""
    found = listening(family(psutil.Process(two.nursery.pid)))
    assert ("127.0.0.1", int(two.address.rpartition(":")[2])) in found
    assert {place for place, _ in found} == {"127.0.0.1"}
    assert len(found) == 2 * 3


def test_the_page_has_the_words_that_keep_a_cluster_on_loopback() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "scale.md").read_text()
    assert f"dask scheduler {' '.join(ON_LOOPBACK)}" in page
    assert f"dask worker tcp://127.0.0.1:8786 --nthreads 1 {' '.join(ON_LOOPBACK)}" in page


def test_the_listening_that_is_looked_for_is_seen() -> None:
    import socket

    with socket.socket() as ours:
        ours.bind(("127.0.0.1", 0))
        ours.listen()
        assert ("127.0.0.1", ours.getsockname()[1]) in listening([psutil.Process()])
