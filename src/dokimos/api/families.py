"""Families and shipped suites: what can be generated, and generating it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.base import Construction
from dokimos.constructions.draft import Knob, knobs_of
from dokimos.constructions.generation import GeneratedInstance, generate_suite, is_suite_of
from dokimos.constructions.recipes import (
    GenerateSettings,
    Recipe,
    family_recipe,
    find_recipe,
    shipped_recipe,
    valid_seed,
)
from dokimos.core.errors import InputError
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.suites.folder import Suite, shipped_names


@dataclass(frozen=True, repr=False)
class GeneratedSuite(Brief):
    """A suite, and what this call made for it; nothing if exactly this suite `was_there` already."""

    suite: Suite
    made: tuple[GeneratedInstance, ...]
    was_there: bool


@dataclass(frozen=True)
class Family:
    """A family of instances: what makes it hard, and the knobs that it takes."""

    name: str
    summary: str
    knobs: tuple[Knob, ...]
    theorem: str = ""
    """Why the labels hold, in a few sentences."""


@dataclass(frozen=True)
class ShippedSuite:
    """A suite that ships with the package, by name."""

    name: str
    instances: int
    families: tuple[str, ...]
    timeout_seconds: float
    about: str


def generate(
    *,
    out: str | Path,
    family: str | None = None,
    suite: str | Path | Recipe | None = None,
    knobs: Mapping[str, Any] | None = None,
    seed: int | None = None,
    count: int | None = None,
    settings: GenerateSettings | None = None,
    jobs: int | None = None,
    progress: ProgressCallback[GeneratedInstance] = ignore,
) -> GeneratedSuite:
    """Make instances with proven labels, of one family or a whole suite: `dokimos generate`.

    `out` is the folder to write, new or empty. Give either a `family`, with its `knobs`, a `seed`, the
    number of instances (each with its twin) and more `settings`; or a `suite`, a shipped suite or a recipe
    (.toml), which fixes all of these itself; another `seed` makes other draws of it. If interrupted, the
    same call continues where it stopped.

    >>> made = dokimos.generate(out="pairs", family="exclusive-pairs", knobs={"inputs": 20, "pairs": 2})
    >>> sorted(entry.read_truth().label.value for entry in made.suite.entries)
    ['sat', 'unsat']
    >>> dokimos.generate(out="pairs", family="exclusive-pairs", knobs={"inputs": 20, "pairs": 2}).was_there
    True
    """
    chosen = settings or GenerateSettings()
    if (family is None) == (suite is None):
        raise InputError("Give either a family or `suite`; see `dokimos families` and `dokimos suites`.")
    if suite is not None:
        own: dict[str, Any] = {"count": count, "disguise": chosen.disguise, "lock": chosen.lock}
        own |= {"timeout_seconds": chosen.timeout_seconds}
        own |= {"labels": len(chosen.labels) == 1}
        named = [f"knob {name}" for name in knobs or {}]
        named += [f"`{name}`" for name, value in own.items() if value]
        if named:
            raise InputError(f"A suite takes no {named[0]}; change its recipe instead.")
        recipe = find_recipe(suite)
        if seed is not None:
            recipe = recipe.drawn_again(valid_seed(seed))
    else:
        assert family is not None
        recipe = family_recipe(family, knobs or {}, seed, count, chosen)
    folder = Path(out)
    was_there = is_suite_of(folder, recipe)
    all_made: list[GeneratedInstance] = []

    def step(made: GeneratedInstance) -> None:
        all_made.append(made)
        at = f" at draw {made.draws}" if made.draws > 1 else ""
        cost = f" ({made.cost} with its twin)" if made.draws else ""
        note = f"{made.name}: {made.label}, proven{at}{cost}"
        progress(ProgressUpdate("proving", len(all_made), recipe.size, note, made))

    written = generate_suite(recipe, folder, jobs=jobs, plugin_proofs=chosen.plugin_proofs, progress=step)
    return GeneratedSuite(written, tuple(all_made), was_there)


def list_families() -> tuple[Family, ...]:
    """List the families of instances that can be generated, each with its knobs: `dokimos families`.

    >>> next(family for family in dokimos.list_families() if family.name == "exclusive-pairs").knobs[0].name
    'inputs'
    """
    return tuple(_family(name, construction) for name, construction in CONSTRUCTIONS.items())


def find_family(name: str) -> Family:
    """Find the family of that name: `dokimos families NAME`. Raises InputError if there is none.

    >>> [knob.name for knob in dokimos.find_family("paired-bias").knobs][:2]
    ['size', 'depth']
    """
    return _family(name, CONSTRUCTIONS[name])


def _family(name: str, construction: Construction[Any]) -> Family:
    theorem = inspect.getdoc(type(construction)) or ""
    return Family(name, construction.summary, knobs_of(construction.knobs_class), theorem)


def list_suites() -> tuple[ShippedSuite, ...]:
    """List the shipped suites; functions that take a suite also take these names: `dokimos suites`.

    >>> "quick" in [suite.name for suite in dokimos.list_suites()]
    True
    """
    return tuple(map(_shipped, shipped_names()))


def _shipped(name: str) -> ShippedSuite:
    recipe = shipped_recipe(name)
    families = tuple(sorted({draw.family for draw in recipe.draws}))
    return ShippedSuite(name, recipe.size, families, recipe.timeout_seconds, recipe.about)
