"""The laws that come with the shipped domains, one folder for each."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Protocol

from dokimos.core.errors import InputError
from dokimos.laws.domain import shipped_domains
from dokimos.laws.language.problems import did_you_mean


class Trainable(Protocol):
    """What is trained for a case study."""

    def train(self, seed: int = 0) -> bytes:
        """The trained model as the content of a file."""
        ...

    def quality(self, content: bytes) -> str:
        """How good a trained model is, in words."""
        ...


def shipped_laws(domain: str) -> list[Path]:
    """The files of a shipped domain's laws, none where there is no such domain."""
    return sorted((Path(__file__).parent / domain).glob("*.law")) if domain in shipped_domains() else []


def find_study(name: str, kind: str = "network") -> Trainable:
    """What is trained for a shipped domain: its network, or its tree. Raises InputError."""
    if name not in shipped_domains():
        hint = did_you_mean(name, shipped_domains())
        raise InputError(f"There is no case study {name}{hint}; there are {', '.join(shipped_domains())}.")
    module = importlib.import_module(f"dokimos.laws.studies.domains.{name}")
    found: dict[str, Trainable] = {"network": module.STUDY}
    if hasattr(module, "TREE"):
        found["tree"] = module.TREE
    if kind not in found:
        raise InputError(f"The case study {name} has no {kind}; there is {' and '.join(found)}.")
    return found[kind]
