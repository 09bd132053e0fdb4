"""Recipes: which families a suite draws from, with which knobs and seeds.

A recipe is a TOML file:

    about = "one line for readers"
    seed = 1
    timeout_seconds = 60
    mix = true                       # classes and disjuncts in random order, which is the default
    include = ["specs"]              # the instances of shipped suites, each once, after its own; none

    [[draw]]
    family = "exclusive-pairs"
    count = 3                        # instances, each with its twin; 1 by default
    knobs = { pairs = 8 }            # the rest at their defaults
    sweep = { gamma = [0.1, 0.01] }  # one draw for each value; with several knobs, for each combination
    labels = ["unsat"]               # without the twins; both by default
    lock = 75                        # make the pair by a parity lock of that many bits; none by default
    disguise = ["permute", "scale"]  # how to rewrite the networks, in this order; not at all by default
    seed = 7                         # one for the whole draw, without a count; each its own by default
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import make_knobs
from dokimos.core import documents
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.registry import unknown_name
from dokimos.suites.entry import read_text
from dokimos.suites.folder import shipped_names, shipped_text

_RECIPE_KEYS = {
    "about": str,
    "seed": int,
    "timeout_seconds": (int, float),
    "mix": bool,
    "include": list,
    "draw": list,
}
_DRAW_KEYS = {
    "family": str,
    "count": int,
    "knobs": dict,
    "sweep": dict,
    "labels": list,
    "disguise": list,
    "lock": int,
    "seed": int,
}
_LABELS = ("unsat", "sat")
#: More than anyone runs; a typing error should not exhaust the memory.
MOST_INSTANCES = 1_000_000
_MOST_SECONDS = 1e9


@dataclass(frozen=True, kw_only=True)
class GenerateSettings:
    """What instances of a family may have beyond its knobs: see `dokimos.generate`.

    `disguise` names the rewritings to disguise them by, `lock` is the bits of a parity lock that hides the
    pair (None: no lock), `timeout_seconds` the time that the suite gives verifiers (None: 60). Of `labels`,
    one may be left out; robust instances without their twins have nothing in them that hides one.
    `plugin_proofs` trusts kinds of proof that other packages add.
    """

    labels: tuple[str, ...] = _LABELS
    disguise: tuple[str, ...] = ()
    lock: int | None = None
    timeout_seconds: float | None = None
    plugin_proofs: bool = False

    def __post_init__(self) -> None:
        if self.timeout_seconds is not None and not 0 < self.timeout_seconds < math.inf:
            raise InputError(f"The timeout {self.timeout_seconds} is not a positive number of seconds.")
        if self.lock is not None and self.lock < 1:
            raise InputError(f"A lock must have at least 1 bit, not {self.lock}.")
        object.__setattr__(self, "disguise", tuple(self.disguise))
        object.__setattr__(self, "labels", tuple(self.labels))
        if not _are_labels(self.labels):
            raise InputError(f"The labels must be {' or '.join(_LABELS)}, or both.")


def _are_labels(given: tuple[str, ...]) -> bool:
    return bool(given) and all(one in _LABELS and given.count(one) == 1 for one in given)


@dataclass(frozen=True)
class Draw:
    """`count` instances of one family, each with its twin or without one of the two.

    Draws of one family with the same `seed` share what does not depend on the knobs in which they
    differ; without one, every instance has its own seed.
    """

    family: str
    count: int = 1
    knobs: Mapping[str, Any] = field(default_factory=dict)
    disguise: tuple[str, ...] = ()
    labels: tuple[str, ...] = _LABELS
    seed: int | None = None
    lock: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "knobs", dict(self.knobs))


@dataclass(frozen=True)
class Recipe:
    """Everything that a suite is made from; the same recipe gives the same instances, byte for byte.

    `name` is the name of a shipped suite, and empty for any other. Without `mix` class 0 should win in most
    families, and the disjuncts are in the order of the classes.
    """

    about: str
    seed: int
    timeout_seconds: float
    draws: tuple[Draw, ...]
    name: str = ""
    mix: bool = True

    @property
    def size(self) -> int:
        """How many instances it makes, twins included."""
        return sum(draw.count * len(draw.labels) for draw in self.draws)

    def drawn_again(self, seed: int) -> Recipe:
        """The same families and knobs from another seed; draws that share a seed share another one."""
        if seed == self.seed:
            return self
        draws = (d if d.seed is None else replace(d, seed=_combined(seed, d.seed)) for d in self.draws)
        return replace(self, seed=seed, draws=tuple(draws), name="")

    def as_json(self) -> dict[str, Any]:
        """The recipe as it is stored in `suite.json`."""
        return {
            "about": self.about,
            "seed": self.seed,
            "timeout_seconds": self.timeout_seconds,
            **({} if self.mix else {"mix": False}),
            "draw": [
                {
                    "family": d.family,
                    "count": d.count,
                    "knobs": dict(d.knobs),
                    "disguise": list(d.disguise),
                    "labels": list(d.labels),
                    **({} if d.seed is None else {"seed": d.seed}),
                    **({} if d.lock is None else {"lock": d.lock}),
                }
                for d in self.draws
            ],
        }


def _combined(first: int, second: int) -> int:
    """A seed that depends on two seeds."""
    return int(np.random.SeedSequence([first, second]).generate_state(1)[0])


def shipped_recipe(name: str) -> Recipe:
    """The recipe of a shipped suite. Raises InputError, with the known names, for any other."""
    return replace(parse_recipe(shipped_text(name), file=f"{name}.toml"), name=name)


def parse_recipe(text: str, *, file: str) -> Recipe:
    """A recipe from TOML. Unknown keys are errors."""
    document = documents.parse(text, file=file, what="the recipe")
    _expect(document, _RECIPE_KEYS, file, "")
    draws: list[Draw] = []
    given = list(enumerate(document.get("draw", []), start=1))
    for number, draw in given:
        _expect(draw, _DRAW_KEYS, file, f"draw {number}: ")
    if (combinations := sum(_combinations(draw) for _, draw in given)) > MOST_INSTANCES:
        raise _too_many(combinations, file)
    for number, draw in given:
        draws += _draws(draw, file, f"draw {number}: ")
    draws += _included(document, file)
    if not draws:
        raise UnreadableFile(file, "the recipe has no draws; add a [[draw]] with a family")
    recipe = Recipe(
        about=document.get("about", ""),
        seed=document.get("seed", 0),
        timeout_seconds=document.get("timeout_seconds", 60),
        draws=tuple(draws),
        mix=document.get("mix", True),
    )
    _expect_sane(recipe, file)
    return recipe


def _included(document: Mapping[str, Any], file: str) -> list[Draw]:
    """The draws of other suites, with the seeds that they have there; what several have is drawn once."""
    found: dict[object, Draw] = {}
    for each in document.get("include", []):
        if not isinstance(each, str) or each not in shipped_names() or f"{each}.toml" == file:
            raise UnreadableFile(file, f"it can include shipped suites, not {str(each)[:40]!r}")
        recipe = with_seeds(shipped_recipe(each))
        if recipe.mix != document.get("mix", True):
            raise UnreadableFile(file, f"it cannot include {each}, whose `mix` is another")
        for draw in recipe.draws:
            knobs = make_knobs(CONSTRUCTIONS[draw.family].knobs_class, draw.knobs, family=draw.family)
            key = (draw.family, knobs, draw.disguise, draw.seed, draw.lock)
            both = {*draw.labels, *(found[key].labels if key in found else ())}
            found[key] = replace(draw, labels=tuple(label for label in _LABELS if label in both))
    return list(found.values())


def with_seeds(recipe: Recipe) -> Recipe:
    """The same instances, one draw for each pair, with its seed."""
    return replace(recipe, draws=tuple(seeded(recipe, np.random.default_rng(recipe.seed))))


def seeded(recipe: Recipe, rng: np.random.Generator) -> list[Draw]:
    """One draw for each pair, with its seed."""
    return [
        replace(draw, count=1, seed=int(rng.integers(2**32)) if draw.seed is None else draw.seed)
        for draw in recipe.draws
        for _ in range(draw.count)
    ]


def _expect_sane(recipe: Recipe, file: str) -> None:
    if recipe.seed < 0:
        raise UnreadableFile(file, f"the seed is {recipe.seed}; it must be at least 0")
    if not 0 < recipe.timeout_seconds <= _MOST_SECONDS:
        raise UnreadableFile(
            file, f"timeout_seconds must be a positive number of seconds, at most {_MOST_SECONDS:g}"
        )
    if recipe.size > MOST_INSTANCES:
        raise _too_many(recipe.size, file)


def _too_many(count: int, file: str) -> UnreadableFile:
    found = count if count < 10**18 else "more than 10^18"
    return UnreadableFile(
        file, f"the recipe draws {found} instances; the limit is {MOST_INSTANCES}, so lower a count"
    )


def _combinations(draw: Mapping[str, Any]) -> int:
    """How many draws a sweep makes, before any is made."""
    return math.prod(len(values) for values in draw.get("sweep", {}).values() if isinstance(values, list))


def _draws(draw: Mapping[str, Any], file: str, where: str) -> list[Draw]:
    """One draw for each combination of the swept knobs' values."""
    if "family" not in draw or draw.get("count", 1) < 1:
        raise UnreadableFile(file, f"{where}it needs a family, and a count of at least 1")
    if draw["family"] not in CONSTRUCTIONS:
        raise UnreadableFile(file, f"{where}{unknown_name('family', draw['family'], list(CONSTRUCTIONS))}")
    if "seed" in draw and (draw["seed"] < 0 or "count" in draw):
        raise UnreadableFile(file, f"{where}a seed must be at least 0, and cannot be combined with a count")
    if draw.get("lock", 1) < 1:
        raise UnreadableFile(file, f"{where}a lock has at least 1 bit")
    labels = tuple(draw.get("labels", _LABELS))
    if not _are_labels(labels):
        raise UnreadableFile(file, f"{where}labels must be some of {', '.join(_LABELS)}")
    sweep = draw.get("sweep", {})
    for knob, values in sweep.items():
        if knob in draw.get("knobs", {}):
            raise UnreadableFile(
                file, f"{where}{knob!r} is set under both knobs and sweep; remove one of them"
            )
        if not isinstance(values, list) or not values:
            raise UnreadableFile(file, f"{where}the sweep of {knob!r} must be a list of values")
    disguise = tuple(str(kind) for kind in draw.get("disguise", ()))
    return [
        Draw(
            family=draw["family"],
            count=draw.get("count", 1),
            knobs={**draw.get("knobs", {}), **dict(zip(sweep, values, strict=True))},
            disguise=disguise,
            labels=labels,
            seed=draw.get("seed"),
            lock=draw.get("lock"),
        )
        for values in product(*sweep.values())
    ]


