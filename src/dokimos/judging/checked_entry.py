"""Checks one entry of a suite; the result is a plain value that can be sent between processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from dokimos.checker.base import CertificateKind
from dokimos.checker.check import check
from dokimos.checker.kinds import CERTIFICATES
from dokimos.core.errors import DokimosError, InputError, InvalidProof
from dokimos.core.parallel import Cost, measured
from dokimos.core.registry import Registry
from dokimos.suites.entry import SuiteEntry

if TYPE_CHECKING:
    from dokimos.engine.runtimes.cross_check import CrossCheck


#: How the words begin that tell of a bug.
FAULT = "a fault of Dokimos"


@dataclass(frozen=True)
class CheckedEntry:
    """What the checker says about one entry; `problem` is empty iff its label is proven.

    `answers` has the label under each semantics for which one is proven. `is_unreadable` distinguishes a
    file that could not be read from a proof that does not go through, and `is_fault` a bug of Dokimos from
    both.
    """

    name: str
    family: str
    label: str = ""
    kind: str = ""
    float32_margin: float | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""
    is_unreadable: bool = False
    is_fault: bool = False

    @property
    def is_proven(self) -> bool:
        """Whether the label is proven."""
        return not self.problem


def check_entry(entry: SuiteEntry, *, kinds: Registry[CertificateKind] = CERTIFICATES) -> CheckedEntry:
    """Prove the label of one entry again, from its files alone. No content of a file makes it raise.

    An error that is not one of ours is a bug, and fails this entry: it must not hide the others.
    """
    try:
        truth = entry.read_truth()
        if truth is None:
            raise InvalidProof("it has no truth file")
        proven = check(entry.read_instance(), truth, kinds=kinds)
    except DokimosError as error:
        return CheckedEntry(
            entry.name, entry.family, problem=str(error), is_unreadable=isinstance(error, InputError)
        )
    except Exception as error:
        return CheckedEntry(entry.name, entry.family, problem=fault(error), is_fault=True)
    return CheckedEntry(
        name=entry.name,
        family=entry.family,
        label=truth.label.value,
        kind=truth.certificate.kind,
        float32_margin=None if proven.floats is None else float(proven.floats),
        answers={s.value: alone.label.value for s in truth.claims if (alone := truth.under(s)) is not None},
    )


def fault(error: Exception) -> str:
    """What an error that no file should cause says of itself, in one line."""
    return f"{FAULT}: {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def check_entry_with_plugins(entry: SuiteEntry) -> CheckedEntry:
    """`check_entry` with plug-ins' proofs trusted; if one was needed, `kind` names its package."""
    from dokimos.engine.outcome import ALL_CERTIFICATES, plugin_kind

    checked = check_entry(entry, kinds=ALL_CERTIFICATES)
    return replace(checked, kind=plugin_kind(checked.kind) or checked.kind)


def check_entry_naming_plugins(entry: SuiteEntry) -> CheckedEntry:
    """`check_entry`; if only a plug-in's kind could prove the label, the problem says which."""
    from dokimos.engine.outcome import why_not_trusted

    checked = check_entry(entry)
    if checked.is_proven:
        return checked
    try:
        truth = entry.read_truth()
    except DokimosError:
        return checked
    problem = "" if truth is None else why_not_trusted(truth.certificate.kind)
    return replace(checked, problem=problem, is_unreadable=False) if problem else checked


def check_and_compare(
    entry: SuiteEntry, *, core_only: bool, plugin_proofs: bool
) -> tuple[tuple[CheckedEntry, CrossCheck | None], Cost]:
    """What the checker says about an entry, its comparison with runtimes if it is proven, and the cost.

    With `core_only`, only the trusted core is loaded, and nothing is compared; with `plugin_proofs`, kinds
    of proof that other packages add are trusted.
    """
    checker = check_entry_with_plugins if plugin_proofs else check_entry_naming_plugins
    return measured(partial(_compared, check_entry if core_only else checker, entry, compare=not core_only))


def _compared(
    checker: Callable[[SuiteEntry], CheckedEntry], entry: SuiteEntry, *, compare: bool
) -> tuple[CheckedEntry, CrossCheck | None]:
    checked = checker(entry)
    if not compare or not checked.is_proven:
        return checked, None
    from dokimos.engine.runtimes.cross_check import cross_check

    truth = entry.read_truth()
    assert truth is not None
    try:
        compared = cross_check(entry.read_instance(), truth)
    except Exception as error:  # a bug, which must not hide the other entries
        return replace(checked, problem=fault(error), is_fault=True), None
    return replace(checked, problem=compared.contradiction), compared
