"""`train`: reference networks for benchmarks from data."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.attacks.base import Budget
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.datasets.accuracy import Accuracy, measure_accuracy
from dokimos.datasets.catalogue import NAMES, load_data, named_data
from dokimos.datasets.classifier import read_classifier
from dokimos.datasets.data_set import DataSet
from dokimos.datasets.normalisation import KNOWN, NONE, Normalisation, parse_normalisation
from dokimos.datasets.own_files import Limits
from dokimos.datasets.training.architectures import Architecture, find_architecture
from dokimos.datasets.training.settings import Method, TrainingSettings

#: The radii at which a network is measured that was not trained for a radius.
_USUAL_RADIUS = {"cifar10": 2 / 255, "mnist": 0.03}
_RECORDS = 200
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
    out: str | Path,
    *,
    data: str | Path | None = None,
    adversarial: float | None = None,
    certified: float | None = None,
    bounds: str = "ibp",
    epochs: int | None = None,
    batch: int | None = None,
    seed: int = 0,
    normalise: str | None = None,
    inside: bool = False,
    limits: Limits = (0.0, 1.0),
    evaluate: int = _RECORDS,
    progress: ProgressCallback[float] = ignore,
) -> TrainedClassifier:
    """Train a reference architecture and write `out`/ARCHITECTURE.onnx: `dokimos train`.

    Trains plainly, with PGD examples within `adversarial`, or with bounds within `certified` (`bounds` says
    which: "ibp" or "crown-ibp", on a growing radius), for 10 epochs, or 60 on fewer than 5,000 records. The
    same arguments give the same network. A checkpoint is kept next to it after each epoch: if interrupted,
    the same call continues. Records are normalised outside the network unless `inside` is true;
    ARCHITECTURE.json records which, for `make_properties`. The accuracy, the accuracy under PGD and the
    share verified by bounds are measured on the first `evaluate` test records. Every fifth record of your
    own data is kept for testing; `limits` is the range of its values.

    >>> trained = dokimos.train_model("digits-fc", "nets", epochs=3, evaluate=20)
    >>> trained.network.name, trained.parameters, trained.accuracy.clean.count
    ('digits-fc.onnx', 3466, 20)
    """
    chosen = find_architecture(architecture)
    method, radius = _method(adversarial, certified, bounds)
    source = chosen.data if data is None else data
    usual = KNOWN.get(str(source), NONE) if str(source) in NAMES else NONE
    normalisation = usual if normalise is None else parse_normalisation(normalise)
    settings = TrainingSettings(
        architecture=architecture,
        method=method,
        radius=radius,
        epochs=_FEW_EPOCHS if epochs is None else epochs,
        batch=_LARGE_BATCH if batch is None else batch,
        seed=seed,
        mean=normalisation.mean,
        deviation=normalisation.deviation,
    )
    records, test = _parts(source, chosen, limits, normalisation)
    if len(records) < _MANY:
        settings = replace(settings, epochs=epochs or _MANY_EPOCHS, batch=batch or _SMALL_BATCH)
    # Only here, so that mistakes are reported before torch is loaded.
    from dokimos.datasets.training.schedule import Trainer

    folder = Path(out)
    trainer = Trainer(settings, chosen, records, folder / f"{architecture}.checkpoint")

    def show(epoch: int, loss: float) -> None:
        progress(
            ProgressUpdate("training", epoch, settings.epochs, f"epoch {epoch}: loss {loss:.4f}", loss)
        )

    trainer.run(show)
    path = folder / f"{architecture}.onnx"
    write_whole(path, trainer.model.to_onnx(normalisation if inside else None), what="the network")
    declared = {
        "mean": normalisation.mean,
        "deviation": normalisation.deviation,
        "inside": inside,
        "data": str(source),
    }
    write_whole(path.with_suffix(".json"), json.dumps(declared, indent=1) + "\n", what="its normalisation")
    measured = radius or _USUAL_RADIUS.get(str(source), 0.02)
    test = test.chosen(list(range(min(evaluate, len(test)))))

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


def _method(adversarial: float | None, certified: float | None, bounds: str) -> tuple[Method, float]:
    """What is minimised, and over balls of which radius."""
    if adversarial is not None and certified is not None:
        raise InputError("Training is either adversarial or certified; give only one of the two.")
    if bounds not in ("ibp", "crown-ibp"):
        raise InputError(f"There are no bounds called {bounds!r}; give ibp or crown-ibp.")
    if adversarial is not None:
        return Method.ADVERSARIAL, adversarial
    return (Method.NORMAL, 0.0) if certified is None else (Method(bounds), certified)


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
