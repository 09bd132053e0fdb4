from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from dokimos.core.documents import require_known_keys
from dokimos.core.errors import UnreadableFile


@dataclass(frozen=True)
class Inner:
    size: int | None = None


class One(msgspec.Struct, tag="one", tag_field="kind"):
    inner: Inner | None = None


class Two(msgspec.Struct, tag="two", tag_field="kind"):
    all: tuple[Inner, ...] = ()


Either = One | Two


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "one"},
        {"kind": "one", "inner": None},
        {"kind": "one", "inner": {"size": 1}},
        {"kind": "two", "all": [{}, {"size": None}]},
    ],
)
def test_what_has_the_form_passes(document: object) -> None:
    require_known_keys(document, Either, file="f", what="it")


@pytest.mark.parametrize(
    ("document", "key"),
    [
        ({"kind": "one", "more": 1}, "more"),
        ({"kind": "one", "all": []}, "all"),
        ({"kind": "one", "inner": {"sise": 1}}, "inner.sise"),
        ({"kind": "two", "all": [{}, {"sise": 1}]}, "all.sise"),
    ],
)
def test_a_key_too_many_is_named(document: object, key: str) -> None:
    with pytest.raises(UnreadableFile, match=f"f: unknown field `{key}`; this is not it"):
        require_known_keys(document, Either, file="f", what="it")
