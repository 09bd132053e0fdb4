"""From a recipe to a suite on disk: in parallel, and continuing where it was interrupted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from dokimos import __version__
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.recipes import Draw, Recipe, seeded, shipped_recipe
from dokimos.core import strict_json
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.core.files import append_line, code_key, expect_new_or_empty, only_one, write_whole
from dokimos.core.parallel import NO_COST, Cost, Meter, default_jobs, each
from dokimos.engine.runtimes.cross_check import CrossCheck, require_agreement
from dokimos.suites.card import CARD, suite_card
from dokimos.suites.folder import Suite, cached_folder, read_suite, read_suite_file
from dokimos.suites.instance import sha256
from dokimos.suites.suite_files import InstanceFiles, files_of, store_files, write_index

#: Fewer pairs than this are made faster in one process than it takes to start others.
WORTH_PROCESSES = 6
_log = logging.getLogger("dokimos")


@dataclass(frozen=True)
class GeneratedInstance:
    """What is reported about each instance once it is finished.

    `draws` is how many draws were needed (all but the last could not be proven or hidden), and `cost` what
    they cost together; both are 0 for a twin that came with its sibling. `cross_check` is the result of the
    comparison with the runtimes.
    """

    name: str
    label: str
    family: str
    draws: int
    cost: Cost
    cross_check: CrossCheck


def _in_groups(pairs: list[Draw], numbers: list[int]) -> list[list[int]]:
    """The numbers of pairs to be made one after another: those that share a family and a seed."""
    groups: dict[tuple[str, int], list[int]] = {}
    for number in numbers:
        groups.setdefault((pairs[number].family, pairs[number].seed or 0), []).append(number)
    return list(groups.values())


@dataclass(frozen=True)
class _Result:
    files: tuple[InstanceFiles, ...]
    cross_checks: tuple[CrossCheck, ...]
    draws: int
    cost: Cost


def _make(
    draws: Sequence[Draw], *, timeout_seconds: float, mix: bool, plugin_proofs: bool
) -> list[_Result]:
    """Draw, prove and compare these pairs, one after another."""
    results = []
    for draw in draws:
        meter = Meter()
        drawn = CONSTRUCTIONS[draw.family].draw(
            seed=draw.seed or 0,
            timeout_seconds=timeout_seconds,
            disguise=draw.disguise,
            with_twin="sat" in draw.labels,
            knobs=draw.knobs,
            lock=draw.lock,
            plugin_proofs=plugin_proofs,
            mix=mix,
        )
        kept = [one for one in drawn.instances if one.truth is None or one.truth.label.value in draw.labels]
        compared = tuple(
            require_agreement(one.instance, one.truth) for one in kept if one.truth is not None
        )
        files = tuple(map(files_of, kept))
        results.append(_Result(files, compared, 1 + len(drawn.given_up), meter.cost()))
    return results


def generate_suite(
    recipe: Recipe,
    folder: Path,
    *,
    jobs: int | None = None,
    plugin_proofs: bool = False,
    progress: Callable[[GeneratedInstance], None] = lambda _: None,
    waiting: Callable[[str], None] | None = None,
) -> Suite:
    """Draw a recipe's instances, proven and cross-checked, and write them to `folder`.

    Finished instances are kept in a hidden folder beside it until all are done: if interrupted, the same
    call continues where it stopped. A folder that already holds exactly the suite that this version makes
    from this recipe is left unchanged. Kinds of proof that plug-ins add count only with `plugin_proofs`.

    Only one process at a time may make a folder: a second one raises InputError, or with `waiting` says so,
    waits, and then finds the finished suite.
    """
    if is_suite_of(folder, recipe):
        return read_suite(folder)
    with _only_here(folder, waiting):
        if not is_suite_of(folder, recipe):
            with _built_beside(folder, recipe) as building:
                rng = np.random.default_rng(recipe.seed)
                pairs = seeded(recipe, rng)
                make = partial(
                    _make,
                    timeout_seconds=recipe.timeout_seconds,
                    mix=recipe.mix,
                    plugin_proofs=plugin_proofs,
                )
                names = _build(pairs, make, building, _processes(jobs, len(pairs)), progress)
                families = [pair.family for pair in pairs for _ in pair.labels]
                order = rng.permutation(recipe.size)
                _describe(recipe, building, [(names[i], families[i]) for i in order])
    return read_suite(folder)


@contextmanager
def _only_here(folder: Path, waiting: Callable[[str], None] | None) -> Iterator[None]:
    """While this process alone makes the folder. A place that cannot be written to is named."""
    place = folder.absolute()
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_name(f".{place.name}.lock")
        with only_one(lock, doing=f"generates {folder}", waiting=waiting):
            yield
    except BrokenPipeError:
        raise  # whoever listened to the progress has gone
    except OSError as error:
        at = error.filename or folder
        raise InputError(f"{at} cannot be written ({error.strerror}); choose another `out`.") from error


@contextmanager
def _built_beside(folder: Path, recipe: Recipe) -> Iterator[Path]:
    """A hidden folder beside this one, which becomes it when it is finished."""
    expect_new_or_empty(folder)
    building = folder.parent / f".{folder.name}.{_key(recipe)}.part"
    if building.is_symlink() or any(path.is_symlink() for path in building.rglob("*")):
        raise InputError(f"{building} contains links, which Dokimos does not make; remove it first.")
    building.mkdir(exist_ok=True)
    try:
        yield building
    except InputError:
        if not any(building.iterdir()):
            building.rmdir()
        raise
    (building / "done.jsonl").unlink()
    if folder.exists():
        folder.rmdir()
    building.replace(folder)


def _describe(recipe: Recipe, building: Path, listed: Sequence[tuple[str, str]]) -> None:
    """Write the index of the listed names, each with its family, and the card."""
    if len({name for name, _ in listed}) < len(listed):
        raise InputError("The recipe draws the same instance twice; change a seed or a knob.")
    write_index(
        building,
        listed,
        recipe.timeout_seconds,
        recipe=recipe.as_json(),
        version=__version__,
        suite=recipe.name,
    )
    title = recipe.name or ", ".join(sorted({family for _, family in listed}))
    write_whole(building / CARD, suite_card(read_suite(building), title), what="the card")


def _processes(jobs: int | None, pairs: int) -> int:
    if jobs is not None:
        return jobs
    return default_jobs() if pairs >= WORTH_PROCESSES else 1


def _build(
    pairs: list[Draw],
    make: Callable[[Sequence[Draw]], list[_Result]],
    building: Path,
    jobs: int,
    progress: Callable[[GeneratedInstance], None],
) -> list[str]:
    """Make the pairs that are missing; returns the names of all instances, pair by pair."""
    finished = _finished(building, pairs)
    groups = _in_groups(pairs, [number for number in range(len(pairs)) if number not in finished])
    work = [[pairs[number] for number in group] for group in groups]
    for index, results in each(make, work, jobs=jobs):
        for number, result in zip(groups[index], results, strict=True):
            for files in result.files:
                store_files(building, files)
            finished[number] = [files.name for files in result.files]
            line = json.dumps([number, finished[number]])
            append_line(building / "done.jsonl", line, what="the list of what is done")
            cost = (result.draws, result.cost)
            for files, compared in zip(result.files, result.cross_checks, strict=True):
                progress(GeneratedInstance(files.name, files.label, pairs[number].family, *cost, compared))
                cost = (0, NO_COST)
    return [name for number in range(len(pairs)) for name in finished[number]]


def _finished(building: Path, pairs: Sequence[Draw]) -> dict[int, list[str]]:
    """Which pairs an interrupted call has finished, by number; a truncated last line is ignored."""
    journal = building / "done.jsonl"
    finished: dict[int, list[str]] = {}
    if journal.exists():
        text = journal.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        for line, content in enumerate(whole.splitlines(), start=1):
            number, names = _finished_pair(content, pairs, Place(str(journal), line))
            finished[number] = names
        write_whole(journal, whole, what="the list of what is done")
    return finished


def _finished_pair(content: bytes, pairs: Sequence[Draw], place: Place) -> tuple[int, list[str]]:
    try:
        what = "a finished pair"
        number, names = strict_json.read(content, tuple[int, list[str]], file=place, what=what)
        if not 0 <= number < len(pairs) or len(names) != len(pairs[number].labels):
            raise UnreadableFile(place, "the recipe has no such pair")
    except UnreadableFile as error:
        anew = f"remove {Path(place.file).parent} to start over"
        raise UnreadableFile(place, f"{error.reason}; {anew}.") from error
    return number, names


def _key(recipe: Recipe) -> str:
    return sha256(json.dumps([code_key(), recipe.as_json()]).encode())[:12]


def is_suite_of(folder: Path, recipe: Recipe) -> bool:
    """Whether `folder` is the suite of this recipe, made by this version, with all its files."""
    try:
        made = read_suite_file(folder)
        suite = read_suite(folder)
    except (OSError, InputError):
        return False
    complete = all(
        path.exists() for e in suite.entries for path in (e.network_path, e.property_path, e.truth_path)
    )
    same = made is not None and (made.recipe, made.dokimos) == (recipe.as_json(), __version__)
    return same and complete


def shipped_suite(name: str, *, progress: Callable[[GeneratedInstance], None] = lambda _: None) -> Suite:
    """The shipped suite of that name, generated into the cache; folders of the same name are ignored."""
    recipe = shipped_recipe(name)
    folder = cached_folder(name)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The suite {name} cannot be made in {folder.parent}: {error.strerror}; set DOKIMOS_HOME to a "
            "folder that you may write."
        ) from error
    waiting = partial(_log.info, "%s")
    return generate_suite(recipe, folder, progress=progress, waiting=waiting)
