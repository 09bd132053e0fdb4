"""`train`: reference networks for benchmarks from data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.attacks.base import Budget
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.datasets.accuracy import Accuracy, measure_accuracy
from dokimos.datasets.catalogue import NAMES, load_data
from dokimos.datasets.classifier import read_classifier
from dokimos.datasets.data_set import DataSet
from dokimos.datasets.normalisation import KNOWN, NONE, parse_normalisation
from dokimos.datasets.training.architectures import find_architecture

#: The radii at which a network is measured that was not trained for a radius.
_USUAL_RADIUS = {"cifar10": 2 / 255, "mnist": 0.03}
_RECORDS = 200
#: Data sets of at least this many records have large batches; progress is shown every so many records.
_MANY, _SHOWN = 5000, 20
_FIFTH = 5


@dataclass(frozen=True)
class TrainedClassifier:
    """Where the network is, and its accuracy on the first test records, at `radius`."""

    network: Path
    parameters: int
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
    epochs: int = 10,
    batch: int | None = None,
    seed: int = 0,
    normalise: str | None = None,
    inside: bool = False,
    evaluate: int = _RECORDS,
    progress: ProgressCallback[float] = ignore,
) -> TrainedClassifier:
    """Train a reference architecture and write `out`/ARCHITECTURE.onnx: `dokimos train`.

    Trains plainly, with PGD examples within `adversarial`, or with bounds within `certified` (`bounds` says
    which: "ibp" or "crown-ibp", on a growing radius). The same arguments give the same network. A
    checkpoint is kept next to it after each epoch: if interrupted, the same call continues. Records are
    normalised outside the network unless `inside` is true; ARCHITECTURE.json records which, for
    `make_properties`. The accuracy, the accuracy under PGD and the share verified by bounds are measured on
    the first `evaluate` test records. Every fifth record of your own data is kept for testing.

    >>> trained = dokimos.train_model("digits-fc", "nets", epochs=3, evaluate=20)
    >>> trained.network.name, trained.parameters, trained.accuracy.clean.count
    ('digits-fc.onnx', 3466, 20)
    """
    from dokimos.datasets.training.schedule import Method, Trainer, TrainingSettings

    chosen = find_architecture(architecture)
    source = chosen.data if data is None else data
    method, radius = Method.NORMAL, 0.0
    if adversarial is not None and certified is not None:
        raise InputError("Training is either adversarial or certified; give only one of the two.")
    if adversarial is not None:
        method, radius = Method.ADVERSARIAL, adversarial
    elif certified is not None:
        if bounds not in ("ibp", "crown-ibp"):
            raise InputError(f"There are no bounds called {bounds!r}; give ibp or crown-ibp.")
        method, radius = Method(bounds), certified
    records, test = _parts(source)
    chosen.require_fit(records.shape, records.source)
    usual = KNOWN.get(str(source), NONE) if str(source) in NAMES else NONE
    normalisation = usual if normalise is None else parse_normalisation(normalise)
    settings = TrainingSettings(
        architecture=architecture,
        method=method,
        radius=radius,
        epochs=epochs,
        batch=batch or (128 if len(records) >= _MANY else 32),
        seed=seed,
        mean=normalisation.mean,
        deviation=normalisation.deviation,
    )
    folder = Path(out)
    trainer = Trainer(settings, chosen, records, folder / f"{architecture}.checkpoint")

    def show(epoch: int, loss: float) -> None:
        progress(ProgressUpdate("training", epoch, epochs, f"epoch {epoch}: loss {loss:.4f}", loss))

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

    accuracy = measure_accuracy(
        read_classifier(path), test, measured, budget=Budget(restarts=3, steps=40), progress=count
    )
    parameters = sum(int(each.numel()) for each in trainer.model.parameters)
    return TrainedClassifier(path, parameters, measured, accuracy)


def _parts(source: str | Path) -> tuple[DataSet, DataSet]:
    """The records to train on, and those to test on."""
    if str(source) in NAMES:
        return load_data(source, part="train"), load_data(source, part="test")
    whole = load_data(source)
    if len(whole) < _FIFTH:
        raise InputError(f"{whole.source}: has too few records to train on; give at least {_FIFTH}.")
    is_test = np.arange(len(whole)) % _FIFTH == _FIFTH - 1
    return whole.chosen(np.flatnonzero(~is_test)), whole.chosen(np.flatnonzero(is_test))
