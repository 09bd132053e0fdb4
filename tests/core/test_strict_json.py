from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from types import MappingProxyType

import msgspec
import pytest

from dokimos.core import strict_json
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.core.typed_values import convert


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    size: Fraction


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    colour: Colour
    inner: tuple[Inner, ...] = ()


HOOKS = {Fraction: Fraction}


def read(text: str) -> Form:
    return strict_json.read(text, Form, file="a.json", what="a form", hooks=HOOKS)


def test_what_is_written_is_read_again() -> None:
    form = Form("x", Colour.RED, (Inner(Fraction(1, 3)),))
    assert read(strict_json.write(form)) == form


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "x", "colour": "red"', "a.json:1:30: not valid JSON"),
        ('{"name": "x", "name": "y", "colour": "red"}', "a.json: the key 'name' appears twice"),
        ('{"name": 1, "colour": "red"}', "a.json: name: expected `str`, got `int`; this is not a form"),
        ('{"name": "x"}', "missing required field `colour`"),
        ('{"name": "\\ud800", "colour": "red"}', "a text holds half of a surrogate pair"),
        ("[" * 65 + "]" * 65, "nested deeper than 64 levels"),
        ("[" * 200_000 + "]" * 200_000, "nested too deeply"),
        ("[" + "0," * 10_000_000 + "0]", "more than 10000000 values"),
        ('{"name": "x", "colour": "blue"}', "a.json: colour: invalid enum value 'blue'"),
        ('{"name": "x", "colour": "red", "more": 1}', "unknown field `more`"),
        ('{"name": "x", "colour": "red", "inner": [{"size": "a"}]}', r"inner\[0\].size: .*'a'"),
        ('{"name": "x", "colour": "red", "inner": [{"size": "1/0"}]}', r"inner\[0\].size"),
        ('{"name": NaN}', "NaN is not a JSON number"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 10_000, "a number too long"),
        ("[]", "expected `object`, got `array`"),
    ],
)
def test_whatever_else_there_is_gets_one_sentence(text: str, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason):
        read(text)


def test_a_key_that_stands_twice_is_found_among_many() -> None:
    keys = [f'"{number}": 0' for number in range(200_000)]
    with pytest.raises(UnreadableFile, match="the key '199999' appears twice"):
        strict_json.parse("{" + ", ".join([*keys, '"199999": 1']) + "}", file="a.json")


def test_a_document_may_not_be_too_long() -> None:
    with pytest.raises(UnreadableFile, match="more than 10 bytes"):
        strict_json.parse(b"[1, 2, 3, 4]", file="a.json", most_bytes=10)


def test_text_that_is_no_text() -> None:
    with pytest.raises(UnreadableFile, match=r"a.json:3: not a text file"):
        strict_json.parse(b'"\xff"', file=Place("a.json", 3))


def test_nan_where_it_is_allowed() -> None:
    assert strict_json.parse("[Infinity]", file="a.json", nan=True) == [float("inf")]


def test_a_mapping_is_written_as_an_object_whatever_its_type() -> None:
    assert strict_json.plain(MappingProxyType({"a": MappingProxyType({})})) == {"a": {}}


@dataclass(frozen=True)
class Positive:
    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InputError(f"The size {self.size} must be at least 1.")


def test_what_a_type_says_of_its_values_names_the_file() -> None:
    with pytest.raises(UnreadableFile, match=r"a.json: The size 0 must be at least 1\."):
        strict_json.read('{"size": 0}', Positive, file="a.json", what="a size")


def test_many_lists_side_by_side_are_not_deep() -> None:
    document = [[[]]] * 100
    assert strict_json.parse(strict_json.write(document), file="a.json") == document
    deepest = "[" * 64 + "]" * 64
    assert strict_json.write(strict_json.parse(deepest, file="a.json"), indent=None) == deepest + "\n"


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert strict_json.parse('"\\ud83d\\ude00"', file="a.json") == "\U0001f600"


def test_a_name_with_line_breaks_leaves_the_message_in_one_line() -> None:
    class Strict(msgspec.Struct, forbid_unknown_fields=True):
        known: int = 0

    with pytest.raises(UnreadableFile, match="unknown field `first second`; this is not one") as caught:
        convert({"first\nsecond": 1}, Strict, file="f.json", what="one")
    assert "\n" not in str(caught.value)
