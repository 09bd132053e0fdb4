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
from typing import Any

import pytest
from hypothesis import settings

from tests.covering import Covering
from tests.processes import (
    PARTS,
    ROOT,
    SharedProcesses,
    check_marks,
    is_in,
    load_backwards,
    order_of,
    place_of,
)

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
knobs = { inputs = 20, pairs = 2 }
[[draw]]
family = "paired-bias"
knobs = { size = 5, depth = 0, pairs = 2 }
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--coverage", action="store_true", help="measure the packages that are held to it")
    parser.addoption("--part", choices=PARTS, help="only the tests that must run alone, or only the others")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.option.part and not is_in(config.option.part, collection_path) else None


def pytest_configure(config: pytest.Config) -> None:
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if config.option.coverage and (is_worker or not config.option.numprocesses):
        config.pluginmanager.register(Covering(), "covering")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {item: place_of(item) for item in items}
    for item, place in places.items():
        check_marks(item, place)
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: order_of(places[item]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """In a fresh clone each test file is to be rewritten and compiled: two processes meet halfway."""
    everything = [Path(name).resolve() for name in session.config.args] == [ROOT]
    if everything and os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        load_backwards(session.config.option.part)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedProcesses:
    return SharedProcesses(config, log)


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
def copy_of_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Copies the suite of the tiny recipe, made once for the whole run, to a place of one's own."""
    from tests.making import made_once  # only now: what it imports would be loaded before it is traced

    return made_once(tmp_path_factory, TINY)


@pytest.fixture(scope="session")
def checked_labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the labels are kept that were checked in this run of the tests."""
    from tests.making import checked_labels_of_the_run

    return checked_labels_of_the_run(tmp_path_factory)
