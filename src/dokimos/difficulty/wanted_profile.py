"""A wanted profile: components with their values, and how near is near enough."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.difficulty.components import CANONICAL, EXTRAS, component, symbol

#: Other spellings of symbols, for keyboards without them.
_SPELLINGS = {"M": "margin", "M_min": "margin", "A": "regions", "A_tau": "regions"}
#: What a component of a robust instance can be at all; the others are not negative.
_MOST = {"unstable": 1.0, "regions": 6.91}
#: Why there is such an end, where it is not plain.
_WHY = {"regions": ": it is the logarithm of a count of at most 1000 samples"}
_POSITIVE = ("margin", "attacked_margin")
#: The size of a gap between two values of opposite signs, or to no value at all.
_FAR = 50.0


@dataclass(frozen=True)
class WantedProfile:
    """Values of some components, each to be met within a share of itself."""

    values: Mapping[str, float]
    within: float

    def __str__(self) -> str:
        return ", ".join(f"{symbol(name)} {value:g}" for name, value in self.values.items())

    def is_met_by(self, measured: Mapping[str, float | None]) -> bool:
        """Whether every value is near enough."""
        return all(
            (found := measured.get(name)) is not None and abs(found - wanted) <= self.within * abs(wanted)
            for name, wanted in self.values.items()
        )

    def gaps(self, measured: Mapping[str, float | None]) -> list[float]:
        """log(measured / wanted) of each component, in the order of `values`; large if there is none."""
        return [_gap(measured.get(name), wanted) for name, wanted in self.values.items()]

    def compared(self, measured: Mapping[str, float | None]) -> str:
        """What was measured, and how far off each value is."""
        return ", ".join(
            f"{symbol(name)} {_told(measured.get(name), wanted)}" for name, wanted in self.values.items()
        )


def _gap(found: float | None, wanted: float) -> float:
    if found is None:
        return _FAR
    if wanted == 0:
        return math.copysign(min(abs(found), _FAR), found)
    if found * wanted <= 0:
        return -_FAR
    return max(-_FAR, min(_FAR, math.log(found / wanted)))


def _told(found: float | None, wanted: float) -> str:
    if found is None:
        return "unknown"
    # Rounded, and then plus 0: nothing is off by "-0.0 %".
    off = f" ({round(100 * (found / wanted - 1), 1) + 0.0:+.1f} %)" if wanted else ""
    return f"{found:.4g}{off}"


def parse_profile(text: str, within: str) -> WantedProfile:
    """A profile such as `U=0.9,G_IBP=1e3,d_eff=20`, and a tolerance such as `10%` or `0.1`."""
    values: dict[str, float] = {}
    for part in text.split(","):
        word, equals, number = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InputError(
                f"--profile: {part.strip()!r} is not NAME=VALUE; write it like U=0.9,d_eff=20."
            )
        name = _component(word)
        if name in values:
            raise InputError(f"--profile: {word} is given twice.")
        values[name] = _value(word, name, number)
    return WantedProfile(values, _share(within))


def _component(word: str) -> str:
    by_symbol = {component(name).symbol: name for name in (*CANONICAL, *EXTRAS.shipped)}
    name = word if word in CANONICAL else _SPELLINGS.get(word) or by_symbol.get(word) or word
    if name not in CANONICAL and name not in EXTRAS:
        raise unknown_name(
            "component in --profile", word, ["M", "G_IBP", "U", "A_tau", "d_eff", *EXTRAS.shipped]
        )
    return name


def _value(word: str, name: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"--profile: {word} must be a number, not {number[:40]!r}.")
    most = _MOST.get(name, math.inf)
    if name in _POSITIVE and value <= 0:
        raise InputError(f"--profile: {word} of a robust instance must be above 0, not {value:g}.")
    if not 0 <= value <= most and not name.endswith("_bound"):
        ends = "at least 0" if most == math.inf else f"in [0, {most:g}]"
        raise InputError(f"--profile: {word} must be {ends}, not {value:g}{_WHY.get(name, '')}.")
    return value


def _share(text: str) -> float:
    match = re.fullmatch(r" *([0-9]{1,6}(?:\.[0-9]{1,9})?) *(%?) *", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise InputError(f"--within is {text!r}; write a share between 0 and 1, such as 10% or 0.1.")
    return share
