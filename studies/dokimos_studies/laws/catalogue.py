"""The domains that Dokimos itself does not ship, and what is trained for each of the six case studies."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import Protocol

from dokimos.core.errors import InputError
from dokimos.core.readable import unknown_name
from dokimos.laws.examples.catalogue import domain_in

LIBRARY = Path(__file__).parent / "library"
_DOMAINS = "dokimos_studies.laws.domains"
#: The package of each case study's domain.
STUDIES = {
    **dict.fromkeys(("compas", "german_credit"), "dokimos.laws.examples"),
    **dict.fromkeys(("lunar_lander", "mnist", "reviews", "speech"), _DOMAINS),
}

lunar_lander = partial(domain_in, _DOMAINS, "lunar_lander", LIBRARY)
mnist = partial(domain_in, _DOMAINS, "mnist", LIBRARY)
reviews = partial(domain_in, _DOMAINS, "reviews", LIBRARY)
speech = partial(domain_in, _DOMAINS, "speech", LIBRARY)


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
    """What can be trained for a case study: its network, or its tree. Raises InputError."""
    if name not in STUDIES:
        raise unknown_name("case study", name, list(STUDIES))
    module = importlib.import_module(f"{STUDIES[name]}.{name}")
    found: dict[str, Trainable] = {"network": module.STUDY}
    if hasattr(module, "TREE"):
        found["tree"] = module.TREE
    if kind not in found:
        raise InputError(f"The case study {name} has no {kind}; there is {' and '.join(found)}.")
    return found[kind]
