"""Finds the knobs with which a family makes an instance with a given profile.

It is a pattern search (Hooke and Jeeves) in the logarithms of the components. Each knob is moved a little
to measure its effect. Then the knobs are moved further one after another, the most effective first, twice
as far each time, as long as that closes the gap; if neither direction helps, the knob's next step is
shorter. After each round all knobs are moved at once, by their measured effects (Gauss and Newton). If
nothing helps any more, the search starts again from a random place near the defaults.

Every random choice comes from the seed, and the number of tries ends the search, so that the same call
finds the same knobs; the clock is a second limit, and the result says if it was hit.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import Knob, knobs_of, make_knobs
from dokimos.constructions.recipes import Draw, Recipe, with_seeds
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.core.plugins import packages_missing
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import unknown_name
from dokimos.difficulty.components import CANONICAL, EXTRAS, component, symbol
from dokimos.difficulty.inspection import Inspection
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import Floats
from dokimos.suites.facts import ProfileSettings
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos_studies.command_line import counted, on_stderr, positive

# A wanted profile: components with their values, and how near is near enough


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
                f"The profile: {part.strip()!r} is not NAME=VALUE; write it like U=0.9,d_eff=20."
            )
        name = component_called(word)
        if name in values:
            raise InputError(f"The profile: {word} is given twice.")
        values[name] = _wanted_profile_value(word, name, number)
    return WantedProfile(values, _share(within))


def component_called(word: str) -> str:
    """A component by its name or symbol, M and A_tau among them. Raises InputError."""
    by_symbol = {component(name).symbol: name for name in (*CANONICAL, *EXTRAS.shipped)}
    name = word if word in CANONICAL else _SPELLINGS.get(word) or by_symbol.get(word) or word
    if name not in CANONICAL and name not in EXTRAS:
        raise unknown_name(
            "component of a profile", word, ["M", "G_IBP", "U", "A_tau", "d_eff", *EXTRAS.shipped]
        )
    return name


def _wanted_profile_value(word: str, name: str, number: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"The profile: {word} must be a number, not {number[:40]!r}.")
    most = _MOST.get(name, math.inf)
    if name in _POSITIVE and value <= 0:
        raise InputError(f"The profile: {word} of a robust instance must be above 0, not {value:g}.")
    if not 0 <= value <= most and not name.endswith("_bound"):
        ends = "at least 0" if most == math.inf else f"in [0, {most:g}]"
        raise InputError(f"The profile: {word} must be {ends}, not {value:g}{_WHY.get(name, '')}.")
    return value


def _share(text: str) -> float:
    match = re.fullmatch(r" *([0-9]{1,6}(?:\.[0-9]{1,9})?) *(%?) *", text)
    share = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < share < 1:
        raise InputError(f"`within` is {text!r}; write a share between 0 and 1, such as 10% or 0.1.")
    return share


#: How far each knob is moved at first, and at least, as a share of its range.
FIRST_STEP, LEAST_STEP = 0.1, 0.004
#: Where neither way helps, the next step is so much shorter.
SHORTER = 0.35
#: How far all knobs together may be moved at once.
LONGEST = 0.4
#: Knobs that promise less than this share of what the best one does are left alone for a round.
TELLING = 0.03
#: How far from the defaults a new start is drawn, and how likely a knob is to be moved.
SPREAD, MOVED = 0.12, 0.6
#: Ranges that are longer than this are walked in the logarithm.
LONG_RANGE = 50
#: Networks above this size are not measured: they take minutes.
MOST_BYTES = 8_000_000


@dataclass(frozen=True)
class TriedKnobs:
    """One try: the knobs, and what was measured on the instance; nothing if there was no instance."""

    knobs: Mapping[str, Any]
    measured: Mapping[str, float | None]
    distance: float


@dataclass(frozen=True)
class Design:
    """The result of a search: the best try, whether it is near enough, and how many tries there were."""

    best: TriedKnobs
    is_met: bool
    tries: int
    is_out_of_time: bool


@dataclass
class _KnobSearch:
    """The state of one search."""

    family: str
    wanted: WantedProfile
    free: Sequence[Knob]
    fixed: Mapping[str, Any]
    measure: Callable[[Mapping[str, Any]], Mapping[str, float | None]]
    rng: np.random.Generator
    most_tries: int
    deadline: float
    progress: Callable[[int, TriedKnobs], None]
    seen: dict[tuple[Any, ...], TriedKnobs] = field(default_factory=dict)
    places: dict[tuple[Any, ...], Floats] = field(default_factory=dict)
    best: TriedKnobs | None = None
    is_late: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the search has succeeded, or has reached a limit."""
        self.is_late = self.is_late or time.process_time() > self.deadline
        met = self.best is not None and self.wanted.is_met_by(self.best.measured)
        return met or self.is_late or len(self.seen) >= self.most_tries

    def look(self, place: Floats) -> tuple[TriedKnobs, Floats]:
        """Try the knobs at a place of the unit cube; also returns that place, rounded to valid knobs."""
        values = [_value(knob, x) for knob, x in zip(self.free, place, strict=True)]
        key = tuple(values)
        if key not in self.seen:
            knobs = {**self.fixed, **{k.name: v for k, v in zip(self.free, values, strict=True)}}
            measured = self.measure(knobs)
            gaps = self.wanted.gaps(measured)
            self.seen[key] = TriedKnobs(knobs, measured, math.sqrt(sum(g * g for g in gaps)))
            places = [_place(knob, value) for knob, value in zip(self.free, values, strict=True)]
            self.places[key] = np.array(places)
            self.progress(len(self.seen), self.seen[key])
        tried = self.seen[key]
        if self.best is None or tried.distance < self.best.distance:
            self.best = tried
        return tried, self.places[key]

    def run(self) -> None:
        """Search, starting from the defaults."""
        usual = np.array([_place(knob, knob.default) for knob in self.free])
        start = usual
        while True:
            _Descent(self, *self.look(start)).run()
            if self.is_over or not len(usual):
                return
            moved = self.rng.normal(0, SPREAD, len(usual)) * (self.rng.random(len(usual)) < MOVED)
            start = np.clip(usual + moved, 0, 1)


