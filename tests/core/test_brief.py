from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dokimos.core.readable import Brief


@dataclass(frozen=True)
class Part:
    text: str


@dataclass(frozen=True, repr=False)
class Whole(Brief):
    name: str
    parts: tuple[Part | int, ...] = ()
    by_name: Mapping[str, Part] | None = None
    inner: Whole | None = None
    untold: int = field(default=0, repr=False)


def test_what_is_short_is_shown() -> None:
    assert repr(Whole("a", (1, 2))) == "Whole(name='a', parts=(1, 2), by_name=None, inner=None)"


def test_what_is_long_is_counted_or_named() -> None:
    many = Whole("a", (*range(5), Part("x")), dict.fromkeys("abcd", Part("y")))
    assert repr(many) == "Whole(name='a', parts=<6 Part or int>, by_name=<4 Part>, inner=None)"
    assert repr(Whole("a" * 200, (Part("x" * 200),))).startswith("Whole(name=<str>, parts=<1 Part>")
    assert repr(Whole("b", inner=many)).endswith(f"inner={many!r})")
