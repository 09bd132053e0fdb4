"""`properties`: benchmarks from a model and data, with every radius bracketed by evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.brief import Brief
from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.datasets.brackets import LARGEST, TOLERANCE, Effort
from dokimos.datasets.catalogue import load_data
from dokimos.datasets.classifier import read_classifier
from dokimos.datasets.normalisation import parse_normalisation
from dokimos.datasets.property_suites import RecordOutcome, Style, Wishes, make_suite
from dokimos.properties.writing import vnnlib_version
from dokimos.suites.folder import Suite

#: The time limit of an instance in the published benchmarks, and the smallest that a budget may lead to.
_TIMEOUTS = {Style.PGD: 300.0, Style.RADIUS: 300.0, Style.OVAL: 720.0}
_LEAST_TIMEOUT = 10.0
_COUNTS = {Style.PGD: 48, Style.RADIUS: 15, Style.OVAL: 10}


@dataclass(frozen=True, repr=False)
class PropertySuite(Brief):
    """A suite from a model and data, and the outcome for each record that was tried."""

    suite: Suite
    records: tuple[RecordOutcome, ...]
    timeout_seconds: float

    @property
    def labels(self) -> Counter[str]:
        """How many instances have each label; "" stands for those without."""
        return Counter(label for record in self.records for _, label in record.instances)


def make_properties(
    style: str,
    model: str | Path,
    data: str | Path,
    out: str | Path,
    *,
    epsilon: float | Sequence[float] = (),
    count: int | None = None,
    seed: int = 0,
    normalise: str | None = None,
    limits: tuple[float, float] | None = (0.0, 1.0),
    restarts: int = 5,
    steps: int = 100,
    weights: tuple[float, float] = (1 / 3, 2 / 3),
    largest: float = LARGEST,
    tolerance: float = TOLERANCE,
    timeout_seconds: float | None = None,
    budget_seconds: float | None = None,
    labelled_only: bool = False,
    twins: bool = False,
    drop_easy: bool = False,
    vnnlib: str = "1",
    progress: ProgressCallback[RecordOutcome] = ignore,
) -> PropertySuite:
    """Make a suite of local robustness properties: `dokimos properties`.

    `style` is "pgd" (records that are classified correctly and resist PGD with `restarts` and `steps`),
    "radius" (balls of `epsilon` around correctly classified records) or "oval" (a radius between the
    largest one proven and the smallest one broken, weighted by `weights`, up to `largest`). Records are
    drawn without replacement, by `seed`, from `data`: a name that `list_data` lists, or your own file or
    folder. `epsilon` is in the units of the data; `normalise` says how a record is normalised before the
    network gets it.

    A label is written only if it is proven: `unsat` with a certificate, `sat` with a witness.
    `labelled_only` leaves out instances without a label; `twins` makes two instances of each record, at the
    proven and at the broken radius. `drop_easy` leaves out instances that root bounds prove.
    `budget_seconds` chooses the count and the time limit so that all instances together take no longer; a
    time limit that is given stays, and a count that is given is not exceeded.

    >>> model = "nets/digits-fc.onnx"
    >>> made = dokimos.make_properties("radius", model, "digits", "x", epsilon=0.001, count=2)
    >>> dict(made.labels), dokimos.check("x").is_proven
    ({'unsat': 2}, True)
    """
    chosen = _style(style)
    radii = (float(epsilon),) if isinstance(epsilon, int | float) else tuple(map(float, epsilon))
    wishes = Wishes(
        style=chosen,
        radii=radii,
        count=_COUNTS[chosen] if count is None else count,
        seed=seed,
        restarts=restarts,
        steps=steps,
        weights=weights,
        effort=Effort(largest=largest, tolerance=tolerance),
        timeout_seconds=_TIMEOUTS[chosen] if timeout_seconds is None else timeout_seconds,
        labelled_only=labelled_only,
        twins=twins,
        drop_easy=drop_easy,
        version=vnnlib_version(vnnlib),
    )
    if budget_seconds is not None:
        wishes = within(wishes, budget_seconds, count=count, seconds=timeout_seconds)
    classifier = read_classifier(Path(model), None if normalise is None else parse_normalisation(normalise))
    shape = classifier.network.input_shape[1:]
    records = load_data(data, shape=shape, limits=limits, normalisation=classifier.normalisation)

    def show(outcome: RecordOutcome, kept: int) -> None:
        said = ", ".join(f"{name}: {label or 'no label'}" for name, label in outcome.instances)
        note = said or f"record {outcome.record}: {outcome.reason}"
        progress(ProgressUpdate("making properties", kept, wishes.count, note, outcome))

    suite, outcomes = make_suite(classifier, records, Path(out), wishes, show)
    return PropertySuite(suite, outcomes, wishes.timeout_seconds)


def _style(name: str) -> Style:
    try:
        return Style(name)
    except ValueError:
        raise unknown_name("style of properties", name, [style.value for style in Style]) from None


def within(wishes: Wishes, budget_seconds: float, *, count: int | None, seconds: float | None) -> Wishes:
    """Choose the number of records and the seconds for each instance so that all fit into the budget.

    Seconds that were given stay, and a given count is not exceeded. Otherwise there are as many records as
    fit with the usual seconds, but not fewer than usual: then there are fewer seconds, and only when these
    are down to the least, fewer records.
    """
    each = 2 if wishes.twins else max(1, len(wishes.radii))
    fitting = int(budget_seconds / (each * wishes.timeout_seconds))
    most = wishes.count if count is not None else max(wishes.count, fitting)
    limit = min(wishes.timeout_seconds, float(int(budget_seconds / (each * most))))
    if seconds is not None:
        most, limit = fitting if count is None else min(count, fitting), seconds
    elif limit < _LEAST_TIMEOUT:
        most, limit = int(budget_seconds / (each * _LEAST_TIMEOUT)), _LEAST_TIMEOUT
    if most < 1:
        raise InputError(
            f"A budget of {budget_seconds:g} s is too small for one record, whose {each} "
            f"instance{'s' * (each != 1)} may take {limit:g} s each; give a larger one."
        )
    return replace(wishes, timeout_seconds=limit, count=most)
