"""Where training starts: a robust base, and a bump that is off almost everywhere."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

from dokimos.constructions.hiding import planted_start as robust_base
from dokimos.constructions.hiding.bumps import evaluate, trainable
from dokimos.constructions.hiding.planted_start import planted_start
from dokimos.constructions.hiding.plants import PlantedPoint, draw_network, draw_points
from dokimos.constructions.hiding.trainer import TrainingOptions
from dokimos.core.errors import InputError
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.runtimes.sessions import replay

LEAD = 0.125
ACTIVATED = ("tanh", "sigmoid")


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robust_base, "GROWING_STEPS", (200,))
    short = TrainingOptions(epochs=60, restarts=5, steps=10, updates=8, learning_rate=1e-3)
    monkeypatch.setattr(robust_base, "AGAINST_ATTACKS", short)
    monkeypatch.setattr(robust_base, "LEAST_EPOCHS", 10)


def leads(network: bytes, point: PlantedPoint, rows: np.ndarray) -> np.ndarray:
    """By how much the right class leads at each row."""
    outputs = replay(network, rows.astype(np.float32))
    return outputs[:, point.label] - outputs[:, 1 - point.label]


@pytest.mark.parametrize(
    ("name", "shape"),
    [("mlp4", (10,)), ("avgpool", (1, 5, 5)), ("tanh", (1, 5, 5)), ("sigmoid", (1, 5, 5))],
)
def test_the_wrong_class_leads_at_the_plants_and_nowhere_else_that_was_drawn(
    name: str, shape: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    network = draw_network(name, shape, scale=0.1, rng=rng)
    points = draw_points(shape, epsilon=0.2, planted=2, regular=1, rng=rng)
    started = planted_start(network, points, lead=LEAD, rng=rng)
    for point in points:
        centre = np.array([float(x) for x in point.centre])
        drawn = centre + rng.uniform(-1, 1, size=(200, centre.size)) * float(point.radius)
        assert (leads(started, point, drawn) > 0).all()
        if point.plant is not None:
            (lead,) = leads(started, point, np.array([[float(x) for x in point.plant]]))
            assert lead == pytest.approx(-LEAD, abs=1e-4)


def test_a_network_without_dense_layers_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    points = draw_points((1, 5, 5), epsilon=0.2, planted=1, regular=1, rng=rng)
    network = draw_network("vit", (1, 5, 5), scale=0.05, rng=rng)
    assert planted_start(network, points, lead=LEAD, rng=rng) == network


def test_more_bumps_than_fit_are_refused() -> None:
    rng = np.random.default_rng(0)
    network = draw_network("mlp4", (10,), scale=0.01, rng=rng)
    points = draw_points((10,), epsilon=0.2, planted=6, regular=0, rng=rng)
    with pytest.raises(InputError, match=r"Bumps for 6 points do not fit into layers of 10 and 10 units"):
        planted_start(network, points, lead=LEAD, rng=rng)


def test_a_base_that_bounds_do_not_prove_is_trained_against_attacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    network = draw_network("mlp4", (10,), scale=0.04, rng=rng)
    points = draw_points((10,), epsilon=0.2, planted=1, regular=1, rng=rng)
    monkeypatch.setattr(robust_base, "train_certified", lambda graph, *_, **__: (trainable(graph), 0))
    kept = trainable(read_onnx(network))
    frozen = {"weight_3": np.zeros(kept["weight_3"].shape, bool)}
    frozen["weight_3"][:, 0] = True
    notes: list[str] = []
    masks = {name: torch.from_numpy(mask) for name, mask in frozen.items()}
    weights = robust_base.robust_base(network, points, frozen=masks, rng=rng, progress=notes.append)
    assert notes[-1].endswith("2 points withstand attacks")
    assert torch.equal(weights["weight_3"][:, 0], kept["weight_3"][:, 0])
    assert not torch.equal(weights["weight_3"], kept["weight_3"])


def test_a_sigmoid_network_begins_as_a_tanh_network_would() -> None:
    drawn = [draw_network(name, (1, 5, 5), scale=0.05, rng=np.random.default_rng(0)) for name in ACTIVATED]
    tanh, sigmoid = (read_onnx(file) for file in drawn)
    points = torch.from_numpy(np.random.default_rng(1).normal(size=(4, 25))).float()
    expected = evaluate(tanh, trainable(tanh), points)
    assert torch.allclose(evaluate(sigmoid, robust_base.centred(sigmoid), points), expected, atol=1e-4)
    unchanged = robust_base.centred(tanh)
    assert all(torch.equal(unchanged[name], weight) for name, weight in trainable(tanh).items())
