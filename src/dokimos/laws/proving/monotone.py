"""Whether a model rises or falls with a feature, proven for every record or refuted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.core.progress import ProgressCallback, ProgressUpdate
from dokimos.core.readable import did_you_mean
from dokimos.core.records import Table
from dokimos.laws.domain.data_frames import domain_of, is_table, read_csv_table, table_domain
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Feature, Kind, Layout
from dokimos.laws.engine.pools import data_of
from dokimos.laws.language.law_layout import format_literal
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.estimators import fitted_names
from dokimos.laws.models.lookup import as_model, load_model
from dokimos.laws.models.same_decisions import expect_faithful_trees
from dokimos.laws.models.tested_model import Model, Rows, largest
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.results import LawAnswer, LawDecision, VerifySettings
from dokimos.laws.proving.verifying import verify_law

#: In how many steps the range of a feature is gone through for the smallest counterexample.
_STEPS = 400
_SHOWN = 12
#: How many rows a model is asked about to see what it gives.
_ASKED = 16


@dataclass(frozen=True)
class WrongStep:
    """A record, by feature, whose number is `before` at one value of a feature and `after` at another."""

    record: Mapping[str, float | str | None]
    at: tuple[float, float]
    before: float
    after: float


@dataclass(frozen=True)
class MonotoneFeature:
    """Whether one number that a model gives rises (`sign` 1) or falls (−1) with a feature."""

    feature: str
    sign: int
    about: str
    decision: LawDecision
    counterexample: WrongStep | None = None

    @property
    def words(self) -> str:
        """A line, and for a violation the smallest counterexample found, on a second one."""
        head = f"{self.about} {'rises' if self.sign > 0 else 'falls'} with {self.feature}"
        found = self.decision
        match found.answer:
            case LawAnswer.PROVEN:
                gaps = f"; but {found.left_out}" if found.left_out else ""
                return f"{head}: proven for every record in the ranges of the data, {found.semantics}{gaps}"
            case LawAnswer.VIOLATED:
                return f"{head}: NOT TRUE{self._against()}"
            case LawAnswer.REFUSED:
                return f"{head}: not decided: {found.reason}"
        return f"{head}: not decided in time: {100 * found.share:.3g} % of the ranges are open"

    def _against(self) -> str:
        found = self.counterexample
        if found is None:
            return "" if self.decision.violation is None else f"\n  {self.decision.violation.words}"
        others = [f"{name} {_word(value)}" for name, value in found.record.items() if name != self.feature]
        more = ", …" if len(others) > _SHOWN else ""
        first, second = (_word(each) for each in found.at)
        moved = f"{self.feature} {first} → {second}: {self.about} {found.before:.9g} → {found.after:.9g}"
        return f"\n  {moved}" + (f", where {', '.join(others[:_SHOWN])}{more}" if others else "")


@dataclass(frozen=True)
class Monotone(Table):
    """What was asked of a model, and what is known of each; it shows itself in a notebook."""

    features: tuple[MonotoneFeature, ...]

    @property
    def is_proven(self) -> bool:
        """Whether everything that was asked is proven."""
        return all(each.decision.answer is LawAnswer.PROVEN for each in self.features)

    @property
    def is_violated(self) -> bool:
        """Whether there is a counterexample to something."""
        return any(each.decision.answer is LawAnswer.VIOLATED for each in self.features)

    def to_records(self) -> list[dict[str, Any]]:
        """One dictionary for each feature and number."""
        return [
            {
                "feature": each.feature,
                "sign": each.sign,
                "of": each.about,
                "answer": each.decision.answer.value,
                "seconds": round(each.decision.seconds, 2),
                "words": each.words,
            }
            for each in self.features
        ]

    def __repr__(self) -> str:
        return "\n".join(each.words for each in self.features)


def _word(value: float | str | None) -> str:
    return "missing" if value is None else value if isinstance(value, str) else f"{value:.15g}"


def decide_monotone(
    model: Any,
    data: Any,
    constraints: Mapping[str, int] | None,
    target: str | None,
    settings: VerifySettings,
    progress: ProgressCallback[MonotoneFeature],
) -> Monotone:
    """Decide whether a model rises and falls with features: see `dokimos.monotone`. Raises InputError."""
    named = isinstance(model, str | Path)
    name = str(model) if named else type(model).__name__

    def loaded(domain: Domain | None) -> Model:
        return (
            load_model(model, domain, allow_code=settings.allow_code)
            if named
            else as_model(model, domain, name=name)
        )

    source = loaded(None).source if named else model
    domain = _domain(data, fitted_names(source), target)
    assert domain.layout is not None  # so tables make it
    features = {feature.name: feature for feature in domain.layout.features}
    asked = constraints_of(source, list(features)) if constraints is None else dict(constraints)
    if not asked:
        raise InputError(
            f"{name}: no monotone constraints are known; say in `constraints` what rises (1) or falls (-1)."
        )
    own, rows = loaded(domain), data_of(domain)
    assert rows is not None  # it is the data that was given
    laws = {feature: _law(feature, sign, features) for feature, sign in asked.items()}
    expect_faithful_trees(own, domain.layout, rows)
    scores = score_models(own, rows)
    found: list[MonotoneFeature] = []
    for feature, law in laws.items():
        for about, one in scores.items():
            decision = verify_law(law, model=one, domain=domain, settings=settings)
            smallest = None
            if decision.violation is not None:
                first = decision.violation.case.inputs["x1"]
                smallest = _smallest(one, domain.layout, features[feature], asked[feature], first)
            found.append(MonotoneFeature(feature, asked[feature], about, decision, smallest))
            count = len(laws) * len(scores)
            progress(ProgressUpdate("deciding", len(found), count, found[-1].words, found[-1]))
    return Monotone(tuple(found))


def _domain(data: Any, fitted: Sequence[str], target: str | None) -> Domain:
    """The domain of the columns that a model was fitted on; if they are not known, all but the target."""
    if isinstance(data, str | Path):
        table = read_csv_table(Path(data))
        known = list(table.columns)
        if target is not None:
            table.column(target)
    else:
        known = [str(each) for each in data.columns] if is_table(data) else []
    kept = [each for each in known if each in fitted] if set(fitted) <= set(known) else []
    kept = kept or [each for each in known if each != target]
    if isinstance(data, str | Path):
        return table_domain(table, kept)
    return domain_of(data[kept]) if known else domain_of(data)


def _law(name: str, sign: int, features: Mapping[str, Feature]) -> Law:
    """The law that predictions rise or fall with a feature. Raises InputError."""
    if name not in features:
        raise InputError(f"There is no feature {name}{did_you_mean(name, features)}.")
    if sign not in (1, -1):
        raise InputError(f"{name}: a constraint is 1 (rises) or -1 (falls), not {sign}.")
    feature = features[name]
    if feature.kind not in (Kind.INTEGER, Kind.REAL):
        raise InputError(f"{name} holds strings, which have no order to rise with.")
    if feature.low is None or feature.high is None or not np.isfinite([feature.low, feature.high]).all():
        raise InputError(f"{name} has no numbers in the data, or an infinite one, so it has no range.")
    draw = "randInt" if feature.kind is Kind.INTEGER else "randReal"
    quoted, beyond = format_literal(name), math.ceil(feature.high) + 1  # records stay in the range
    return parse_law(
        f"input x1;\nvar v := {draw}(getFeat(x1, {quoted}), {beyond});\n"
        f"var x2 := setFeat(x1, {quoted}, v);\noutput d1;\noutput d2;\n"
        "{\n    d1 = predict(x1)\n    d2 = predict(x2)\n}\n"
        f"ensures d1 {'<=' if sign > 0 else '>='} d2;\n",
        name=f"{'rising' if sign > 0 else 'falling'} with {name}",
    )


def _smallest(
    model: Model, layout: Layout, feature: Feature, sign: int, record: NDArray[Any]
) -> WrongStep | None:
    """The smallest step up of a feature, of a grid on its range, that moves a prediction the wrong way."""
    assert feature.low is not None and feature.high is not None  # so `_law` requires it
    width = feature.high - feature.low
    if feature.kind is Kind.INTEGER:
        values = np.unique(np.rint(np.linspace(feature.low, feature.high, int(min(width, _STEPS)) + 1)))
    else:
        digits = max(0, 3 - math.floor(math.log10(width))) if width else 0
        values = np.unique(np.round(np.linspace(feature.low, feature.high, _STEPS), min(digits, 300)))
        values = values[(values >= feature.low) & (values <= feature.high)]
    place = layout.named(feature.name).start
    rows = np.tile(np.asarray(record).reshape(1, -1), (len(values), 1))
    rows[:, place] = values
    scores = np.asarray(model.predict(rows)).astype(np.float64)
    wrong = np.flatnonzero(sign * np.diff(scores) < 0)
    if len(wrong) == 0:
        return None  # what was found is narrower than the grid
    steps = np.diff(values)[wrong]
    first = int(wrong[np.lexsort((sign * np.diff(scores)[wrong], np.round(steps, 12)))[0]])
    named: dict[str, float | str | None] = {}
    for slot in layout.slots:
        cells = rows[first, slot.start : slot.stop]
        if slot.feature.kind is Kind.CHOICE:
            named[slot.feature.name] = slot.feature.values[int(np.argmax(cells))] if cells.any() else None
        else:
            named[slot.feature.name] = None if cells[0] != cells[0] else cells[0]
    at = float(values[first]), float(values[first + 1])
    return WrongStep(named, at, float(scores[first]), float(scores[first + 1]))


# The number behind a model's decisions: what "rises with income" is about, also for a classifier


def score_models(model: Model, data: NDArray[Any]) -> Mapping[str, Model]:
    """By what the number is called, models that predict a number that the given one decides by.

    A regressor's prediction, or what its trees add up to before a link; of two classes, the score of the
    second; of more, of each; of several outputs, each. Raises InputError where it gives no numbers.
    """
    trees = model.made_of
    if isinstance(trees, Ensemble):
        labels = trees.classes or range(len(trees.base))
        if len(trees.base) == 1 and trees.tie:  # only the model itself gives that number
            return {"prediction": model}
        if len(trees.base) == 1:
            return {"prediction" if not trees.link else "score": _of_trees(model, trees, 0)}
        first = 1 if len(trees.base) == 2 and not trees.is_vector else 0
        kind = "output" if trees.is_vector else "score of"
        return {
            f"{kind} {label}": _of_trees(model, trees, k) for k, label in list(enumerate(labels))[first:]
        }
    give = model.scores if model.class_scores is None else model.class_scores.scores
    try:
        shown = np.asarray(give(data[:_ASKED]))
    except DokimosError:
        raise
    except Exception as problem:
        raise InputError(f"{model.name}: it fails on the data: {str(problem).rstrip('.')}.") from None
    table = shown.reshape(len(shown), -1)
    if table.dtype.kind not in "biuf":
        raise InputError(f"{model.name}: it gives no numbers that could rise or fall.")
    count = table.shape[1]
    if count == 1:
        return {"prediction": _of_column(model, give, 0)}
    labels = () if model.class_scores is None else model.class_scores.labels
    first, kind = (1 if count == 2 else 0, "score of") if len(labels) == count else (0, "output")
    return {f"{kind} {k}": _of_column(model, give, k) for k in range(first, count)}


def _of_trees(model: Model, trees: Ensemble, column: int) -> Model:
    """What trees that were compared with the model add up to for one score."""
    own = trees.column(column).changed(link="")
    return Model(model.name, own, largest, model.sha256, made_of=own)


def _of_column(model: Model, give: Any, column: int) -> Model:
    def scores(records: Rows) -> NDArray[Any]:
        return np.asarray(give(records)).reshape(len(records), -1)[:, column]

    return replace(model, scores=scores, decide=largest, class_scores=None, original=None, margins=None)


# The monotone constraints that a model was fitted with


def constraints_of(given: Any, names: Sequence[str]) -> dict[str, int]:
    """By the name of a feature, 1 where a model was asked to rise with it, −1 to fall; empty if unknown.

    `names` are those of the model's inputs, in order.
    """
    for read in (_parameter, _of_lightgbm, _of_catboost):
        found = read(given)
        if found is not None:
            return {
                name: sign for name, sign in _by_name(found, fitted_names(given) or names).items() if sign
            }
    return {}


def _parameter(given: Any) -> Any:
    for name in ("monotonic_cst", "monotone_constraints"):
        found = getattr(given, name, None)
        if found is not None and not callable(found):
            return found
    parameters = given.get_params() if hasattr(given, "get_params") else {}
    return parameters.get("monotone_constraints") if isinstance(parameters, dict) else None


def _of_lightgbm(given: Any) -> Any:
    if not hasattr(given, "model_to_string"):
        return None
    for line in given.model_to_string(num_iteration=1).splitlines():
        if line.startswith("[monotone_constraints: ") and line != "[monotone_constraints: ]":
            return line.removeprefix("[monotone_constraints: ").rstrip("]")
    return None


def _of_catboost(given: Any) -> Any:
    found = given.get_all_params() if hasattr(given, "get_all_params") else {}
    return found.get("monotone_constraints")


def _by_name(given: Any, names: Sequence[str]) -> dict[str, int]:
    """Constraints as the libraries take them: signs in order, also as a text, or by name or number."""
    if isinstance(given, str):
        given = [int(each) for each in given.strip("()[] ").split(",") if each.strip()]
    if isinstance(given, Mapping):
        return {
            str(key) if str(key) in names else names[int(key)]: int(sign) for key, sign in given.items()
        }
    return {name: int(sign) for name, sign in zip(names, np.asarray(given).tolist(), strict=False)}
