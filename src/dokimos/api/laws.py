"""`lint_law`, `format_law`, `test_law`, `replay_law` and `new_law`: your own laws, and shipped ones.

A law is named by its file, by a folder of such files, or by the name of a shipped domain.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

from dokimos import __version__
from dokimos.api.arguments import as_paths
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.registry import did_you_mean
from dokimos.laws.domain.definition import (
    Domain,
    DomainNotFound,
    load_domain,
    shipped_domains,
    shipped_laws,
)
from dokimos.laws.domain.records import with_table
from dokimos.laws.engine import law_test
from dokimos.laws.engine.confirmation import Replayed, SavedViolations, code_named, replay_violations
from dokimos.laws.engine.results import LawResult, LawSettings
from dokimos.laws.language import formatting, templates, validation
from dokimos.laws.language.constraints import domain_of
from dokimos.laws.language.parser import SUFFIXES, read_law
from dokimos.laws.language.syntax import Law, LawError
from dokimos.laws.models.lookup import as_domain_model, as_model, load_model
from dokimos.laws.models.model import Model
from dokimos.laws.reporting.page import PageContext, write_page
from dokimos.laws.reporting.violation_files import read_violations, save_result

LawSource = str | Path | Sequence[str | Path]
"""One or several files of laws, folders of them, or names of shipped domains."""

_log = logging.getLogger("dokimos")


@dataclass(frozen=True, repr=False)
class LintedLaw(Brief):
    """A law's file and what is wrong with it.

    `law` is None if the file could not be read or is not a law; `error` says why. Otherwise `problems` has
    what the check found. Without a domain (`has_domain`), functions and features were not checked.
    """

    path: Path
    law: Law | None
    problems: tuple[validation.LawProblem, ...] = ()
    error: InputError | None = None
    has_domain: bool = True

    @property
    def is_wrong(self) -> bool:
        """Whether there is an error in the law itself."""
        if self.error is not None:
            return isinstance(self.error, LawError)
        return any(problem.severity is validation.Severity.ERROR for problem in self.problems)

    @property
    def is_unreadable(self) -> bool:
        """Whether the law, or its domain, could not be read."""
        return self.error is not None and not self.is_wrong


def lint_law(
    laws: LawSource, *, domain: str | Path | None = None, allow_code: bool = True
) -> tuple[LintedLaw, ...]:
    """Parse and check laws: `dokimos law lint`.

    `domain` is a Python file, or the name of a shipped domain (default: the one that each law imports).

    >>> path = Path("older.law")
    >>> _ = path.write_text(dokimos.new_law("monotone", feature="age", domain="people"))
    >>> [checked] = dokimos.lint_law(path)
    >>> checked.is_wrong, checked.problems
    (False, ())
    """
    checked = []
    for path in law_files(laws):
        try:
            law = read_law(path)
            found = law_domain(law, path, domain, allow_code=allow_code, may_lack=True)
        except InputError as problem:
            checked.append(LintedLaw(path, None, error=problem))
            continue
        problems = validation.check_law(law, found)
        checked.append(LintedLaw(path, law, problems, has_domain=found is not None))
    return tuple(checked)


def format_law(laws: LawSource, *, check_only: bool = False) -> tuple[Path, ...]:
    """Format laws, and return the files that changed: `dokimos law fmt`.

    Meaning and comments are kept. With `check_only`, nothing is written.

    >>> dokimos.format_law("older.law")
    ()
    """
    changed = []
    for path, law in [(path, read_law(path)) for path in law_files(laws)]:
        content = formatting.format_law(law).encode()
        if path.read_bytes() == content:
            continue
        changed.append(path)
        if not check_only:
            write_whole(path, content)
    return tuple(changed)


@dataclass(frozen=True, repr=False)
class TestedLaw(Brief):
    """A law's file and the result of its tests; `saved` is where that was written, if anywhere."""

    __test__: ClassVar[bool] = False  # for pytest

    path: Path
    result: LawResult
    saved: Path | None = None

    @property
    def replay_runs_code(self) -> bool:
        """Whether replaying what was saved needs `allow_code`."""
        law, domain, model = self.result.law, self.result.domain.place, self.result.model.name
        return bool(code_named(law, domain=domain, model=model))


@dataclass(frozen=True, repr=False)
class TestedLaws(Brief):
    """The laws that were tested, out of `asked`; fewer if the tests were interrupted."""

    __test__: ClassVar[bool] = False  # for pytest

    laws: tuple[TestedLaw, ...]
    asked: int

    @property
    def results(self) -> tuple[LawResult, ...]:
        """The result of each law."""
        return tuple(law.result for law in self.laws)

    @property
    def is_violated(self) -> bool:
        """Whether a law is violated, or its code fails."""
        return any(result.is_violated or result.failed for result in self.results)

    @property
    def is_interrupted(self) -> bool:
        """Whether the tests were ended early by Ctrl-C."""
        return any(result.is_interrupted for result in self.results)

    @property
    def is_untested(self) -> bool:
        """Whether a law has no clear result: it was never tested, for example, or is too close to call."""
        return any(result.is_inconclusive for result in self.results)


