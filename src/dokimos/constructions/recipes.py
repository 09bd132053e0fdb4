"""Recipes: which families a suite draws from, with which knobs and seeds.

A recipe is a TOML file:

    about = "one line for people"
    seed = 1
    timeout_seconds = 60
    [[draw]]
    family = "exclusive-pairs"
    count = 3                        # instances, each with its twin; 1 unless said
    knobs = { pairs = 8 }            # the rest at their defaults
    disguise = ["permute", "scale"]  # rewritten so, in this order; not at all unless said
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dokimos import __version__
from dokimos.constructions import CONSTRUCTIONS
from dokimos.errors import InputError, UnreadableFile
from dokimos.home import home
from dokimos.instances.bundle import Suite, read_suite, write_suite
from dokimos.instances.model import LabelledInstance, sha256
from dokimos.registry import unknown_name

_DRAW_KEYS = {"family": str, "count": int, "knobs": dict, "disguise": list}


@dataclass(frozen=True)
class Draw:
    """`count` instances of one family, each with its twin."""

    family: str
    count: int = 1
    knobs: Mapping[str, Any] = field(default_factory=dict)
    disguise: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "knobs", MappingProxyType(dict(self.knobs)))


@dataclass(frozen=True)
class Recipe:
    """Everything that a suite is made from; the same recipe gives the same suite, byte for byte."""

    about: str
    seed: int
    timeout_seconds: float
    draws: tuple[Draw, ...]

    @property
    def size(self) -> int:
        """How many instances it makes, twins included."""
        return 2 * sum(draw.count for draw in self.draws)

    def as_json(self) -> dict[str, Any]:
        """The recipe as `suite.json` keeps it."""
        return {
            "about": self.about,
            "seed": self.seed,
            "timeout_seconds": self.timeout_seconds,
            "draw": [
                {"family": d.family, "count": d.count, "knobs": dict(d.knobs), "disguise": list(d.disguise)}
                for d in self.draws
            ],
        }


def shipped_suites() -> dict[str, str]:
    """The names of the shipped suites and what each is about."""
    return {name: shipped_recipe(name).about for name in _shipped_names()}


def _shipped_names() -> list[str]:
    folder = resources.files("dokimos.constructions") / "suites"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def shipped_recipe(name: str) -> Recipe:
    """The recipe of a shipped suite. Raises InputError, with the known names, for any other."""
    if name not in _shipped_names():
        raise unknown_name("suite", name, _shipped_names())
    file = resources.files("dokimos.constructions") / "suites" / f"{name}.toml"
    return parse_recipe(file.read_text(encoding="utf-8"), file=f"{name}.toml")


def parse_recipe(text: str, *, file: str) -> Recipe:
    """A recipe from TOML. Unknown keys are errors."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableFile(file, f"not valid TOML: {error}") from None
    _expect(document, {"about": str, "seed": int, "timeout_seconds": (int, float), "draw": list}, file, "")
    draws = []
    for number, draw in enumerate(document.get("draw", []), start=1):
        _expect(
            draw, {"family": str, "count": int, "knobs": dict, "disguise": list}, file, f"draw {number}: "
        )
        if "family" not in draw or draw.get("count", 1) < 1:
            raise UnreadableFile(file, f"draw {number}: it needs a family, and a count of at least 1")
        if draw["family"] not in CONSTRUCTIONS:
            raise UnreadableFile(file, str(unknown_name("family", draw["family"], list(CONSTRUCTIONS))))
        disguise = tuple(str(kind) for kind in draw.get("disguise", ()))
        draws.append(Draw(draw["family"], draw.get("count", 1), draw.get("knobs", {}), disguise))
    if not draws:
        raise UnreadableFile(file, "the recipe draws nothing; add a [[draw]] with a family")
    return Recipe(
        about=document.get("about", ""),
        seed=document.get("seed", 0),
        timeout_seconds=document.get("timeout_seconds", 60),
        draws=tuple(draws),
    )


def _expect(document: Any, types: Mapping[str, Any], file: str, where: str) -> None:
    for key, value in document.items():
        if key not in types:
            raise UnreadableFile(file, f"{where}{unknown_name('key', key, sorted(types))}")
        if not isinstance(value, types[key]) or isinstance(value, bool):
            raise UnreadableFile(file, f"{where}the value of {key!r} has the wrong type")


def draw_instances(
    recipe: Recipe, *, progress: Callable[[LabelledInstance], None] = lambda _: None
) -> list[LabelledInstance]:
    """All instances of a recipe, proven, in an order that says nothing about their labels."""
    made: list[LabelledInstance] = []
    seeds = np.random.default_rng(recipe.seed)
    for draw in recipe.draws:
        for _ in range(draw.count):
            pair = CONSTRUCTIONS[draw.family](
                seed=int(seeds.integers(2**32)),
                timeout_seconds=recipe.timeout_seconds,
                disguise=draw.disguise,
                **draw.knobs,
            )
            for labelled in pair:
                made.append(labelled)
                progress(labelled)
    names = [labelled.instance.name for labelled in made]
    if len(set(names)) < len(names):
        raise InputError("The recipe draws the same instance twice; change a seed or a knob.")
    return [made[i] for i in seeds.permutation(len(made))]


def generate_suite(
    recipe: Recipe, folder: Path, *, progress: Callable[[LabelledInstance], None] = lambda _: None
) -> Suite:
    """Draw a recipe's instances and write them to `folder`.

    A folder that holds the very suite that this version makes from this recipe is left as it is.
    """
    if holds(folder, recipe):
        return read_suite(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds something else; choose another --out, or remove it first.")
    instances = draw_instances(recipe, progress=progress)
    return write_suite(folder, instances, recipe=recipe.as_json(), version=__version__)


def holds(folder: Path, recipe: Recipe) -> bool:
    """Whether `folder` is the suite of this recipe, made by this version, with all its files."""
    try:
        document = json.loads((folder / "suite.json").read_text(encoding="utf-8"))
        suite = read_suite(folder)
    except (OSError, ValueError, InputError):
        return False
    made = isinstance(document, dict) and document.get("recipe") == recipe.as_json()
    complete = all(
        path.exists() for e in suite.entries for path in (e.network_path, e.property_path, e.truth_path)
    )
    return made and document.get("dokimos") == __version__ and complete


def find_suite(name: str, *, progress: Callable[[LabelledInstance], None] = lambda _: None) -> Suite:
    """The suite in the folder `name`, or the shipped suite of that name, generated into the cache."""
    folder = Path(name)
    if folder.exists() or name not in _shipped_names():
        if not folder.exists() and folder.name == name:
            raise InputError(
                f"There is no folder {name!r} and no shipped suite of that name; "
                f"shipped: {', '.join(_shipped_names())}."
            )
        return read_suite(folder)
    recipe = shipped_recipe(name)
    key = sha256(repr((__version__, recipe)).encode())[:12]
    return generate_suite(recipe, home() / "suites" / f"{name}-{key}", progress=progress)
