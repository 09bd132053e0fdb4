from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_replaces_another_as_a_whole(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "new" / "a.txt"
    write_whole(path, "é", durable=durable)
    write_whole(path, b"two", durable=durable)
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    with pytest.raises(InputError, match="the report cannot be written"):
        write_whole(tmp_path / "a.txt", b"x", what="the report")
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_place_is_tried_before_the_work(tmp_path: Path) -> None:
    expect_writable(tmp_path / "sub" / "a.html", what="page", example="b.html")
    assert list((tmp_path / "sub").iterdir()) == []
    with pytest.raises(InputError, match=r"is a folder; give the page a name, such as .*/b.html"):
        expect_writable(tmp_path, what="page", example="b.html")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the page cannot be written"):
        expect_writable(tmp_path / "file" / "a.html", what="page", example="b.html")


def test_a_full_disk_asks_for_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dokimos.core.files.os.fsync", full)
    with pytest.raises(InputError, match="make room and run the same command again"):
        write_whole(tmp_path / "a.txt", b"x", durable=True)
    assert list(tmp_path.iterdir()) == []
