from __future__ import annotations

import errno
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.campaigns.journal import Journal, RunRecord, read_history, read_journal
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.suites.answers import Answer
from dokimos.verifiers.execution.limits import Termination

RECORD = RunRecord(
    job="0",
    suite="s",
    instance="i",
    family="f",
    verifier="v",
    verifier_version="1",
    repeat=0,
    answer=Answer.SAT,
    witness=(Fraction(1, 3), Fraction(-2)),
    detail='a "quoted"\nline – é',
    termination=Termination.EXITED,
    exit_code=0,
    wall_seconds=0.25,
    cpu_seconds=0.125,
    peak_memory_bytes=12,
    log="logs/0.log",
    started_at="2026-01-01T00:00:00+00:00",
)


def numbered(number: int) -> RunRecord:
    return replace(RECORD, job=str(number))


def write(path: Path, numbers: list[int]) -> None:
    with Journal(path) as journal:
        for number in numbers:
            journal.started(str(number), "now")
            journal.finish(numbered(number))


@given(
    record=st.builds(
        RunRecord,
        job=st.text(),
        suite=st.text(),
        instance=st.text(),
        family=st.text(),
        verifier=st.text(),
        verifier_version=st.text(),
        repeat=st.integers(0, 9),
        answer=st.sampled_from(Answer),
        witness=st.none() | st.lists(st.fractions(), max_size=3).map(tuple),
        detail=st.text(),
        termination=st.sampled_from(Termination),
        exit_code=st.none() | st.integers(0, 255),
        wall_seconds=st.floats(0, 1e6),
        cpu_seconds=st.floats(0, 1e6),
        peak_memory_bytes=st.integers(0, 1 << 60),
        log=st.text(),
        started_at=st.text(),
    )
)
@settings(deadline=None, max_examples=50)
def test_a_record_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, record: RunRecord) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        with Journal(path) as journal:
            journal.finish(record)
    assert read_journal(path) == (record,)


def test_cut_anywhere_it_keeps_every_complete_line_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # thousands of them, and no disk fails here
    path = tmp_path / "journal.jsonl"
    write(path, [0, 1, 2])
    whole = path.read_bytes()
    finished_at = [
        sum(len(line) + 1 for line in whole.split(b"\n")[: k + 1]) - 1
        for k, line in enumerate(whole.split(b"\n"))
        if b'"finished"' in line
    ]
    assert len(finished_at) == 3
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        kept = [int(record.job) for record in read_journal(path)]
        assert kept == [k for k, end in enumerate(finished_at) if length >= end]
        write(path, [7])
        assert [int(record.job) for record in read_journal(path)] == [*kept, 7]


@settings(deadline=None, max_examples=60)
@given(cuts=st.lists(st.integers(1, 600), min_size=1, max_size=6))
def test_killed_again_and_again_it_loses_only_what_was_being_written(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        kill_again_and_again(path, cuts)


def kill_again_and_again(path: Path, cuts: list[int]) -> None:
    known: list[str] = []
    for number, cut in enumerate(cuts):
        before = path.read_bytes() if path.exists() else b""
        write(path, [number])
        # Killed at any moment while this process wrote: a prefix of what it appended is there.
        written = path.read_bytes()
        path.write_bytes(written[: len(before) + min(cut, len(written) - len(before))])
        now = [record.job for record in read_journal(path)]
        assert now[: len(known)] == known
        known = now
    write(path, [99])
    assert [record.job for record in read_journal(path)] == [*known, "99"]


def test_finished_jobs_are_known_at_once_and_after(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        assert journal.finished == frozenset()
        journal.finish(numbered(1))
        assert journal.finished == {"1"}
    with Journal(path) as journal:
        assert journal.finished == {"1"}


def test_a_missing_journal_is_empty(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "none") == ()


def test_a_job_recorded_twice_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "j", [1])
    with Journal(tmp_path / "j") as journal:
        journal.finish(replace(numbered(1), detail="later"))
    assert read_journal(tmp_path / "j") == (numbered(1),)


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b'{"schema": 1, "event": "danced"}',
        b'{"schema": 1, "event": "finished"}',
        b'{"schema": 1, "event": "finished", "record": {}}',
        b'{"schema": 1}',
        b'{"schema": true, "event": "resumed"}',
        b'{"schema": 1, "event": "resumed", "job": "1"}',
        b'{"schema": 1, "event": "set-aside", "job": "1"}',
        b'{"schema": 1, "event": "set-aside", "job": 1, "reason": "", "at": ""}',
    ],
)
def test_damage_in_the_middle_is_reported_with_its_place(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "j"
    write(path, [1, 2])
    lines = path.read_bytes().split(b"\n")
    lines[1] = line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(UnreadableFile, match=r"j:2: this line of the journal is damaged"):
        read_journal(path)
    with pytest.raises(UnreadableFile):
        Journal(path)


def test_an_unknown_schema_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"schema": 99, "event": "finished"}\n')
    with pytest.raises(UnreadableFile, match="j:1: this journal has schema 99"):
        read_journal(tmp_path / "j")


