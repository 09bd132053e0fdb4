"""`lint_law`, `format_law`, `test_law`, `replay_law` and `new_law`: your own laws, and shipped ones.

A law is named by its file, by a folder of such files, or by the name of a shipped domain.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import as_paths, expect_writable, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.records import Table, record_of
from dokimos.laws.domain.data_frames import read_csv_table, with_table
from dokimos.laws.domain.definition import (
    Domain,
    DomainNotFound,
    call_domain,
    load_domain,
)
from dokimos.laws.engine import law_test
from dokimos.laws.engine.confirmation import Replayed, SavedViolations, code_named, replay_violations
from dokimos.laws.engine.law_results import LawResult, verdict_of
from dokimos.laws.engine.law_results import LawSettings as LawSettings
from dokimos.laws.engine.pools import fuzz, pool_file
from dokimos.laws.language import law_layout, parser, templates, validation
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.record_constraints import domain_of
from dokimos.laws.language.syntax import Law, LawError
from dokimos.laws.language.templates import first_laws
from dokimos.laws.law_sources import (
    DomainSource,
    LawSource,
    LoadedOnce,
    law_domain,
    law_files,
    laws_in,
    recorded_model,
)
from dokimos.laws.models.lookup import as_model
from dokimos.laws.reporting.law_page import PageContext, again_command, write_page
from dokimos.laws.reporting.terminal import summary as summary
from dokimos.laws.reporting.violation_files import read_violations, save_result

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


def read_law(path: str | Path) -> Law:
    """Read the law in a file, whose `test` and `verify` take a model.

    >>> law = dokimos.read_law("older.law")
    >>> law.test(lambda record: int(record[0] > 40), domain="people.py").is_violated
    False
    """
    return parser.read_law(Path(path))


def lint_law(
    laws: LawSource, *, domain: DomainSource | None = None, allow_code: bool = True
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
            law = parser.read_law(path)
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
    for path, law in [(path, parser.read_law(path)) for path in law_files(laws)]:
        content = law_layout.format_law(law).encode()
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
class TestedLaws(Brief, Table):
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

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each law."""
        return [
            {"law": one.law.name, "verdict": verdict_of(one).value}
            | record_of(one, "tested", "violated", "rejected", "failed", "is_exhaustive", "seconds")
            for one in self.results
        ]


