"""From drafts to labelled instances, and from those to a suite on disk; and the lock tier.

That is three siblings for each point, one of which has a counterexample that a parity lock hides: a base
network that intervals prove robust on every box, enlarged by 1e-4; the same with a lock that no input
opens; and the same with a lock that opens in one cell. Since the base is proven, a violation is only
possible where the gate is open, so the violations' share of the box's volume is at most 2^-bits. Nothing is
claimed about gradients.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor, log2
from pathlib import Path
from typing import Any

import numpy as np

from dokimos import __version__
from dokimos.constructions.draft import Draft, Origin, ball, class_loses, instance_of
from dokimos.constructions.hiding.plants import HideSettings, draw_network, draw_points
from dokimos.constructions.locked_networks import enlarged_box, lock_draft, shape_of
from dokimos.core import strict_json
from dokimos.core.errors import ConstructionFailed, InputError, InvalidProof, UnreadableFile
from dokimos.core.files import expect_new_or_empty, only_one, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate
from dokimos.core.tables import array_in, arrays_in
from dokimos.engine.direct import by_intervals
from dokimos.engine.label import find_label
from dokimos.engine.outcome import accepted_truth
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import read_content
from dokimos.suites.folder import HIDE_REPORT, Suite, read_suite, read_suite_file
from dokimos.suites.instance import Certificate, Label, LabelledInstance, sha256
from dokimos.suites.suite_files import files_of, store_files, write_index
from dokimos.suites.vnnlib.model import Property


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


# The user's own network and points, as bases of locks


#: The radius of a box is this many steps of the points' grid: so locks stay exact in float32.
STEPS = 2**6
_MOST_VALUES = 50_000_000


@dataclass(frozen=True)
class DataPoint:
    """The network, and the property that its class wins around one point."""

    network: bytes
    question: Property


def points_of_model(settings: HideSettings) -> tuple[DataPoint, ...]:
    """The first data points on which the network clearly prefers one class.

    `epsilon` is a share of half the range of the data. Points are rounded to a grid of step radius/64, so
    that bounds and thresholds are exact in float32. Raises InputError if the files do not fit together.
    """
    content = read_content(Path(settings.model))
    network = read_onnx(content, name=settings.model)
    values = _load(Path(settings.data))
    if values.ndim < 2 or values[0].size != network.input_size:
        raise InputError(
            f"{settings.data}: a row has {values[0].size if values.ndim > 1 else 1} numbers, but the "
            f"network reads {network.input_size}."
        )
    half = float(values.max() - values.min()) / 2
    if half <= 0:
        raise InputError(
            f"{settings.data}: all numbers are the same, so epsilon, a share of their range, would be 0."
        )
    radius = settings.epsilon * half
    step = Fraction(2) ** floor(log2(radius / STEPS))
    reach = floor(Fraction(radius) / step) * step
    found: list[DataPoint] = []
    for row in values.reshape(len(values), -1):
        if len(found) == settings.points:
            break
        centre = tuple(round(Fraction(float(x)) / step) * step for x in row)
        exact = np.array([[float(x) for x in centre]], dtype=np.float32)
        outputs = replay(content, exact)[0]
        if network.output_size < 2 or np.partition(-outputs, 1)[0] == np.partition(-outputs, 1)[1]:
            continue
        question = class_loses(ball(centre, reach), int(outputs.argmax()), network.output_size)
        found.append(DataPoint(content, question))
    if not found:
        raise InputError(f"{settings.data}: at no point does one class score above all others.")
    return tuple(found)


def _load(path: Path) -> Any:
    """The array `x` of an .npz file, or that of an .npy file."""
    content = read_content(path)
    is_several = path.suffix == ".npz"
    found = arrays_in(content, [["x"]], file=path)[0] if is_several else array_in(content, file=path)
    values = found.astype(np.float64) if found.dtype.kind in "biuf" else np.full(1, np.nan)
    if values.size > _MOST_VALUES or not np.isfinite(values).all() or not values.size:
        raise UnreadableFile(path, "holds nothing, too much, or what are no finite numbers")
    return values


FAMILY = "hidden-lock"
#: Fewer inputs get fewer bits, so that a cell keeps a radius of a hundredth of the box.
BITS_OF_INPUT = 3


@dataclass(frozen=True)
class LockedTrio:
    """The result for one point: its instances, and whether the base alone is proven robust: on its box, and
    on the box enlarged by 1e-4 on every side."""

    instances: tuple[LabelledInstance, ...]
    is_base_proven: bool
    is_proven_enlarged: bool
    bits: int


def make_trios(settings: HideSettings, progress: Callable[[int, int, str], None]) -> list[LockedTrio]:
    """The three siblings of each point, on a base trained for the points, or on the user's own network."""
    rng = np.random.default_rng(settings.seed)
    bases = _own_bases(settings) if settings.model else _trained_bases(settings, rng, progress)
    trios = []
    for number, (network, question, certificate) in enumerate(bases):
        trios.append(_trio(settings, network, question, certificate, rng))
        progress(number + 1, len(bases), "proven" if trios[-1].is_base_proven else "base not proven")
    return trios


