"""`label`: labels, with proofs, for instances that have none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.api.suite_lookup import SuiteSource, read_suite
from dokimos.core.brief import Brief
from dokimos.core.errors import InputError
from dokimos.core.parallel import each
from dokimos.labelling.tasks import LabelOutcome, LabelTask, label_instance
from dokimos.suites.folder import Suite
from dokimos.suites.pairs import is_network, pair_suite


@dataclass(frozen=True, repr=False)
class LabelledSuite(Brief):
    """A suite, and what is known about each of its instances, in order."""

    suite: Suite
    outcomes: tuple[LabelOutcome, ...]

    @property
    def labelled(self) -> tuple[LabelOutcome, ...]:
        """The instances that have a label."""
        return tuple(outcome for outcome in self.outcomes if outcome.label)

    @property
    def open(self) -> tuple[LabelOutcome, ...]:
        """The instances that have no label."""
        return tuple(outcome for outcome in self.outcomes if not outcome.label)


def label(
    suite: SuiteSource,
    property: str | Path | None = None,
    *,
    budget_seconds: float = 60.0,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: ProgressCallback[LabelOutcome] = ignore,
) -> LabelledSuite:
    """Find labels for the instances of a suite that have none: `dokimos label`.

    Takes a suite's folder, or a network and its `property`, which become a suite in the folder `out`
    (default: in Dokimos' home). Each instance is attacked, then every proof that applies is tried, within
    `budget_seconds`; a label is written to the suite's `truth/` once the checker and the cross-check have
    accepted its proof. Instances that stay open are recorded in `open/` and tried again only with a larger
    budget, so the same call continues where it stopped.

    >>> labelled = dokimos.label("tiny")
    >>> [(outcome.label, outcome.was_there) for outcome in labelled.outcomes]
    [('unsat', True), ('sat', True)]
    """
    if not 0 < budget_seconds < 1e6:
        raise InputError("The budget of an instance must be a positive number of seconds below a million.")
    found = _suite(suite, property, out)
    tasks = [LabelTask(found.folder, entry, budget_seconds) for entry in found.entries]
    outcomes: dict[int, LabelOutcome] = {}
    for index, outcome in each(label_instance, tasks, jobs=jobs):
        outcomes[index] = outcome
        note = f"{outcome.name}: {outcome.label or 'open'}{' (as before)' if outcome.was_there else ''}"
        progress(ProgressUpdate("labelling", len(outcomes), len(tasks), note, outcome))
    return LabelledSuite(found, tuple(outcomes[index] for index in range(len(tasks))))


def _suite(suite: SuiteSource, property: str | Path | None, out: str | Path | None) -> Suite:
    if property is not None:
        return pair_suite(Path(str(suite)), Path(property), folder=None if out is None else Path(out))
    if out is not None:
        raise InputError(
            "--out is only for a network and its property; the labels of a suite are "
            "written to its own folder."
        )
    if not isinstance(suite, Suite) and is_network(suite):
        raise InputError(
            f"{suite} is a network; give its property as well: dokimos label NETWORK PROPERTY."
        )
    return read_suite(suite)
