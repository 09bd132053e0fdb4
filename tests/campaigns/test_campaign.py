from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dokimos
from dokimos.campaigns import job as performing
from dokimos.campaigns.campaign import Campaign, Progress, read_campaign, run_campaign, set_runs_aside
from dokimos.campaigns.journal import Journal
from dokimos.campaigns.manifest import ManifestSuite, describe, read_manifest, require_what_was_run
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, UnreadableFile, VerifierUnavailable
from dokimos.suites.answers import Answer
from dokimos.verifiers.adapters.built_in import Scripted
from dokimos.verifiers.adapters.pinned import Marabou
from dokimos.verifiers.base import Invocation, Query, Verifier
from dokimos.verifiers.script_guard import why_not_isolated
from tests.scripting import StubInstance, at_least, following, instance, script, with_settings

SETTINGS = RunSettings(timeout_seconds=20)
LIMITS = SETTINGS.limits(20)
CAPABILITIES = ("inh-caps", "bounding-set")


def suite(folder: Path, count: int = 4) -> list[StubInstance]:
    return [
        instance(folder / "suite", f"i{k}", asked=at_least(f"{k}.5"), family="ab"[k % 2])
        for k in range(count)
    ]


def saying(folder: Path, **rest: Any) -> Scripted:
    content = {
        "default": {"behaviour": "says", "answer": "unsat"},
        "executions": str(folder / "runs"),
        **rest,
    }
    return Scripted(script(folder / "script.json", **content))


def run(
    folder: Path, instances: Sequence[StubInstance], verifiers: Sequence[Verifier], **rest: Any
) -> Campaign:
    options = with_settings({"out": folder / "out", **rest})
    return run_campaign([CampaignSuite(folder / "suite", tuple(instances))], verifiers, **options)


def executions(folder: Path) -> Counter[str]:
    path = folder / "runs"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def executions_at_rest(folder: Path) -> Counter[str]:
    """The same, once what a killed runner had begun has been ended: nobody writes any more."""
    before, since = executions(folder), time.monotonic()
    while time.monotonic() < since + 0.5:
        time.sleep(0.05)
        if (now := executions(folder)) != before:
            before, since = now, time.monotonic()
    return before


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_campaign_runs_everything_once(tmp_path: Path, jobs: int) -> None:
    seen: list[Progress] = []
    campaign = run(tmp_path, suite(tmp_path), [saying(tmp_path)], jobs=jobs, repeat=2, progress=seen.append)
    assert executions(tmp_path) == {f"i{k}": 2 for k in range(4)}
    assert [p.done for p in seen] == list(range(1, 9))
    assert {p.total for p in seen} == {8}
    assert {r.answer for r in campaign.records} == {Answer.UNSAT}
    assert {p.record for p in seen} == set(campaign.records)
    for record in campaign.records:
        assert (tmp_path / "out" / record.log).is_file()
        assert record.suite == "suite"
        assert record.limits == LIMITS
        assert "wall clock watched" in record.enforced_by
    assert not (tmp_path / "out" / "work").exists()
    assert read_campaign(tmp_path / "out") == campaign


def test_the_manifest_says_what_was_run_and_where(tmp_path: Path) -> None:
    instances = suite(tmp_path)
    manifest = run(tmp_path, instances, [saying(tmp_path)]).manifest
    assert manifest.dokimos_version == dokimos.__version__
    assert manifest.limits == LIMITS
    assert manifest.suites == (ManifestSuite("suite", str(tmp_path / "suite")),)
    (tmp_path / "suite" / "suite.json").write_text(
        '{"format": 3, "dokimos": "0", "recipe": {"seed": 7}, "families": {}}'
    )
    again = describe([CampaignSuite(tmp_path / "suite", tuple(instances))], [], SETTINGS)
    assert again.suites[0].seed == 7
    assert [i.network_sha256 for i in manifest.instances] == [i.network_sha256 for i in instances]
    assert manifest.verifiers[0].name == "scripted"
    assert manifest.machine.cores >= 1
    require_what_was_run(manifest.instances, {"suite": instances[1:], "another": instances[:1]})
    other = replace(instances[0], property_sha256="x")
    with pytest.raises(UnreadableFile, match=r"i0\.vnnlib: it is not the file that was run"):
        require_what_was_run(manifest.instances, {"suite": [other]})


