"""From drafts to labelled instances, and from those to a suite on disk."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dokimos import __version__
from dokimos.constructions.draft import Draft, Origin, instance_of
from dokimos.constructions.hiding.plants import HideSettings
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import expect_new_or_empty, only_one, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate
from dokimos.engine.outcome import accepted_truth
from dokimos.suites.folder import HIDE_REPORT, Suite, read_suite, read_suite_file
from dokimos.suites.instance import LabelledInstance, sha256
from dokimos.suites.suite_files import files_of, store_files, write_index


def proven(draft: Draft, origin: Origin) -> LabelledInstance:
    """The instance of a draft, its label proven on the files and cross-checked.

    Raises InvalidProof if the certificate does not prove the label.
    """
    instance = instance_of(draft, origin)
    truth = accepted_truth(instance, draft.certificate, draft.label, draft.witness)
    return LabelledInstance(instance, truth)


def write_suite(
    folder: Path,
    instances: Sequence[LabelledInstance],
    *,
    building: Path,
    recipe: Mapping[str, Any],
    report: Mapping[str, Any],
    timeout_seconds: float,
    seed: int,
) -> Suite:
    """Write the suite, its instances in random order, beside its destination; then move it there."""
    made = building / "suite"
    if made.exists():
        shutil.rmtree(made)
    made.mkdir(parents=True)
    order = np.random.default_rng([seed, 1]).permutation(len(instances))
    for one in instances:
        store_files(made, files_of(one))
    listed = [(instances[k].instance.name, instances[k].instance.family) for k in order]
    if len(set(listed)) < len(listed):
        raise InputError("Two instances are the same; try another seed.")
    write_index(made, listed, timeout_seconds, recipe=recipe, version=__version__)
    unlabelled = sorted(one.instance.name for one in instances if one.truth is None)
    text = strict_json.write({**report, "unlabelled": unlabelled})
    write_whole(made / HIDE_REPORT, text, what="the report")
    if folder.exists():
        folder.rmdir()
    made.replace(folder)
    return read_suite(folder)


def building_folder(folder: Path, recipe: Mapping[str, Any]) -> Path:
    """Where a suite is kept until it is complete: beside its destination, named after its recipe.

    Raises InputError if the destination already holds something else.
    """
    expect_new_or_empty(folder)
    building = building_place(folder, recipe)
    if building.is_symlink():
        raise InputError(f"{building} is a link, which Dokimos does not make; remove it first.")
    try:
        building.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{building} cannot be created ({error.strerror}); choose another `out`."
        ) from None
    return building


def building_place(folder: Path, recipe: Mapping[str, Any]) -> Path:
    """The folder in which a suite of this recipe is built."""
    key = sha256(strict_json.write(dict(recipe)).encode())[:12]
    return folder.absolute().parent / f".{folder.name}.{key}.part"


# A suite with hidden counterexamples, of either tier


def hidden_suite(
    asked: HideSettings, folder: Path, progress: ProgressCallback[None]
) -> tuple[Suite, dict[str, Any] | None]:
    """Make the suite in a folder: see `dokimos.hide`. No report if exactly this suite was there."""
    recipe = asked.as_recipe()
    if _is_made(folder, recipe):
        # If the process is killed between the last two steps, the working folder is left behind.
        shutil.rmtree(building_place(folder, recipe), ignore_errors=True)
        return read_suite(folder), None
    building = building_folder(folder, recipe)
    with only_one(building / "lock", doing=f"makes {folder}"):
        instances, report = _made(asked, building, progress)
        suite = write_suite(
            folder,
            instances,
            building=building,
            recipe=recipe,
            report=report,
            timeout_seconds=asked.timeout_seconds,
            seed=asked.seed,
        )
    shutil.rmtree(building, ignore_errors=True)
    return suite, report


def _made(
    asked: HideSettings, building: Path, progress: ProgressCallback[None]
) -> tuple[list[Any], dict[str, Any]]:
    def show(stage: str) -> Any:
        return lambda done, total, note: progress(ProgressUpdate(stage, done, total, note, None))

    if asked.tier == "trained":
        from dokimos.constructions.hiding.trained_tier import certify, report_of, train

        trained = train(asked, building, show("training"))
        instances, outcomes = certify(asked, trained, show("certifying"))
        return instances, report_of(trained, outcomes, asked.filter)
    from dokimos.constructions.hiding.lock_tier import make_trios, volume_claim

    trios = make_trios(asked, show("locking"))
    report = {
        "tier": "lock",
        "planted": len(trios),
        "points": [
            {
                "base_proven": one.is_base_proven,
                "proven_enlarged": one.is_proven_enlarged,
                "volume": volume_claim(one),
            }
            for one in trios
        ],
    }
    return [one for trio in trios for one in trio.instances], report


def _is_made(folder: Path, recipe: Mapping[str, Any]) -> bool:
    if not (folder / "suite.json").exists():
        return False
    made = read_suite_file(folder)
    return made is not None and made.recipe == recipe
