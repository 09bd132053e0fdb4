"""Profiles of published benchmarks, where their files are present."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dokimos.difficulty.components import CANONICAL
from dokimos.difficulty.inspection import CrownBound, Inspection
from dokimos.suites.entry import SuiteEntry, read_onnx_file, read_vnnlib_file
from dokimos.suites.facts import ProfileSettings
from dokimos.suites.folder import read_suite
from tests.shared import SHARED

PUBLISHED = SHARED / "2021"
pytestmark = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published files are not here")


@cache
def entries(benchmark: str) -> tuple[SuiteEntry, ...]:
    return read_suite(PUBLISHED / benchmark).entries


def observed(entry: SuiteEntry, samples: int) -> Inspection:
    network, asked = read_onnx_file(entry.network_path), read_vnnlib_file(entry.property_path)
    return Inspection(network, asked, ProfileSettings(samples=samples))


def sound(seen: Inspection) -> None:
    margins = seen.sampled.margins
    slack = 1e-9 * np.abs(margins).max()
    assert seen.ibp_bound <= margins.min() + slack
    if isinstance(seen.crown, CrownBound):
        assert seen.ibp_bound <= seen.crown.lower <= margins.min() + slack


@pytest.mark.parametrize("benchmark", ["test", "mnistfc", "oval21", "cifar10_resnet"])
def test_bounds_are_sound_on_one_instance_of_each_network(benchmark: str) -> None:
    for entry in {entry.network_path: entry for entry in entries(benchmark)}.values():
        sound(observed(entry, 50))


def gap(entry: SuiteEntry, samples: int) -> float:
    found = CANONICAL["ibp_gap"](observed(entry, samples)).value
    assert found is not None
    return found


def separates(samples: int, step: int, times: float) -> None:
    chosen = entries("mnistfc")[::step]
    deep = [gap(entry, samples) for entry in chosen if "256x6" in entry.name]
    others = [gap(entry, samples) for entry in chosen if "256x6" not in entry.name]
    assert len(deep) >= 3
    assert min(deep) >= times * max(others)


def test_intervals_tell_the_deep_network_from_the_others() -> None:
    separates(samples=50, step=7, times=10)


@pytest.mark.slow
def test_intervals_tell_the_deep_network_from_the_others_throughout() -> None:
    """A margin near 0 gives one of the others a gap of more than twice the next."""
    separates(samples=1000, step=1, times=5)


def test_the_wide_network_has_instances_of_high_dimension() -> None:
    wide = [entry for entry in entries("oval21") if "wide" in entry.name]
    found = [CANONICAL["gradient_dimension"](observed(entry, 20)).value for entry in wide]
    assert any(value is not None and value > 1000 for value in found)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["test", "mnistfc", "oval21", "cifar10_resnet"])
def test_bounds_are_sound_throughout(benchmark: str) -> None:
    for entry in entries(benchmark):
        sound(observed(entry, 200))
