"""From an instance to its profile, and from a suite to a folder of profiles.

Profiles need torch, which is imported when the first one is measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from dokimos.core.errors import DokimosError, InputError, UnreadableFile
from dokimos.core.files import contained, write_whole
from dokimos.core.parallel import each
from dokimos.core.plugins import packages_missing
from dokimos.difficulty.components import CANONICAL, EXTRAS
from dokimos.difficulty.inspection import Inspection
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import read_content
from dokimos.suites.facts import COMPONENTS, Profile, ProfileSettings, dump_profile, load_profile
from dokimos.suites.instance import sha256
from dokimos.suites.vnnlib.model import require_fit
from dokimos.suites.vnnlib.reader import read_vnnlib


def profile_of(
    name: str, network: Path, property: Path, settings: ProfileSettings, *, more: bool = False
) -> Profile:
    """The profile of the instance in these two files, plain or compressed. Raises InputError.

    With `more`, it also has what is measured on request only.
    """
    contents = read_content(network), read_content(property)
    asked = read_vnnlib(contents[1], file=str(property))
    seen = Inspection(read_onnx(contents[0], name=str(network)), asked, settings)
    require_fit(seen.network, asked)
    return Profile(
        instance=name,
        network_sha256=sha256(contents[0]),
        property_sha256=sha256(contents[1]),
        settings=settings,
        components={component: CANONICAL[component](seen) for component in COMPONENTS},
        extras={name: EXTRAS[name](seen) for name in extra_names(more=more)},
    )


def extra_names(*, more: bool) -> list[str]:
    """What is measured beside the five; with `more`, what is measured on request, too."""
    return [name for name, extra in EXTRAS.items() if more or not extra.on_request]


@dataclass(frozen=True)
class ProfileTask:
    """One instance to profile, and the folder `out` for the result."""

    name: str
    network: Path
    property: Path
    settings: ProfileSettings
    out: Path
    more: bool = False


@dataclass(frozen=True)
class MeasuredProfile:
    """The profile of an instance, or a sentence that says why there is none."""

    name: str
    profile: Profile | None
    problem: str | None = None
    was_there: bool = False


def profile_path(task: ProfileTask) -> Path:
    """Where the profile of an instance is kept. Raises UnreadableFile if a link leads elsewhere."""
    return contained(task.out, f"{task.name}.json")


def measure_all(tasks: Sequence[ProfileTask], *, jobs: int) -> Iterator[MeasuredProfile]:
    """The outcome of each task, as they finish; each profile is on disk before it is reported.

    An existing profile of the same files and settings is not measured again. A failure does not stop the
    other tasks.
    """
    if find_spec("torch") is None:
        raise packages_missing("Profiles need torch", "gradients")
    missing = []
    for task in tasks:
        kept = kept_profile(task)
        if kept is None:
            missing.append(task)
        else:
            yield MeasuredProfile(task.name, kept, was_there=True)
    for folder in {task.out for task in missing}:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be created ({error.strerror}); choose another `out`."
            ) from None
    for _, outcome in each(measure, missing, jobs=jobs):
        yield outcome


def kept_profile(task: ProfileTask) -> Profile | None:
    """The profile from an earlier call, if it is complete and of the same files and settings."""
    try:
        path = profile_path(task)
        if not path.exists():
            return None
        kept = load_profile(path)
        hashes = sha256(read_content(task.network)), sha256(read_content(task.property))
    except UnreadableFile:
        return None
    fits = (kept.network_sha256, kept.property_sha256) == hashes and kept.settings == task.settings
    complete = all(name in kept.extras for name in extra_names(more=task.more))
    return kept if fits and complete and kept.instance == task.name else None


def measure(task: ProfileTask) -> MeasuredProfile:
    """Measure one instance and write its profile atomically."""
    try:
        path = profile_path(task)
        profile = profile_of(task.name, task.network, task.property, task.settings, more=task.more)
    except DokimosError as error:
        return MeasuredProfile(task.name, None, str(error))
    except (ArithmeticError, MemoryError, RuntimeError) as error:
        lines = str(error).strip().splitlines() or [""]
        return MeasuredProfile(task.name, None, f"cannot be measured: {type(error).__name__}: {lines[0]}")
    write_whole(path, dump_profile(profile), what="the profile")
    return MeasuredProfile(task.name, profile)
