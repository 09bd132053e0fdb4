"""The trusted core: what has to be right for a label to be right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dokimos.checker import CERTIFICATES
from dokimos.suites.folder import read_content, read_text
from dokimos.suites.writing import InstanceFiles, store_files, write_index
from tests.corpus.make_certificates import CORPUS

FORBIDDEN = (
    "torch",
    "onnxruntime",
    "highspy",
    "dokimos.constructions",
    "dokimos.provers",
    "dokimos.attacks",
    "dokimos.verifiers",
    "dokimos.networks.writing",
    "dokimos.properties.writing",
    "dokimos.suites.writing",
)
CHECK = """
import atexit, sys

@atexit.register
def finish():
    from dokimos.checker import CERTIFICATES
    for kind in CERTIFICATES:
        CERTIFICATES[kind]
    print(*sys.modules, sep="\\n")

sys.argv[1:] = ["check", {suite!r}, "--core-only"]
from dokimos.cli import main
main()
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The corpus of accepted proofs as a suite."""
    names = [path.name for path in (CORPUS / "accept").iterdir()]
    for name in names:
        folder = CORPUS / "accept" / name
        network, question = (read_content(folder / file) for file in ("network.onnx", "property.vnnlib"))
        store_files(tmp_path, InstanceFiles(name, "", network, question, read_text(folder / "truth.json")))
    write_index(tmp_path, [(name, name) for name in names], 1, recipe={}, version="0")
    return tmp_path


def test_a_check_with_the_core_only_loads_nothing_else(suite: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK.format(suite=str(suite))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    count = len(list((suite / "truth").iterdir()))
    assert f"{count} of {count} labels proven" in done.stdout
    loaded = done.stdout.split()
    assert {type(CERTIFICATES[kind]).__module__ for kind in CERTIFICATES} <= set(loaded)
    assert [name for name in loaded if name.startswith(FORBIDDEN)] == []