def _expect(document: Any, types: Mapping[str, Any], file: str, where: str) -> None:
    if not isinstance(document, dict):
        raise UnreadableFile(file, f"{where}this must be a table of keys and values")
    for key, value in document.items():
        if key not in types:
            raise UnreadableFile(file, f"{where}{unknown_name('key', key, sorted(types))}")
        if not isinstance(value, types[key]) or isinstance(value, bool) is not (types[key] is bool):
            raise UnreadableFile(file, f"{where}the value of {key!r} has the wrong type")


def family_recipe(
    family: str, knobs: Mapping[str, Any], seed: int | None, count: int | None, settings: GenerateSettings
) -> Recipe:
    """The recipe of one family: see `dokimos.generate`."""
    seconds = 60.0 if settings.timeout_seconds is None else settings.timeout_seconds
    if count is not None and count < 1:
        raise InputError(f"The number of instances must be at least 1, not {count}.")
    draw = Draw(family, count or 1, knobs, settings.disguise, settings.labels, lock=settings.lock)
    return Recipe("", valid_seed(seed or 0), seconds, (draw,))


def valid_seed(seed: int) -> int:
    """The seed. Raises InputError if it is below 0."""
    if seed < 0:
        raise InputError(f"The seed must be at least 0, not {seed}.")
    return seed


def find_recipe(given: str | Path | Recipe) -> Recipe:
    """The recipe itself, the one in a .toml, or that of a shipped suite. Raises InputError."""
    if isinstance(given, Recipe):
        return given
    if str(given).endswith(".toml"):
        return parse_recipe(read_text(Path(given)), file=str(given))
    return shipped_recipe(str(given))
