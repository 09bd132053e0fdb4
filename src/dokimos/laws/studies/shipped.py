"""The shipped domains with their laws, and what is trained for each."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import Protocol

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.laws.domain.definition import Domain, read_domain, shipped_domains
from dokimos.laws.language.syntax import LIBRARY


def _shipped(name: str) -> Domain:
    """A shipped domain, with its laws in the library."""
    module = importlib.import_module(f"dokimos.laws.studies.domains.{name}")
    laws = tuple(sorted((LIBRARY / name).glob("*.law")))
    printed = tuple(sorted((LIBRARY / name / "printed").glob("*.law")))
    return read_domain(module, name=name, place=name, laws=laws, printed=printed)


compas = partial(_shipped, "compas")
german_credit = partial(_shipped, "german_credit")
lunar_lander = partial(_shipped, "lunar_lander")
mnist = partial(_shipped, "mnist")
reviews = partial(_shipped, "reviews")
speech = partial(_shipped, "speech")


class Trainable(Protocol):
    """What can be trained for a case study."""

    def train(self, seed: int = 0) -> bytes:
        """The trained model as the content of a file."""
        ...

    def quality(self, content: bytes) -> str:
        """How good a trained model is, in words."""
        ...

    def model(self, seed: int = 0) -> Path:
        """The file of the model trained with a seed; trained and cached if it is not there yet."""
        ...


def find_study(name: str, kind: str = "network") -> Trainable:
    """What can be trained for a shipped domain: its network, or its tree. Raises InputError."""
    if name not in shipped_domains():
        raise unknown_name("case study", name, list(shipped_domains()))
    module = importlib.import_module(f"dokimos.laws.studies.domains.{name}")
    found: dict[str, Trainable] = {"network": module.STUDY}
    if hasattr(module, "TREE"):
        found["tree"] = module.TREE
    if kind not in found:
        raise InputError(f"The case study {name} has no {kind}; there is {' and '.join(found)}.")
    return found[kind]
