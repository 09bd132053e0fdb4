"""The same recipe on another processor: the same networks, properties and labels; proofs that may differ.

Numerical libraries have other kernels for other processors, which add in another order. What is drawn does
not depend on that; how a prover searches may.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dokimos.checker.check import check
from dokimos.constructions import CONSTRUCTIONS
from dokimos.suites.folder import read_suite
from dokimos.suites.suite_files import files_of

FAMILY, KNOBS, SEEDS = "exact-radius", {"inputs": 20, "width": 8, "slack": 0.9999999}, (1, 3)

MAKE = """
import sys
from pathlib import Path
from dokimos.constructions import CONSTRUCTIONS
from dokimos.suites.suite_files import files_of, store_files, write_index

family, folder, knobs, seeds = sys.argv[1], Path(sys.argv[2]), eval(sys.argv[3]), eval(sys.argv[4])
made = [files_of(one) for seed in seeds for one in CONSTRUCTIONS[family](seed=seed, **knobs)]
for files in made:
    store_files(folder, files)
write_index(folder, [(files.name, family) for files in made], 1, recipe={}, version="0")
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite that is made with the kernels for the oldest processors that there are."""
    folder = tmp_path_factory.mktemp("elsewhere")
    subprocess.run(
        [sys.executable, "-c", MAKE, FAMILY, str(folder), repr(KNOBS), repr(SEEDS)],
        env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem"},
        check=True,
        capture_output=True,
    )
    return folder


def test_networks_properties_and_labels_are_the_same(elsewhere: Path) -> None:
    there = {entry.name: entry for entry in read_suite(elsewhere).entries}
    here = [files_of(one) for seed in SEEDS for one in CONSTRUCTIONS[FAMILY](seed=seed, **KNOBS)]
    assert set(there) == {files.name for files in here}
    for files in here:
        instance, truth = there[files.name].read_instance(), there[files.name].read_truth()
        assert (instance.network_file, instance.property_file) == (files.network, files.property)
        assert truth is not None
        assert truth.label.value == files.label


def test_proofs_of_another_processor_are_accepted(elsewhere: Path) -> None:
    for entry in read_suite(elsewhere).entries:
        truth = entry.read_truth()
        assert truth is not None
        assert check(entry.read_instance(), truth).real > 0
