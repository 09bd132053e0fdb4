"""Reference networks: shapes, the same weights from the same seed, bounds that hold, checkpoints."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dokimos
from dokimos.constructions.data.brackets import Share
from dokimos.constructions.data.catalogue import load_data
from dokimos.constructions.data.data_set import KNOWN, Normalisation, read_classifier
from dokimos.constructions.data.reference_networks import (
    ARCHITECTURES,
    Method,
    TrainingSettings,
    find_architecture,
)
from dokimos.constructions.trainable_weights import Trainer, enclose, evaluate, trainable
from dokimos.core.errors import InputError
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from tests.scripting import flat

train_model = flat(dokimos.train_model, dokimos.TrainSettings)

SHAPES = {"cifar10": (3, 32, 32), "mnist": (1, 28, 28), "digits": (1, 8, 8)}
#: Parameters and ReLUs, as the benchmarks' authors state them.
PUBLISHED = {
    "resnet2b": (112_006, 6244),
    "resnet4b": (123_734, 14_436),
    "oval-base": (None, 3172),
    "oval-wide": (None, 6244),
    "oval-deep": (None, 6756),
}


def drawn(name: str, normalisation: Normalisation | None = None) -> bytes:
    architecture, rng = find_architecture(name), np.random.default_rng(0)

    def weights(shape: tuple[int, ...]) -> tuple[Any, Any]:
        weight = rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[1:]))
        return weight.astype(np.float32), rng.normal(size=shape[0]).astype(np.float32)

    return architecture.write(SHAPES[architecture.data], 10, weights, normalisation)


@pytest.mark.parametrize("name", sorted(ARCHITECTURES))
def test_the_file_is_the_network_that_is_trained(name: str) -> None:
    content = drawn(name)
    network = read_onnx(content)
    weights = trainable(network)
    x = np.random.default_rng(1).random((2, network.input_size), dtype=np.float32)
    with torch.no_grad():
        expected = evaluate(network, weights, torch.from_numpy(x)).numpy()
    assert replay(content, x) == pytest.approx(expected, rel=1e-4, abs=1e-4)
    relus = sum(np.prod(network.shapes[node.output]) for node in network.nodes if node.op == "Relu")
    parameters, count = PUBLISHED.get(name, (None, relus))
    assert relus == count
    assert parameters in (None, sum(each.numel() for each in weights.values()))


def test_a_network_may_normalise_by_itself() -> None:
    scale = KNOWN["cifar10"]
    x = np.random.default_rng(1).random((2, 3, 32, 32), dtype=np.float32)
    inside = replay(drawn("oval-base", scale), x.reshape(2, -1))
    assert inside == pytest.approx(replay(drawn("oval-base"), scale.apply(x).reshape(2, -1)), abs=1e-3)


@pytest.mark.parametrize("name", ["resnet2b", "oval-deep", "digits-fc"])
def test_bounds_for_training_hold(name: str) -> None:
    network = read_onnx(drawn(name))
    weights = trainable(network)
    generator = torch.Generator().manual_seed(3)
    x = torch.rand((2, network.input_size), generator=generator)
    with torch.no_grad():
        low, high = enclose(network, weights, x - 0.01, x + 0.01)
        for _ in range(20):
            moved = x + 0.01 * (2 * torch.rand(x.shape, generator=generator) - 1).sign()
            scores = evaluate(network, weights, moved)
            assert (scores >= low - 1e-4).all() and (scores <= high + 1e-4).all()


@pytest.mark.parametrize("method", list(Method))
def test_the_same_seed_gives_the_same_network_and_an_interrupted_run_goes_on(
    method: Method, tmp_path: Path
) -> None:
    data = load_data("digits", part="train").chosen(list(range(200)))
    radius = 0.0 if method is Method.NORMAL else 0.02
    settings = TrainingSettings(
        architecture="digits-cnn", method=method, radius=radius, epochs=2, batch=50, seed=4, attack_steps=2
    )
    architecture = find_architecture("digits-cnn")
    whole = Trainer(settings, architecture, data, tmp_path / "a")
    losses: list[float] = []
    whole.run(lambda epoch, loss: losses.append(loss))
    assert losses[1] < losses[0] or method is Method.BOUNDS

    class Interrupted(Exception):
        pass

    def interrupt(epoch: int, loss: float) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        Trainer(settings, architecture, data, tmp_path / "b").run(interrupt)
    again = Trainer(settings, architecture, data, tmp_path / "b")
    assert again.epoch == 1
    again.run(lambda epoch, loss: None)
    assert again.export(None) == whole.export(None)


def test_the_normalisation_is_declared_once(tmp_path: Path) -> None:
    common = {"data": "digits", "epochs": 1, "evaluate": 2, "normalise": "0.5:0.25"}
    outside = train_model("digits-fc", out=tmp_path / "a", **common)
    inside = train_model(
        "digits-fc", out=tmp_path / "b", settings=dokimos.TrainSettings(inside=True), **common
    )
    records = load_data("digits").chosen([0, 1, 2])
    scores = [read_classifier(made.network).scores(records) for made in (outside, inside)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    inner = read_classifier(inside.network).normalisation
    assert set(inner.mean) == {0.0} and set(inner.deviation) == {1.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "resnet3b"}, "Unknown architecture 'resnet3b'; did you mean 'resnet"),
        ({"adversarial": 0.1, "certified": 0.1}, "give only one of the two"),
        ({"adversarial": -1.0}, "radius above 0"),
        ({"epochs": 0}, "at least 1 epoch"),
        ({"seed": 2**64}, "seed must be 0 or more"),
        ({"architecture": "digits-cnn", "data": "german"}, r"needs square pictures .* shape \(61,\)"),
    ],
)
def test_mistakes_get_one_sentence(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_model(**{"architecture": "digits-fc", "out": tmp_path, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "resnet3b"},
        {"data": "nowhere.npz"},
        {"normalise": "usual"},
        {"certified": -1.0},
        {"architecture": "digits-cnn", "data": "german"},
    ],
)
def test_mistakes_are_told_before_torch_is_loaded(
    tmp_path: Path, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "dokimos.constructions.trainable_weights")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError):
        train_model(**{"architecture": "digits-fc", "out": tmp_path, **changes})  # type: ignore[arg-type]
    with pytest.raises(ImportError):  # without a mistake, torch is what is missing
        train_model("digits-fc", out=tmp_path)


def test_own_data_has_its_own_range_and_at_least_two_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide, labels = rng.normal(size=(20, 4)).astype(np.float32) * 9, np.arange(20) % 3
    np.savez(tmp_path / "own.npz", x=wide, y=labels)
    np.savez(tmp_path / "one.npz", x=wide, y=0 * labels)
    given: dict[str, Any] = {"out": tmp_path, "epochs": 1, "evaluate": 2}
    with pytest.raises(InputError, match="scale the data, or give as `limits`"):
        train_model("digits-fc", data=tmp_path / "own.npz", **given)
    with pytest.raises(InputError, match="a classifier needs records of two classes"):
        train_model(
            "digits-fc", data=tmp_path / "one.npz", settings=dokimos.TrainSettings(limits=None), **given
        )
    made = train_model(
        "digits-fc", data=tmp_path / "own.npz", settings=dokimos.TrainSettings(limits=None), **given
    )
    assert (made.relus, made.accuracy.clean.count) == (64, 2)


def test_a_damaged_checkpoint_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "digits-fc.checkpoint").write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match="cannot be read as a checkpoint"):
        train_model("digits-fc", out=tmp_path, epochs=1)


def test_intervals_of_shares() -> None:
    low, high = Share(50, 100).interval
    assert (low, high) == pytest.approx((0.404, 0.596), abs=1e-3)
    assert Share(0, 10).interval[0] == 0 and Share(10, 10).interval[1] == 1


def test_own_data_is_split(tmp_path: Path) -> None:
    few = load_data("digits").chosen(list(range(10)))
    np.savez(tmp_path / "own.npz", x=few.records, y=few.labels)
    made = train_model("digits-cnn", out=tmp_path, data=tmp_path / "own.npz", epochs=1)
    assert made.accuracy.clean.count == 2
