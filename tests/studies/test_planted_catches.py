"""Planted bugs on a suite: the sound forms pass, and each bug is caught where it should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.judging.verdicts import Verdict
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos.verifiers.planted.catalogue import PLANTED
from dokimos.verifiers.runners import planted as runner
from dokimos_studies.planted_catches import Outcomes, attempts, hunt


@pytest.fixture
def entries(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> tuple[SuiteEntry, ...]:
    return read_suite(copy_of_tiny(tmp_path / "suite")).entries


def test_the_ideal_verifier_is_right(entries: tuple[SuiteEntry, ...]) -> None:
    seen = list(attempts(PLANTED["ideal"], entries, Outcomes()))
    assert [attempt.verdict for attempt in seen] == [Verdict.CORRECT] * 4
    assert not any(attempt.is_caught for attempt in seen)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("always-unsat", Verdict.WRONG_UNSAT),
        ("no-witness", Verdict.UNWITNESSED),
        ("witness-backwards", Verdict.BAD_WITNESS),
    ],
)
def test_a_bug_is_caught(entries: tuple[SuiteEntry, ...], name: str, verdict: Verdict) -> None:
    found = hunt(PLANTED[name], entries, Outcomes(), PLANTED["ideal"])
    assert found.caught_by is not None and found.caught_by.verdict is verdict
    labels = [entry.read_truth().label.value for entry in entries]  # type: ignore[union-attr]
    assert found.tried == labels.index("sat") + 1
    assert found.seconds > 0
    assert found.others == (1 if name == "always-unsat" else 0)


def test_a_bug_that_changes_no_answer_is_not_caught(entries: tuple[SuiteEntry, ...]) -> None:
    found = hunt(PLANTED["no-dilation"], entries, Outcomes(), PLANTED["ideal"])
    assert (found.caught_by, found.tried, found.others) == (None, 4, 0)
    assert hunt(PLANTED["no-dilation"], (), Outcomes()).tried == 0


def test_the_runner_writes_what_the_adapter_reads(
    entries: tuple[SuiteEntry, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dokimos.verifiers.result_file import read_result

    for entry in entries:
        files = [str(entry.network_path), str(entry.property_path), str(tmp_path / "result")]
        words = ["planted", "--bug", "ideal", "--truth", str(entry.truth_path), *files]
        monkeypatch.setattr("sys.argv", words)
        runner.main()
        given, truth = read_result(tmp_path / "result"), entry.read_truth()
        assert truth is not None
        assert (given.answer.value, given.witness) == (truth.label.value, truth.witness)