def test_doing_it_again_runs_nothing(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)
    first = run(tmp_path, instances, [verifier])
    before = executions(tmp_path)
    told: list[tuple[int, int]] = []
    again = run(tmp_path, instances, [verifier], resumed=lambda *counts: told.append(counts))
    assert again.records == first.records
    assert executions(tmp_path) == before
    assert told == [(4, 4)]


def test_runs_that_are_set_aside_are_done_again_and_no_others(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)
    first = run(tmp_path, instances, [verifier])
    out = tmp_path / "out"
    assert set_runs_aside(out, lambda _: False, reason="none") == 0
    assert set_runs_aside(out, lambda record: record.instance == "i2", reason="disturbed") == 1
    assert [r.instance for r in read_campaign(out).records] == [
        r.instance for r in first.records if r.instance != "i2"
    ]
    told: list[tuple[int, int]] = []
    again = run(tmp_path, instances, [verifier], resumed=lambda *counts: told.append(counts))
    assert told == [(3, 4)]
    assert executions(tmp_path) == {"i0": 1, "i1": 1, "i2": 2, "i3": 1}
    assert {r.job for r in again.records} == {r.job for r in first.records}


def test_a_journal_of_another_campaign_is_noticed(tmp_path: Path) -> None:
    run(tmp_path, suite(tmp_path, 1), [saying(tmp_path)])
    journal = tmp_path / "out" / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"suite": "suite"', '"suite": "other"'))
    with pytest.raises(UnreadableFile, match=r"journal.jsonl: it has a run on the suite 'other', which"):
        read_campaign(tmp_path / "out")


def test_more_repetitions_and_verifiers_may_be_added(tmp_path: Path) -> None:
    class Other(Scripted):
        name = "other"

    instances, verifier = suite(tmp_path, 2), saying(tmp_path)
    run(tmp_path, instances, [verifier])
    run(tmp_path, instances, [verifier, Other(verifier.script)], repeat=2)
    assert executions(tmp_path) == {"i0": 4, "i1": 4}
    manifest = read_manifest(tmp_path / "out" / "manifest.json")
    assert [tool.name for tool in manifest.verifiers] == ["scripted", "other"]
    assert manifest.repeat == 2


def test_changes_are_noticed_and_named(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)
    run(tmp_path, instances, [verifier])
    before = (tmp_path / "out" / "manifest.json").read_bytes()
    with pytest.raises(InputError, match=r"started differently: wall_seconds was 20 and is 5; run it as"):
        run(tmp_path, instances, [verifier], timeout_seconds=5)
    with pytest.raises(InputError, match=r"instance i2 and 1 more are gone"):
        run(tmp_path, instances[:2], [verifier])
    with pytest.raises(InputError, match=r"instance i3 is changed"):
        run(tmp_path, [*instances[:3], replace(instances[3], network_sha256="x")], [verifier])
    with pytest.raises(InputError, match=r"instance new is new"):
        run(tmp_path, [*instances, replace(instances[3], name="new")], [verifier])
    with pytest.raises(InputError, match=r"scripted was version .* and is "):
        run(tmp_path, instances, [saying(tmp_path, truth="elsewhere")])
    assert (tmp_path / "out" / "manifest.json").read_bytes() == before


def test_two_campaigns_do_not_share_a_folder(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)

    def again(_: Progress) -> None:
        with pytest.raises(InputError, match=rf"Another process \(process {os.getpid()}\) runs a campaign"):
            run(tmp_path, instances, [verifier])

    run(tmp_path, instances, [verifier], progress=again)


def test_an_error_in_the_middle_keeps_what_was_recorded(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)

    def stop(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, instances, [verifier], progress=stop)
    assert len(read_campaign(tmp_path / "out").records) == 2
    run(tmp_path, instances, [verifier])
    assert executions(tmp_path) == {f"i{k}": 1 for k in range(4)}


def test_a_deleted_log_loses_nothing(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)
    first = run(tmp_path, instances, [verifier])
    for record in first.records:
        (tmp_path / "out" / record.log).unlink()
    assert run(tmp_path, instances, [verifier]).records == first.records


def test_a_log_that_cannot_be_written_stops_with_one_sentence(tmp_path: Path) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)
    first = run(tmp_path, instances, [verifier])
    journal = tmp_path / "out" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))
    blocked = tmp_path / "out" / first.records[1].log
    blocked.unlink()
    blocked.mkdir()
    with pytest.raises(InputError, match=r"The log .* cannot be written: Is a directory"):
        run(tmp_path, instances, [verifier])
    assert read_campaign(tmp_path / "out").records == first.records[:1]
    blocked.rmdir()
    assert len(run(tmp_path, instances, [verifier]).records) == 4


