"""Laws as tests of pytest: a fixture, and files of laws collected where an ini option asks for it.

    [tool.pytest.ini_options]
    dokimos_laws = true                   # collect .law and .nom files
    dokimos_law_model = "model.onnx"      # beside the ini file; a domain's own model unless given
    dokimos_law_budget = "5000"
    dokimos_law_max_rate = "0.01"         # violations in up to 1 % of the tests are tolerated

Nothing heavy is imported before a law is run, so that the plug-in costs other projects nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dokimos.laws.engine.results import LawResult

_SUFFIXES = (".law", ".nom")


class LawViolated(AssertionError):
    """A model violates a law, or the law's code fails; the message says how."""


def check_law_file(
    path: Path, *, model: Any = None, domain: str | None = None, **settings: Any
) -> LawResult:
    """Test the law in a file; `settings` are those of `LawSettings`. Raises LawViolated, or InputError."""
    __tracebackhide__ = True  # what went wrong is in the message, not in here
    from dokimos.laws.engine.law_test import test_law
    from dokimos.laws.engine.results import LawSettings
    from dokimos.laws.language.imports import domain_of
    from dokimos.laws.language.parser import read_law
    from dokimos.laws.reporting.terminal import summary

    law = read_law(path)
    found = domain_of(law, folder=path.parent, given=domain)
    result = test_law(law, model=model, domain=found, settings=LawSettings(**settings))
    if result.is_violated or result.failed or result.is_inconclusive:
        raise LawViolated(summary(result))
    return result


@pytest.fixture
def dokimos_law(request: pytest.FixtureRequest) -> Callable[..., LawResult]:
    """A function that tests the law in a file (beside the test, where the path is not absolute).

    `dokimos_law("income.law", model=my_model, budget=1000)` fails the test where the law is violated, with
    `max_rate=0.01` only where it is in more than 1 % of its tests.
    """

    def check(law: str | Path, *, model: Any = None, **settings: Any) -> LawResult:
        __tracebackhide__ = True
        return check_law_file(request.path.parent / law, model=model, **settings)

    return check


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the ini file."""
    parser.addini("dokimos_laws", "collect .law and .nom files as tests", type="bool", default=False)
    parser.addini("dokimos_law_model", "the model that collected laws are tested against", default="")
    parser.addini("dokimos_law_budget", "how many tests of each collected law", default="5000")
    parser.addini("dokimos_law_max_rate", "the rate of violations that is tolerated", default="0")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LawFile | None:
    """A file of a law, where the ini file asks for them."""
    if file_path.suffix not in _SUFFIXES or not parent.config.getini("dokimos_laws"):
        return None
    made: LawFile = LawFile.from_parent(parent, path=file_path)
    return made


class LawFile(pytest.File):
    """A file with one law, which is one test."""

    def collect(self) -> Iterable[pytest.Item]:
        """The one test."""
        yield LawItem.from_parent(self, name=self.path.stem)


class LawItem(pytest.Item):
    """A law to be tested."""

    def runtest(self) -> None:
        """Test the law against the model of the ini file."""
        given = self.config.getini("dokimos_law_model")
        model = _placed(given, self.config.rootpath) if given else None
        budget = int(self.config.getini("dokimos_law_budget"))
        max_rate = float(self.config.getini("dokimos_law_max_rate"))
        check_law_file(self.path, model=model, budget=budget, max_rate=max_rate)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Violations in words, mistakes in one sentence, anything else as pytest shows it."""
        from dokimos.core.errors import DokimosError

        if isinstance(excinfo.value, LawViolated | DokimosError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the law is."""
        return self.path, 0, f"law {self.name}"


def _placed(model: str, folder: Path) -> str:
    """A model's file where it is beside the ini file; module:NAME as it is."""
    path, colon, name = model.partition(":")
    inside = folder / path
    return f"{inside}{colon}{name}" if inside.exists() else model
