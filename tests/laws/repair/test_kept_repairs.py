"""Repairs that are interrupted: they go on where they stopped, and end as if they had not been."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dokimos
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import only_one
from dokimos.laws.domain.definition import Domain
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.proving.results import VerifySettings
from dokimos.laws.repair import measures, repair
from dokimos.laws.repair.kept_repairs import KeptRepairs
from dokimos.laws.repair.repair import Repair, RepairedModel, RepairSettings
from dokimos.laws.repair.repair_task import RepairWay
from tests.laws.proving.small import MORE, SET, domain, records
from tests.laws.proving.test_networks import model_of, network
from tests.laws.toy import BLOCK, law

DOMAIN = """
from dokimos.laws import choice, flag, integer
FEATURES = [integer("points", 0, 5), flag("paid"), choice("kind", "a", "b", "c", none=True)]
CLASSES = ["low", "medium", "high"]
def inputs():
    kinds = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    return [[points, paid, *kind] for points in range(6) for paid in range(2) for kind in kinds]
def labels():
    return [int(row[0] > 2) for row in inputs()]
"""
SETTINGS = RepairSettings(way=RepairWay.WEIGHTS, epochs=2, verify=VerifySettings(seconds=20))
LEFT = "new.onnx-unfinished.json"
SEEDS = (0, 1)
#: A training is kept as soon as the network is trained, and when each of the two is measured.
STEPS = 3 * len(SEEDS)


def _put(folder: Path) -> Path:
    (folder / "small.py").write_text(DOMAIN)
    (folder / "points.law").write_text(f"import small; {MORE} {BLOCK} ensures d1 <= d2;")
    (folder / "old.onnx").write_bytes(network(1))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _put(tmp_path)


def _repair(folder: Path, **more: Any) -> tuple[RepairedModel, ...]:
    given = {"settings": SETTINGS, "seeds": SEEDS, **more}
    files = {"out": folder / "new.onnx", "table": folder / "new.md"}
    return dokimos.repair_law(folder / "points.law", model=folder / "old.onnx", **files, **given)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an uninterrupted repair writes."""
    made = _put(tmp_path_factory.mktemp("whole"))
    _repair(made)
    return made


def _same(folder: Path, whole: Path) -> bool:
    return all(
        (folder / name).read_bytes() == (whole / name).read_bytes() for name in ("new.onnx", "new.md")
    )


class _Trainings:
    """Counts the trainings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._own = 0, repair.repaired
        monkeypatch.setattr(repair, "repaired", self._counted)

    def _counted(self, *given: Any, **more: Any) -> Any:
        self.count += 1
        return self._own(*given, **more)


def _interrupt(monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """Ctrl-C as soon as so many steps are kept."""
    kept = 0
    own = KeptRepairs.keep

    def keep(self: KeptRepairs, *given: Any) -> None:
        nonlocal kept
        own(self, *given)
        kept += 1
        if kept == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(KeptRepairs, "keep", keep)


@pytest.mark.parametrize("after", range(1, STEPS + 1))
def test_an_interrupted_repair_goes_on(
    after: int, folder: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainings = _Trainings(monkeypatch)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        _interrupt(patch, after=after)
        _repair(folder)
    assert (folder / LEFT).is_file() and not (folder / "new.onnx").exists()
    notes: list[str] = []
    _repair(folder, progress=lambda update: notes.append(update.note))
    assert trainings.count == len(SEEDS)  # none of them twice
    assert ["kept from before" in note for note in notes] == [after >= 3, after >= 6]
    assert _same(folder, whole)
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_what_other_arguments_have_left_is_not_used(
    folder: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for settings in (replace(SETTINGS, epochs=1), replace(SETTINGS, verify=VerifySettings(seconds=19))):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            _interrupt(patch, after=3)
            _repair(folder, settings=settings)
    trainings = _Trainings(monkeypatch)
    _repair(folder)
    assert trainings.count == len(SEEDS) and _same(folder, whole)
    assert not (folder / LEFT).exists()


def _of(text: str = MORE, *, own: Domain | None = None, content: bytes | None = None) -> Repair:
    found = own or replace(domain(), inputs=records)
    return Repair([law(text)], found, model_of(content or network(1)), settings=VerifySettings())


def test_all_that_a_repair_depends_on_has_its_part_in_the_key() -> None:
    plain = replace(domain(), inputs=records)
    wider = replace(domain("points <= 4"), inputs=records)
    labelled = replace(plain, labels=lambda: np.zeros(len(records())))
    keys = [
        _of().key(SETTINGS),
        _of(SET).key(SETTINGS),
        _of(content=network(2)).key(SETTINGS),
        _of(own=wider).key(SETTINGS),
        _of(own=labelled).key(SETTINGS),
        _of(own=replace(plain, inputs=lambda: records()[::-1].copy())).key(SETTINGS),
        _of().key(replace(SETTINGS, epochs=3)),
        _of().key(replace(SETTINGS, way=RepairWay.CERTIFIED)),
        _of().key(replace(SETTINGS, verify=VerifySettings(seconds=20, constrained=False))),
    ]
    assert len(set(keys)) == len(keys)
    assert _of().key(replace(SETTINGS, seed=7)) == keys[0]


def _change_measures(entry: dict[str, Any]) -> None:
    entry["steps"]["after"]["agreement"] = 1.0


def _change_network(entry: dict[str, Any]) -> None:
    content = entry["steps"]["content"]
    entry["steps"]["content"] = content[:40] + ("A" if content[40] != "A" else "B") + content[41:]


def _change_seed(entry: dict[str, Any]) -> None:
    entry["seed"] = 1


@pytest.mark.parametrize("change", [_change_measures, _change_network, _change_seed])
def test_what_was_changed_is_made_again(
    change: Callable[[dict[str, Any]], None],
    folder: Path,
    whole: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        _interrupt(patch, after=3)
        _repair(folder)
    document = json.loads((folder / LEFT).read_text())
    change(document["trainings"][0])
    (folder / LEFT).write_text(json.dumps(document))
    trainings = _Trainings(monkeypatch)
    _repair(folder)
    assert trainings.count == len(SEEDS) and _same(folder, whole)
    assert "was changed or damaged; it is repaired again" in caplog.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"format": "dokimos-unfinished-rep', "may be truncated"),
        ("[]", "is not what a repair has left"),
        ('{"format": "dokimos-unfinished-repair", "version": 9}', "version 9"),
        ('{"format": "dokimos-unfinished-repair", "version": 1, "trainings": [3]}', "not what a repair"),
    ],
)
def test_a_file_that_no_repair_has_left_stays(content: str, reason: str, folder: Path) -> None:
    (folder / LEFT).write_text(content)
    with pytest.raises(UnreadableFile, match=reason) as refused:
        _repair(folder)
    assert str(refused.value).endswith("; remove the file to repair from the beginning.")
    assert (folder / LEFT).read_text() == content and not (folder / "new.onnx").exists()


def test_two_repairs_do_not_write_the_same_network(folder: Path) -> None:
    with (
        only_one(folder / ".new.onnx.lock", doing="repairs it"),
        pytest.raises(InputError, match="wait for it"),
    ):
        _repair(folder)


def test_an_interrupted_test_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of a law ends with the cases it has when interrupted: too few for the table."""
    monkeypatch.setattr(
        measures, "test_law", lambda *given, **more: replace(run_law(*given, **more), is_interrupted=True)
    )
    with pytest.raises(KeyboardInterrupt):
        _of().run(SETTINGS)
