"""Laws as pytest tests: a fixture, and law files that are collected if an ini option asks for it.

    [tool.pytest.ini_options]
    dokimos_laws = true                   # collect .law and .nom files
    dokimos_law_model = "model.onnx"      # relative to the ini file; by default the domain's own model
    dokimos_law_budget = "5000"
    dokimos_law_max_rate = "0.01"         # violations in up to 1 % of the tests are tolerated

Nothing heavy is imported before a law runs, so that the plug-in costs other projects nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dokimos.laws.engine.law_results import LawResult
    from dokimos.laws.language.syntax import Law

_SUFFIXES = (".law", ".nom")


class LawViolated(AssertionError):
    """A model violates a law, or the law's code fails; the message says how."""


def check_law(law: Path | Law, *, model: Any = None, domain: Any = None, **settings: Any) -> LawResult:
    """Test a law; `settings` are those of `LawSettings`. Raises LawViolated, or InputError."""
    __tracebackhide__ = True  # what went wrong is in the message, not in here
    from dokimos.laws.engine.law_results import LawSettings
    from dokimos.laws.engine.law_test import test_law
    from dokimos.laws.law_sources import law_domain, laws_in
    from dokimos.laws.reporting.terminal import summary

    [(path, read)] = laws_in(law)
    found = law_domain(read, path, domain, allow_code=True)
    result = test_law(read, model=model, domain=found, settings=LawSettings(**settings))
    if result.is_violated or result.failed or result.is_inconclusive:
        raise LawViolated(summary(result))
    return result


@pytest.fixture
def dokimos_law(request: pytest.FixtureRequest) -> Callable[..., LawResult]:
    """A function that tests a law, or the one in a file; a relative path starts from the test's folder.

    `dokimos_law("income.law", model=my_model, budget=1000)` fails the test if the law is violated; with
    `max_rate=0.01`, only if it is violated in more than 1 % of its tests. `domain` may be a `Domain`.
    """

    def check(law: str | Path | Law, *, model: Any = None, **settings: Any) -> LawResult:
        __tracebackhide__ = True
        given = request.path.parent / law if isinstance(law, str | Path) else law
        return check_law(given, model=model, **settings)

    return check


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of the ini file."""
    parser.addini("dokimos_laws", "collect .law and .nom files as tests", type="bool", default=False)
    parser.addini("dokimos_law_model", "the model that collected laws are tested against", default="")
    parser.addini("dokimos_law_budget", "how many tests to run for each collected law", default="5000")
    parser.addini("dokimos_law_max_rate", "the rate of violations that is tolerated", default="0")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> LawFile | None:
    """Collect a law file, if the ini file asks for that."""
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
        check_law(self.path, model=model, budget=budget, max_rate=max_rate)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Violations in words, user errors in one sentence, anything else as pytest shows it."""
        from dokimos.core.errors import DokimosError

        if isinstance(excinfo.value, LawViolated | DokimosError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where the law is."""
        return self.path, 0, f"law {self.name}"


def _placed(model: str, folder: Path) -> str:
    """The path of a model's file, relative to the ini file; module:NAME unchanged."""
    path, colon, name = model.partition(":")
    inside = folder / path
    return f"{inside}{colon}{name}" if inside.exists() else model
