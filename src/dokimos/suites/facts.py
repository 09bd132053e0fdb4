"""What a suite says about its instances besides their labels: knobs and profiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import UNSET

from dokimos.core.containment import contained
from dokimos.core.errors import UnreadableFile
from dokimos.suites.entry import SuiteEntry, read_text
from dokimos.suites.folder import Suite
from dokimos.suites.forms import TruthForm, read_form
from dokimos.suites.instance import Label, Semantics
from dokimos.suites.profile_file import FOLDER, Profile, load_profile


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
