"""Campaigns of strangers: names come from the job, links that leave the folder are refused."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.campaign import read_campaign, run_campaign
from dokimos.campaigns.job import _keep, log_path, remove_folder
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.suites.answers import Answer
from dokimos.verifiers.adapters.built_in import Scripted
from dokimos.verifiers.catalogue import find
from dokimos.verifiers.execution.usage import BoundedLog
from dokimos.verifiers.script_guard import why_not_isolated
from tests.scripting import at_least, instance, script

SECRET = "root:x:0:0:s3cr3t"


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[[], Path]:
    """A campaign of one run, which may be gone on with."""
    (tmp_path / "passwd").write_text(SECRET)
    suite = (instance(tmp_path / "suite", "i", asked=at_least("0.5")),)
    verifier = Scripted(script(tmp_path / "s.json", default={"behaviour": "says", "answer": "unsat"}))

    def go() -> Path:
        settings = RunSettings(timeout_seconds=20)
        return run_campaign(
            [CampaignSuite(tmp_path / "suite", suite)], [verifier], settings=settings, out=tmp_path / "out"
        ).folder

    return go


@pytest.mark.parametrize("name", ["manifest.json", "journal.jsonl", "lock", "logs"])
def test_links_out_of_a_campaign_are_neither_read_nor_written(
    campaign: Callable[[], Path], tmp_path: Path, name: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "folder").mkdir()
    (out / name).symlink_to(tmp_path / ("folder" if name == "logs" else "passwd"))
    with pytest.raises(InputError, match="out of the folder") as caught:
        campaign()
    assert "s3cr3t" not in str(caught.value)
    assert (tmp_path / "passwd").read_text() == SECRET
    assert list((tmp_path / "folder").iterdir()) == []
    if name != "journal.jsonl" and name != "manifest.json":
        return
    with pytest.raises(UnreadableFile) as read:
        read_campaign(out)
    assert "s3cr3t" not in str(read.value)


def test_a_log_never_goes_through_a_link(campaign: Callable[[], Path], tmp_path: Path) -> None:
    """The folder's own names for links and pipes are taken away, and the log is a new file."""
    for made in (lambda at: at.symlink_to(tmp_path / "passwd"), os.mkfifo):
        (tmp_path / "passwd").write_text(SECRET)
        log = tmp_path / "a.log"
        log.unlink(missing_ok=True)
        made(log)
        with BoundedLog(log, limit_bytes=100) as sink:
            sink.write(b"said")
        assert log.read_bytes() == b"said" and not log.is_symlink()
        assert (tmp_path / "passwd").read_text() == SECRET


def test_a_report_shows_no_file_but_the_log_of_the_job(
    campaign: Callable[[], Path], tmp_path: Path, copy_of_tiny: Callable[[Path], Path]
) -> None:
    suite = copy_of_tiny(tmp_path / "tiny")
    (tmp_path / "secret.log").write_text(SECRET)
    out = dokimos.run(
        suite, Scripted(), out=tmp_path / "run", settings=dokimos.RunSettings(timeout_seconds=20)
    ).folder
    lines = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    finished = [line["record"] for line in lines if line["event"] == "finished"]
    finished[0]["log"] = "../secret.log"
    finished[1]["log"] = str(tmp_path / "secret.log")
    finished[2]["job"] = "../../secret"
    (out / "logs" / f"{finished[3]['job']}.log").unlink()
    (out / "logs" / f"{finished[3]['job']}.log").symlink_to(tmp_path / "secret.log")
    (out / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    dokimos.report(out, html=tmp_path / "page.html", csv=tmp_path / "tables")
    written = [tmp_path / "page.html", *(tmp_path / "tables").iterdir()]
    assert len(written) > 2
    for path in written:
        assert "s3cr3t" not in path.read_text(), path


def test_the_log_of_a_job_is_in_the_folder_of_logs(tmp_path: Path) -> None:
    assert log_path(tmp_path, "1a2b") == tmp_path / "logs" / "1a2b.log"
    for job in ("../x", "/etc/x", "a/../../x"):
        with pytest.raises(UnreadableFile, match="out of the folder"):
            log_path(tmp_path, job)


@pytest.mark.parametrize("trust", [False, True])
def test_a_result_that_links_elsewhere_is_not_quoted(tmp_path: Path, trust: bool) -> None:
    (tmp_path / "passwd").write_text(SECRET)
    tool = tmp_path / "tool"
    tool.mkdir()
    for script_text in (
        f'ln -s {tmp_path}/passwd "$5"\n',
        'd=$(dirname "$5"); mv "$d" "$d.2"; '
        f'mkdir {tmp_path}/fake; cp {tmp_path}/passwd {tmp_path}/fake/result; ln -s {tmp_path}/fake "$d"\n',
    ):
        (tool / "run_instance.sh").write_text(script_text)
        suite = CampaignSuite(tmp_path / "s", (instance(tmp_path / "s", "i", asked=at_least("0.5")),))
        out = tmp_path / f"out{len(script_text)}"
        verifier = find(f"vnncomp={tool}")
        [record] = run_campaign(
            [suite], [verifier], settings=RunSettings(timeout_seconds=20, trust=trust), out=out
        ).records
        assert record.answer is Answer.ERROR
        # An isolated tool cannot move its folder.
        in_place = not trust and why_not_isolated() is None and "mv" in script_text
        said = "it wrote no result" if in_place else "what it wrote as its result is not a"
        assert f"no readable answer ({said} file" in record.detail
        assert "s3cr3t" not in (out / "journal.jsonl").read_text()


def test_a_proof_that_links_elsewhere_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "passwd").write_text(SECRET)
    run, kept = tmp_path / "run", tmp_path / "kept.proof.json"
    run.mkdir()
    (run / "certificate.json").symlink_to(tmp_path / "passwd")
    _keep(run / "certificate.json", kept, what="the proof")
    assert not kept.exists()
    (run / "certificate.json").unlink()
    (run / "certificate.json").write_text("{}")
    _keep(run / "certificate.json", kept, what="the proof")
    assert kept.read_text() == "{}"


def test_of_a_linked_folder_the_link_alone_is_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    (tmp_path / "work").symlink_to(tmp_path / "mine")
    remove_folder(tmp_path / "work")
    assert [path.name for path in tmp_path.rglob("*")] == ["mine", "file"]
