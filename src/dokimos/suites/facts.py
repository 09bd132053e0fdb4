"""What a suite says about its instances besides their labels: knobs and profiles.

From them follows which instances a time budget takes: the first ones of an order that covers as much as
possible early on, per second of time limit: the bugs of the catalogue that an instance catches, its family,
its label and its knobs. That of a shipped suite is committed (`shipped/orders/<name>.json`, written by
`dokimos-studies orders`); that of any other suite follows from its instances. How many of them a budget has
room for depends on the time that the runs use.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, Struct

from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import contained, read_regular
from dokimos.core.typed_values import convert
from dokimos.suites.entry import SuiteEntry, TruthForm, read_form, read_text
from dokimos.suites.folder import Suite
from dokimos.suites.instance import Label, Semantics

# A profile: named measurements of one instance, and the file in its suite that keeps them


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
            raise InputError(f"`samples` is {self.samples}; it must be at least 2.")
        for name, value in (("`tau`", self.tau), ("`tau_slope`", self.tau_slope), ("`eta`", self.eta)):
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} is {value}; it must be a positive number.")


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
        form = convert(document, _Form, file=path, what="a profile; measure it again")
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


@dataclass(frozen=True)
class Facts:
    """One instance of a suite: its place there, the knobs that made it, and its profile.

    `made_by` has every parameter of its origin, including those that are not numbers. If `profile` is None,
    `problem` says why. `seed` is that of its draw, which twins share. `proven_margin` is the margin by
    which its label is proven over the reals, negative for `sat`; None if there is no such proof.
    """

    network_sha256: str
    property_sha256: str
    position: int
    made_by: Mapping[str, Any]
    profile: Profile | None
    problem: str = ""
    seed: int | None = None
    proven_margin: float | None = None

    @property
    def knobs(self) -> dict[str, float]:
        """The parameters that are numbers."""
        return {name: float(value) for name, value in self.made_by.items() if _is_number(value)}

    @property
    def variant(self) -> str:
        """The other parameters, in words."""
        return ", ".join(
            f"{name}: {value}" for name, value in self.made_by.items() if not _is_number(value)
        )


def read_truth_form(entry: SuiteEntry) -> TruthForm | None:
    """An entry's truth file, for `truth_of` and `read_facts`; None if it has none."""
    if not entry.truth_path.exists():
        return None
    return read_form(read_text(entry.truth_path), TruthForm, file=entry.truth_path)


def read_facts(
    suite: Suite, position: int, form: TruthForm | None, *, network_sha256: str, property_sha256: str
) -> Facts:
    """The facts about the entry at `position`, which was run with files of these hashes.

    `form` is its truth file. A profile counts only if it was measured on exactly the files that were run.
    """
    name = f"{FOLDER}/{suite.entries[position].name}.json"
    profile, problem = _profile(suite.folder, name, (network_sha256, property_sha256))
    return Facts(
        network_sha256,
        property_sha256,
        position,
        parameters_of(form),
        profile,
        problem,
        seed=_seed(form),
        proven_margin=_proven_margin(form),
    )


def _is_number(value: object) -> bool:
    """Whether it is a number that a float holds, nearly at least."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


def _profile(folder: Path, name: str, hashes: tuple[str, str]) -> tuple[Profile | None, str]:
    try:
        path = contained(folder, name)
        if not path.exists():
            return None, "there is no profile"
        profile = load_profile(path)
    except UnreadableFile as error:
        return None, f"the profile cannot be read: {error.reason}"
    if (profile.network_sha256, profile.property_sha256) != hashes:
        return None, "the profile was measured on other files than those that were run"
    return profile, ""


def parameters_of(form: TruthForm | None) -> Mapping[str, Any]:
    """The parameters that a truth file states; none if there is no such file or origin."""
    parameters = None if form is None else form.origin.get("parameters")
    return parameters if isinstance(parameters, dict) else {}


def _seed(form: TruthForm | None) -> int | None:
    seed = None if form is None else form.origin.get("seed")
    return seed if type(seed) is int else None


def _proven_margin(form: TruthForm | None) -> float | None:
    claim = None if form is None else form.semantics.get(Semantics.REAL)
    if form is None or claim is None or not claim.proven or claim.margin is UNSET:
        return None
    try:
        margin = float(claim.margin)
    except OverflowError:
        margin = math.inf
    return -margin if form.label is Label.SAT else margin


@dataclass(frozen=True)
class CoveringInstance:
    """An instance as an order sees it: its time limit, and what it covers."""

    name: str
    seconds: float
    covers: frozenset[str]


@dataclass(frozen=True)
class SuiteOrder:
    """The committed order of a shipped suite, and what was known about its instances when it was made.

    `caught_by` names for each planted bug an instance that catches it; `not_caught` has the bugs that no
    instance of the suite catches.
    """

    order: tuple[str, ...]
    caught_by: Mapping[str, str] = field(default_factory=dict)
    not_caught: tuple[str, ...] = ()
    schema: Literal[1] = 1


def covering(entry: SuiteEntry, bugs: Iterable[str] = ()) -> CoveringInstance:
    """What an instance covers: its family, label and knobs, and the bugs that it is known to catch."""
    form = read_truth_form(entry)
    knobs = (f"{entry.family}.{name} = {value}" for name, value in parameters_of(form).items())
    label = () if form is None else (f"label {form.label.value}",)
    caught = (f"bug {bug}" for bug in bugs)
    return CoveringInstance(
        entry.name,
        entry.timeout_seconds,
        frozenset((f"family {entry.family}", *label, *knobs, *caught)),
    )


def cover_order(instances: Sequence[CoveringInstance]) -> tuple[str, ...]:
    """All names in greedy order: next comes what covers most new features per second; of equals, the first
    given.

    When nothing new is left, everything counts as new again for the remaining ones.
    """
    left = list(instances)
    covered: set[str] = set()
    order = []
    while left:
        if all(each.covers <= covered for each in left):
            covered = set()
        best = max(left, key=lambda each: len(each.covers - covered) / each.seconds)
        covered |= best.covers
        left.remove(best)
        order.append(best.name)
    return tuple(order)


def shipped_order(name: str) -> SuiteOrder | None:
    """The committed order of a shipped suite; None if there is none of that name."""
    file = resources.files("dokimos.suites") / "shipped" / "orders" / f"{name}.json"
    if not file.is_file():
        return None
    what = "the order of a suite"
    return strict_json.read(file.read_bytes(), SuiteOrder, file=f"orders/{name}.json", what=what)


def in_order(entries: Sequence[SuiteEntry], *, name: str = "") -> tuple[SuiteEntry, ...]:
    """Instances in their suite's order: the committed one if `name` is a shipped suite that has them,
    otherwise the one computed from the instances."""
    by_name = {entry.name: entry for entry in entries}
    committed = shipped_order(name) if name else None
    if committed is None or not by_name.keys() <= set(committed.order):
        names = cover_order([covering(entry) for entry in entries])
    else:
        names = committed.order
    return tuple(by_name[each] for each in names if each in by_name)
