"""What a profile is: named measurements of one instance, and the file they are kept in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.suites.truth_file import load_json

SCHEMA = 1
FOLDER = "profiles"
"""Where a suite keeps its profiles: `<suite>/profiles/<instance>.json`."""

COMPONENTS = ("margin", "ibp_gap", "unstable", "regions", "gradient_dimension")
"""The canonical five: M̂_min, G_IBP, U, A_τ and d_eff."""


@dataclass(frozen=True, kw_only=True)
class ProfileSettings:
    """How a profile is measured: the same settings, instance and version give the same profile."""

    samples: int = 1000
    seed: int = 0
    tau: float = 1e-3
    tau_slope: float = 0.1
    eta: float = 1e-12

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise InputError(f"--samples is {self.samples}; it must be at least 2.")
        for name, value in (("tau", self.tau), ("tau-slope", self.tau_slope), ("eta", self.eta)):
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"--{name} is {value}; it must be a positive number.")


@dataclass(frozen=True)
class Measurement:
    """A finite number, or None with the reason in `note`; a note beside a number qualifies it."""

    value: float | None
    note: str | None = None

    def __post_init__(self) -> None:
        if self.value is None and not self.note:
            raise ValueError("a measurement without a value says why")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError("a measurement is finite; what is not is a note")

    @classmethod
    def not_applicable(cls, reason: str) -> Measurement:
        """The component has no meaning here."""
        return cls(None, f"not applicable: {reason}")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The measurements of one instance, bound to its files by their hashes."""

    instance: str
    network_sha256: str
    property_sha256: str
    settings: ProfileSettings
    components: Mapping[str, Measurement]
    extras: Mapping[str, Measurement]


def dump_profile(profile: Profile) -> str:
    """The text of a profile's file."""
    document = {
        "schema": SCHEMA,
        "instance": profile.instance,
        "sha256": {"network": profile.network_sha256, "property": profile.property_sha256},
        "settings": asdict(profile.settings),
        "components": {name: asdict(profile.components[name]) for name in COMPONENTS},
        "extras": {name: asdict(found) for name, found in profile.extras.items()},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def load_profile(path: Path) -> Profile:
    """Read a profile's file. Raises UnreadableFile, naming the file and what is wrong."""
    try:
        document = load_json(path.read_text(encoding="utf-8"), file=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(str(path), f"cannot be read ({error})") from None
    try:
        if document["schema"] != SCHEMA:
            raise UnreadableFile(
                str(path), f"has schema {document['schema']!r}, not {SCHEMA}; measure it again"
            )
        return Profile(
            instance=str(document["instance"]),
            network_sha256=str(document["sha256"]["network"]),
            property_sha256=str(document["sha256"]["property"]),
            settings=ProfileSettings(**document["settings"]),
            components={name: _measurement(document["components"][name]) for name in COMPONENTS},
            extras={name: _measurement(found) for name, found in document["extras"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableFile(str(path), f"is not a profile ({error!r}); measure it again") from None


def _measurement(document: Mapping[str, Any]) -> Measurement:
    value, note = document["value"], document["note"]
    return Measurement(None if value is None else float(value), None if note is None else str(note))
