"""The names of runs on a page: as short as keeps them distinct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dokimos.campaigns.records import RunRecord
from dokimos.core.readable import printable
from dokimos.judging.verdicts import Judgement


@dataclass(frozen=True)
class Naming:
    """Names for verifiers, instances and families.

    A verifier that ran in several versions is shown by name and version; if runs come from several suites,
    an instance is shown by suite and name.
    """

    several_versions: frozenset[str]
    several_suites: bool

    @classmethod
    def of(cls, records: Sequence[RunRecord]) -> Naming:
        """The names that keep `records` apart."""
        versions = {(r.verifier, r.verifier_version) for r in records}
        names = [name for name, _ in versions]
        return cls(
            several_versions=frozenset(name for name in names if names.count(name) > 1),
            several_suites=len({r.suite for r in records}) > 1,
        )

    def verifier(self, record: RunRecord) -> str:
        """The name of a run's verifier."""
        if record.verifier in self.several_versions:
            return printable(f"{record.verifier} {record.verifier_version}")
        return printable(record.verifier)

    def instance(self, record: RunRecord) -> str:
        """The name of a run's instance."""
        return printable(f"{record.suite}/{record.instance}" if self.several_suites else record.instance)

    def family(self, record: RunRecord) -> str:
        """The name of a run's family; a published instance has none."""
        return printable(record.family) or "no family"

    def sort_key(self, judgement: Judgement) -> tuple[str, str, str, int, str]:
        """The order of runs on the page: by family, instance, verifier and repeat."""
        r = judgement.record
        return (self.family(r), self.instance(r), self.verifier(r), r.repeat, r.job)