_Base = tuple[bytes, Property, Certificate | None]


def _trained_bases(
    settings: HideSettings, rng: np.random.Generator, progress: Callable[[int, int, str], None]
) -> list[_Base]:
    from dokimos.constructions.hiding.trainer import certified_base

    network = draw_network(settings.architecture, settings.input_shape, scale=settings.scale, rng=rng)
    points = draw_points(
        settings.input_shape, epsilon=settings.epsilon, planted=settings.points, regular=0, rng=rng
    )
    file, _ = certified_base(
        network,
        points,
        enlarged_box,
        progress=lambda step, done: progress(0, len(points), f"step {step}: {done} points certified"),
    )
    return [(file, point.question, by_intervals()) for point in points]


def _own_bases(settings: HideSettings) -> list[_Base]:
    """The user's network at each of their points, with a proof if one is found in time."""
    found: list[_Base] = []
    points: tuple[DataPoint, ...] = points_of_model(settings)
    for point in points:
        origin = Origin(FAMILY, {}, settings.seed, settings.timeout_seconds)
        instance = instance_of(Draft(point.network, point.question, by_intervals()), origin)
        label = find_label(instance, seconds=settings.prove_seconds)
        certificate = None
        if label.truth is not None and label.truth.label is Label.UNSAT:
            certificate = label.truth.certificate
        found.append((point.network, point.question, certificate))
    return found


def _trio(
    settings: HideSettings,
    network: bytes,
    question: Property,
    certificate: Certificate | None,
    rng: np.random.Generator,
) -> LockedTrio:
    inputs = question.cases[0].box.size
    bits = settings.bits or min(75, BITS_OF_INPUT * inputs)
    robust = Draft(network, question, certificate or by_intervals())
    pair = lock_draft(robust, shape_of(bits, inputs, weight=settings.weight), rng)
    made: list[LabelledInstance] = []
    for sibling, draft in (("none", robust), ("shut", pair.shut), ("open", pair.opened)):
        about = {"lock": sibling, "bits": bits, "weight": settings.weight}
        origin = Origin(FAMILY, about, settings.seed, settings.timeout_seconds)
        if certificate is None and draft.witness is None:
            made.append(LabelledInstance(instance_of(draft, origin), None))
            continue
        try:
            made.append(proven(draft, origin))
        except InvalidProof as error:
            raise ConstructionFailed(f"A sibling ({sibling}) is not proven: {error}.") from None
    is_proven = certificate is not None
    return LockedTrio(tuple(made), is_proven, is_proven and pair.is_proven_enlarged, bits)


def volume_claim(trio: LockedTrio) -> str:
    """What is proven about the counterexamples' share of the box."""
    if not trio.is_base_proven:
        return "the base is not proven robust: no volume is claimed"
    return f"at most 2^-{trio.bits} of the box"
