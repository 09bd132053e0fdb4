"""The process that labels one instance tells what ended it, and keeps what it had found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from dokimos import __version__, label
from dokimos.core.files import write_whole
from dokimos.core.strict_json import read, write
from dokimos.engine import outcome
from dokimos.engine.label import LabelFinding
from dokimos.judging import label_one, label_tasks
from dokimos.judging.label_one import OpenForm, ProcessFinding, read_open_form
from dokimos.suites.folder import Suite, read_suite
from dokimos.verifiers.execution.limits import Outcome, Termination
from tests.checker.files import question
from tests.engine.test_open_cover import files, kept_of
from tests.scripting import relu_network


def test_a_fault_of_ours_is_told_beside_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(instance: object, *, so_far: Callable[[LabelFinding], None], **_: object) -> LabelFinding:
        so_far(LabelFinding(nearest=0.25))
        raise ZeroDivisionError("by\nchance")

    monkeypatch.setattr(label_one, "find_label", fail)
    network, asked, result = (tmp_path / name for name in ("n.onnx", "p.vnnlib", "result.json"))
    network.write_bytes(relu_network())
    asked.write_bytes(question([(-1, 1), (-1, 1)], 1, "(>= Y_0 2.0)"))
    label_one.main(str(result), "1", "small", str(network), str(asked))
    told = read(result.read_bytes(), ProcessFinding, file=result, what="a finding")
    assert told.is_fault
    assert not told.is_over
    assert told.nearest == 0.25
    assert told.reason == "a fault of Dokimos: ZeroDivisionError: by chance"


def test_the_start_of_the_process_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []

    def find(instance: object, *, seconds: float, **_: object) -> LabelFinding:
        left.append(seconds)
        return LabelFinding()

    monkeypatch.setattr(label_one, "find_label", find)
    monkeypatch.setattr(label_one.time, "process_time", lambda: 7.0)
    network, asked, result = (tmp_path / name for name in ("n.onnx", "p.vnnlib", "result.json"))
    network.write_bytes(relu_network())
    asked.write_bytes(question([(-1, 1), (-1, 1)], 1, "(>= Y_0 2.0)"))
    for begun in (2.0, None):
        label_one.main(str(result), "30", "small", str(network), str(asked), begun=begun)
    assert left == [25.0, 30.0]


@pytest.fixture
def open_suite(tmp_path: Path) -> Suite:
    """An instance that an earlier search has left open."""
    for name, content in zip(("n.onnx", "p.vnnlib"), files(), strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "instances.csv").write_text("n.onnx,p.vnnlib,60\n")
    suite = read_suite(tmp_path)
    (entry,) = suite.entries
    hashes = entry.network_sha256, entry.property_sha256
    form = OpenForm(*hashes, __version__, 2.0, "why", 0.25, -0.5, kept_of("units"))
    write_whole(tmp_path / "open" / f"{entry.name}.json", write(form))
    return suite


def test_a_search_that_is_open_goes_on_with_what_the_budget_is_larger(
    open_suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def ask(_: str, *words: str, **__: object) -> Outcome:
        asked.append(words)
        Path(words[0]).parent.mkdir()
        label_one.main(*words)
        return Outcome(Termination.EXITED, 0, wall_seconds=1.0, cpu_seconds=1.0, peak_memory_bytes=1)

    monkeypatch.setattr(label_tasks, "ask_module", ask)
    (found,) = label(open_suite.folder, budget_seconds=2.0).outcomes
    assert found.was_there and found.nearest == 0.25 and not asked
    (found,) = label(open_suite.folder, budget_seconds=32.0).outcomes
    assert found.label == "unsat"
    assert asked[0][1] == "30" and asked[0][-1].endswith(".json")
    assert not list((open_suite.folder / "open").iterdir())


@pytest.mark.parametrize(
    ("ended", "said", "is_over"),
    [
        (Termination.CPU_LIMIT, "CPU time ran out", True),
        (Termination.MEMORY_LIMIT, "exceeded its memory limit", True),
        (Termination.SIGNALLED, "the search ended early", False),
    ],
)
def test_a_search_that_is_ended_loses_nothing_that_was_known(
    open_suite: Suite, monkeypatch: pytest.MonkeyPatch, ended: Termination, said: str, is_over: bool
) -> None:
    """What a longer search had found when its limits ended it is kept with what was known before."""
    (place,) = (open_suite.folder / "open").iterdir()
    before = read_open_form(place)

    def ask(_: str, result: str, *words: str, folder: Path, **__: object) -> Outcome:
        folder.mkdir()
        write_whole(Path(result), write(ProcessFinding(bound=-7.0)))
        return Outcome(ended, None, wall_seconds=1.0, cpu_seconds=1.0, peak_memory_bytes=1)

    monkeypatch.setattr(label_tasks, "ask_module", ask)
    (found,) = label(open_suite.folder, budget_seconds=32.0).outcomes
    assert not found.label and said in found.reason
    after = read_open_form(place)
    assert (after.nearest, after.search) == (before.nearest, before.search)
    assert after.budget_seconds == (32.0 if is_over else before.budget_seconds)
    assert after.bound == max(x for x in (before.bound, -7.0 if is_over else None) if x is not None)


def test_what_is_kept_of_a_search_must_fit_and_the_file_is_named(open_suite: Suite, tmp_path: Path) -> None:
    (place,) = (tmp_path / "open").iterdir()
    form = read_open_form(place)
    assert form.search is not None
    write_whole(place, write(replace(form, search=structs.replace(form.search, scales=""))))
    (entry,), result = open_suite.entries, tmp_path / "result.json"
    words = str(result), "5", "small", str(entry.network_path), str(entry.property_path), str(place)
    label_one.main(*words)
    told = read(result.read_bytes(), ProcessFinding, file=result, what="a finding")
    assert told.is_unreadable
    assert told.reason.startswith(f"{place}: search: 'scales' must have ")
    assert told.reason.endswith("; remove the file to search anew")


def test_what_a_search_has_found_is_recorded_while_it_goes_on(
    open_suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at any time, it goes on from there, with the budget that is left."""
    monkeypatch.setattr(outcome, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(outcome, "SAVE_SHARE", 0.0)
    (entry,), place = open_suite.entries, tmp_path / "new.json"
    kept: list[OpenForm] = []

    def record(path: Path, content: str, **_: object) -> None:
        path.write_text(content)
        if path == place:
            kept.append(read_open_form(place))

    monkeypatch.setattr(label_one, "write_whole", record)
    words = str(entry.network_path), str(entry.property_path), str(place)
    label_one.main(str(tmp_path / "result.json"), "30", "small", *words)
    assert len(kept) > 2
    assert all(form.search is not None and form.reason for form in kept)
    spent = [form.budget_seconds for form in kept]
    assert spent == sorted(spent) and spent[0] > 0
    place.write_text(write(kept[-2]))
    label_one.main(str(tmp_path / "result.json"), "30", "small", *words)
    told = read((tmp_path / "result.json").read_bytes(), ProcessFinding, file=place, what="a finding")
    assert told.truth
