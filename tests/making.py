"""Suites that many tests need, made once for a whole run of the tests, in however many processes."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.constructions.generation import generate_suite
from dokimos.constructions.recipes import Recipe, parse_recipe, shipped_recipe
from dokimos.suites.folder import Suite, read_suite
from dokimos.suites.instance import sha256


def made_once(factory: pytest.TempPathFactory, recipe: str) -> Callable[[Path], Path]:
    """Makes the suite of a recipe unless another process of this run has; copies it to where it is told."""
    suite = _made(factory, sha256(recipe.encode())[:12], parse_recipe(recipe, file="recipe"))

    def copy(to: Path) -> Path:
        shutil.copytree(suite.folder, to)
        return to

    return copy


def shipped_once(factory: pytest.TempPathFactory, name: str) -> Suite:
    """A shipped suite, made anew for this run of the tests, and only to be read."""
    return _made(factory, name, shipped_recipe(name))


def checked_labels_of_the_run(factory: pytest.TempPathFactory) -> Path:
    """Where labels are kept that were checked in this run: what is proven need not be proven again."""
    folder = _shared(factory) / "checked-labels"
    folder.mkdir(exist_ok=True)
    return folder


def _shared(factory: pytest.TempPathFactory) -> Path:
    """The folder of this run of the tests, in however many processes."""
    several = "PYTEST_XDIST_WORKER" in os.environ
    return factory.getbasetemp().parent if several else factory.getbasetemp()


def _made(factory: pytest.TempPathFactory, name: str, recipe: Recipe) -> Suite:
    """The suite, which one process of this run makes and the others wait for."""
    folder = _shared(factory) / f"suite-{name}"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return read_suite(folder) if folder.exists() else generate_suite(recipe, folder, jobs=1)
