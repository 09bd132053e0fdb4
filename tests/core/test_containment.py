from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from dokimos.core.errors import UnreadableFile
from dokimos.core.files import contained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    (folder / "onnx").mkdir(parents=True)
    (folder / "onnx" / "a.onnx").write_text("a")
    (tmp_path / "secret").write_text("s3cr3t")
    return folder


@pytest.mark.parametrize("name", ["onnx/a.onnx", "onnx/new.onnx", "onnx/../onnx/a.onnx", "onnx", "a/b"])
def test_what_is_inside_may_be_there_or_not(folder: Path, name: str) -> None:
    assert contained(folder, name) == folder / name


def test_links_inside_and_a_folder_that_is_a_link_are_fine(folder: Path, tmp_path: Path) -> None:
    (folder / "b.onnx").symlink_to("onnx/a.onnx")
    (tmp_path / "other").symlink_to(folder)
    assert contained(tmp_path / "other", "b.onnx").read_text() == "a"
    assert contained(folder, folder / "onnx" / "a.onnx").read_text() == "a"


@pytest.mark.parametrize(
    "name", ["../secret", "../suite2/x", "/etc/passwd", "onnx/../../secret", "link", "far/passwd", "gone"]
)
def test_what_leaves_is_refused_whether_it_is_there_or_not(folder: Path, name: str) -> None:
    (folder / "link").symlink_to("../secret")
    (folder / "far").symlink_to("/etc")
    (folder / "gone").symlink_to("../nothing")
    with pytest.raises(UnreadableFile, match="out of the folder") as caught:
        contained(folder, name)
    assert "s3cr3t" not in str(caught.value)


def test_devices_pipes_and_sockets_are_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    there = Path.cwd()
    os.chdir(folder)  # the name of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("socket")
    finally:
        os.chdir(there)
    for base, name in ((folder, "pipe"), (folder, "socket"), (Path("/dev"), "zero")):
        with pytest.raises(UnreadableFile, match="not a regular file"):
            contained(base, name)


def test_names_that_no_file_can_have_are_not_there(folder: Path) -> None:
    (folder / "round").symlink_to("round")
    for name in ("a\0b", "n" * 300, "round"):
        assert contained(folder, name) == folder / name
        with pytest.raises(UnreadableFile, match="out of the folder"):
            contained(folder / "onnx", f"../{name}")
