"""Numbers and text for display; what is shown is never less true than the exact value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    ROUND_UP,
    Context,
    Decimal,
    Inexact,
)
from fractions import Fraction
from typing import Any

from dokimos.core.errors import InputError

_SHORT_DIGITS = 6
_FULL_DIGITS = 400
_FLOAT64_DIGITS = 17
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])")
#: Control characters but tabs and ends of lines, what changes the direction of text or ends a line
#: unseen, and halves of characters.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


@dataclass(frozen=True)
class Number:
    """A number in two forms: rounded to six digits, and in full.

    `full` ends in "…" if 400 digits are not enough to write the number; they are then truncated, not
    rounded. A number that is not 0 is never shown as 0.
    """

    short: str
    full: str


def exact_number(value: Fraction) -> Number:
    """An exact rational for display."""
    full, exact = _quotient(value, _FULL_DIGITS, ROUND_DOWN)
    short, _ = _quotient(value, _SHORT_DIGITS, ROUND_HALF_EVEN)
    return Number(short=_spell(short), full=_spell(full) + ("" if exact else "…"))


def enclosed_number(value: Fraction, error: Fraction) -> Number:
    """A number known to within `error`, for display; exact if `error` is 0."""
    if error == 0:
        return exact_number(value)
    leading = _quotient(value, _SHORT_DIGITS, ROUND_HALF_EVEN)[0]
    off = _spell(_quotient(error, 2, ROUND_UP)[0])
    digits, _ = _quotient(value, _FLOAT64_DIGITS, ROUND_HALF_EVEN)
    is_sharp = error < abs(value) / 10**_SHORT_DIGITS
    return Number(
        short=_spell(leading) if is_sharp else f"{_spell(leading)} ± {off}",
        full=f"{_spell(digits)} ± {off}",
    )


def least_number(value: Fraction) -> Number:
    """A lower bound for display."""
    digits, _ = _quotient(value, _FLOAT64_DIGITS, ROUND_FLOOR)
    return Number(short=exact_number(value).short, full=f"at least {_spell(digits)}")


def float_number(value: float) -> Number:
    """A float for display; nan and the infinities are written out."""
    return Number(short=f"{value:.{_SHORT_DIGITS}g}", full=repr(value))


def seconds(value: float) -> str:
    """A time in seconds with about three digits, without its unit."""
    if 0 < value < 0.001:
        return "<0.001"
    if value < 1:
        return f"{value:.3f}"
    if value < 10:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def printable(text: str) -> str:
    """`text` without colour codes, and with "�" for characters that no page shows and no terminal should
    obey: they could hide, move or forge what is printed.

    The output of verifiers is not always valid text: a lone surrogate cannot even be encoded as UTF-8.
    """
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _ANSI.sub("", text.replace("\r\n", "\n")))


def printable_json(document: str) -> str:
    """A JSON document with the same characters as escapes, which stand for the same values."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def markdown_text(text: str) -> str:
    """`text` on one line of Markdown, where it is no link, picture or tag and ends no cell of a table."""
    return re.sub(r"[\\|\[\]]", r"\\\g<0>", printable(" ".join(text.split()))).replace("<", "&lt;")


def markdown_code(text: str) -> str:
    """`text` as code on one line of Markdown, which it cannot end."""
    words = printable(" ".join(text.split()))
    fence = "`" * (max(map(len, re.findall("`+", words)), default=0) + 1)
    space = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{fence}{space}{words}{space}{fence}"


def markdown_lines(text: str) -> list[str]:
    """`text` as lines of code in Markdown, which it cannot end."""
    words = printable(text.rstrip())
    fence = "`" * max(3, max(map(len, re.findall("`+", words)), default=0) + 1)
    return [fence, words, fence]


def _quotient(value: Fraction, digits: int, rounding: str) -> tuple[Decimal, bool]:
    """`value` in `digits` digits, and whether that is exact (decimal's division is correctly rounded)."""
    context = Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return quotient, not context.flags[Inexact]


def _spell(number: Decimal) -> str:
    """Plain digits for numbers near 1, otherwise with a power of ten; without trailing zeros."""
    if number.is_zero():
        return "0"
    sign, leading = "-" if number.is_signed() else "", number.adjusted()
    if -5 <= leading < 15:
        plain = format(number.copy_abs(), "f")
        return sign + (plain.rstrip("0").rstrip(".") if "." in plain else plain)
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    return sign + digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{leading:+03d}"


# Sizes and times as people write them: 4GB, 512MiB, 90s, 10m


_UNITS = " KMGT"
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_bytes(text: str) -> int:
    """Read a number of bytes such as 512MB or 4GiB; units with an i are powers of 1024, others of 1000."""
    match = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) *([kMGT]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise InputError(f"{text!r} is not an amount of memory; write it like 512MB or 4GB.")
    base = 1024 if match[3] else 1000
    count = int(Fraction(match[1]) * base ** _UNITS.index(match[2].upper() or " "))
    if count < 1:
        raise InputError(f"{text!r} is no memory at all; give at least what the smallest run needs.")
    return count


def size_in_words(count: int) -> str:
    """A number of bytes in the usual form, such as 4GB or 1536MiB, never rounded.

    `parse_bytes` turns it back into the same number.
    """
    best = str(count)
    for base, mark in ((1000, ""), (1024, "i")):
        for power in range(1, len(_UNITS)):
            whole, rest = divmod(count, base**power)
            shown = f"{whole}{_UNITS[power]}{mark}B"
            if whole and not rest and len(str(whole)) < len(best.rstrip("KMGTiB")):
                best = shown
    return best


def parse_seconds(text: str) -> float:
    """Read a time such as 90s, 10m or 1h as seconds; a number without a unit is in seconds."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *([smh]?)", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"{text!r} is not an amount of time; write it like 90s, 10m or 1h.")
    return float(match[1]) * _SECONDS[match[2]]


# Large results, shown in one line at a prompt: what they hold is counted, not spelled out


_MOST_ITEMS = 3
_LONGEST = 100


class Brief:
    """A base of dataclasses (with `repr=False`) that hold many other values."""

    def __repr__(self) -> str:
        names = [each.name for each in fields(self) if each.repr]  # type: ignore[arg-type]
        held = (f"{name}={_shown(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(held)})"


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list | set | frozenset | Mapping):
        return _counted(value)
    shown = repr(value)
    return shown if isinstance(value, Brief) or len(shown) <= _LONGEST else f"<{type(value).__name__}>"


def _counted(values: Collection[Any]) -> str:
    if len(values) <= _MOST_ITEMS and len(shown := repr(values)) <= _LONGEST:
        return shown
    items = values.values() if isinstance(values, Mapping) else values
    kinds = " or ".join(sorted({type(each).__name__ for each in items}))
    return f"<{len(values)} {kinds}>"


# Names that somebody mistyped


def nearest_name(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that somebody probably meant; None if none is close. Case and _ do not count."""
    names = sorted(set(known))
    folded = {each.lower().replace("_", ""): each for each in names}
    same = folded.get(name.lower().replace("_", ""))
    return same or next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for an unknown name: it suggests the closest one, or lists all."""
    names = list(known)
    near = nearest_name(name, names)
    hint = f"did you mean {near!r}?" if near else "known: " + ", ".join(names) + "."
    return InputError(f"Unknown {kind} {name!r}; {hint}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean …?)`, or an empty text if no known name is close."""
    near = nearest_name(name, known)
    return f" (did you mean {near}?)" if near else ""
