"""The verifiers: which there are, how to get one, and what is wrong with it on this machine."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from dokimos.campaigns.doctor import try_out
from dokimos.campaigns.settings import RunSettings
from dokimos.verifiers.base import Finding
from dokimos.verifiers.catalogue import CatalogueRow, catalogue, find
from dokimos.verifiers.script_guard import allowed_environment, isolation_found, names_of

_log = logging.getLogger("dokimos")


@dataclass(frozen=True)
class InstalledVerifier:
    """A verifier that was installed now, or `was_there` before."""

    name: str
    version: str | None
    was_there: bool


@dataclass(frozen=True)
class Diagnosis:
    """What an examination of a verifier on this machine found.

    `variables` are the names of the environment variables that it gets.
    """

    verifier: str
    findings: tuple[Finding, ...]
    variables: tuple[str, ...] = ()

    @property
    def can_be_run(self) -> bool:
        """Whether nothing is wrong with it."""
        return all(finding.is_ok for finding in self.findings)


def list_verifiers() -> tuple[CatalogueRow, ...]:
    """List all known verifiers, whether they are installed, and how to get them: `dokimos verifiers`.

    >>> next(row for row in dokimos.list_verifiers() if row.name == "reference").is_installed
    True
    """
    return catalogue()


def install_verifier(name: str) -> InstalledVerifier:
    """Install a pinned verifier into its own environment, and try it: `dokimos verifiers install`.

    >>> dokimos.install_verifier("reference").was_there
    True
    """
    verifier = find(name)
    was_there = verifier.version() is not None
    if not was_there:
        verifier.install(lambda line: _log.info("%s", line))
    return InstalledVerifier(name, verifier.version(), was_there)


def diagnose_verifier(name: str, *, settings: RunSettings | None = None) -> Diagnosis:
    """Report what is wrong with a verifier on this machine, and how to fix it: `dokimos verifiers doctor`.

    `settings` are as for `run`; only `pass_env` and `trust` matter.

    >>> dokimos.diagnose_verifier("reference").can_be_run
    True
    """
    settings = settings or RunSettings()
    settings.require_variables()
    verifier = find(name)
    findings = tuple(verifier.diagnose())
    if not settings.trust and all(finding.is_ok for finding in findings):
        guard = verifier.guard()
        findings += () if guard is None else (guard,)
    if all(finding.is_ok for finding in findings):
        findings += (isolation_found(verifier, trust=settings.trust),)
    if verifier.is_tried_out and all(finding.is_ok for finding in findings):
        findings += try_out(verifier, settings)
    passed = allowed_environment(verifier.variables, settings.pass_env)
    return Diagnosis(name, findings, names_of(passed))