def test_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: str | Path | None = None,
    settings: LawSettings | None = None,
    out: str | Path | None = None,
    html: str | Path | None = None,
    progress: ProgressCallback[TestedLaw] = ignore,
) -> TestedLaws:
    """Test laws against a model: `dokimos law test`.

    `model` is a file (NAME.onnx, NAME.pkl, FILE.py:NAME), or any object that predicts (default: the
    domain's own). `settings` say how many tests to run, on which inputs, and with which seed. Results are
    saved as JSON to the folder `out` and shown on the page `html`, if these are given. If interrupted
    (Ctrl-C), returns the results so far.

    >>> tested = dokimos.test_law("older.law", settings=dokimos.LawSettings(budget=100), out="found")
    >>> [result.is_violated for result in tested.results]
    [False]
    """
    chosen = LawSettings() if settings is None else settings
    files = law_files(laws)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    if html is not None:
        expect_writable(Path(html), what="page", example="laws.html")
    tested: list[TestedLaw] = []
    load = _LoadedOnce(model, domain, chosen)
    for path, law in [(path, read_law(path)) for path in files]:
        found, loaded = load(law, path)
        for feature in chosen.by:
            _expect_feature(feature, found)
        result = law_test.test_law(law, model=loaded, domain=found, settings=chosen)
        saved = None if out is None else Path(out) / f"{path.stem}.json"
        if saved is not None:
            save_result(result, saved)
        tested.append(TestedLaw(path, result, saved))
        progress(ProgressUpdate("testing", len(tested), len(files), str(path), tested[-1]))
        if result.is_interrupted:
            break
    if html is not None:
        commands = [_again(one.path, chosen, model=model, domain=domain) for one in tested]
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        context = PageContext("Laws put to the test", made, __version__)
        write_page([one.result for one in tested], commands, context, Path(html))
    return TestedLaws(tuple(tested), len(files))


test_law.__test__ = False  # type: ignore[attr-defined]  # not a test, despite its name


class _LoadedOnce:
    """The domains and models of several laws; laws that import the same domain share its data and model."""

    def __init__(self, model: Any, domain: str | Path | None, settings: LawSettings) -> None:
        self._model, self._domain, self._settings = model, domain, settings
        self._loaded: dict[tuple[Path, tuple[str, ...]], tuple[Domain | None, Any]] = {}

    def __call__(self, law: Law, path: Path) -> tuple[Domain | None, Any]:
        """The domain of a law, and the model that it is tested on. Raises InputError."""
        key = path.parent, tuple(each.name for each in law.imports)
        if key not in self._loaded:
            found = law_domain(law, path, self._domain, allow_code=self._settings.allow_code)
            found = None if found is None else with_table(found, self._settings.source)
            self._loaded[key] = found, self._model_of(found)
        return self._loaded[key]

    def _model_of(self, domain: Domain | None) -> Any:
        if isinstance(self._model, str | Path):
            return load_model(self._model, domain, allow_code=self._settings.allow_code)
        if self._model is None and domain is not None and domain.model is not None:
            return as_domain_model(None, domain)
        return self._model


def _again(path: Path, settings: LawSettings, *, model: Any, domain: str | Path | None) -> str:
    """The command that tests a law once more in the same way."""
    given = {"--model": model, "--domain": domain, "--budget": settings.budget, "--seed": settings.seed}
    parts = [f"dokimos law test {quote(str(path))}"]
    parts += [f"{option} {quote(str(value))}" for option, value in given.items() if value is not None]
    if settings.source != "test":
        parts.append(f"--source {quote(settings.source)}")
    if settings.max_rate:
        parts.append(f"--max-rate {settings.max_rate:g}")
    if settings.in_range:
        parts.append("--in-range")
    if settings.exhaustive is not None:
        parts.append("--exhaustive" if settings.exhaustive else "--no-exhaustive")
    return " ".join(parts)


def _expect_feature(by: str, domain: Domain | None) -> None:
    if domain is None or domain.layout is None:
        raise InputError(f"--by {by}: no domain names the features; give one with --domain.")
    try:
        domain.layout.named(by)
    except InputError as problem:
        raise InputError(f"--by {by}: {problem}.") from None


@dataclass(frozen=True, repr=False)
class ReplayedLaw(Brief):
    """A file of violations, and the outcome of replaying each.

    `over_all` has the violated conditions that are about all tests together; only testing again checks
    them.
    """

    path: Path
    violations: tuple[Replayed, ...]
    over_all: tuple[str, ...] = ()

    @property
    def is_violated(self) -> bool:
        """Whether a case still violates its law."""
        return any(violation.now is not None for violation in self.violations)