class _Descent:
    """A pattern search from one place, until no step helps any more."""

    def __init__(self, search: _KnobSearch, tried: TriedKnobs, at: Floats) -> None:
        self._search, self._tried, self._at = search, tried, at
        self._steps = np.full(len(at), FIRST_STEP)
        self._slopes = np.zeros((len(search.wanted.values), len(at)))

    def run(self) -> None:
        """Round after round."""
        for k in range(len(self._at)):
            self._see(k)
        while not self._search.is_over:
            before = self._tried.distance
            promising = np.abs(self._gaps(self._tried) @ self._slopes)
            order = np.argsort(-promising, kind="stable")
            due = [int(k) for k in order if promising[k] > TELLING * promising.max(initial=0.0)]
            for k in due:
                if not self._search.is_over:
                    self._along(k)
            self._all_at_once()
            if self._tried.distance >= before and self._steps[due].max(initial=0.0) < LEAST_STEP:
                return

    def _see(self, k: int) -> None:
        """Move one knob a little, to learn what it does."""
        for way in (1, -1):
            place = self._at.copy()
            place[k] = _moved(self._search.free[k], place[k], way * FIRST_STEP)
            if not self._search.is_over and place[k] != self._at[k]:
                tried, there = self._search.look(place)
                self._learn(k, tried, there)
                if tried.measured:
                    return

    def _learn(self, k: int, tried: TriedKnobs, there: Floats) -> None:
        """What a move of one knob has done to the gaps."""
        if tried.measured and self._tried.measured and there[k] != self._at[k]:
            change = self._gaps(tried) - self._gaps(self._tried)
            self._slopes[:, k] = change / (there[k] - self._at[k])

    def _along(self, k: int) -> None:
        """Move one knob as far as that helps."""
        for way in (1, -1):
            step, helped = float(self._steps[k]), False
            while not self._search.is_over:
                place = self._at.copy()
                place[k] = _moved(self._search.free[k], place[k], way * step)
                if place[k] == self._at[k]:
                    break
                tried, there = self._search.look(place)
                self._learn(k, tried, there)
                if not self._accept(tried, there):
                    break
                helped, step = True, 2 * step
            if helped:
                self._steps[k] = step / 2
                return
        self._steps[k] *= SHORTER

    def _all_at_once(self) -> None:
        """The step that would close all gaps if what was seen of each knob went on."""
        slopes = self._slopes
        inverse = np.linalg.pinv(slopes.T @ slopes + 1e-3 * np.eye(len(self._at)))
        step = -inverse @ slopes.T @ self._gaps(self._tried)
        longest = float(np.abs(step).max(initial=0.0))
        if longest > 0 and not self._search.is_over:
            place = np.clip(self._at + step * min(1.0, LONGEST / longest), 0, 1)
            self._accept(*self._search.look(place))

    def _accept(self, tried: TriedKnobs, at: Floats) -> bool:
        """Go there if it is nearer."""
        if tried.distance >= self._tried.distance:
            return False
        self._tried, self._at = tried, at
        return True

    def _gaps(self, tried: TriedKnobs) -> Floats:
        return np.array(self._search.wanted.gaps(tried.measured))


