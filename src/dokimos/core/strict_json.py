"""Strict JSON: the only reader and the only writer of everything that Dokimos stores as JSON.

A document is read in two steps. `parse` turns text into plain values and refuses what JSON leaves undefined
(a repeated key, NaN) or what is too large (in size or depth). `convert` then makes a typed value of it: a
dataclass or a `msgspec.Struct`, whose types fully describe the shape. `read` does both. The form of a file
is best written as ``class Form(Struct, frozen=True, forbid_unknown_fields=True)``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from dokimos.core.errors import Place, UnreadableFile
from dokimos.core.typed_values import Hooks, convert

T = TypeVar("T")

#: Documents with more bytes are refused.
MOST_BYTES = 2**28
#: So are those with more values: each takes up to a hundred bytes in memory, but may take two in the file.
MOST_VALUES = 10_000_000
#: So are those nested deeper: code that walks through a document could run out of stack.
MOST_DEPTH = 64


def parse(
    content: bytes | str, *, file: str | Path | Place, most_bytes: int = MOST_BYTES, nan: bool = False
) -> Any:
    """The plain value of a JSON document. Raises UnreadableFile, with line and column if they help.

    With `nan`, the words NaN and Infinity are accepted as numbers; standard JSON does not have them.
    """
    if len(content) > most_bytes:
        raise UnreadableFile(file, f"the document holds more than {most_bytes} bytes")
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        brackets = text.count("[") + text.count("{")
        if brackets + text.count(",") > MOST_VALUES:
            raise _Refused(f"the document holds more than {MOST_VALUES} values")
        document = json.loads(
            text, object_pairs_hook=_without_repeats, parse_constant=float if nan else _no_constant
        )
        if "\\ud" in text or "\\uD" in text:
            json.dumps(document, ensure_ascii=False).encode()  # fails for half of a surrogate pair
        if brackets > MOST_DEPTH and isinstance(document, list | dict) and _is_deep(document):
            raise _Refused(f"the document is nested deeper than {MOST_DEPTH} levels")
        return document
    except UnicodeDecodeError:
        raise UnreadableFile(file, "not a text file in UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}" if not isinstance(file, Place) else file
        raise UnreadableFile(where, f"not valid JSON ({error.msg}); the file may be truncated") from None
    except _Refused as error:
        raise UnreadableFile(file, str(error)) from None
    except UnicodeEncodeError:
        raise UnreadableFile(file, "a text holds half of a surrogate pair, not a character") from None
    except (RecursionError, ValueError):
        raise UnreadableFile(file, "not usable JSON (nested too deeply, or a number too long)") from None


def read(
    content: bytes | str, kind: type[T], *, file: str | Path | Place, what: str, hooks: Hooks | None = None
) -> T:
    """Read a JSON document as a typed value; see `parse` and `convert`."""
    return convert(parse(content, file=file), kind, file=file, what=what, hooks=hooks)


def plain(value: Any) -> Any:
    """Convert a typed value to one that JSON has.

    Dataclasses, structs and mappings become objects, enums become their values, and anything else that JSON
    lacks becomes its text.
    """
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_known_to_json)


def write(value: Any, *, indent: int | None = 1) -> str:
    """The text of a JSON document, with a newline at its end; see `plain`."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False) + "\n"


def _known_to_json(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


class _Refused(Exception):
    """Valid for some readers of JSON, but not for this one."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise _Refused(f"the key {twice[:80]!r} appears twice in one object")
    return found


def _is_deep(document: Any) -> bool:
    level = [document]
    for _ in range(MOST_DEPTH):
        parts = (value if isinstance(value, list) else value.values() for value in level)
        level = [part for several in parts for part in several if isinstance(part, list | dict)]
    return bool(level)


def _no_constant(word: str) -> NoReturn:
    raise _Refused(f"{word} is not a JSON number")
