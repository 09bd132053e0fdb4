"""The same campaign on three real worker processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dokimos
from dokimos.campaigns import cluster as under_test
from dokimos.campaigns.campaign import Campaign, Progress, _Runner, read_campaign, run_campaign
from dokimos.campaigns.job import perform
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import Agenda, CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.suites.instance import Label
from dokimos.verifiers.adapters.built_in import Scripted
from dokimos.verifiers.catalogue import find
from dokimos.verifiers.execution.limits import Termination
from tests.campaigns.clusters import Cluster, cluster
from tests.scripting import StubInstance, at_least, following, instance, script, with_settings

pytest.importorskip("distributed")
pytestmark = [
    # Dask warns of its own: of sockets that it leaves to the collector, of what it deprecates in itself.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
COUNT = 12


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), workers=3) as made:
        yield made


def stubs(folder: Path) -> tuple[StubInstance, ...]:
    return tuple(
        instance(folder / "suite", f"i{k}", asked=at_least(f"{k}.5"), family="ab"[k % 2])
        for k in range(COUNT)
    )


def verifier(folder: Path, seconds: float = 0.0) -> Scripted:
    answers: dict[str, Any] = {
        f"i{k}": {"behaviour": "slow", "seconds": seconds, "label": "unsat"} for k in range(COUNT)
    }
    if not seconds:
        answers |= {
            "i1": {"behaviour": "crash"},
            "i2": {"behaviour": "says", "answer": "sat", "witness": ["1/3"], "outputs": ["2"]},
            "i3": {"behaviour": "says", "answer": "sat", "witness": ["0.25", "1e-3"], "outputs": ["2"]},
            "i4": {"behaviour": "garbage"},
        }
    started = str(folder / "runs")
    return Scripted(script(folder / "script.json", instances=answers, executions=started))


def on(cluster: Cluster) -> RunSettings:
    return RunSettings(timeout_seconds=30, dask=cluster.address)


def run(folder: Path, out: str, address: str | None, *, seconds: float = 0.0, **rest: Any) -> Campaign:
    suites = [CampaignSuite(folder / "suite", stubs(folder))]
    options = {"out": folder / out, "dask": address, **rest}
    return run_campaign(suites, [verifier(folder, seconds)], **with_settings(options))


def without_measurements(record: RunRecord) -> RunRecord:
    return replace(record, wall_seconds=0.0, cpu_seconds=0.0, peak_memory_bytes=0, started_at="")


def by_job(campaign: Campaign) -> dict[str, RunRecord]:
    return {record.job: without_measurements(record) for record in campaign.records}


def test_the_results_are_those_of_a_local_run(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    read = under_test.planned_content

    def counted(path: Path, sha: str) -> bytes:
        sent.append(sha)
        return read(path, sha)

    monkeypatch.setattr(under_test, "planned_content", counted)
    here, there = run(tmp_path, "here", None, jobs=2), run(tmp_path, "there", three.address)
    assert by_job(here) == by_job(there)
    assert len(here.records) == COUNT
    for record in here.records:
        logs = [(tmp_path / out / record.log).read_bytes() for out in ("here", "there")]
        assert logs[0] == logs[1]
    # One network for all, and each property once.
    assert sorted(sent) == sorted(
        {sha for i in stubs(tmp_path) for sha in (i.network_sha256, i.property_sha256)}
    )
    journal = (tmp_path / "there" / "journal.jsonl").read_text()
    assert journal.count('"worker": "tcp://') == COUNT
    assert run(tmp_path, "there", "tcp://127.0.0.1:1").records == there.records


def test_a_lost_workers_runs_are_done_again_elsewhere(three: Cluster, tmp_path: Path) -> None:
    killed, lost = [], set[str]()

    def kill(progress: Progress) -> None:
        if progress.done == 3:
            # One that has done a run, and is at the next.
            lines = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
            events = [json.loads(line) for line in lines]
            killed.append(next(event["worker"] for event in events if "worker" in event))
            lost.update(key for key in three.kill(killed[0]) if key.startswith("dokimos-run-"))

    campaign = run(tmp_path, "out", three.address, seconds=0.3, progress=kill)
    three.add_worker()
    assert killed
    assert sorted(r.instance for r in campaign.records) == sorted(f"i{k}" for k in range(COUNT))
    assert {r.answer.value for r in campaign.records} == {"unsat"}
    started = (tmp_path / "runs").read_text().split()
    # The killed worker was in the middle of at most one run, and on a busy machine it may have held results
    # that were not fetched yet; nothing else is done twice.
    assert COUNT <= len(started) <= COUNT + 1 + len(lost)
    assert max(started.count(name) for name in started) <= 2
    assert read_campaign(tmp_path / "out").records == campaign.records


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_campaign_ends_its_runs_and_goes_on(
    three: Cluster, tmp_path: Path, number: int
) -> None:
    pids = tmp_path / "pids"
    stubs(tmp_path)
    hang = {"behaviour": "hang", "detached": True, "pids": str(pids)}
    script(tmp_path / "script.json", default=hang)
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.campaigns.test_cluster import *\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "suites = [CampaignSuite(folder / 'suite', stubs(folder))]\n"
        "hanging = Scripted(folder / 'script.json')\n"
        f"settings = RunSettings(timeout_seconds=30, dask={three.address!r})\n"
        "run_campaign(suites, [hanging], out=folder / 'out', settings=settings)"
    )
    paths = [str(Path(dokimos.__file__).parents[1]), str(Path(__file__).parents[2])]
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not pids.exists() or len(pids.read_text().split()) < 6):
        time.sleep(0.02)
    verifiers = [int(line) for line in pids.read_text().split()]
    assert len(following(tmp_path / "script.json")) >= 6
    process.send_signal(number)
    process.wait(timeout=30)
    while following(tmp_path / "script.json") and time.monotonic() < deadline:
        time.sleep(0.05)
    # They would have gone on for half a minute; and nothing that was waiting has been begun.
    assert following(tmp_path / "script.json") == []
    assert len(pids.read_text().split()) == len(verifiers)


def test_what_is_wrong_with_a_cluster_is_one_sentence(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "_CONNECTING_SECONDS", 1)
    with pytest.raises(InputError, match=r"No Dask scheduler answers at tcp://127.0.0.1:1; check"):
        run(tmp_path, "a", "tcp://127.0.0.1:1")
    with pytest.raises(InputError, match="No Dask scheduler answers at nonsense://x"):
        run(tmp_path, "a", "nonsense://x")
    monkeypatch.setattr(under_test, "__version__", "0.0.0")
    with pytest.raises(InputError, match=r"Dokimos on the worker tcp://.* is version .*, not 0.0.0"):
        run(tmp_path, "b", three.address)
    monkeypatch.undo()
    monkeypatch.setattr(Scripted, "version", lambda _: "elsewhere")
    with pytest.raises(
        VerifierUnavailable, match=r"scripted on the worker .* is version 1-.*, not elsewhere"
    ):
        run(tmp_path, "c", three.address)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"needs dask.distributed; .* pip install 'distributed>=\S+'$"):
        run(tmp_path, "d", three.address)


class Mine(Scripted):
    """A verifier that workers can import."""


def test_a_verifier_given_by_its_class_runs_on_workers(three: Cluster, tmp_path: Path) -> None:
    name = "tests.campaigns.test_cluster:Mine"
    instances = [instance(tmp_path / "suite", "i", label=Label.UNSAT)]
    suites = [CampaignSuite(tmp_path / "suite", tuple(instances))]
    campaign = run_campaign(
        suites,
        [find(name)],
        out=tmp_path / "out",
        settings=on(three),
    )
    assert [(r.verifier, r.termination) for r in campaign.records] == [(name, Termination.EXITED)]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "",
            r"only_here:Mine cannot be imported on the worker tcp://.*'only_here'.; install the same",
        ),
        (
            "older = 1",
            r"only_there:Mine cannot be imported on .* get attribute 'Mine' .*; install the same",
        ),
    ],
)
def test_a_worker_that_cannot_import_the_class_is_one_sentence(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, reason: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = f"only_{'there' if source else 'here'}"
    monkeypatch.delitem(sys.modules, module, raising=False)
    scripted = "from dokimos.verifiers.adapters.built_in import Scripted\nclass Mine(Scripted): pass\n"
    (tmp_path / f"{module}.py").write_text(scripted)
    if source:
        (three.folder / f"{module}.py").write_text(source)
    suites = [CampaignSuite(tmp_path / "suite", (instance(tmp_path / "suite", "i", label=Label.UNSAT),))]
    with pytest.raises(InputError, match=reason):
        run_campaign(
            suites,
            [find(f"{module}:Mine")],
            out=tmp_path / "out",
            settings=on(three),
        )


def test_a_variable_that_a_worker_lacks_is_one_sentence(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker passes on its own variables; ours are not sent there."""
    monkeypatch.setenv("SET_ONLY_HERE", "s3cr3t")
    with pytest.raises(
        InputError, match="`pass_env` SET_ONLY_HERE: there is no such variable on the worker"
    ):
        run(tmp_path, "out", three.address, pass_env=("SET_ONLY_HERE",))
    assert all("s3cr3t" not in path.read_text() for path in (tmp_path / "out").glob("*.json*"))