def search(
    family: str,
    wanted: WantedProfile,
    *,
    fixed: Mapping[str, Any],
    seed: int,
    draw_seed: int,
    tries: int,
    seconds: float,
    progress: Callable[[int, TriedKnobs], None],
) -> Design:
    """Search the knobs of a family, except the `fixed` ones, for an instance with a given profile.

    The instance is the one that the construction draws with `draw_seed`; `seed` is that of the search. Each
    try is proven. Raises InputError for knobs that do not exist, ConstructionFailed if no try gives an
    instance.
    """
    construction = CONSTRUCTIONS[family]
    make_knobs(construction.knobs_class, fixed, family=family)
    names = tuple(wanted.values)

    def measure(knobs: Mapping[str, Any]) -> Mapping[str, float | None]:
        try:
            drawn = construction.draw(
                seed=draw_seed, timeout_seconds=60.0, disguise=(), with_twin=True, knobs=knobs
            )
        except (ConstructionFailed, InputError, ArithmeticError, MemoryError):
            return {}
        instance = drawn.instances[0].instance
        if len(instance.network_file) > MOST_BYTES:
            return {}
        seen = Inspection(
            read_onnx(instance.network_file),
            read_vnnlib(instance.property_file, file=instance.name),
            ProfileSettings(),
        )
        return {name: component(name)(seen).value for name in names}

    search = _KnobSearch(
        family=family,
        wanted=wanted,
        free=[k for k in knobs_of(construction.knobs_class) if k.name not in fixed and not k.options],
        fixed=fixed,
        measure=measure,
        rng=np.random.default_rng(seed),
        most_tries=tries,
        deadline=time.process_time() + seconds,
        progress=progress,
    )
    search.run()
    assert search.best is not None
    if not search.best.measured:
        raise ConstructionFailed(
            f"{family}: none of {len(search.seen)} tries gave an instance; fix other knobs, or fewer of "
            "them."
        )
    met = wanted.is_met_by(search.best.measured)
    return Design(search.best, met, len(search.seen), search.is_late and not met)


def _offset(knob: Knob) -> float:
    """What is added before the logarithm is taken, so that the least value has one."""
    usual = knob.default - knob.least
    return (usual if usual > 0 else (knob.most - knob.least) / 1000) / 30


def _is_long(knob: Knob) -> bool:
    return knob.most - knob.least > LONG_RANGE * max(knob.default - knob.least, 1e-12) or (
        knob.least > 0 and knob.most / knob.least > LONG_RANGE
    )


def _place(knob: Knob, value: float) -> float:
    """Where in its range a value lies, from 0 to 1."""
    span = knob.most - knob.least
    if not _is_long(knob):
        return float((value - knob.least) / span)
    offset = _offset(knob)
    return math.log((value - knob.least + offset) / offset) / math.log((span + offset) / offset)


