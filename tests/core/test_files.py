from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import append_line, expect_room, expect_writable, read_whole, write_whole


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


def test_room_for_a_folder_is_looked_for_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expect_room(tmp_path / "new" / "folder")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be made in .*/file: it is a file"):
        expect_room(tmp_path / "file" / "folder")
    for taken in (tmp_path, tmp_path / "file"):
        with pytest.raises(InputError, match="holds something else"):
            expect_room(taken)
    (tmp_path / "empty").mkdir()
    expect_room(tmp_path / "empty")
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(InputError, match="the folder that you are in"):
        expect_room(Path())
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="you may not write there"):
        expect_room(tmp_path / "new")


def test_a_place_is_tried_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    expect_writable(tmp_path / "sub" / "a.html", what="page", example="b.html")
    assert list((tmp_path / "sub").iterdir()) == []
    with pytest.raises(InputError, match=r"there is no folder .*/missing; create it first"):
        expect_writable(tmp_path / "missing" / "a.html", what="page", example="b.html")
    assert not (tmp_path / "missing").exists()
    for special in ("/dev/null", "/dev/stdout"):
        expect_writable(Path(special), what="page", example="b.html")
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


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "there" / "page.html", tmp_path / "page.html"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    hanging = tmp_path / "hanging.html"
    hanging.symlink_to("there/other.html")
    write_whole(hanging, "one")
    assert hanging.is_symlink() and (tmp_path / "there" / "other.html").read_text() == "one"
    turning = tmp_path / "turning"
    turning.symlink_to(turning)
    with pytest.raises(InputError, match="cannot be written"):
        write_whole(turning, "x")


def test_what_is_no_regular_file_is_written_into(tmp_path: Path) -> None:
    before = Path("/dev/null").stat()
    link = tmp_path / "null"
    link.symlink_to("/dev/null")
    for place in (Path("/dev/null"), link):
        write_whole(place, "lost", make_folder=False)
    assert os.path.samestat(Path("/dev/null").stat(), before) and stat.S_ISCHR(before.st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, "through")
    reader.join()
    assert read == [b"through"] and stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["null", "pipe"]


def test_standard_output_is_written_into_even_where_it_is_a_file(tmp_path: Path) -> None:
    script = (
        "from pathlib import Path; from dokimos.core.files import write_whole; "
        "print('first', flush=True); write_whole(Path('/dev/stdout'), 'page\\n'); print('last')"
    )
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "first\npage\nlast\n"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"there is no folder {tmp_path}/typo; create it first"):
        write_whole(tmp_path / "typo" / "page.html", "x", make_folder=False)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match=r"/dev/full: the page cannot be written \(No space left"):
        write_whole(Path("/dev/full"), "x", what="the page")
    with pytest.raises(InputError, match="/dev/full: the journal cannot be written"):
        append_line(Path("/dev/full"), "x", what="the journal")
    monkeypatch.setattr("dokimos.core.files.os.write", full)
    with pytest.raises(InputError, match=r"a\.txt: .*; make room"):
        write_whole(tmp_path / "a.txt", b"x")
    assert list(tmp_path.iterdir()) == []


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UnreadableFile, match="not a regular file"):
            read_whole(path)
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "no\0ne", "null byte")):
        with pytest.raises(UnreadableFile, match=reason):
            read_whole(path)