def test_law(
    laws: LawSource,
    *,
    model: Any = None,
    domain: DomainSource | None = None,
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
    given = laws_in(laws)
    if out is not None:
        Path(out).mkdir(parents=True, exist_ok=True)
    if html is not None:
        expect_writable(Path(html), what="page", example="laws.html")
    tested: list[TestedLaw] = []
    load = LoadedOnce(model, domain, chosen)
    for path, law in given:
        found, loaded = load(law, path)
        for feature in chosen.by:
            _expect_feature(feature, found)
        result = law_test.test_law(law, model=loaded, domain=found, settings=chosen)
        saved = None if out is None else Path(out) / f"{path.stem}.json"
        if saved is not None:
            save_result(result, saved)
        tested.append(TestedLaw(path, result, saved))
        progress(ProgressUpdate("testing", len(tested), len(given), str(path), tested[-1]))
        if result.is_interrupted:
            break
    if html is not None:
        place = domain.place if isinstance(domain, Domain) else domain
        commands = [again_command(one.path, chosen, model=model, domain=place) for one in tested]
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        context = PageContext("Laws put to the test", made, __version__)
        write_page([one.result for one in tested], commands, context, Path(html))
    return TestedLaws(tuple(tested), len(given))


test_law.__test__ = False  # type: ignore[attr-defined]  # not a test, despite its name


def _expect_feature(by: str, domain: Domain | None) -> None:
    if domain is None or domain.layout is None:
        raise InputError(f"`by` {by}: no domain names the features; give a `domain`.")
    try:
        domain.layout.named(by)
    except InputError as problem:
        raise InputError(f"`by` {by}: {problem}.") from None


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
        loaded = recorded_model(saved, model, found, allow_code=may_run)
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
            "you trust that, give `allow_code`."
        )


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
    the law is about predictions that are numbers, which may differ by that much. Where the `domain` is
    found, as by a law in the file `out`, a law that a feature does not matter tries each of its values in
    the same record; otherwise it takes that of another record.

    >>> dokimos.new_law("monotone", feature="age").splitlines()[0]
    '# A larger age never lowers the decision.'
    """
    make = partial(
        templates.new_law, template, feature=feature, amount=amount, tolerance=tolerance, domain=domain
    )
    text = make()
    if domain is not None and template in templates.OF_EVERY_VALUE:
        text = make(others=_values(text, feature, Path("new.law" if out is None else out)))
    if out is not None:
        if Path(out).exists():
            raise InputError(f"{out}: already exists; choose another file.")
        write_whole(Path(out), text, what="the law")
    return text


def _values(text: str, feature: str, path: Path) -> tuple[str, ...]:
    """All values of a feature in the domain that the text imports; none if one of them is not found."""
    try:
        found = domain_of(parse_law(text), folder=path.parent, given=None, allow_code=True)
    except DomainNotFound:
        return ()
    features = () if found is None or found.layout is None else found.layout.features
    return next((templates.every_value(each) for each in features if each.name == feature), ())


# `init_laws`: a domain and first laws for your own data


@dataclass(frozen=True)
class StartedLaws:
    """The domain's file, its numbers of records and features, and each law's file with the law in words."""

    domain: Path
    records: int
    features: int
    laws: tuple[tuple[Path, str], ...]


def init_laws(data: str | Path, *, target: str, out: str | Path = "laws") -> StartedLaws:
    """Write a domain and three first laws from a CSV file: `dokimos law init`.

    `target` is the column that a model predicts. Writes a Python file with the kinds and ranges of all
    other columns, and three laws, to the folder `out`; existing files are never overwritten.

    >>> _ = Path("loans.csv").write_text("age,sex,granted\\n18,f,0\\n60,m,1\\n40,f,1\\n")
    >>> started = dokimos.init_laws("loans.csv", target="granted", out="loans")
    >>> [law.name for law, _ in started.laws]
    ['fair_sex.law', 'monotone_age.law', 'robust_age.law']
    """
    source, folder = Path(data), Path(out)
    table = read_csv_table(source)
    made = first_laws(table, target, data=_from(source, folder))
    domain = folder / f"{made.domain}.py"
    laws = {folder / f"{name}.law": text for name, text in made.laws.items()}
    for path in (domain, *laws):
        if path.exists():
            raise InputError(f"{path}: already exists; choose another folder for `out`.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{folder}: this folder cannot be created: {problem.strerror}.") from None
    write_whole(domain, made.text, what="the domain")
    for path, text in laws.items():
        write_whole(path, text, what="the law")
    said = tuple((path, text.partition("\n")[0].removeprefix("# ")) for path, text in laws.items())
    return StartedLaws(domain, table.size, len(table.columns) - 1, said)


def _from(source: Path, folder: Path) -> str:
    """The path of the data relative to a folder; unchanged if the two have no common parent."""
    try:
        return Path(os.path.relpath(source.absolute(), folder.absolute())).as_posix()
    except ValueError:
        return str(source.absolute())


# `fuzz_domain`: pools of records for testing laws


@dataclass(frozen=True)
class FuzzedPool:
    """The file of records that was written, and how many it holds."""

    path: Path
    records: int


def fuzz_domain(
    domain: str | Path,
    *,
    out: str | Path,
    model: str | Path | None = None,
    size: int = 1000,
    seed: int = 0,
    progress: ProgressCallback[None] = ignore,
) -> FuzzedPool:
    """Find records for testing laws, by walking on from earlier records: `dokimos law fuzz`.

    The domain needs FEATURES, start() and walk(). `out` ends in .npy or .json; `test_law` takes it as the
    source pool:FILE. `model` plays (default: the domain's own model). If interrupted (Ctrl-C), the pool has
    what was found up to then.

    >>> dokimos.fuzz_domain("people.py", out="pool.json", size=10).records
    10
    """
    path = Path(out)
    found = load_domain(domain)
    if found.start is None or found.walk is None or found.layout is None:
        raise InputError(
            f"The domain {found.name} cannot be fuzzed: it needs FEATURES, start() and walk()."
        )
    _expect_pool(path)
    if model is None and found.model is None:
        raise InputError(f"Give a model: the domain {found.name} has none of its own.")
    given = model if model is not None or found.model is None else call_domain(found.model, found, "model")
    predict = as_model(given, found, name=str(given)).predict

    def step(count: int) -> None:
        progress(ProgressUpdate("fuzzing", count, size, f"found {count:,} of {size:,}", None))

    records = fuzz(
        found.start,
        found.walk,
        predict,
        found.layout,
        size=size,
        seed=seed,
        progress=step,
        until_interrupted=True,
    )
    write_whole(path, pool_file(records, path.suffix), make_folder=False)
    return FuzzedPool(path, len(records))


def _expect_pool(path: Path) -> None:
    """Raise InputError before the work starts if the pool cannot be written."""
    if path.suffix not in (".npy", ".json"):
        raise InputError(f"{path}: a pool is written to a file that ends in .npy or .json.")
    expect_writable(path, what="pool", example="pool.npy")