def test_what_makes_no_sense_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instances, verifier = suite(tmp_path), saying(tmp_path)
    with pytest.raises(InputError, match="at least one instance"):
        run(tmp_path, [], [verifier])
    with pytest.raises(InputError, match="number of jobs"):
        run(tmp_path, instances, [verifier], jobs=0)
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "nothing"))
    with pytest.raises(VerifierUnavailable, match="marabou is not installed"):
        run(tmp_path, instances, [Marabou()])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be used: "):
        run(tmp_path, instances, [verifier], out=tmp_path / "file" / "out")
    with pytest.raises(UnreadableFile, match="there is no campaign here"):
        read_campaign(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"schema": 1}', '{"schema": 7}'])
def test_a_broken_manifest_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(UnreadableFile, match="manifest"):
        read_manifest(tmp_path / "manifest.json")


def start_process(folder: Path, count: int, jobs: int) -> subprocess.Popen[bytes]:
    """The same campaign as `run(folder, suite(folder, count), [Scripted(...)])`, in a process to kill."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom tests.campaigns.test_campaign import *\n"
        f"folder = Path({str(folder)!r})\n"
        f"run(folder, suite(folder, {count}), [Scripted(folder / 'script.json')], jobs={jobs})"
    )
    paths = [str(Path(dokimos.__file__).parents[1]), str(Path(__file__).parents[2])]
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stderr=subprocess.DEVNULL,
    )


def finished(folder: Path) -> int:
    path = folder / "out" / "journal.jsonl"
    return path.read_bytes().count(b'"finished"') if path.exists() else 0


@pytest.mark.parametrize(
    ("number", "jobs", "stops"),
    [(signal.SIGKILL, 1, (6,)), (signal.SIGKILL, 2, (2, 6)), (signal.SIGINT, 2, (6,))],
)
def test_killed_in_the_middle_it_resumes_and_runs_nothing_twice(
    tmp_path: Path, number: int, jobs: int, stops: tuple[int, ...]
) -> None:
    count = 12
    saying(tmp_path, default={"behaviour": "slow", "seconds": 0.05, "label": "unsat"})
    for stop_after in stops:
        process = start_process(tmp_path, count, jobs)
        deadline = time.monotonic() + 60
        while finished(tmp_path) < stop_after and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(number)
        assert process.wait(timeout=30) != 0
    before = read_campaign(tmp_path / "out").records
    assert 6 <= len(before) < count
    in_flight = executions_at_rest(tmp_path)
    campaign = run(tmp_path, suite(tmp_path, count), [Scripted(tmp_path / "script.json")])
    assert campaign.records[: len(before)] == before
    assert sorted(r.instance for r in campaign.records) == sorted(f"i{k}" for k in range(count))
    done_before = {record.instance for record in before}
    for name, times in executions(tmp_path).items():
        assert times == (in_flight[name] if name in done_before else in_flight[name] + 1)
    # Only what was in flight when the process was ended has been started before it was finished.
    assert sum(executions(tmp_path).values()) <= count + 2 * jobs


def test_a_killed_campaign_leaves_no_verifier_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    saying(tmp_path, default={"behaviour": "hang", "detached": True, "pids": str(pids)})
    process = start_process(tmp_path, 1, 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not pids.exists() or len(pids.read_text().split()) < 2):
        time.sleep(0.01)
    assert len(following(tmp_path / "script.json")) >= 2
    process.kill()
    process.wait()
    while following(tmp_path / "script.json") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert following(tmp_path / "script.json") == []


def test_several_suites_are_one_campaign(tmp_path: Path) -> None:
    verifier = saying(tmp_path)
    both = [
        CampaignSuite(tmp_path / name, (replace(instance(tmp_path / name, "i"), timeout_seconds=seconds),))
        for name, seconds in (("one", 7.0), ("two", 9.0))
    ]
    options: dict[str, Any] = {"settings": RunSettings(), "out": tmp_path / "out"}
    campaign = run_campaign(both, [verifier], **options)
    assert [(r.suite, r.instance) for r in campaign.records] == [("one", "i"), ("two", "i")]
    assert [r.limits.wall_seconds for r in campaign.records if r.limits] == [7.0, 9.0]
    assert [s.name for s in campaign.manifest.suites] == ["one", "two"]
    assert run_campaign(both[::-1], [verifier], **options).records == campaign.records
    with pytest.raises(InputError, match="instance two/i is gone"):
        run_campaign(both[:1], [verifier], **options)
    with pytest.raises(
        InputError, match="the time of each run was its suite's own time and would be 20 s; run it as"
    ):
        run_campaign(both, [verifier], settings=SETTINGS, out=tmp_path / "out")


@pytest.mark.parametrize("trust", [False, True])
def test_the_suite_is_not_the_verifiers_to_write_to(tmp_path: Path, trust: bool) -> None:
    class Vandal(Scripted):
        name = "vandal"

        def command(self, query: Query) -> Invocation:
            spoil = "import os, sys\nf = sys.argv[1]\nos.chmod(f, 0o644)\nopen(f, 'w').write('spoilt')"
            assert query.property_file.stat().st_mode & 0o222 == 0
            return Invocation((sys.executable, "-c", spoil, str(query.property_file)))

    instances = suite(tmp_path, 1)
    before = instances[0].property_path.read_bytes()
    (record,) = run(tmp_path, instances, [Vandal()], trust=trust).records
    if trust or why_not_isolated():
        assert record.detail.endswith("it changed its copy of i0.vnnlib")
    else:
        assert "Read-only file system" in record.detail
    assert instances[0].property_path.read_bytes() == before


class Running(Scripted):
    """Runs a line of Python in its folder."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def command(self, query: Query) -> Invocation:
        return Invocation((sys.executable, "-c", self._code, str(query.result)))


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="needs setpriv")
def test_what_a_verifier_has_locked_is_removed(tmp_path: Path) -> None:
    """As root may anything, the rights that are missing are taken away by hand."""
    locked = tmp_path / "folder" / "locked"
    (locked / "in").mkdir(parents=True)
    (locked / "in" / "file").touch()
    (tmp_path / "folder" / "link").symlink_to(tmp_path)
    code = (
        "import sys; from pathlib import Path; from dokimos.campaigns.job import remove_folder\n"
        "Path('folder/locked').chmod(0)\nremove_folder(Path('folder'))\nsys.exit(Path('folder').exists())"
    )
    rights = ("dac_override", "dac_read_search")
    drop = ["setpriv", *(f"--{which}={','.join(f'-{r}' for r in rights)}" for which in CAPABILITIES)]
    command = [*(drop if os.geteuid() == 0 else []), sys.executable, "-c", code]
    source = str(Path(dokimos.__file__).parents[1])
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": source}, check=True)
    assert (tmp_path / "folder").exists() is False
    assert tmp_path.stat().st_mode & 0o100


