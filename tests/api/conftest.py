"""A folder of one's own to call the public functions in: a tiny suite, a domain, a home."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dokimos
from tests.making import made_once

PAIR = """\
seed = 3
[[draw]]
family = "exclusive-pairs"
knobs = { inputs = 20, pairs = 1 }
"""
PEOPLE = """\
import numpy as np
from dokimos.laws import integer

FEATURES = [integer("age", 0, 99)]

def start(rng):
    return np.array([rng.integers(99)])

def walk(record, rng, predict):
    return [np.array([rng.integers(99)])]

def inputs():
    return [[age] for age in range(90)]

def model():
    return lambda record: int(record[0] > 40)
"""


@pytest.fixture(scope="session")
def copy_of_pair(run_folder: Path) -> Callable[[Path], Path]:
    """Copies the smallest suite that there is, an instance and its twin, made once for the whole run."""
    return made_once(run_folder, PAIR)


@pytest.fixture
def workplace(
    copy_of_pair: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    checked_labels: Path,
) -> Path:
    """The folder that the functions are called in."""
    copy_of_pair(tmp_path / "tiny")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "labels").symlink_to(checked_labels)
    (tmp_path / "people.py").write_text(PEOPLE)
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run_examples() -> Callable[[str, str], None]:
    """Runs the examples in a text as one session; fails with what doctest says of the first that fails."""

    def run(text: str, name: str) -> None:
        known: dict[str, Any] = {
            "dokimos": dokimos,
            "Path": Path,
        }
        test = doctest.DocTestParser().get_doctest(text, known, name, None, None)
        assert test.examples, f"{name} has no example"
        said: list[str] = []
        options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.REPORT_ONLY_FIRST_FAILURE
        found = doctest.DocTestRunner(optionflags=options).run(test, out=said.append)
        assert found.failed == 0, "".join(said)

    return run
