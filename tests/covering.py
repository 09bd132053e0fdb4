"""Coverage of the packages that are held to it, measured where tests reach them and nowhere else.

Tracing costs more than most tests. It runs while these packages are loaded, all of them at once, and during
the tests that are there to reach their lines: not while tests are collected, not in those of other rooms,
not in sweeps that go hundreds of times where others have been. What is not traced counts as not covered.

`make test` asks for it with `--coverage`; each process leaves a file for `coverage combine`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import coverage
import pytest

from tests.processes import place_of

#: Tests in these folders and files reach the packages whose coverage is held.
COVERED = (
    "checker/",
    "judging/",
    "laws/",
    "api/test_audit",
    "cli/test_gate",
    "cli/test_law_",
    "cli/test_watch",
)
#: Of these, the ones that go where others have been, some of them hundreds of times.
SWEEPS = (
    "checker/proofs/test_rewritten",
    "checker/test_attention_float32",
    "checker/test_damage",
    "checker/test_float32_claims",
    "checker/test_mutants",
    "checker/test_oracle",
    "checker/test_trusted_core",
    "judging/test_published_classes",
    "laws/engine/test_calls",
    "laws/engine/test_pipeline",
    "laws/engine/test_shrinking",
    "laws/proving/test_hostile_proofs",
    "laws/reporting/test_page_browser",
    "laws/examples/test_paper_laws",
    "laws/test_own_models",
    "laws/test_rooms",
)


class Covering:
    """A plug-in that traces the tests that are to be traced."""

    def __init__(self) -> None:
        self.coverage = coverage.Coverage(data_suffix=True)
        self.coverage.start()
        for package in self.coverage.get_option("run:source_pkgs"):
            _load(package)
        self.coverage.stop()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test, with what is made ready for it."""
        if not is_covered(item):
            return (yield)
        self.coverage.start()
        try:
            return (yield)
        finally:
            self.coverage.stop()

    def pytest_unconfigure(self) -> None:
        """At the end of a process."""
        self.coverage.save()


def is_covered(item: pytest.Item) -> bool:
    """Whether a test is there to reach lines of these packages."""
    place = place_of(item)
    return (
        place.startswith(COVERED)
        and not place.startswith(SWEEPS)
        and item.get_closest_marker("no_cover") is None
    )


def _load(package: str) -> None:
    """Import a package and all that is in it."""
    module = importlib.import_module(package)
    for found in pkgutil.iter_modules(module.__path__, f"{package}."):
        if found.ispkg:
            _load(found.name)
        else:
            importlib.import_module(found.name)