def test_an_error_on_a_full_disk_is_not_the_verifiers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances, verifier = suite(tmp_path, 1), Running("import sys; sys.exit('No space left on device')")
    with monkeypatch.context() as full:
        full.setattr(performing, "_FULL_BYTES", 1 << 80)
        with pytest.raises(InputError, match=r"The disk with .* is full, so .* scripted on i0 does"):
            run(tmp_path, instances, [verifier])
        assert not read_campaign(tmp_path / "out").records
    assert run(tmp_path, instances, [verifier]).records[0].answer is Answer.ERROR


def test_a_file_that_changes_under_way_is_noticed(tmp_path: Path) -> None:
    instances = suite(tmp_path, 2)

    def spoil(_: Progress) -> None:
        instances[1].property_path.write_bytes(b"other")

    with pytest.raises(UnreadableFile, match="has changed since the campaign was planned"):
        run(tmp_path, instances, [saying(tmp_path)], progress=spoil)


def test_the_journal_is_plain_json_lines(tmp_path: Path) -> None:
    run(tmp_path, suite(tmp_path, 1), [saying(tmp_path)])
    lines = (tmp_path / "out" / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    assert [(e["schema"], e["event"]) for e in events] == [(1, "started"), (1, "finished")]


def test_a_run_under_another_job_is_not_counted_twice(tmp_path: Path) -> None:
    saying(tmp_path, default={"behaviour": "says", "answer": "unsat"})
    campaign = run(tmp_path, suite(tmp_path, 1), [Scripted(tmp_path / "script.json")])
    assert len(campaign.records) == 1
    with Journal(tmp_path / "out" / "journal.jsonl") as journal:
        journal.finish(replace(campaign.records[0], job="0" * 24))
    with pytest.raises(UnreadableFile, match=r"two runs of .* that are one in its plan"):
        read_campaign(tmp_path / "out")
