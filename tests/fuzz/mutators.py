"""Small changes to files, made at random: of bytes, of words, and of what a format is made of."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tests.json_mutants import VALUES

Change = Callable[[bytes, random.Random], bytes]
"""Makes one change to the content of a file."""

BYTES = (b"\0", b"\xff", b"\x80", b"\n", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\x1f\x8b", b"\0" * 300)
WORDS = (
    *(
        "0",
        "1",
        "2",
        "999999",
        "00",
        "-1",
        "1e308",
        "1e-400",
        "1e999999999",
        "nan",
        "inf",
        "9" * 500,
        str(2**63),
        "0.1",
    ),
    *("(" * 300, "[" * 300, "{" * 300, ")", "]", "}", '"', "'", ";", ",", "#", "\\", "\0", "\u2028", "é"),
    *("and", "or", "true", "null", "X_0", "Y_0", "x1", "-", "==", "..", "  " * 200, "\n"),
)
NUMBERS = (0, 1, -1, 2, 7, 32, 65, 2**20, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -0.0, 1.0, float("nan"), float("inf"), -float("inf"), 1e38, 1e-45)
#: Whatever it is made of: a document must be small, however often something in it was doubled.
MOST_BYTES = 1 << 20


def change_bytes(content: bytes, rng: random.Random) -> bytes:
    """One change that knows nothing of any format."""
    if not content:
        return rng.choice(BYTES)
    a, b = sorted((rng.randrange(len(content)), rng.randrange(len(content))))
    match rng.randrange(7):
        case 0:
            return content[:a] + bytes([content[a] ^ 1 << rng.randrange(8)]) + content[a + 1 :]
        case 1:
            return content[:a]
        case 2:
            return content[:a] + content[b:]
        case 3:
            return content[:b] + content[a:]
        case 4:
            return content[:a] + rng.choice(BYTES) + content[a:]
        case 5:
            return content[b:] + content[a:b] + content[:a]
    return content[:a] + rng.randbytes(4) + content[a + 4 :]


def change_words(content: bytes, rng: random.Random) -> bytes:
    """One change to the words of a text."""
    words = re.findall(r"\w+|\s+|[^\w\s]", content.decode("utf-8", "surrogateescape"))
    if not words:
        return rng.choice(WORDS).encode()
    a, b = rng.randrange(len(words)), rng.randrange(len(words))
    if rng.random() < 0.6:
        return "".join(_with_other_word(words, rng)).encode("utf-8", "surrogateescape")
    match rng.randrange(5):
        case 0:
            del words[a]
        case 1:
            words[a], words[b] = words[b], words[a]
        case 2:
            words[a] = words[b]
        case 3:
            words[a] = rng.choice(WORDS)
        case 4:
            words[a:a] = words[a : a + rng.randrange(1, 20)]
    return "".join(words).encode("utf-8", "surrogateescape")


def _with_other_word(words: list[str], rng: random.Random) -> list[str]:
    """A number in the place of a number, a name in that of a name, a sign in that of a sign."""
    kinds = (str.isdigit, str.isidentifier, lambda word: not (word.isspace() or word[0].isalnum()))
    kind = rng.choice(kinds)
    places = [number for number, word in enumerate(words) if kind(word)]
    if places:
        others = [words[number] for number in places]
        odd = [word for word in WORDS if kind(word)]
        words[rng.choice(places)] = rng.choice(others if rng.random() < 0.7 else odd)
    return words


def change_json(content: bytes, rng: random.Random) -> bytes:
    """One change to a value of a JSON document."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return change_words(content, rng)
    return json.dumps(_with_other_value(document, rng)).encode()


