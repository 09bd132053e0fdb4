"""`attack`: searches any suite for counterexamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.api.suite_lookup import SuiteSource, read_suite
from dokimos.attacks import ATTACKS
from dokimos.core.brief import Brief
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.tables import table
from dokimos.hiding.survivors import (
    AttackOutcome,
    AttackRate,
    AttackTask,
    attack_all,
    hidden_instances,
    rates,
)
from dokimos.suites.folder import Suite
from dokimos.suites.instance import Label


@dataclass(frozen=True, repr=False)
class AttackedSuite(Brief):
    """A suite, and the outcome of each attack on each instance."""

    suite: Suite
    budget_seconds: float
    outcomes: tuple[AttackOutcome, ...]

    @property
    def rates(self) -> tuple[AttackRate, ...]:
        """How many counterexamples each attack found, family by family."""
        return rates(self.outcomes)

    @property
    def hidden(self) -> tuple[str, ...]:
        """The instances, of those not proven `unsat`, on which every attack failed."""
        return tuple(name for name, is_hidden in hidden_instances(self.outcomes).items() if is_hidden)

    @property
    def refuted(self) -> tuple[AttackOutcome, ...]:
        """Counterexamples on instances whose label is `unsat`: these labels are wrong."""
        return tuple(one for one in self.outcomes if one.is_found and one.label == Label.UNSAT.value)


def attack(
    suite: SuiteSource,
    attacks: Sequence[str] = (),
    *,
    budget_seconds: float = 1.0,
    seed: int = 0,
    include_unsat: bool = False,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: ProgressCallback[AttackOutcome] = ignore,
) -> AttackedSuite:
    """Search the instances of a suite for counterexamples: `dokimos attack`.

    Each of `attacks` (default: all) has `budget_seconds` of CPU time for each instance. A counterexample
    counts once it is replayed in exact arithmetic. Instances that are proven `unsat` are left out unless
    `include_unsat`. If the folder `out` is given, every outcome is written there as soon as it is found, so
    that the same call continues where it stopped, and `attacks.csv` lists them all.

    >>> attacked = dokimos.attack("tiny", ["units-leaky", "joint-units"], budget_seconds=5)
    >>> [(one.label, one.attack, one.is_found) for one in attacked.outcomes]
    [('sat', 'units-leaky', True), ('sat', 'joint-units', True)]
    """
    if not 0 < budget_seconds < 1e6:
        raise InputError("The budget of an attack must be a positive number of seconds below a million.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"The seed must be a whole number of at least 0, not {seed!r}.")
    names = list(dict.fromkeys(attacks)) or sorted(ATTACKS)
    for name in names:
        ATTACKS[name]  # raises InputError, with the nearest name, if it does not exist
    found = read_suite(suite)
    wanted = [entry for entry in found.entries if include_unsat or not _is_unsat(entry.read_truth())]
    if not wanted:
        raise InputError(
            f"{found.folder}: every instance is labelled unsat, so there is nothing to find; give "
            "--all to attack them anyway."
        )
    tasks = [AttackTask(entry, name, budget_seconds, seed) for entry in wanted for name in names]

    def report(done: int, outcome: AttackOutcome) -> None:
        what = outcome.reason or (f"found in {outcome.seconds:.2g} s" if outcome.is_found else "not found")
        note = f"{outcome.instance}: {outcome.attack}: {what}"
        progress(ProgressUpdate("attacking", done, len(tasks), note, outcome))

    folder = None if out is None else Path(out)
    outcomes = attack_all(tasks, folder=folder, jobs=jobs, progress=report)
    if folder is not None:
        columns = ("instance", "family", "label", "attack", "found", "seconds", "least_margin", "reason")
        rows = table("attacks", columns, (_cells(one) for one in outcomes))
        write_whole(folder / "attacks.csv", rows.csv(), what="the table of attacks")
    return AttackedSuite(found, budget_seconds, outcomes)


def _is_unsat(truth: object) -> bool:
    return getattr(truth, "label", None) is Label.UNSAT


def _cells(one: AttackOutcome) -> tuple[object, ...]:
    found = "yes" if one.is_found else "no"
    seconds = f"{one.seconds:.3f}"
    return (
        *(one.instance, one.family, one.label, one.attack, found),
        *(seconds, one.least_margin, one.reason),
    )
