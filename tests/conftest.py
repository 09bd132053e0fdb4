"""Settings of the whole test run.

Hypothesis looks for new examples wherever a person runs the tests. Where a machine decides by them, the
examples are the same every time, so that a change is judged by what it changes. No example has a deadline:
on a busy machine any may be late.

A shell starts what it runs in the background with interrupts ignored, and all processes below inherit that:
tests of being interrupted would wait for nothing.

`covering.py` says where coverage is measured, `processes.py` which tests share a process, and `making.py`
makes suites once for a whole run.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.covering import Covering
from tests.processes import PARTS, SharedFiles, check_marks, is_in, place_of

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TINY = """\
seed = 3
timeout_seconds = 5
[[draw]]
family = "exclusive-pairs"
knobs = { inputs = 20, pairs = 1 }
[[draw]]
family = "paired-bias"
knobs = { size = 5, depth = 0, pairs = 2 }
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--coverage", action="store_true", help="measure the packages that are held to it")
    parser.addoption("--part", choices=PARTS, help="only the tests that must run alone, or only the others")
    parser.addoption("--share", type=Path, help="a folder, for processes that share the tests")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.option.part and not is_in(config.option.part, collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    if config.option.coverage:
        config.pluginmanager.register(Covering(), "covering")
    if config.option.share:
        config.pluginmanager.register(SharedFiles(config.option.share), "sharing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        check_marks(item, place_of(item))


def pytest_collection_finish() -> None:
    """Thousands of tests are kept until the end: the collector need not look at them again and again.

    Nor need it look every 700 objects, of which exact arithmetic makes millions.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture(scope="session")
def tiny_recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run of the tests, which all of its processes share."""
    shared: Path | None = request.config.option.share
    return shared or tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def copy_of_tiny(run_folder: Path) -> Callable[[Path], Path]:
    """Copies the suite of the tiny recipe, made once for the whole run, to a place of one's own."""
    from tests.making import made_once  # only now: what it imports would be loaded before it is traced

    return made_once(run_folder, TINY)


@pytest.fixture(scope="session")
def checked_labels(run_folder: Path) -> Path:
    """Where labels are kept that were checked in this run: what is proven need not be proven again."""
    folder = run_folder / "checked-labels"
    folder.mkdir(exist_ok=True)
    return folder
