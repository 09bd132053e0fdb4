"""Published files with two networks in one property: read and lowered as own files and laws are."""

from __future__ import annotations

import ast
import csv
import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dokimos.engine.runtimes.sessions import Replayer
from dokimos.suites.entry import read_content
from dokimos.suites.folder import read_suite
from dokimos.suites.lower import is_plain, lower
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.shared import SHARED

PUBLISHED = ("monotonic_acasxu_2026", "isomorphic_acasxu_2026")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_pairs_of_networks_are_one_network_side_by_side(name: str) -> None:
    """At points of the box the product gives the outputs of both networks, and the inputs passed on."""
    folder = SHARED / "2026" / name / "2.0"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    with (folder / "instances.csv").open(encoding="utf-8") as file:
        networks, property_, *_ = next(csv.reader(file))
    files = {key: read_content(_place(folder, path)) for key, path in ast.literal_eval(networks)}
    # The published monotonic property has its operator between the operands, which VNN-LIB has not.
    text = re.sub(rb"\((\S+) < (\S+)\)", rb"(< \1 \2)", read_content(_place(folder, property_)))
    asked = read_vnnlib(text, file="two")
    assert len(asked.networks) == 2 and sorted(files) == sorted(each.name for each in asked.networks)
    lowered = lower(asked, files)
    assert is_plain(lowered.property)
    if all((folder / path).exists() for _, path in ast.literal_eval(networks)):  # as the table has them
        entry = read_suite(folder).entries[0]
        assert lowered.network == read_content(entry.network_path)  # what a run is given
    single, numbers = Replayer(lowered.network), random.Random(1)
    pair = [Replayer(files[each.name]) for each in asked.networks]
    for case in lowered.property.cases[:2]:
        low, high = case.box.lower, case.box.upper
        ends = zip(low, high, strict=True)
        z = np.array([float(a + Fraction(numbers.random()) * (b - a)) for a, b in ends], np.float32)
        x = z[list(lowered.links)]
        made = np.concatenate([one(part[None])[0] for one, part in zip(pair, np.split(x, 2), strict=True)])
        whole = single(z[None])[0]
        assert whole[: len(made)] == pytest.approx(made, abs=1e-4)
        assert whole[len(made) :] == pytest.approx(z[list(lowered.passed)], rel=1e-6)


def _place(folder: Path, path: str) -> Path:
    """The file, wherever in the folder it is kept, and compressed or not."""
    name = Path(path).name
    return next(each for each in sorted(folder.rglob(f"{name}*")) if each.name in (name, f"{name}.gz"))
