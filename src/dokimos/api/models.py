"""Models and data: data sets by name, properties from a model and data, and reference networks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from dokimos.constructions.data.brackets import Accuracy, Effort, measure_accuracy
from dokimos.constructions.data.catalogue import NAMES, Limits, load_data, named_data
from dokimos.constructions.data.classifier import read_classifier
from dokimos.constructions.data.data_set import KNOWN, NONE, DataSet, Normalisation, parse_normalisation
from dokimos.constructions.data.packages import fetch_together
from dokimos.constructions.data.property_suites import (
    PropertySettings,
    RecordOutcome,
    Style,
    Wishes,
    make_suite,
)
from dokimos.constructions.data.reference_networks import (
    Architecture,
    TrainingSettings,
    TrainSettings,
    find_architecture,
)
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.registry import unknown_name
from dokimos.engine.attacks.base import Budget
from dokimos.suites.folder import Suite
from dokimos.suites.vnnlib.writer import vnnlib_version


@dataclass(frozen=True)
class DataSetInfo:
    """A data set: the shape of a record, the numbers of records to train and test on, and a description.

    `package` is where it comes from (empty if it comes with an installed package), `is_kept` whether its
    files are on this machine already, and `folder` where they are or will be.
    """

    name: str
    shape: tuple[int, ...]
    train: int
    test: int
    about: str
    package: str
    is_kept: bool
    folder: Path | None


def list_data() -> tuple[DataSetInfo, ...]:
    """List the data sets that have names: `dokimos data`.

    >>> [(data.name, data.shape) for data in dokimos.list_data() if data.name == "digits"]
    [('digits', (1, 8, 8))]
    """
    return tuple(map(_info, NAMES))


def get_data(name: str) -> DataSetInfo:
    """Fetch a data set, check its hashes and keep it: `dokimos data get`.

    Files that are already on this machine are only checked, which needs no network. Raises InputError if a
    file cannot be fetched or has the wrong hash.

    >>> dokimos.get_data("digits").is_kept
    True
    """
    files = named_data(name).files
    for requirement in dict.fromkeys(file.requirement for file in files):
        fetch_together([file for file in files if file.requirement == requirement])
    return _info(name)


def _info(name: str) -> DataSetInfo:
    data = named_data(name)
    package = ", ".join(dict.fromkeys(f"{file.tool} {file.requirement}" for file in data.files))
    folder = data.files[0].path.parent if data.files else None
    return DataSetInfo(name, data.shape, *data.sizes, data.about, package, data.is_kept, folder)


# `properties`: benchmarks from a model and data, with every radius bracketed by evidence


#: The time limit of an instance in the published benchmarks, and the smallest that a budget may lead to.
_TIMEOUTS = {Style.PGD: 300.0, Style.RADIUS: 300.0, Style.OVAL: 720.0}
_LEAST_TIMEOUT = 10.0
_COUNTS = {Style.PGD: 48, Style.RADIUS: 15, Style.OVAL: 10}


@dataclass(frozen=True, repr=False)
class PropertySuite(Brief):
    """A suite from a model and data, and the outcome for each record that was tried."""

    suite: Suite
    records: tuple[RecordOutcome, ...]
    timeout_seconds: float

    @property
    def labels(self) -> Counter[str]:
        """How many instances have each label; "" stands for those without."""
        return Counter(label for record in self.records for _, label in record.instances)


def make_properties(
    style: str,
    model: str | Path,
    data: str | Path,
    *,
    out: str | Path,
    epsilon: float | Sequence[float] = (),
    count: int | None = None,
    seed: int = 0,
    settings: PropertySettings | None = None,
    progress: ProgressCallback[RecordOutcome] = ignore,
) -> PropertySuite:
    """Make a suite of local robustness properties: `dokimos properties`.

    `style` is "pgd" (records that are classified correctly and resist PGD), "radius" (balls of `epsilon`
    around correctly classified records) or "oval" (a radius between the largest one proven and the smallest
    one broken). Records are drawn without replacement, by `seed`, from `data`: a name that `list_data`
    lists, or your own file or folder. `epsilon` is in the units of the data. A label is written only if it
    is proven: `unsat` with a certificate, `sat` with a witness.

    >>> model = "nets/digits-fc.onnx"
    >>> made = dokimos.make_properties("radius", model, "digits", out="x", epsilon=0.001, count=2)
    >>> dict(made.labels), dokimos.check("x").is_proven
    ({'unsat': 2}, True)
    """
    chosen, more = _style(style), settings or PropertySettings()
    radii = (float(epsilon),) if isinstance(epsilon, int | float) else tuple(map(float, epsilon))
    usual = _TIMEOUTS[chosen]
    wishes = Wishes(
        style=chosen,
        radii=radii,
        count=_COUNTS[chosen] if count is None else count,
        seed=seed,
        restarts=more.restarts,
        steps=more.steps,
        weights=more.weights,
        effort=Effort(largest=more.largest, tolerance=more.tolerance),
        timeout_seconds=usual if more.timeout_seconds is None else more.timeout_seconds,
        labelled_only=more.labelled_only,
        twins=more.twins,
        drop_easy=more.drop_easy,
        version=vnnlib_version(more.vnnlib),
    )
    if more.budget_seconds is not None:
        wishes = within(wishes, more.budget_seconds, count=count, seconds=more.timeout_seconds)
    normalise = more.normalise
    classifier = read_classifier(Path(model), None if normalise is None else parse_normalisation(normalise))
    shape = classifier.network.input_shape[1:]
    records = load_data(data, shape=shape, limits=more.limits, normalisation=classifier.normalisation)

    def show(outcome: RecordOutcome, kept: int) -> None:
        said = ", ".join(f"{name}: {label or 'no label'}" for name, label in outcome.instances)
        note = said or f"record {outcome.record}: {outcome.reason}"
        progress(ProgressUpdate("making properties", kept, wishes.count, note, outcome))

    suite, outcomes = make_suite(classifier, records, Path(out), wishes, show)
    return PropertySuite(suite, outcomes, wishes.timeout_seconds)


def _style(name: str) -> Style:
    try:
        return Style(name)
    except ValueError:
        raise unknown_name("style of properties", name, [style.value for style in Style]) from None


def within(wishes: Wishes, budget_seconds: float, *, count: int | None, seconds: float | None) -> Wishes:
    """Choose the number of records and the seconds for each instance so that all fit into the budget.

    Seconds that were given stay, and a given count is not exceeded. Otherwise there are as many records as
    fit with the usual seconds, but not fewer than usual: then there are fewer seconds, and only when these
    are down to the least, fewer records.
    """
    each = 2 if wishes.twins else max(1, len(wishes.radii))
    fitting = int(budget_seconds / (each * wishes.timeout_seconds))
    most = wishes.count if count is not None else max(wishes.count, fitting)
    limit = min(wishes.timeout_seconds, float(int(budget_seconds / (each * most))))
    if seconds is not None:
        most, limit = fitting if count is None else min(count, fitting), seconds
    elif limit < _LEAST_TIMEOUT:
        most, limit = int(budget_seconds / (each * _LEAST_TIMEOUT)), _LEAST_TIMEOUT
    if most < 1:
        raise InputError(
            f"A budget of {budget_seconds:g} s is too small for one record, whose {each} "
            f"instance{'s' * (each != 1)} may take {limit:g} s each; give a larger one."
        )
    return replace(wishes, timeout_seconds=limit, count=most)


# `train`: reference networks for benchmarks from data


#: The radii at which a network is measured that was not trained for a radius.
_USUAL_RADIUS = {"cifar10": 2 / 255, "mnist": 0.03}
#: Data sets of at least this many records have large batches and few epochs, others small ones and many.
_MANY = 5000
_LARGE_BATCH, _SMALL_BATCH = 128, 32
_FEW_EPOCHS, _MANY_EPOCHS = 10, 60
_FIFTH = 5
#: How many records there are between two lines of progress.
_SHOWN = 20


@dataclass(frozen=True)
class TrainedClassifier:
    """Where the network is, its size, and its accuracy on the first test records, at `radius`."""

    network: Path
    parameters: int
    relus: int
    radius: float
    accuracy: Accuracy


def train_model(
    architecture: str,
    *,
    out: str | Path,
    data: str | Path | None = None,
    epochs: int | None = None,
    seed: int = 0,
    settings: TrainSettings | None = None,
    progress: ProgressCallback[float] = ignore,
) -> TrainedClassifier:
    """Train a reference architecture and write `out`/ARCHITECTURE.onnx: `dokimos train`.

    Trains plainly or as `settings` say, for 10 epochs, or 60 on fewer than 5,000 records. The same
    arguments give the same network. A checkpoint is kept next to it after each epoch: if interrupted, the
    same call continues. ARCHITECTURE.json records how records are normalised, for `make_properties`. Every
    fifth record of your own data is kept for testing.

    >>> short = dokimos.TrainSettings(evaluate=20)
    >>> trained = dokimos.train_model("digits-fc", out="nets", epochs=3, settings=short)
    >>> trained.network.name, trained.parameters, trained.accuracy.clean.count
    ('digits-fc.onnx', 3466, 20)
    """
    chosen, how = find_architecture(architecture), settings or TrainSettings()
    source = chosen.data if data is None else data
    usual = KNOWN.get(str(source), NONE) if str(source) in NAMES else NONE
    normalisation = usual if how.normalise is None else parse_normalisation(how.normalise)
    training = TrainingSettings(
        architecture=architecture,
        method=how.method,
        radius=how.radius,
        epochs=_FEW_EPOCHS if epochs is None else epochs,
        batch=_LARGE_BATCH if how.batch is None else how.batch,
        seed=seed,
        mean=normalisation.mean,
        deviation=normalisation.deviation,
    )
    records, test = _parts(source, chosen, how.limits, normalisation)
    if len(records) < _MANY:
        training = replace(training, epochs=epochs or _MANY_EPOCHS, batch=how.batch or _SMALL_BATCH)
    # Only here, so that mistakes are reported before torch is loaded.
    from dokimos.constructions.data.schedule import Trainer

    folder = Path(out)
    trainer = Trainer(training, chosen, records, folder / f"{architecture}.checkpoint")

    def show(epoch: int, loss: float) -> None:
        progress(
            ProgressUpdate("training", epoch, training.epochs, f"epoch {epoch}: loss {loss:.4f}", loss)
        )

    trainer.run(show)
    path = folder / f"{architecture}.onnx"
    write_whole(path, trainer.model.to_onnx(normalisation if how.inside else None), what="the network")
    declared = {
        "mean": normalisation.mean,
        "deviation": normalisation.deviation,
        "inside": how.inside,
        "data": str(source),
    }
    write_whole(path.with_suffix(".json"), json.dumps(declared, indent=1) + "\n", what="its normalisation")
    measured = how.radius or _USUAL_RADIUS.get(str(source), 0.02)
    test = test.chosen(list(range(min(how.evaluate, len(test)))))

    def count(done: int) -> None:
        if done % _SHOWN == 0:
            progress(ProgressUpdate("verifying", done, None, f"{done} records bounded", 0.0))

    classifier = read_classifier(path)
    accuracy = measure_accuracy(
        classifier, test, measured, budget=Budget(restarts=3, steps=40), progress=count
    )
    parameters = sum(int(each.numel()) for each in trainer.model.parameters)
    shapes = classifier.network.shapes
    relus = sum(prod(shapes[node.output]) for node in classifier.network.nodes if node.op == "Relu")
    return TrainedClassifier(path, parameters, relus, measured, accuracy)


def _parts(
    source: str | Path, architecture: Architecture, limits: Limits, normalisation: Normalisation
) -> tuple[DataSet, DataSet]:
    """The records to train on, and those to test on, which fit the architecture."""
    if str(source) in NAMES:
        found = load_data(source, part="train"), load_data(source, part="test")
    else:
        shape = named_data(architecture.data).shape
        whole = load_data(source, shape=shape, limits=limits, normalisation=normalisation)
        if len(whole) < _FIFTH:
            raise InputError(f"{whole.source}: has too few records to train on; give at least {_FIFTH}.")
        is_test = np.arange(len(whole)) % _FIFTH == _FIFTH - 1
        found = whole.chosen(np.flatnonzero(~is_test)), whole.chosen(np.flatnonzero(is_test))
    if found[0].classes < 2:
        raise InputError(f"{found[0].source}: all labels are 0; a classifier needs records of two classes.")
    architecture.require_fit(found[0].shape, found[0].source)
    return found
