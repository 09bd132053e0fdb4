"""The catalogue of planted bugs: every name that may follow ``--verifier planted=``."""

from __future__ import annotations

from dokimos.core.registry import Registry
from dokimos.verifiers.planted.base import PlantedVerifier
from dokimos.verifiers.planted.misread_answers import MISREAD_ANSWERS
from dokimos.verifiers.planted.misread_networks import MISREAD_NETWORKS
from dokimos.verifiers.planted.misread_properties import MISREAD_PROPERTIES
from dokimos.verifiers.planted.misreader import Misreader

#: Reads everything rightly, and knows the truth.
IDEAL = Misreader("ideal", "no bug: it reads everything rightly", is_sound=True)

PLANTED: Registry[PlantedVerifier] = Registry("planted bug", {})
for _bug in (IDEAL, *MISREAD_PROPERTIES, *MISREAD_NETWORKS, *MISREAD_ANSWERS):
    PLANTED.add(_bug.name, _bug)
