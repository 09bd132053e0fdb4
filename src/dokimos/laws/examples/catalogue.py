"""The domains of the examples, with the files of their laws."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path

from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.language.syntax import LIBRARY


def domain_in(package: str, name: str, library: Path) -> Domain:
    """The domain of a module, with its laws in the folder of its name in `library`."""
    module = importlib.import_module(f"{package}.{name}")
    laws = tuple(sorted((library / name).glob("*.law")))
    printed = tuple(sorted((library / name / "printed").glob("*.law")))
    return read_domain(module, name=name, place=name, laws=laws, printed=printed)


compas = partial(domain_in, "dokimos.laws.examples", "compas", LIBRARY)
german_credit = partial(domain_in, "dokimos.laws.examples", "german_credit", LIBRARY)
