"""Documents around strict JSON: stated formats, unknown keys, numbers that JSON lacks, and TOML."""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, inspect

from dokimos.core.errors import Place, UnreadableFile
from dokimos.core.readable import unknown_name

# Files that state their format: a "format" and a "version" at the top of a JSON object


#: A count that fits in 64 bits.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]


def expect_format(document: Any, name: str, version: int, *, file: str | Path, otherwise: str) -> None:
    """Raise UnreadableFile if a document does not state this format and version.

    `otherwise` is the message for a document of another format.
    """
    if not isinstance(document, dict) or document.get("format") != name:
        raise UnreadableFile(file, f'{otherwise} (its "format" is not "{name}").')
    if document.get("version") != version:
        found = str(document.get("version"))[:40]
        raise UnreadableFile(file, f"has version {found}, but this version of Dokimos reads {version}.")


# Refuses unknown keys in dataclasses too, where msgspec itself ignores them


_Search = Callable[[Any, str], str | None]
"""Finds the first unknown key in a value, and returns its path of keys."""


def require_known_keys(document: Any, kind: Any, *, file: str | Path | Place, what: str) -> None:
    """Raise UnreadableFile if a key of a plain `document` is not a field of `kind`.

    Apart from that, the document must have the form of `kind`: `strict_json.convert` has accepted it. No
    type in `kind` may contain itself.
    """
    search = _search_for(kind)
    if search is not None and (found := search(document, "")) is not None:
        raise UnreadableFile(file, f"unknown field `{found[:80]}`; this is not {what}")


@functools.cache
def _search_for(kind: Any) -> _Search | None:
    return _search(inspect.type_info(kind))


def _search(shape: inspect.Type) -> _Search | None:
    """The search through values of one type; None if they have no keys."""
    if isinstance(shape, inspect.UnionType):
        return _in_union(shape)
    if isinstance(shape, inspect.DataclassType | inspect.StructType):
        return _in_object(shape)
    if isinstance(shape, inspect.ListType | inspect.VarTupleType):
        return _in_list(shape)
    return None


def _in_union(shape: inspect.UnionType) -> _Search | None:
    searches = [(option, found) for option in shape.types if (found := _search(option)) is not None]

    def search(value: Any, path: str) -> str | None:
        for option, inner in searches:
            if _fits(value, option) and (found := inner(value, path)) is not None:
                return found
        return None

    return search if searches else None


def _fits(value: Any, option: inspect.Type) -> bool:
    """Whether `value` may have been read as this member of a union."""
    if isinstance(option, inspect.StructType) and isinstance(value, dict):
        return option.tag_field is None or value.get(option.tag_field) == option.tag
    return True


def _in_object(shape: inspect.DataclassType | inspect.StructType) -> _Search:
    known = {field.encode_name for field in shape.fields}
    if isinstance(shape, inspect.StructType) and shape.tag_field is not None:
        known.add(shape.tag_field)
    searches = {f.encode_name: found for f in shape.fields if (found := _search(f.type)) is not None}

    def search(value: Any, path: str) -> str | None:
        if not isinstance(value, dict):
            return None
        for key in value:
            if key not in known:
                return f"{path}{key}"
        for key, inner in searches.items():
            if key in value and (found := inner(value[key], f"{path}{key}.")) is not None:
                return found
        return None

    return search


def _in_list(shape: inspect.ListType | inspect.VarTupleType) -> _Search | None:
    inner = _search(shape.item_type)
    if inner is None:
        return None

    def search(value: Any, path: str) -> str | None:
        parts = value if isinstance(value, list) else ()
        return next((found for part in parts if (found := inner(part, path)) is not None), None)

    return search


# Infinities and NaN, which JSON lacks, in documents for other programs


def finite(value: Any) -> Any:
    """A plain value with the texts "inf", "-inf" and "nan" in place of the numbers that JSON lacks."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# Strict TOML: the only reader of TOML files, which also finds the line of a key


#: Texts with more characters are refused.
MOST_CHARACTERS = 2**20
_DEEP_KEY = re.compile(r"""(?<![\w"'-])(?:[\w"'-]++\s*+\.\s*+){64}""")
_HEADER = re.compile(r"\s*+(\[\[?)\s*+([\w\s.\"'-]{1,200}?)\s*+\]\]?\s*+(?:#.*)?$")
_KEY = re.compile(r"\s*+[\"']?([\w-]{1,200}+)[\"']?\s*+=")

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
