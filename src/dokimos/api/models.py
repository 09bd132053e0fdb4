"""Models and data: data sets by name, properties from a model and data, and reference networks."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from dokimos.constructions.data.brackets import Accuracy, PropertySettings, measure_accuracy, wishes_of
from dokimos.constructions.data.catalogue import NAMES, load_data, named_data, training_parts
from dokimos.constructions.data.data_set import KNOWN, NONE, parse_normalisation, read_classifier
from dokimos.constructions.data.packages import fetch_together
from dokimos.constructions.data.property_suites import RecordOutcome, join_suites, make_suite
from dokimos.constructions.data.reference_networks import (
    TrainingSettings,
    TrainSettings,
    find_architecture,
)
from dokimos.core.errors import InputError
from dokimos.core.files import as_paths, expect_new_or_empty, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.engine.attacks.base import Budget
from dokimos.laws.conversion import ConvertedModel, convert_trees
from dokimos.suites.folder import Suite, read_suite, read_suite_file
from dokimos.suites.instance import sha256


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
    model: str | Path | Sequence[str | Path],
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

    Several models, each perhaps with its own count as in `"resnet4b.onnx:24"`, make one suite together;
    `count` is for each of the others, and a budget for all of them.

    >>> model = "nets/digits-fc.onnx"
    >>> made = dokimos.make_properties("radius", model, "digits", out="x", epsilon=0.001, count=2)
    >>> dict(made.labels), dokimos.check("x").is_proven
    ({'unsat': 2}, True)
    """
    more = settings or PropertySettings()
    models = [_counted(given, count) for given in as_paths(model, none="There is no model; give one.")]
    if len(models) > 1:
        drawn = {"epsilon": epsilon, "seed": seed}
        return _together(style, models, data, Path(out), drawn, more, progress)
    ((path, count),) = models
    wishes = wishes_of(style, more, epsilon=epsilon, count=count, seed=seed)
    normalise = more.normalise
    classifier = read_classifier(path, None if normalise is None else parse_normalisation(normalise))
    shape = classifier.network.input_shape[1:]
    records = load_data(data, shape=shape, limits=more.limits, normalisation=classifier.normalisation)

    def show(outcome: RecordOutcome, kept: int) -> None:
        said = ", ".join(f"{name}: {label or 'no label'}" for name, label in outcome.instances)
        note = said or f"record {outcome.record}: {outcome.reason}"
        progress(ProgressUpdate("making properties", kept, wishes.count, note, outcome))

    suite, outcomes = make_suite(classifier, records, Path(out), wishes, show)
    return PropertySuite(suite, outcomes, wishes.timeout_seconds)


def _counted(given: Path, count: int | None) -> tuple[Path, int | None]:
    """A model, and how many records to keep for it."""
    path, colon, own = str(given).rpartition(":")
    return (Path(path), int(own)) if colon and own.isdigit() and int(own) else (given, count)


def _together(
    style: str,
    models: Sequence[tuple[Path, int | None]],
    data: str | Path,
    out: Path,
    drawn: dict[str, Any],
    settings: PropertySettings,
    progress: ProgressCallback[RecordOutcome],
) -> PropertySuite:
    """A suite for each model, beside `out`, where the same call finds it again; then one of all."""
    if len({path.name for path, _ in models}) < len(models):
        raise InputError("Two models have the same name; rename one of them.")
    expect_new_or_empty(out)
    asked = repr((style, [(str(p), n) for p, n in models], str(data), drawn, settings))
    building = out.absolute().parent / f".{out.name}.{sha256(asked.encode())[:12]}.parts"
    total = sum(count or 0 for _, count in models)
    made = []
    for path, count in models:
        share = count / total if count and all(n for _, n in models) else 1 / len(models)
        budget = settings.budget_seconds
        own = replace(settings, budget_seconds=None if budget is None else budget * share)
        place = building / path.stem
        if (place / "suite.json").exists():
            recipe = read_suite_file(place)
            assert recipe is not None
            records = tuple(RecordOutcome.read(line) for line in recipe.recipe["records"])
            suite = read_suite(place)
            made.append(PropertySuite(suite, records, suite.entries[0].timeout_seconds))
        else:
            made.append(
                make_properties(
                    style, path, data, out=place, count=count, settings=own, progress=progress, **drawn
                )
            )
    joined = join_suites([one.suite for one in made], out)
    shutil.rmtree(building, ignore_errors=True)
    records = tuple(record for one in made for record in one.records)
    return PropertySuite(joined, records, max(one.timeout_seconds for one in made))


# `train`: reference networks for benchmarks from data


#: The radii at which a network is measured that was not trained for a radius.
_USUAL_RADIUS = {"cifar10": 2 / 255, "mnist": 0.03}
#: Data sets of at least this many records have large batches and few epochs, others small ones and many.
_MANY = 5000
_LARGE_BATCH, _SMALL_BATCH = 128, 32
_FEW_EPOCHS, _MANY_EPOCHS = 10, 60
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
    shape = named_data(chosen.data).shape
    records, test = training_parts(source, shape=shape, limits=how.limits, normalisation=normalisation)
    chosen.require_fit(records.shape, records.source)
    if len(records) < _MANY:
        training = replace(training, epochs=epochs or _MANY_EPOCHS, batch=how.batch or _SMALL_BATCH)
    # Only here, so that mistakes are reported before torch is loaded.
    from dokimos.constructions.trainable_weights import Trainer

    folder = Path(out)
    trainer = Trainer(training, chosen, records, folder / f"{architecture}.checkpoint")

    def show(epoch: int, loss: float) -> None:
        progress(
            ProgressUpdate("training", epoch, training.epochs, f"epoch {epoch}: loss {loss:.4f}", loss)
        )

    trainer.run(show)
    path = folder / f"{architecture}.onnx"
    write_whole(path, trainer.export(normalisation if how.inside else None), what="the network")
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
    parameters = sum(int(each.numel()) for each in trainer.weights.values())
    shapes = classifier.network.shapes
    relus = sum(prod(shapes[node.output]) for node in classifier.network.nodes if node.op == "Relu")
    return TrainedClassifier(path, parameters, relus, measured, accuracy)


# `convert_model`: trees as plain numbers


def convert_model(
    model: str | Path, *, out: str | Path, domain: str | Path | None = None
) -> ConvertedModel:
    """Convert scikit-learn's trees to a file of plain numbers, without code: `dokimos law convert`.

    `model` is a pickle that you trust (reading it runs its code); `out` ends in .json. The names of its
    columns go with it. Before the file is written, it is compared with the pickle on every row of the data
    of the `domain`, if one is given, and on random records; where they decide differently, InputError names
    the record.

    >>> import pickle
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[18], [40]], [0, 1])
    >>> _ = Path("tree.pkl").write_bytes(pickle.dumps(tree))
    >>> dokimos.convert_model("tree.pkl", out="tree.json").nodes
    3
    """
    return convert_trees(Path(model), Path(out), domain)
