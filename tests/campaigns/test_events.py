from __future__ import annotations

import contextlib
import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.campaigns.journal import (
    Finished,
    RunRecord,
    SetAside,
    event_line,
    parse_line,
    read_history,
    to_event,
)
from dokimos.core.errors import UnreadableFile
from dokimos.suites.answers import Answer
from dokimos.verifiers.execution.limits import Termination
from tests.json_mutants import mutants

RECORDED = Path(__file__).with_name("recorded") / "journal.jsonl"
FINISHED = json.loads(RECORDED.read_bytes().splitlines()[1])


def recorded() -> dict[str, RunRecord]:
    return {record.job: record for record in read_history(RECORDED).records}


def test_a_journal_of_an_earlier_version_is_read() -> None:
    records = recorded()
    assert list(records) == ["aa", "bb", "cc"]
    assert records["aa"].witness == (Fraction(1, 3), Fraction(-2), Fraction(1, 10))
    assert records["aa"].outputs == (Fraction(5, 7),)
    assert (records["bb"].answer, records["bb"].termination) == (Answer.TIMEOUT, Termination.WALL_LIMIT)
    assert records["bb"].limits is not None
    assert records["bb"].limits.wall_seconds == 30.0
    assert records["cc"].limits is None
    assert dict(read_history(RECORDED).started) == {"cc": "2026-11-15T11:00:00.000+00:00"}


def test_events_are_written_as_they_were_before() -> None:
    lines = RECORDED.read_bytes().splitlines(keepends=True)
    records = recorded()
    assert event_line(Finished(record=records["aa"])) == lines[1]
    worker = "tcp://10.0.0.7:4711"
    assert event_line(Finished(worker=worker, record=records["bb"])) == lines[3].replace(b": 3,", b": 3.0,")


def test_setting_aside_comes_back_as_it_was() -> None:
    event = SetAside("a", "a reason – é", "2026-11-15T11:00:00.000+00:00")
    line = event_line(event)
    assert json.loads(line)["event"] == "set-aside"
    assert to_event(json.loads(line), file="j") == event


def test_a_mutant_is_an_event_or_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "j"
    refused = 0
    for mutant in mutants(FINISHED):
        path.write_text(json.dumps(mutant) + "\n" + json.dumps(FINISHED) + "\n")
        try:
            read_history(path)
        except UnreadableFile as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 400


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("witness", ["1e999999999"]),
        ("witness", ["1/0"]),
        ("witness", ["1" * 4301]),
        ("witness", [0.5]),
        ("witness", "1/3"),
        ("outputs", [None]),
        ("answer", "holds"),
        ("termination", []),
        ("limits", {"wall_seconds": -1}),
        ("limits", {"wall_seconds": 1, "memory_bytes": 10**400}),
        ("limits", {"wall_seconds": 1, "wall_second": 2}),
        ("wall_seconds", "1"),
        ("wall_seconds", -1.0),
        ("repeat", 0.5),
        ("peak_memory_bytes", 10**400),
        ("more", 1),
    ],
)
def test_wrong_types_and_values_are_named(field: str, value: object) -> None:
    document = {**FINISHED, "record": {**FINISHED["record"], field: value}}
    with pytest.raises(UnreadableFile) as caught:
        to_event(document, file="j")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_infinite_times_are_refused() -> None:
    line = json.dumps(FINISHED).replace('"wall_seconds": 0.25', '"wall_seconds": 1e999').encode()
    document = parse_line(line)
    assert document is not None
    with pytest.raises(UnreadableFile, match=r"record.wall_seconds: expected `float` <= "):
        to_event(document, file="j")


@given(at=st.integers(0, 900), length=st.integers(0, 40), middle=st.binary(max_size=12))
@settings(deadline=None, max_examples=80)
def test_a_line_with_other_bytes_is_an_event_no_json_or_one_sentence(
    at: int, length: int, middle: bytes
) -> None:
    whole = json.dumps(FINISHED).encode()
    document = parse_line(whole[:at] + middle + whole[at + length :])
    if document is not None:
        with contextlib.suppress(UnreadableFile):
            to_event(document, file="j")