def replay_law(
    files: str | Path | Sequence[str | Path],
    *,
    model: str | Path | None = None,
    domain: str | Path | None = None,
    allow_code: bool | None = None,
) -> tuple[ReplayedLaw, ...]:
    """Replay saved violations: `dokimos law replay`.

    `files` are what `test_law` wrote to its folder `out`. `model` and `domain` replace the recorded ones.
    Such a file may contain or name Python code: unless `allow_code` is true, that raises an InputError that
    names the code. A `model` or `domain` given here may be code, unless `allow_code` is false.

    >>> [replayed] = dokimos.replay_law("found/older.json", allow_code=True)
    >>> replayed.is_violated, replayed.violations
    (False, ())
    """
    replayed = []
    for path in as_paths(
        files, none="There is nothing to replay; give a file that `dokimos law test` wrote."
    ):
        saved = read_violations(path)
        if not allow_code:
            _refuse_code(saved, path, domain=domain, model=model)
        may_run = allow_code is not False
        place = domain if domain is not None else saved.domain
        found = None if place is None else load_domain(place, allow_code=may_run)
        if found is not None and found.layout is None:
            found = with_table(found)
        loaded = _recorded_model(saved, model, found, allow_code=may_run)
        if saved.model_sha256 is not None and loaded.sha256 != saved.model_sha256:
            _log.warning("%s: the model has changed since the violations were found.", path)
        ran = replay_violations(saved, loaded, found, allow_code=bool(allow_code))
        replayed.append(ReplayedLaw(path, ran, saved.over_all))
    return tuple(replayed)


def _refuse_code(
    saved: SavedViolations, path: Path, *, domain: str | Path | None, model: str | Path | None
) -> None:
    """Raise an InputError that names the code which the file contains or names, if there is any."""
    named = code_named(
        saved.law,
        domain=saved.domain if domain is None else None,
        model=saved.model if model is None else None,
    )
    if named:
        *most, last = named
        raise InputError(
            f"{path}: replaying it runs Python: {', '.join(most)}{' and ' if most else ''}{last}; if "
            "you trust that, give --allow-code."
        )


def _recorded_model(
    saved: SavedViolations, given: str | Path | None, domain: Domain | None, *, allow_code: bool
) -> Model:
    is_file = Path(saved.model).is_file() or Path(saved.model.rpartition(":")[0]).is_file()
    own = domain.model if domain is not None and given is None and not is_file else None
    if own is not None:
        return as_model(own(), domain, name=saved.model)
    return load_model(saved.model if given is None else given, domain, allow_code=allow_code)


def new_law(
    template: str,
    *,
    feature: str,
    amount: float = 10,
    tolerance: float = 0,
    domain: str | None = None,
    out: str | Path | None = None,
) -> str:
    """Start a law from a template (monotone, invariant, robust or fair): `dokimos law new`.

    Returns the text of the law, and writes it to the new file `out` if that is given. With a `tolerance`,
    the law is about predictions that are numbers, which may differ by that much.

    >>> dokimos.new_law("monotone", feature="age").splitlines()[0]
    '# A larger age never lowers the decision.'
    """
    text = templates.new_law(template, feature=feature, amount=amount, tolerance=tolerance, domain=domain)
    if out is not None:
        if Path(out).exists():
            raise InputError(f"{out}: already exists; choose another file.")
        write_whole(Path(out), text, what="the law")
    return text


def law_files(laws: LawSource) -> list[Path]:
    """The files of the given laws: files, those in folders, and those of shipped domains, in order.

    Raises InputError if a folder has no laws, or a name is unknown.
    """
    files: list[Path] = []
    none = "Give laws: files, folders of them, or the name of a shipped domain."
    for path in as_paths(laws, none=none):
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            if not inside:
                raise InputError(f"{path}: this folder has no laws (files ending in .law or .nom).")
            files += inside
        elif not path.exists() and (shipped := shipped_laws(str(path))):
            files += shipped
        elif not path.exists():
            raise InputError(f"{path}: there is no such file, folder or shipped {_nearest(str(path))}.")
        else:
            files.append(path)
    return files


def _nearest(name: str) -> str:
    """What a name that nothing has could mean: a domain, or a law of the domain that it begins with."""
    domain, _, law = name.partition("/")
    if not law or domain not in shipped_domains():
        return f"domain{did_you_mean(name, shipped_domains())}"
    known = [f"{domain}/{path.stem}" for path in shipped_laws(domain)]
    return "law" + (did_you_mean(name, known) or f"; there are {', '.join(known)}")


def law_domain(
    law: Law, path: Path, given: str | Path | None, *, allow_code: bool, may_lack: bool = False
) -> Domain | None:
    """The given domain, or the one that a law imports; without one, InputError, or None if `may_lack`."""
    try:
        return domain_of(law, folder=path.parent, given=given, allow_code=allow_code)
    except DomainNotFound as problem:
        if not may_lack or given is not None:
            raise
        _log.warning("%s: %s Functions and features are not checked.", path, problem)
        return None
