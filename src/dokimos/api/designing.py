"""`design`: the knobs of a family for an instance with a wanted profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.constructions.generation import with_seeds
from dokimos.constructions.recipes import Draw, Recipe
from dokimos.core.errors import InputError, packages_missing

if TYPE_CHECKING:
    from dokimos.difficulty.design import TriedKnobs


@dataclass(frozen=True)
class DesignedKnobs:
    """Knobs with which `generate` makes an instance of the wanted profile, or the nearest that was found.

    `measured` has the components that were asked for; `comparison` compares them with what was wanted.
    """

    family: str
    knobs: Mapping[str, Any]
    measured: Mapping[str, float | None]
    is_met: bool
    tries: int
    comparison: str
    is_out_of_time: bool


def design(
    family: str,
    profile: str,
    *,
    within: str = "10%",
    knobs: Mapping[str, Any] | None = None,
    seed: int = 0,
    tries: int = 150,
    seconds: float = 300.0,
    progress: ProgressCallback[TriedKnobs] = ignore,
) -> DesignedKnobs:
    """Search the knobs of a family for an instance with a profile: `dokimos generate FAMILY --profile`.

    `profile` names components with their values, by symbol or name, such as "U=0.9,G_IBP=1e3,d_eff=20";
    `within` says how near is near enough. `knobs` stay as given. The same arguments find the same knobs,
    unless `seconds` of CPU time end the search. `generate` with these knobs and the same seed makes the
    instance.

    >>> found = dokimos.design("dials", "U=0.5,G_IBP=20", knobs={"inputs": 24, "pairs": 8}, tries=60)
    >>> found.is_met
    True
    """
    from dokimos.difficulty.wanted_profile import parse_profile

    wanted = parse_profile(profile, within)
    if tries < 1 or not seconds > 0:
        raise InputError(f"A search needs at least 1 try and some time, not {tries} and {seconds:g} s.")
    if find_spec("torch") is None:
        raise packages_missing("Profiles need torch", "gradients")
    from dokimos.difficulty.design import design as search

    (draw,) = with_seeds(Recipe("", seed, 60.0, (Draw(family),))).draws
    assert draw.seed is not None

    def step(count: int, tried: TriedKnobs) -> None:
        note = wanted.compared(tried.measured) if tried.measured else "no instance"
        progress(ProgressUpdate("searching", count, tries, note, tried))

    found = search(
        family,
        wanted,
        fixed=knobs or {},
        seed=seed,
        draw_seed=draw.seed,
        tries=tries,
        seconds=seconds,
        progress=step,
    )
    return DesignedKnobs(
        family=family,
        knobs=found.best.knobs,
        measured=found.best.measured,
        is_met=found.is_met,
        tries=found.tries,
        comparison=wanted.compared(found.best.measured),
        is_out_of_time=found.is_out_of_time,
    )