def change_json_lines(content: bytes, rng: random.Random) -> bytes:
    """One change to a line, or to the order of lines."""
    lines = content.split(b"\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(8):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            del lines[a]
        case 2:
            lines.insert(a, lines[b])
        case 3:
            lines[a] = change_words(lines[a], rng)
        case _:
            lines[a] = change_json(lines[a], rng)
    return b"\n".join(lines)


def _with_other_value(document: Any, rng: random.Random) -> Any:
    places = list(_places(document))
    path = rng.choice(places)
    value = copy.deepcopy(rng.choice([*VALUES, *VALUES, _at(document, rng.choice(places)), _deep(rng)]))
    if not path:
        return value
    parent = _at(document, path[:-1])
    match rng.randrange(4):
        case 0:
            del parent[path[-1]]
        case 1 if isinstance(parent, list):
            parent[path[-1] : path[-1]] = [copy.deepcopy(parent[path[-1]])] * rng.randrange(1, 40)
        case 1 if isinstance(parent, dict):
            parent[str(value)[:40]] = parent[path[-1]]
        case _:
            parent[path[-1]] = value
    return document


def _deep(rng: random.Random) -> Any:
    value: Any = 1
    for _ in range(rng.choice((3, 70, 400))):
        value = [value] if rng.random() < 0.7 else {"a": value}
    return value


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def change_onnx(content: bytes, rng: random.Random) -> bytes:
    """One change to a field of an ONNX file."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return change_bytes(content, rng)
    messages = list(_messages(model))
    message = rng.choice(messages)
    fields = [field for field in message.DESCRIPTOR.fields if _is_set(message, field)]
    if not fields or rng.random() < 0.1:
        fields = list(message.DESCRIPTOR.fields)
    _change_field(message, rng.choice(fields), messages, rng)
    return model.SerializeToString()


def _is_set(message: Message, field: Any) -> bool:
    if _is_repeated(field):
        return len(getattr(message, field.name)) > 0
    return bool(message.HasField(field.name))


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _messages(message: Message) -> Any:
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for part in value if _is_repeated(field) else [value]:
                yield from _messages(part)


def _change_field(message: Any, field: Any, others: list[Message], rng: random.Random) -> None:
    if rng.random() < 0.15:
        message.ClearField(field.name)
        return
    if _is_repeated(field):
        _change_repeated(getattr(message, field.name), field, others, rng)
    elif field.type == field.TYPE_MESSAGE:
        getattr(message, field.name).CopyFrom(_alike(field, others, rng))
    else:
        try:
            setattr(message, field.name, _scalar(field, others, rng))
        except ValueError:  # out of the field's range
            message.ClearField(field.name)


def _change_repeated(values: Any, field: Any, others: list[Message], rng: random.Random) -> None:
    whole = list(values)
    if field.type == field.TYPE_MESSAGE:
        made = [rng.choice(whole) if whole and rng.random() < 0.7 else _alike(field, others, rng)]
    else:
        made = [_scalar(field, others, rng)]
    if whole:
        a, b = rng.randrange(len(whole)), rng.randrange(len(whole))
        match rng.randrange(4):
            case 0:
                del whole[a]
            case 1:
                whole[a], whole[b] = whole[b], whole[a]
            case 2:
                whole[a] = made[0]
            case 3:
                whole[a:a] = made * rng.choice((1, 2, 64))
    else:
        whole = made
    copies = [copy.deepcopy(value) for value in whole]
    del values[:]
    try:
        values.extend(copies)
    except (ValueError, TypeError):
        return


def _alike(field: Any, others: list[Message], rng: random.Random) -> Any:
    found = [other for other in others if field.message_type == other.DESCRIPTOR]
    return copy.deepcopy(rng.choice(found)) if found else GetMessageClass(field.message_type)()


def _scalar(field: Any, others: list[Message], rng: random.Random) -> Any:
    if field.type == field.TYPE_STRING:
        names = [name for other in others for name in _strings(other)]
        return rng.choice([*names, "", "x", "Relu", "ConstantOfShape", "Expand", "Pad", "é"])
    if field.type == field.TYPE_BYTES:
        return rng.choice((b"", b"\0" * 4, b"\xff" * 8, rng.randbytes(16)))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return rng.choice(REALS)
    if field.type == field.TYPE_ENUM:
        return rng.choice(list(field.enum_type.values_by_number))
    return rng.choice(NUMBERS)


def _strings(message: Any) -> list[str]:
    found: list[str] = []
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            found += value if _is_repeated(field) else [value]
    return found


def mutant(content: bytes, changes: tuple[Change, ...], rng: random.Random) -> bytes:
    """The content after a few changes, mostly of the first kind."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
        change = changes[0] if rng.random() < 0.6 else rng.choice(changes)
        changed = change(content, rng)
        content = changed if len(changed) <= MOST_BYTES else content
    return content


def change_assignment(content: bytes, rng: random.Random) -> bytes:
    """Another value in an assignment, or in a `return`, of Python."""
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    places = [n for n, line in enumerate(lines) if re.match(r"\w+ = |    return ", line)]
    if not places:
        return change_words(content, rng)
    at = rng.choice(places)
    head = re.match(r"\w+ = |    return ", lines[at])
    assert head is not None
    odd = (
        "{1, 2}",
        "object()",
        "[object()]",
        "lambda: 1",
        "(1,)",
        "b'x'",
        "float('nan')",
        "str",
        "[real(1)]",
    )
    values = [*map(repr, VALUES), *odd]
    lines[at] = head[0] + rng.choice([*values, lines[rng.choice(places)].partition(" = ")[2] or "None"])
    return "\n".join(lines).encode("utf-8", "surrogateescape")
