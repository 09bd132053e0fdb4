"""A suite in the making: kept beside its destination until complete, so that it can be continued."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError
from dokimos.core.files import append_line, expect_new_or_empty, write_whole
from dokimos.core.strict_json import parse
from dokimos.suites.instance import sha256
from dokimos.suites.writing import write_rows

_JOURNAL = "done.jsonl"


class PartialSuite:
    """The folder `.NAME.KEY.part` beside `folder` with what is done so far; KEY identifies the recipe.

    Raises InputError if `folder` holds something else already.
    """

    def __init__(self, folder: Path, recipe: Mapping[str, Any], version: str) -> None:
        expect_new_or_empty(folder)
        self._folder, self._recipe, self._version = folder, recipe, version
        key = sha256(json.dumps([version, recipe]).encode())[:12]
        self._building = folder.parent / f".{folder.name}.{key}.part"
        if self._building.is_symlink():
            raise InputError(f"{self._building} is a link, which Dokimos does not make; remove it first.")
        try:
            self._building.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be created ({error.strerror}); choose another --out."
            ) from None
        self.done: list[dict[str, Any]] = self._read()

    def _read(self) -> list[dict[str, Any]]:
        """The lines of the journal; a truncated last one is dropped."""
        journal = self._building / _JOURNAL
        if not journal.exists():
            return []
        text = journal.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        write_whole(journal, whole, what="the list of what is done")
        return [parse(line, file=journal) for line in whole.splitlines()]

    def write(self, place: str, content: bytes | str) -> None:
        """Write a file of the suite."""
        write_whole(self._building / place, content, what="a file of the suite")

    def add(self, line: Mapping[str, Any]) -> None:
        """Record what is done, once its files are written."""
        append_line(self._building / _JOURNAL, json.dumps(line), what="the list of what is done")
        self.done.append(dict(line))

    def finish(
        self, rows: Sequence[tuple[str, str, float]], families: Mapping[str, str], made: Mapping[str, Any]
    ) -> None:
        """Write the index and move the suite to its destination; `made` is added to suite.json's recipe."""
        write_rows(self._building, rows, families, recipe={**self._recipe, **made}, version=self._version)
        (self._building / _JOURNAL).unlink(missing_ok=True)
        if self._folder.exists():
            self._folder.rmdir()
        self._building.replace(self._folder)