# Workers that return something else than what was asked of them; they import these functions


def _changed(change: Mapping[str, Any], *sent: Any) -> bytes:
    returned = msgspec.msgpack.decode(under_test._perform_on_worker(*sent))
    document = json.loads(returned["line"])
    document["record"] |= change
    return msgspec.msgpack.encode(returned | {"line": json.dumps(document).encode()})


def _with_line(line: bytes, *sent: Any) -> bytes:
    returned = msgspec.msgpack.decode(under_test._perform_on_worker(*sent))
    return msgspec.msgpack.encode(returned | {"line": line})


def _returning(value: Any, *sent: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (partial(_changed, {"job": "another"}), "names another job .'another'."),
        (partial(_changed, {"suite": "another"}), "names another suite"),
        (partial(_changed, {"instance": "i11"}), "names another instance"),
        (partial(_changed, {"verifier": "another"}), "names another verifier .'another'."),
        (partial(_changed, {"verifier_version": "0"}), "names another verifier version"),
        (partial(_changed, {"repeat": 7}), "names another repeat"),
        (partial(_changed, {"wall_seconds": -1}), "is no record"),
        (partial(_changed, {"answer": "perhaps"}), "is no record"),
        (partial(_changed, {"surprise": 1}), "is no record"),
        (partial(_with_line, b"nonsense"), "is no record"),
        (partial(_with_line, b'{"schema": 1, "event": "resumed"}'), "is no record"),
        (partial(_returning, b"nonsense"), "is no result of a run"),
        (partial(_returning, {"line": b""}), "is no result of a run"),
        (partial(_returning, None), "is no result of a run"),
    ],
)
def test_nothing_is_written_of_what_a_worker_was_not_asked(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hostile: Any, reason: str
) -> None:
    monkeypatch.setattr(under_test, "_perform_on_worker", hostile)
    with pytest.raises(InputError, match=reason):
        run(tmp_path, "out", three.address)
    assert read_campaign(tmp_path / "out").records == ()
    assert list((tmp_path / "out" / "logs").iterdir()) == []
    monkeypatch.undo()
    assert len(run(tmp_path, "out", three.address).records) == COUNT


