"""Planted bugs on a suite: the sound forms pass, and each bug is caught where it should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.judging.verdicts import Verdict
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos.verifiers.planted.attackers import Attacker
from dokimos.verifiers.planted.base import task_for
from dokimos.verifiers.planted.catalogue import PLANTED
from dokimos.verifiers.runners import planted as runner
from dokimos_studies import planted_catches
from dokimos_studies.planted_catches import Outcomes, attempts, can_catch, hunt, is_idle, labelled_sat


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


def test_what_was_answered_is_not_asked_again(
    entries: tuple[SuiteEntry, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "records.jsonl"
    first = hunt(PLANTED["no-witness"], entries, Outcomes(file))
    file.write_text(file.read_text() + '{"bug": "no-wit', encoding="utf-8")  # torn by an interruption

    def asked(*given: object) -> None:
        raise AssertionError(given)

    monkeypatch.setattr(planted_catches, "answer_to", asked)
    assert hunt(PLANTED["no-witness"], entries, Outcomes(file)) == first
    with pytest.raises(AssertionError):
        hunt(PLANTED["always-unsat"], entries, Outcomes(file))


def test_what_is_answered_to_other_files_is_asked_again(
    entries: tuple[SuiteEntry, ...], tmp_path: Path
) -> None:
    outcomes = Outcomes(tmp_path / "records.jsonl")
    entry = next(entry for entry in entries if labelled_sat(entry))
    before = outcomes.attempt(PLANTED["always-unsat"], entry)
    entry.property_path.write_text(entry.property_path.read_text() + "; more\n", encoding="utf-8")
    after = outcomes.attempt(PLANTED["always-unsat"], entry)
    assert before.files != after.files


def test_only_where_nothing_can_differ_is_a_proof_that_of_the_sound_attacker(
    entries: tuple[SuiteEntry, ...],
) -> None:
    def is_idle_on_the_first(name: str) -> bool:
        bug, task = PLANTED[f"attacking-{name}"], task_for(entries[0])
        assert isinstance(bug, Attacker) and not isinstance(task, str)
        return is_idle(bug, task)

    for idle in ("no-dilation", "softmax-by-ends", "tanh-tangents", "bounds"):
        assert is_idle_on_the_first(idle), idle
    for acting in (
        "relu-slope",
        "half-radius",
        "float32-bounds",
        "lost-half",
        "last-relu",
        "last-disjunct",
    ):
        assert not is_idle_on_the_first(acting), acting


def test_an_attacker_is_asked_only_where_there_is_a_counterexample(entries: tuple[SuiteEntry, ...]) -> None:
    labels = [labelled_sat(entry) for entry in entries]
    assert {True, False} == set(labels)
    assert [can_catch(PLANTED["attacking-bounds"], entry) for entry in entries] == labels
    assert all(can_catch(PLANTED["swapped-words"], entry) for entry in entries)


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
