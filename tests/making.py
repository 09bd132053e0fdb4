"""Suites that many tests need, made once for a whole run of the tests, in however many processes."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.constructions.generation import generate_suite
from dokimos.constructions.recipes import parse_recipe
from dokimos.suites.instance import sha256


def made_once(factory: pytest.TempPathFactory, recipe: str) -> Callable[[Path], Path]:
    """Makes the suite of a recipe unless another process of this run has; copies it to where it is told."""
    several = "PYTEST_XDIST_WORKER" in os.environ
    shared = factory.getbasetemp().parent if several else factory.getbasetemp()
    suite = shared / f"suite-{sha256(recipe.encode())[:12]}"
    with suite.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not suite.exists():
            generate_suite(parse_recipe(recipe, file="recipe"), suite, jobs=1)

    def copy(to: Path) -> Path:
        shutil.copytree(suite, to)
        return to

    return copy
