"""One function for each command, silent and typed; `import dokimos` offers them all.

They take paths, or the names of suites, verifiers and data that ship with the package, and return typed,
frozen results. They print nothing and never end the process: progress goes to the `progress` callback,
remarks go to the logger `dokimos`, and every error is a `DokimosError` with a one-sentence message, also
for an argument of the wrong type. Messages speak of arguments; the command line says the same of its
options.
"""

import logging
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any

# Callers who want to see the remarks add a handler.
logging.getLogger("dokimos").addHandler(logging.NullHandler())


def public(name: str) -> Any:
    """What the package offers under that name; a function checks the types of its arguments."""
    if name not in places():
        raise AttributeError(f"module 'dokimos' has no attribute {name!r}")
    found = getattr(import_module(places()[name]), name)
    if isinstance(found, FunctionType):
        from dokimos.api.arguments import checked

        return checked(found)
    return found


@cache
def places() -> dict[str, str]:
    """The module of each public name, as `__init__.pyi` of the package says."""
    lines = Path(__file__).parents[1].joinpath("__init__.pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from ")]
    return {name: place for _, place, _, name, *_ in words}
