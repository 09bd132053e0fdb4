"""Suites of strangers: what they name lies in their own folder, and is a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.core.errors import UnreadableFile
from dokimos.suites.facts import read_facts
from dokimos.suites.folder import read_suite, read_suite_file

SECRET = "root:x:0:0:s3cr3t"


@pytest.fixture
def folder(tmp_path: Path, copy_of_tiny: Callable[[Path], Path]) -> Path:
    (tmp_path / "passwd").write_text(SECRET)
    return copy_of_tiny(tmp_path / "suite")


def _refused(read: Callable[[Path], object], folder: Path, match: str) -> None:
    with pytest.raises(UnreadableFile, match=match) as caught:
        read(folder)
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("name", ["../passwd", "/etc/passwd", "/dev/zero", "onnx/../../passwd"])
@pytest.mark.parametrize("row", ["{},{property},5", "{network},{},5"])
def test_a_row_outside_its_folder_is_refused(folder: Path, row: str, name: str) -> None:
    entry = read_suite(folder).entries[0]
    files = {"network": f"onnx/{entry.network_path.name}", "property": f"vnnlib/{entry.property_path.name}"}
    (folder / "instances.csv").write_text(row.format(name, **files) + "\n")
    _refused(read_suite, folder, r"instances\.csv:1: .*its name leads out of the folder")


@pytest.mark.parametrize("part", ["network_path", "property_path", "truth_path"])
@pytest.mark.parametrize("what", ["link", "device", "pipe", "linked folder"])
def test_a_file_that_is_none_of_the_suite_is_refused(folder: Path, part: str, what: str) -> None:
    path: Path = getattr(read_suite(folder).entries[0], part)
    if what == "linked folder":
        path.parent.rename(folder.parent / "elsewhere")
        path.parent.symlink_to("../elsewhere")
    else:
        path.unlink()
    if what == "link":
        path.symlink_to("../../passwd")
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "pipe":
        os.mkfifo(path)
    _refused(read_suite, folder, "not a regular file" if what == "pipe" else "out of the folder")


@pytest.mark.parametrize(("name", "read"), [("instances.csv", read_suite), ("suite.json", read_suite_file)])
def test_the_index_itself_is_a_file_of_the_suite(
    folder: Path, name: str, read: Callable[[Path], object]
) -> None:
    (folder / name).unlink()
    (folder / name).symlink_to("../passwd")
    _refused(read, folder, "a link there leads out of the folder")


def test_a_linked_profile_is_none(folder: Path) -> None:
    suite = read_suite(folder)
    path = folder / "profiles" / f"{suite.entries[0].name}.json"
    path.parent.mkdir()
    path.symlink_to("../../passwd")
    facts = read_facts(suite, 0, None, network_sha256="", property_sha256="")
    assert facts.profile is None
    assert "out of the folder" in facts.problem and "s3cr3t" not in facts.problem


def test_links_inside_a_suite_are_fine(folder: Path) -> None:
    entry = read_suite(folder).entries[0]
    entry.network_path.rename(folder / "one.onnx")
    entry.network_path.symlink_to("../one.onnx")
    assert read_suite(folder).entries[0].read_instance().network_file


def test_a_file_that_becomes_a_pipe_is_not_waited_for(folder: Path) -> None:
    entry = read_suite(folder).entries[0]
    entry.network_path.unlink()
    os.mkfifo(entry.network_path)
    with pytest.raises(UnreadableFile, match="not a regular file"):
        entry.read_instance()


def test_a_suite_is_found_by_a_relative_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    entry = read_suite(Path("suite")).entries[0]
    assert entry.network_path.parent == Path("suite/onnx") and entry.read_instance().network_file
    monkeypatch.chdir(folder)
    assert read_suite(Path()).entries[0].read_truth() is not None
