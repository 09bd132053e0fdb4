"""Finding a suite: by its folder, or by name if it ships with the package.

A shipped suite is a recipe (`shipped/<name>.toml`). The suite generated from it is kept in a cache, under a
key that changes with the recipe, the code of Dokimos and the format of the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.home import code_key, home
from dokimos.core.registry import unknown_name
from dokimos.core.suggestions import did_you_mean
from dokimos.suites.folder import Suite, read_suite
from dokimos.suites.forms import FORMAT
from dokimos.suites.instance import sha256


def shipped_names() -> list[str]:
    """The names of the shipped suites."""
    folder = resources.files("dokimos.suites") / "shipped"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def shipped_text(name: str) -> str:
    """The recipe of a shipped suite, as TOML. Raises InputError, with the known names, for any other."""
    if name not in shipped_names():
        raise unknown_name("suite", name, shipped_names())
    file = resources.files("dokimos.suites") / "shipped" / f"{name}.toml"
    return file.read_text(encoding="utf-8")


def cached_folder(name: str) -> Path:
    """The folder of a shipped suite in the cache, whether it has been generated or not."""
    key = sha256(json.dumps([code_key(), FORMAT, shipped_text(name)]).encode())[:12]
    return home() / "suites" / f"{name}-{key}"


def find_suite(name: str, *, make: Callable[[str], Suite] | None = None) -> Suite:
    """The suite in the folder `name`, or the shipped suite of that name.

    `make` gives a shipped suite, generating it if it is not in the cache yet. Without it, only suites that
    have been generated are found.
    """
    folder = Path(name)
    if folder.exists() or name not in shipped_names():
        if not folder.exists() and folder.name == name:
            hint = did_you_mean(name, shipped_names()).strip(" ()")
            raise InputError(
                f"There is no folder {name!r} and no shipped suite of that name; "
                + (hint or f"shipped: {', '.join(shipped_names())}.")
            )
        return read_suite(folder)
    if make is not None:
        return make(name)
    if not cached_folder(name).exists():
        raise InputError(
            f"The shipped suite {name} has not been generated yet; make it with "
            f"`dokimos generate --suite {name} --out FOLDER` and give that folder instead."
        )
    return read_suite(cached_folder(name))
