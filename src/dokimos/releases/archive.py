"""Checksums of a folder, and one archive of it whose bytes depend on its contents alone."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from dokimos.core.files import write_whole
from dokimos.suites.instance import sha256

CHECKSUMS = "SHA256SUMS"


def files_in(folder: Path) -> Iterator[Path]:
    """All files below a folder, in the order of their paths."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def write_checksums(folder: Path) -> None:
    """Write a file that `sha256sum -c` reads, with every other file of the folder."""
    lines = (
        f"{sha256(path.read_bytes())}  {path.relative_to(folder).as_posix()}\n"
        for path in files_in(folder)
        if path.name != CHECKSUMS
    )
    write_whole(folder / CHECKSUMS, "".join(lines), what="the list of checksums")


def write_archive(folder: Path, name: str, to: Path) -> None:
    """Pack a folder under a name, without times or owners, and with default permissions."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in files_in(folder):
            content = path.read_bytes()
            member = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    write_whole(to, packed.getvalue(), what="the archive")
