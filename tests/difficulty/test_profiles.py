"""Profiles on disk: kept, not measured twice, never half-written."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.difficulty import profiles as measuring
from dokimos.difficulty.profiles import ProfileTask, measure_all, profile_of, profile_path
from dokimos.suites.facts import ProfileSettings, dump_profile, load_profile
from tests.difficulty.inspections import dense, unit_box

NETWORK = dense(([[1, 2], [3, -1]], [0, 0]), ([[1, 1]], [1]))
ASKED = unit_box(2, 1, "(<= Y_0 0)")


@pytest.fixture
def task(tmp_path: Path) -> ProfileTask:
    (tmp_path / "f.onnx").write_bytes(NETWORK)
    (tmp_path / "f.vnnlib").write_bytes(ASKED)
    return ProfileTask(
        "f", tmp_path / "f.onnx", tmp_path / "f.vnnlib", ProfileSettings(samples=20), tmp_path / "out"
    )


def outcomes(*tasks: ProfileTask, jobs: int = 1) -> list[measuring.MeasuredProfile]:
    return list(measure_all(tasks, jobs=jobs))


def test_the_same_seed_gives_the_same_bytes(task: ProfileTask) -> None:
    texts = {
        dump_profile(profile_of(task.name, task.network, task.property, task.settings)) for _ in range(2)
    }
    assert len(texts) == 1
    other = replace(task.settings, seed=1)
    assert dump_profile(profile_of(task.name, task.network, task.property, other)) not in texts


def test_a_profile_is_kept_and_read_back(task: ProfileTask) -> None:
    (outcome,) = outcomes(task)
    assert outcome.profile == load_profile(profile_path(task))
    assert [path.name for path in task.out.iterdir()] == ["f.json"]


def test_what_is_there_is_not_measured_again(task: ProfileTask, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = outcomes(task)
    monkeypatch.setattr(measuring, "profile_of", lambda *_: pytest.fail("measured again"))
    (again,) = outcomes(task)
    assert again.was_there
    assert again.profile == first.profile


def test_other_settings_other_files_and_torn_profiles_are_measured(task: ProfileTask) -> None:
    outcomes(task)
    (found,) = outcomes(replace(task, settings=ProfileSettings(samples=21)))
    assert not found.was_there
    task.property.write_bytes(unit_box(2, 1, "(<= Y_0 -1)"))
    (found,) = outcomes(replace(task, settings=ProfileSettings(samples=21)))
    assert not found.was_there
    profile_path(task).write_text("{", encoding="utf-8")
    (found,) = outcomes(task)
    assert not found.was_there
    assert found.profile == load_profile(profile_path(task))


def test_compressed_files_are_the_same_instance(task: ProfileTask, tmp_path: Path) -> None:
    for path in (task.network, task.property):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    folded = replace(task, network=tmp_path / "f.onnx.gz", property=tmp_path / "f.vnnlib.gz")
    plain, compressed = (profile_of(t.name, t.network, t.property, t.settings) for t in (task, folded))
    assert plain == compressed


def test_one_failure_does_not_stop_the_others(task: ProfileTask, tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(NETWORK[:-20])
    (tmp_path / "wide.vnnlib").write_bytes(unit_box(3, 1, "(<= Y_0 0)"))
    broken = replace(task, name="broken", network=tmp_path / "broken.onnx")
    absent = replace(task, name="absent", property=tmp_path / "absent.vnnlib")
    wide = replace(task, name="wide", property=tmp_path / "wide.vnnlib")
    found = {outcome.name: outcome for outcome in outcomes(broken, absent, wide, task)}
    assert found["f"].profile is not None
    for name, words in (("broken", "ONNX"), ("absent", "no such file"), ("wide", "3 inputs")):
        assert found[name].profile is None
        assert words in (found[name].problem or "")
        assert "\n" not in (found[name].problem or "")
    assert [path.name for path in task.out.iterdir()] == ["f.json"]


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made_is_refused(task: ProfileTask, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(InputError, match="choose another `out`"):
        outcomes(replace(task, out=tmp_path / "closed" / "out"))


def test_a_folder_that_is_a_file_is_refused(task: ProfileTask, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose another `out`"):
        outcomes(replace(task, out=tmp_path / "file"))


def test_without_torch_it_says_what_to_install(task: ProfileTask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"^Profiles need torch; .* pip install torch==\d"):
        outcomes(task)
