"""Nobody is blamed by a label that was not checked just now, or before with the same files and code."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.core.files import home
from dokimos.judging import judge_instances, label_checks, label_process
from dokimos.judging.checked_entry import check_entry
from dokimos.judging.judge_instances import judge_all
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.label_checks import LabelCheck, LabelChecker, LabelStanding
from dokimos.judging.rules import EXACT
from dokimos.judging.verdicts import Verdict
from dokimos.judging.witness_replay import Question, WitnessReplays, replay_witness
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Answer
from dokimos.suites.vnnlib.model import Point
from dokimos.verifiers import environments
from dokimos.verifiers.execution.limits import Limits
from dokimos.verifiers.execution.warm_worker import WarmStart
from tests.engine.runtimes.test_cross_check import leaky, misread, of, slope_of_zero, suite_of
from tests.judging.test_judge import record
from tests.networks.building import Builder
from tests.scripting import instance

PROVEN = LabelCheck(LabelStanding.PROVEN)


@pytest.fixture
def suite(copy_of_tiny: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    return copy_of_tiny(tmp_path / "suite")


def labelled(suite: Path, label: str) -> SuiteEntry:
    """The first entry of that label, read anew."""
    return next(
        entry
        for entry in read_suite(suite).entries
        if json.loads(entry.truth_path.read_text())["label"] == label
    )


def edit(entry: SuiteEntry, **changes: object) -> None:
    truth = json.loads(entry.truth_path.read_text())
    entry.truth_path.write_text(json.dumps(truth | changes))


def never(*_: object) -> tuple[LabelCheck, bool]:
    raise AssertionError("this was checked before")


@pytest.mark.parametrize("label", ["sat", "unsat"])
def test_a_true_label_is_proven_and_remembered_in_the_home_alone(
    suite: Path, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = labelled(suite, label)
    files = sorted(suite.rglob("*"))
    heard: list[tuple[str, LabelCheck]] = []
    checker = LabelChecker(checked=lambda name, found: heard.append((name, found)))
    assert checker(entry) == PROVEN
    assert heard == [(entry.name, PROVEN)]
    assert sorted(suite.rglob("*")) == files
    assert len(list((home() / "labels").iterdir())) == 1
    monkeypatch.setattr(label_checks, "_check", never)
    assert LabelChecker()(entry) == checker(entry) == PROVEN
    assert len(heard) == 1


def test_what_is_remembered_is_for_these_files_and_this_code(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = labelled(suite, "unsat")
    assert LabelChecker()(entry) == PROVEN
    monkeypatch.setattr(label_checks, "_check", never)
    changes: list[Callable[[], object]] = [
        lambda: edit(entry, origin={"seed": 2}),
        lambda: entry.network_path.write_bytes(entry.network_path.read_bytes() + b" "),
        lambda: entry.property_path.write_bytes(entry.property_path.read_bytes() + b" "),
    ]
    for change in changes:
        before = [p.read_bytes() for p in (entry.network_path, entry.property_path, entry.truth_path)]
        change()
        with pytest.raises(AssertionError, match="checked before"):
            LabelChecker()(labelled(suite, "unsat"))
        for path, content in zip(
            (entry.network_path, entry.property_path, entry.truth_path), before, strict=True
        ):
            path.write_bytes(content)
        assert LabelChecker()(labelled(suite, "unsat")) == PROVEN
    monkeypatch.setattr(label_checks, "code_key", lambda: "another")
    with pytest.raises(AssertionError, match="checked before"):
        LabelChecker()(labelled(suite, "unsat"))


def test_a_damaged_memory_is_not_believed(suite: Path) -> None:
    entry = labelled(suite, "unsat")
    assert LabelChecker()(entry) == PROVEN
    (kept,) = (home() / "labels").iterdir()
    whole = kept.read_text()
    for damaged in ("", "{}", whole.replace("proven", "believed"), whole[: len(whole) // 2]):
        kept.write_text(damaged)
        assert LabelChecker()(entry) == PROVEN
        assert kept.read_text() == whole


@pytest.mark.parametrize(("label", "other"), [("sat", "unsat"), ("unsat", "sat")])
def test_a_label_flipped_by_hand_fails(suite: Path, label: str, other: str) -> None:
    entry = labelled(suite, label)
    edit(entry, label=other)
    found = LabelChecker()(entry)
    assert found.standing is LabelStanding.FAILED
    assert found.problem
    assert LabelChecker()(entry) == found


def test_a_damaged_certificate_fails(suite: Path) -> None:
    entry = labelled(suite, "unsat")
    truth = json.loads(entry.truth_path.read_text())
    edit(entry, certificate={**truth["certificate"], "data": {}})
    assert LabelChecker()(entry).standing is LabelStanding.FAILED
    entry.truth_path.write_text("{")
    assert LabelChecker()(entry).standing is LabelStanding.FAILED


def test_a_moved_witness_fails(suite: Path) -> None:
    entry = labelled(suite, "sat")
    size = len(json.loads(entry.truth_path.read_text())["witness"])
    edit(entry, witness=["1000"] * size)
    assert LabelChecker()(entry).standing is LabelStanding.FAILED


def test_a_proof_that_takes_too_long_is_not_checked(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = labelled(suite, "unsat")
    found = LabelChecker(cpu_seconds=0.05)(entry)
    assert found == LabelCheck(LabelStanding.NOT_CHECKED, "its proof takes more than 0.05 s of CPU time")
    with monkeypatch.context() as patched:
        patched.setattr(label_checks, "_check", never)
        assert LabelChecker(cpu_seconds=0.05)(entry) == found
    assert LabelChecker()(entry) == PROVEN


def test_a_process_that_dies_decides_nothing_and_is_not_remembered(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = labelled(suite, "unsat")
    with monkeypatch.context() as patched:
        dies = WarmStart.of(("false",), {}, Limits(wall_seconds=10))
        patched.setattr(environments, "_start", lambda *_: dies)
        assert LabelChecker()(entry).standing is LabelStanding.NOT_CHECKED
    assert LabelChecker()(entry) == PROVEN


def test_a_false_label_fails_after_true_ones(suite: Path) -> None:
    """One process checks them all."""
    assert LabelChecker()(labelled(suite, "unsat")) == LabelChecker()(labelled(suite, "sat")) == PROVEN
    edit(labelled(suite, "unsat"), label="sat")
    assert LabelChecker()(labelled(suite, "sat")).standing is LabelStanding.FAILED


def test_a_home_that_cannot_be_written_to_costs_only_time(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "file"))
    assert LabelChecker()(labelled(suite, "unsat")) == PROVEN


def test_a_label_of_a_network_that_is_misread_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = read_suite(suite_of(tmp_path, *leaky())).entries
    misread(monkeypatch, "LeakyRelu", slope_of_zero)
    assert check_entry(entry).is_proven  # of the network as it is misread
    result = tmp_path / "result.json"
    paths = [str(p) for p in (entry.network_path, entry.property_path, entry.truth_path)]
    label_process.main(str(result), entry.name, *paths)
    assert json.loads(result.read_text())["problem"].startswith("onnxruntime computes Y_0 = -")


def test_a_label_that_no_runtime_can_be_compared_with_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In float32 the product is infinite: there is nothing to compare the exact value with."""
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    build = Builder((1, 1), opset=13)
    huge = build.constant([[3e38]])
    model = build.model(build.add("Mul", build.add("Mul", "x", huge), huge))
    instance, truth = of(model, [(1.0, 2.0)])
    (entry,) = read_suite(suite_of(tmp_path, instance, truth)).entries
    found = LabelChecker()(entry)
    assert (found.is_proven, found.not_compared) == (
        True,
        "float32 evaluation may overflow at every point that was tried",
    )
    monkeypatch.setattr(label_checks, "_check", never)
    assert LabelChecker()(entry) == found


def test_a_fault_of_ours_leaves_one_instance_without_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = [instance(tmp_path / name, name) for name in ("i", "j")]
    witness = (Fraction(1), Fraction(1))
    runs = [record(Answer.SAT, witness, instance=name, job=name) for name in ("i", "j")]

    def replay(question: Question, point: Point) -> WitnessReplays:
        if question.name == "i":
            raise ZeroDivisionError("by\nchance")
        return replay_witness(question, point)

    monkeypatch.setattr(judge_instances, "replay_witness", replay)
    first, second = judge_all(runs, {"s": instances}, reproduce=lambda run: "again", rules=[EXACT])
    assert second.verdict is Verdict.CORRECT
    assert not first.verdict.is_wrong
    assert first.label_check is not None
    assert first.label_check.is_fault
    assert first.label_check.problem == "a fault of Dokimos: ZeroDivisionError: by chance"
    assert (first.reproduce, first.marks[0].points) == ("again", 0)
    for own, has_fault in (((first, second), True), ((second,), False)):
        found = JudgedCampaigns(())
        vars(found)["judgements"] = own
        assert found.has_fault is has_fault
        assert list(found.failed_labels) == [("s", "i")] * has_fault
