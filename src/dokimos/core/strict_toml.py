"""Strict TOML: the only reader of TOML files, which also finds the line of a key."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dokimos.core.errors import Place, UnreadableFile
from dokimos.core.registry import unknown_name

#: Texts with more characters are refused.
MOST_CHARACTERS = 2**20
_DEEP_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++\s*+\.\s*+){64}""")
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w\s.\"'-]{1,200}?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*[\"']?([\w-]{1,200})[\"']?\s*=")

KeyPath = tuple[str | int, ...]
"""The keys and list indices that lead to a value."""


def parse(text: str, *, file: str, what: str) -> dict[str, Any]:
    """The plain values of a TOML document. Raises UnreadableFile."""
    if len(text) > MOST_CHARACTERS:
        raise UnreadableFile(file, f"{what} holds more than {MOST_CHARACTERS} characters")
    if _DEEP_KEY.search(text):  # the TOML parser takes quadratic time for these
        raise UnreadableFile(file, "not usable TOML (a key has too many parts)")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFile(file, f"not valid TOML: {error}") from None
    except (RecursionError, ValueError):
        raise UnreadableFile(file, "not usable TOML (nested too deeply, or a number too long)") from None


class CheckedTable:
    """A table in a document, whose keys and types are checked one by one; errors name file and line."""

    def __init__(self, table: Mapping[str, Any], text: str, *, file: str, path: KeyPath = ()) -> None:
        self._table, self._text, self._file, self._path = table, text, file, path

    def expect(self, keys: Sequence[str]) -> None:
        """Raise UnreadableFile if there is a key other than these."""
        for key in self._table:
            if key not in keys:
                raise self.problem(key, str(unknown_name("key", key, list(keys))).rstrip("."))

    def get(self, key: str, kinds: tuple[type, ...], what: str) -> Any:
        """The value of a key, None if it is missing; `what` says what it must be."""
        value = self._table.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
            raise self.problem(key, f"`{key}` must be {what}")
        return value

    def texts(self, key: str, what: str) -> tuple[str, ...]:
        """A list of non-empty texts; empty if the key is missing."""
        found = self.get(key, (list,), what) or []
        if not all(isinstance(each, str) and each.strip() for each in found):
            raise self.problem(key, f"`{key}` must be {what}")
        return tuple(found)

    def table(self, key: str) -> CheckedTable:
        """The table of a key; an empty one if the key is missing."""
        found = self.get(key, (dict,), "a table of keys and values")
        return CheckedTable(found or {}, self._text, file=self._file, path=(*self._path, key))

    def tables(self, key: str) -> list[CheckedTable]:
        """The tables of a list; none if the key is missing."""
        found = self.get(key, (list,), f"a list of tables, each [[{key}]]") or []
        if not all(isinstance(each, dict) for each in found):
            raise self.problem(key, f"`{key}` must be a list of tables, each [[{key}]]")
        return [
            CheckedTable(each, self._text, file=self._file, path=(*self._path, key, number))
            for number, each in enumerate(found)
        ]

    def problem(self, key: str | None, reason: str) -> UnreadableFile:
        """The error for a key, or for the table itself, with the line."""
        path = self._path if key is None else (*self._path, key)
        end = "" if reason.endswith("?") else "."
        return UnreadableFile(Place(self._file, line_of(self._text, path)), f"{reason}{end}")


def line_of(text: str, path: KeyPath) -> int | None:
    """The 1-based line of a key, or of the nearest key that leads to it; None if there is none."""
    found: dict[KeyPath, int] = {}
    counts: Counter[KeyPath] = Counter()
    table: KeyPath = ()
    is_text = False  # in a multi-line string
    for number, line in enumerate(text.split("\n"), start=1):
        if not is_text:
            if header := _HEADER.match(line):
                table = tuple(part.strip().strip("\"'") for part in header[2].split("."))
                if header[1] == "[[":
                    counts[table] += 1
                    found.setdefault(table, number)
                    table = (*table, counts[table] - 1)
                found.setdefault(table, number)
            elif key := _KEY.match(line):
                found.setdefault((*table, key[1]), number)
        is_text ^= (line.count('"""') + line.count("'''")) % 2 == 1
    return next((found[path[:end]] for end in range(len(path), 0, -1) if path[:end] in found), None)
