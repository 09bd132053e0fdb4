"""Rules about the table and its files: missing, damaged, listed twice, or with the same content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Generic, TypeVar

from dokimos.core.errors import (
    DokimosError,
    FileElsewhere,
    InputError,
    LargeFile,
    MissingFile,
    UnreadableFile,
)
from dokimos.engine.runtimes.sessions import load_session
from dokimos.judging.audit.subjects import BenchmarkTable, NetworkFile, PropertyFile
from dokimos.networks.summary import operators_on_data
from dokimos.suites.folder import LintFinding, LintSeverity
from dokimos.suites.vnnlib.reader import is_version_2
from dokimos.verifiers.catalogue import VERIFIERS

# What a rule is, and what its function reports


T = TypeVar("T")


@dataclass(frozen=True)
class Remark:
    """What the function of a rule reports: why, and where, if not in the file it was given."""

    reason: str
    line: int | None = None
    file: str = ""


@dataclass(frozen=True, eq=False)
class LintRule(Generic[T]):
    """A rule: its name, what it looks for, how bad that is, how to fix it, and the function that looks.

    `look` gets the subject of the rule (see `subjects`): the whole benchmark, one property, one network,
    one instance, or the results published on one instance.
    """

    name: str
    about: str
    severity: LintSeverity
    remedy: str
    look: Callable[[T], Iterable[Remark]]

    def findings(self, subject: T, file: str) -> list[LintFinding]:
        """What the rule finds in `subject`, which is called `file`."""
        return [
            LintFinding(
                self.name, self.severity, remark.file or file, remark.line, remark.reason, self.remedy
            )
            for remark in self.look(subject)
        ]


AnyRule = LintRule[Any]


_NOT_THERE = "there is no such file"
_INFIX = re.compile(r"\(\s*+[A-Za-z]\w*+(?:\[[^\[\]()]*+\])?\s*+(?:<=|>=|==|!=|<|>)")


def _bad_rows(benchmark: BenchmarkTable) -> Iterator[Remark]:
    return (Remark(row.problem, row.line) for row in benchmark.rows if row.problem)


def _no_instances(benchmark: BenchmarkTable) -> Iterator[Remark]:
    if not benchmark.rows:
        yield Remark("it lists no instances")


def _missing(benchmark: BenchmarkTable) -> Iterator[Remark]:
    script = benchmark.script
    fetched = "" if script is None else f"; {script.name} in {script.parent.name} may fetch it"
    for remark in _troubled(benchmark, MissingFile):
        yield replace(remark, reason=remark.reason + fetched)


def _elsewhere(benchmark: BenchmarkTable) -> Iterator[Remark]:
    return _troubled(benchmark, FileElsewhere)


def _large(benchmark: BenchmarkTable) -> Iterator[Remark]:
    return _troubled(benchmark, LargeFile)


def _unreadable(benchmark: BenchmarkTable) -> Iterator[Remark]:
    return _troubled(benchmark, UnreadableFile)


def _troubled(benchmark: BenchmarkTable, kind: type[UnreadableFile]) -> Iterator[Remark]:
    """The files that are missing or unreadable for exactly this reason, each where it is first listed."""
    for name, trouble in benchmark.troubles.items():
        if type(trouble) is kind:
            first, *others = benchmark.lines(name)
            also = f", which {len(others) + 1} rows need" if others else ""
            said = "listed, but not there" if trouble.reason == _NOT_THERE else trouble.reason.rstrip(".")
            yield Remark(f"{name!r}{also}: {said}", first)


def _listed_twice(benchmark: BenchmarkTable) -> Iterator[Remark]:
    seen: dict[tuple[object, ...], int] = {}
    for row in benchmark.listed:
        first = seen.setdefault((row.networks, row.property), row.line)
        if first != row.line:
            yield Remark(f"the instance in line {first} is listed again", row.line)


def _same_content(benchmark: BenchmarkTable) -> Iterator[Remark]:
    first: dict[str, tuple[str, int]] = {}
    for name, content in benchmark.hashes.items():
        line = benchmark.lines(name)[0]
        other, before = first.setdefault(content, (name, line))
        if benchmark.path(other) != benchmark.path(name):
            yield Remark(f"{name!r} has the same content as {other!r} in line {before}", line)


def _damaged_property(file: PropertyFile) -> Iterator[Remark]:
    problem = file.problem
    if problem is not None and not _is_infix(file, problem):
        yield Remark(problem.reason.rstrip("."), problem.place.line)


def _infix(file: PropertyFile) -> Iterator[Remark]:
    problem = file.problem
    if problem is not None and _is_infix(file, problem):
        yield Remark(
            "an operator is written between its operands, which VNN-LIB does not allow", problem.place.line
        )


def _is_infix(file: PropertyFile, problem: UnreadableFile) -> bool:
    line = problem.place.line
    lines = file.text.splitlines()
    return line is not None and line <= len(lines) and _INFIX.search(lines[line - 1]) is not None


def _old_version(file: PropertyFile) -> Iterator[Remark]:
    if file.folder.resolve().name == "2.0" and file.text and not is_version_2(file.text):
        yield Remark("a property of VNN-LIB 1.0 in a folder for 2.0", 1)


def _products(file: PropertyFile) -> Iterator[Remark]:
    if file.problem is None and file.property.products:
        line = file.line_of(r"\(\s*\*\s+[A-Za-z]\w*(?:\[[^\]]*\])?\s+[A-Za-z]")
        yield Remark("it multiplies variables, which most verifiers do not support", line)


def _damaged_network(file: NetworkFile) -> Iterator[Remark]:
    import onnx

    try:
        model = onnx.load_model_from_string(file.content)
    except UnreadableFile as error:
        yield Remark(error.reason.rstrip("."))
    except Exception as error:  # the parser of onnx may raise anything
        yield Remark(f"it is not an ONNX file ({type(error).__name__})")
    else:
        if not model.graph.output:
            yield Remark("it is not a network: it has no outputs")


def _refused(file: NetworkFile) -> Iterator[Remark]:
    if any(_damaged_network(file)):
        return
    for optimised in (False, True):
        try:
            load_session(file.content, "network", optimised=optimised)
        except DokimosError as error:
            said = str(error).removeprefix("network: ").rstrip(".")
            yield Remark(f"{said}{', with its optimisations on' if optimised else ''}")
            return


def _not_read(file: NetworkFile) -> Iterator[Remark]:
    if isinstance(file.network, InputError) and not any(_damaged_network(file)):
        yield Remark(str(file.network).removeprefix(f"{file.path}: ").rstrip("."))


@cache
def unread_by_installed() -> Mapping[str, frozenset[str]]:
    """The operators that each installed verifier is known not to support, by its name and version."""
    return {
        f"{name} {version}": frozenset(verifier.unread_operators.split())
        for name, verifier in VERIFIERS.items()
        if verifier.unread_operators and (version := verifier.version()) is not None
    }


def _unread_operators(file: NetworkFile) -> Iterator[Remark]:
    try:
        used = operators_on_data(file.content)
    except DokimosError:
        return
    said = [
        f"{verifier} does not support {', '.join(sorted(used & unread))}"
        for verifier, unread in sorted(unread_by_installed().items())
        if used & unread
    ]
    if said:
        yield Remark("; ".join(said))


BAD_ROW: LintRule[BenchmarkTable] = LintRule(
    "bad-row", "a row that cannot be understood", LintSeverity.ERROR, "write onnx,vnnlib,seconds", _bad_rows
)
NO_INSTANCES: LintRule[BenchmarkTable] = LintRule(
    "no-instances", "a table without a row", LintSeverity.ERROR, "list instances", _no_instances
)
MISSING_FILE: LintRule[BenchmarkTable] = LintRule(
    "missing-file",
    "a file that is listed but missing",
    LintSeverity.ERROR,
    "add the file, or remove the row",
    _missing,
)
FILE_ELSEWHERE: LintRule[BenchmarkTable] = LintRule(
    "file-elsewhere",
    "a name or a link that leads out of the folder",
    LintSeverity.ERROR,
    "put the file itself into the folder",
    _elsewhere,
)
LARGE_FILE: LintRule[BenchmarkTable] = LintRule(
    "large-file",
    "a file that is larger than the audit may read",
    LintSeverity.WARNING,
    "raise the limit of the audit, such as to 8GB",
    _large,
)
UNREADABLE_FILE: LintRule[BenchmarkTable] = LintRule(
    "unreadable-file",
    "a table or a listed file whose bytes cannot be read",
    LintSeverity.ERROR,
    "restore it, and the right to read it",
    _unreadable,
)
LISTED_TWICE: LintRule[BenchmarkTable] = LintRule(
    "listed-twice",
    "an instance that is listed twice",
    LintSeverity.WARNING,
    "remove one row, unless it should count twice",
    _listed_twice,
)
SAME_CONTENT: LintRule[BenchmarkTable] = LintRule(
    "same-content",
    "files with the same content under two names",
    LintSeverity.WARNING,
    "keep one of the files, and name it in both rows",
    _same_content,
)
DAMAGED_PROPERTY: LintRule[PropertyFile] = LintRule(
    "damaged-property",
    "a property that cannot be read",
    LintSeverity.ERROR,
    "write it in VNN-LIB syntax",
    _damaged_property,
)
INFIX: LintRule[PropertyFile] = LintRule(
    "infix",
    "operators between their operands",
    LintSeverity.ERROR,
    "write the operator first: (< a b)",
    _infix,
)
OLD_VERSION: LintRule[PropertyFile] = LintRule(
    "old-version",
    "files of VNN-LIB 1.0 in folders for 2.0",
    LintSeverity.ERROR,
    "convert it, or move it to 1.0",
    _old_version,
)
PRODUCTS: LintRule[PropertyFile] = LintRule(
    "products",
    "products of variables",
    LintSeverity.NOTE,
    "say so in the description of the benchmark",
    _products,
)
DAMAGED_NETWORK: LintRule[NetworkFile] = LintRule(
    "damaged-network",
    "a network that is not valid ONNX",
    LintSeverity.ERROR,
    "export the network again",
    _damaged_network,
)
NOT_READ: LintRule[NetworkFile] = LintRule(
    "not-read",
    "a network that Dokimos does not read",
    LintSeverity.NOTE,
    "its answers are not judged; see which operators are read in docs/families.md",
    _not_read,
)
UNREAD_OPERATORS: LintRule[NetworkFile] = LintRule(
    "unread-operators",
    "operators that installed verifiers do not support",
    LintSeverity.NOTE,
    "use other operators, or say which verifiers support it",
    _unread_operators,
)
RUNTIME_REFUSES: LintRule[NetworkFile] = LintRule(
    "runtime-refuses",
    "a network that onnxruntime does not load",
    LintSeverity.ERROR,
    "export it with operators and types that onnxruntime supports",
    _refused,
)
