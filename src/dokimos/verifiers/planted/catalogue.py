"""The catalogue of planted bugs: every name that may follow ``--verifier planted=``."""

from __future__ import annotations

from dokimos.core.registry import Registry
from dokimos.verifiers.planted.attack_trusters import TRUSTERS
from dokimos.verifiers.planted.base import PlantedVerifier
from dokimos.verifiers.planted.bounder import PlainBounder
from dokimos.verifiers.planted.flawed_bounders import FLAWED_BOUNDERS
from dokimos.verifiers.planted.misread_answers import MISREAD_ANSWERS
from dokimos.verifiers.planted.misread_networks import MISREAD_NETWORKS
from dokimos.verifiers.planted.misread_properties import MISREAD_PROPERTIES
from dokimos.verifiers.planted.misreader import Misreader

#: Reads everything correctly, and knows the truth.
IDEAL = Misreader("ideal", "no bug: it reads everything correctly, and knows the truth", is_sound=True)
MISREADERS: tuple[PlantedVerifier, ...] = (
    IDEAL,
    *MISREAD_PROPERTIES,
    *MISREAD_NETWORKS,
    *MISREAD_ANSWERS,
)
BOUNDERS: tuple[PlantedVerifier, ...] = (PlainBounder(), *FLAWED_BOUNDERS)

PLANTED: Registry[PlantedVerifier] = Registry("planted bug", {})
for _bug in (*MISREADERS, *BOUNDERS, *TRUSTERS):
    PLANTED.add(_bug.name, _bug)
