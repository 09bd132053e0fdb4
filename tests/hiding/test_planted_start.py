"""Where training starts: a robust base, and a bump that is off almost everywhere."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from dokimos.core.errors import InputError
from dokimos.hiding.architectures import draw_network
from dokimos.hiding.planted_start import planted_start
from dokimos.hiding.plants import PlantedPoint, draw_points
from dokimos.networks.semantics.replay import replay

LEAD = 0.125


def leads(network: bytes, point: PlantedPoint, rows: np.ndarray) -> np.ndarray:
    """By how much the right class leads at each row."""
    outputs = replay(network, rows.astype(np.float32))
    return outputs[:, point.label] - outputs[:, 1 - point.label]


@pytest.mark.parametrize(("name", "shape"), [("mlp4", (10,)), ("avgpool", (1, 5, 5))])
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
    for name in ("vit", "tanh"):
        network = draw_network(name, (1, 5, 5), scale=0.05, rng=rng)
        assert planted_start(network, points, lead=LEAD, rng=rng) == network


def test_more_bumps_than_fit_are_refused() -> None:
    rng = np.random.default_rng(0)
    network = draw_network("mlp4", (10,), scale=0.01, rng=rng)
    points = draw_points((10,), epsilon=0.2, planted=6, regular=0, rng=rng)
    with pytest.raises(InputError, match=r"Bumps for 6 points do not fit into layers of 10 and 10 units"):
        planted_start(network, points, lead=LEAD, rng=rng)
