"""Suites that many tests need, made once for a whole run of the tests, in however many processes.

They are kept in the folder that the processes of a run share (the fixture `run_folder`).
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path

from dokimos.constructions.generation import generate_suite
from dokimos.constructions.recipes import Recipe, parse_recipe, shipped_recipe
from dokimos.suites.folder import Suite, read_suite
from dokimos.suites.instance import sha256


def made_once(shared: Path, recipe: str) -> Callable[[Path], Path]:
    """Makes the suite of a recipe unless another process of this run has; copies it to where it is told."""
    suite = _made(shared, sha256(recipe.encode())[:12], parse_recipe(recipe, file="recipe"))

    def copy(to: Path) -> Path:
        shutil.copytree(suite.folder, to)
        return to

    return copy


def shipped_once(shared: Path, name: str) -> Suite:
    """A shipped suite, made anew for this run of the tests, and only to be read."""
    return _made(shared, name, shipped_recipe(name))


def _made(shared: Path, name: str, recipe: Recipe) -> Suite:
    """The suite, which one process of this run makes and the others wait for."""
    folder = shared / f"suite-{name}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return read_suite(folder) if folder.exists() else generate_suite(recipe, folder, jobs=1)