def _failing(*sent: Any) -> bytes:
    if sent[0].instance in ("i5", "i6"):
        raise LookupError("a fault\nof i5")
    return under_test._perform_on_worker(*sent)


def _missing(*_: Any, **__: Any) -> Any:
    raise LookupError("a fault\nof i5")


def _failing_inside(*sent: Any) -> bytes:
    if sent[0].instance in ("i5", "i6"):
        under_test.perform = _missing
    try:
        return under_test._perform_on_worker(*sent)
    finally:
        under_test.perform = perform


@pytest.mark.parametrize("how", [_failing, _failing_inside])
def test_an_exception_in_a_worker_is_that_jobs_error(
    three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Any
) -> None:
    monkeypatch.setattr(under_test, "_perform_on_worker", how)
    campaign = run(tmp_path, "out", three.address)
    said = {record.instance: record.detail for record in campaign.records}
    assert len(said) == COUNT
    failed = {name for name, detail in said.items() if "the worker failed" in detail}
    assert failed == {"i5", "i6"}
    assert said["i5"] == "the worker failed: LookupError: a fault of i5"


def test_a_campaign_that_loses_runs_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _Runner.run_all

    def fewer(self: _Runner, agenda: Agenda) -> Iterator[RunRecord]:
        assert agenda.next() and agenda.next()  # given out, and lost
        yield from whole(self, agenda)

    monkeypatch.setattr(_Runner, "run_all", fewer)
    with pytest.raises(
        InputError, match="12 runs were planned, 10 of the 12 left were run, and 2 are not in"
    ):
        run(tmp_path, "out", None)
    monkeypatch.undo()
    assert len(run(tmp_path, "out", None).records) == COUNT