def _value(knob: Knob, place: float) -> float:
    """The value at a place of the range, of five digits, or whole."""
    x, span = min(max(float(place), 0.0), 1.0), knob.most - knob.least
    if _is_long(knob):
        offset = _offset(knob)
        value = knob.least + offset * (math.exp(x * math.log((span + offset) / offset)) - 1)
    else:
        value = knob.least + x * span
    if knob.is_integer:
        return int(min(max(round(value), knob.least), knob.most))
    return min(max(float(f"{value:.5g}"), float(knob.least)), float(knob.most))


def _moved(knob: Knob, place: float, by: float) -> float:
    """The place that lies so far away, or at the next whole number; the same at the end of the range."""
    moved = min(max(place + by, 0.0), 1.0)
    here = _value(knob, place)
    if knob.is_integer and _value(knob, moved) == here:
        beside = here + (1 if by > 0 else -1)
        return _place(knob, beside) if knob.least <= beside <= knob.most else place
    return moved


# The command


@dataclass(frozen=True)
class DesignedKnobs:
    """Knobs with which `generate` makes an instance of the wanted profile, or the nearest that was found.

    `measured` has the components that were asked for; `comparison` compares them with what was wanted.
    """

    family: str
    knobs: Mapping[str, Any]
    measured: Mapping[str, float | None]
    is_met: bool
    tries: int
    comparison: str
    is_out_of_time: bool


def design(
    family: str,
    profile: str,
    *,
    within: str = "10%",
    knobs: Mapping[str, Any] | None = None,
    seed: int = 0,
    tries: int = 150,
    seconds: float = 300.0,
    progress: ProgressCallback[TriedKnobs] = ignore,
) -> DesignedKnobs:
    """Search the knobs of a family for an instance with a profile: `dokimos-studies design FAMILY PROFILE`.

    `profile` names components with their values, by symbol or name, such as "U=0.9,G_IBP=1e3,d_eff=20";
    `within` says how near is near enough. `knobs` stay as given. The same arguments find the same knobs,
    unless `seconds` of CPU time end the search. `generate` with these knobs and the same seed makes the
    instance.
    """
    wanted = parse_profile(profile, within)
    if tries < 1 or not seconds > 0:
        raise InputError(f"A search needs at least 1 try and some time, not {tries} and {seconds:g} s.")
    if find_spec("torch") is None:
        raise packages_missing("Profiles need torch", "gradients")
    (draw,) = with_seeds(Recipe("", seed, 60.0, (Draw(family),))).draws
    assert draw.seed is not None

    def step(count: int, tried: TriedKnobs) -> None:
        note = wanted.compared(tried.measured) if tried.measured else "no instance"
        progress(ProgressUpdate("searching", count, tries, note, tried))

    found = search(
        family,
        wanted,
        fixed=knobs or {},
        seed=seed,
        draw_seed=draw.seed,
        tries=tries,
        seconds=seconds,
        progress=step,
    )
    return DesignedKnobs(
        family=family,
        knobs=found.best.knobs,
        measured=found.best.measured,
        is_met=found.is_met,
        tries=found.tries,
        comparison=wanted.compared(found.best.measured),
        is_out_of_time=found.is_out_of_time,
    )


def main() -> int:
    """Print the knobs with which `dokimos generate` makes the instance; 1 if none is near enough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("family")
    parser.add_argument("profile", help="such as U=0.9,G_IBP=1e3,d_eff=20")
    parser.add_argument("--within", default="10%", help="how near is near enough")
    parser.add_argument("--knob", action="append", default=[], metavar="NAME=VALUE", help="a knob to keep")
    parser.add_argument("--seed", type=counted, default=0)
    parser.add_argument("--tries", type=positive, default=150)
    parser.add_argument("--seconds", type=float, default=300.0, help="of CPU time")
    given = parser.parse_args()
    kept = dict(each.partition("=")[::2] for each in given.knob)
    found = design(
        given.family,
        given.profile,
        within=given.within,
        knobs=kept,
        seed=given.seed,
        tries=given.tries,
        seconds=given.seconds,
        progress=on_stderr,
    )
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in found.knobs.items())
    told = f"{given.family}: {found.comparison}, after {found.tries} tries"
    if not found.is_met:
        print(f"{told}: the nearest, not within {given.within}: {words}")
        return 1
    print(f"{told}: dokimos generate {given.family} {words} --seed {given.seed} --out FOLDER")
    return 0
