"""A profile: named measurements of one instance, and the file in its suite that keeps them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.regular_files import read_regular

SCHEMA = 2
FOLDER = "profiles"
"""Where a suite keeps its profiles: `<suite>/profiles/<instance>.json`."""

COMPONENTS = ("margin", "ibp_gap", "unstable", "regions", "gradient_dimension")
"""The canonical five: M̂_min, G_IBP, U, A_τ and d_eff."""

INFINITE = "infinite"
"""How the note of an infinite measurement begins."""


@dataclass(frozen=True, kw_only=True)
class ProfileSettings:
    """The settings of a profile: the same settings, instance and version give the same profile."""

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
            raise ValueError("a measurement without a value needs a note")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError("a measurement must be finite; otherwise it has only a note")

    @property
    def is_infinite(self) -> bool:
        """Whether there is no number because it is infinite, which is not the same as not applicable."""
        return self.value is None and (self.note or "").startswith(INFINITE)

    @classmethod
    def infinite(cls, reason: str) -> Measurement:
        """The component applies, and is infinite."""
        return cls(None, f"{INFINITE}: {reason}")

    @classmethod
    def not_applicable(cls, reason: str) -> Measurement:
        """The component does not apply."""
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
    return strict_json.write(
        _Form(
            schema=SCHEMA,
            instance=profile.instance,
            sha256=_Hashes(network=profile.network_sha256, property=profile.property_sha256),
            settings=profile.settings,
            components={name: profile.components[name] for name in COMPONENTS},
            extras=dict(profile.extras),
        )
    )


def load_profile(path: Path) -> Profile:
    """Read a profile's file. Raises UnreadableFile, naming the file and what is wrong."""
    try:
        document = strict_json.parse(read_regular(path, most_bytes=strict_json.MOST_BYTES), file=path)
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read ({error})") from None
    if isinstance(document, dict) and (schema := document.get("schema", SCHEMA)) != SCHEMA:
        raise UnreadableFile(path, f"has schema {schema!r}, not {SCHEMA}; measure it again")
    try:
        form = strict_json.convert(document, _Form, file=path, what="a profile; measure it again")
    except UnreadableFile:
        raise
    except InputError as error:
        raise UnreadableFile(path, f"its settings are wrong ({error}); measure it again") from None
    for name in COMPONENTS:
        if name not in form.components:
            raise UnreadableFile(path, f"lacks the component {name}; measure it again")
    return Profile(
        instance=form.instance,
        network_sha256=form.sha256.network,
        property_sha256=form.sha256.property,
        settings=form.settings,
        components={name: form.components[name] for name in COMPONENTS},
        extras=form.extras,
    )


class _Hashes(Struct, frozen=True, forbid_unknown_fields=True):
    network: str
    property: str


class _Form(Struct, frozen=True, forbid_unknown_fields=True):
    """A profile's file."""

    schema: int
    instance: str
    sha256: _Hashes
    settings: ProfileSettings
    components: dict[str, Measurement]
    extras: dict[str, Measurement]