def test_a_journal_that_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_journal(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: No such file"):
        Journal(tmp_path / "missing" / "j")


def test_a_full_disk_is_one_sentence_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j"
    write(path, [1])
    really_write = os.write

    def full(descriptor: int, content: bytes) -> int:
        if len(content) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return really_write(descriptor, content[: len(content) - 50])

    with Journal(path) as journal:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(InputError, match=r"No space left on device; nothing recorded is lost"):
            journal.finish(numbered(2))
        monkeypatch.undo()
        with pytest.raises(InputError, match=r"No space left on device"):
            journal.finish(numbered(3))
        assert journal.finished == {"1"}
    assert read_journal(path) == (numbered(1),)
    write(path, [2])
    assert read_journal(path) == (numbered(1), numbered(2))


def test_a_run_that_is_set_aside_counts_as_not_done_until_it_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [1, 2])
    before = path.read_bytes()
    with Journal(path) as journal:
        journal.set_aside("1", reason="too little of a processor", at="now")
        assert journal.finished == {"2"}
    assert read_journal(path) == (numbered(2),)
    again = replace(numbered(1), detail="again")
    with Journal(path) as journal:
        assert journal.finished == {"2"}
        journal.finish(again)
        journal.finish(replace(again, detail="a third time"))
    assert read_journal(path) == (numbered(2), again)
    assert path.read_bytes().startswith(before), "nothing is taken out"


def test_setting_aside_what_was_not_recorded_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j"
    write(path, [1])
    with Journal(path) as journal:
        journal.set_aside("7", reason="", at="now")
    assert read_journal(path) == (numbered(1),)


def test_what_is_set_aside_is_neither_running_nor_finished_by_this_process(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.started("1", "now")
        journal.finish(numbered(1))
        journal.finish(numbered(2))
        journal.set_aside("1", reason="", at="now")
    history = read_history(path)
    assert dict(history.started) == {}
    assert history.finished_since == history.records == (numbered(2),)


@pytest.mark.parametrize("content", [b"junk", b"this is\nno journal\n", b"[1, 2]\n", b"\x00\xff\n" * 3])
def test_what_is_no_journal_is_reported_and_not_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "j").write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"j:1: this line of the journal is damaged \(no JSON\)"):
        read_journal(tmp_path / "j")


@pytest.mark.parametrize(
    "piece", [b'{"sch', b'{"schema": 1, "event": "fini', b'{"schema": 1\0\0\0', b"\0" * 9]
)
def test_a_piece_of_an_event_at_the_end_is_passed_over(tmp_path: Path, piece: bytes) -> None:
    write(tmp_path / "j", [1])
    with (tmp_path / "j").open("ab") as file:
        file.write(piece)
    assert read_journal(tmp_path / "j") == (numbered(1),)
