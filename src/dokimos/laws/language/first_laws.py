"""A domain and three first laws for the data in a CSV file, as a starting point to edit."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dokimos.core.errors import InputError
from dokimos.laws.domain.csv_tables import Cell, CsvTable, column_feature
from dokimos.laws.domain.features import Feature, Kind
from dokimos.laws.language.templates import new_law, number_text

#: Features that decisions should rarely depend on: the fairness law prefers one of these.
_PROTECTED = re.compile(r"sex|gender|race|ethnic|religion|nation|origin|foreign|skin|disab", re.IGNORECASE)
#: A target with more distinct numbers than this is a number to predict, not a class.
_MOST_CLASSES = 20
#: Changes, and tolerances of regressors, as shares of a range.
_MORE, _LITTLE, _TOLERANCE = 0.1, 0.01, 0.05


@dataclass(frozen=True)
class PredictedColumn:
    """What a model predicts: a class (`classes` are the names of the decisions 0, 1, …) or a number."""

    name: str
    classes: tuple[str, ...]
    by_name: bool
    tolerance: float


@dataclass(frozen=True)
class FirstLaws:
    """The texts of the files: the domain's, and those of its laws by name."""

    domain: str
    text: str
    laws: Mapping[str, str]


def first_laws(table: CsvTable, target: str, *, data: str) -> FirstLaws:
    """The domain of a table, and three laws; `data` is the table's path from the folder of the domain.

    Raises InputError if there is no such column, or no other one.
    """
    aim = _target(target, table.column(target))
    features = [column_feature(name, cells) for name, cells in table.columns.items() if name != target]
    if not features:
        raise InputError(f"{table.path}: there is no other column than {target}.")
    domain = module_name(table.path.stem)
    text = _domain_text(table, features, aim, data)
    return FirstLaws(domain, text, _laws(table, features, aim, domain))


def module_name(stem: str) -> str:
    """A name that Python and laws can import."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", stem).strip("_").lower() or "data"
    return f"data_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name


def _target(name: str, cells: Sequence[Cell]) -> PredictedColumn:
    known = [each for each in cells if each is not None]
    if not known:
        raise InputError(f"The column {name} is empty, so there is nothing to predict.")
    if all(isinstance(each, str) for each in known):
        return PredictedColumn(name, tuple(sorted({str(each) for each in known})), True, 0.0)
    values = sorted({each for each in known if isinstance(each, int | float)})
    if all(isinstance(each, int) for each in values) and len(values) <= _MOST_CLASSES:
        is_index = values == list(range(len(values))) and len(values) > 1
        return PredictedColumn(name, tuple(map(str, values)) if is_index else (), False, 0.0)
    return PredictedColumn(name, (), False, _round(_TOLERANCE * (values[-1] - values[0])))


def _round(number: float) -> float:
    """A number rounded to two significant digits; 1 if it is not positive and finite."""
    if number <= 0 or not math.isfinite(number):
        return 1.0
    return float(f"{number:.2g}")


def _domain_text(table: CsvTable, features: Sequence[Feature], target: PredictedColumn, data: str) -> str:
    kinds = sorted({_constructor(each) for each in features})
    imports = ", ".join([*kinds, "read_column", "read_table"])
    lines = [
        f'"""{table.path.name}: {table.size:,} records; a model predicts `{_safe(target.name)}`."""',
        "",
        "from pathlib import Path",
        "",
        f"from dokimos.laws import {imports}",
        "",
        f"DATA = Path(__file__).parent / {_string(data)}",
        "",
        "# Kinds and ranges are those of the data; --source range draws from these ranges.",
        "FEATURES = [",
        *(f"    {_declared(each)}," for each in features),
        "]",
        f"DECISION = {_string('predicted value of ' + target.name.replace('_', ' '))}",
    ]
    if target.classes:
        order = "  # order these from worst to best: laws compare them" if target.by_name else ""
        lines.append(f"CLASSES = [{', '.join(map(_string, target.classes))}]{order}")
    answers = f"read_column(DATA, {_string(target.name)})"
    lines += ["", "", "def inputs():", "    return read_table(DATA, FEATURES)", "", "", "def labels():"]
    if not target.by_name:
        return "\n".join([*lines, f"    return {answers}", ""])
    lines += [f"    return [CLASSES.index(each) if each in CLASSES else -1 for each in {answers}]", "", ""]
    return "\n".join([*lines, *_decide_lines(target.classes), ""])


def _decide_lines(classes: Sequence[str]) -> list[str]:
    """The function that turns a model's answers into decisions.

    Integers are taken for class indices only if no class has a number as its name.
    """
    by_number = not any(re.fullmatch(r"[-+.\d]+(e[-+]?\d+)?", each) for each in classes)
    numbers = " an index into CLASSES," if by_number else ""
    return [
        f"def decide(answers):  # a model may answer with a class name,{numbers} or a score for each",
        "    if answers.ndim > 1:",
        "        return answers.argmax(axis=1)",
        *(['    if answers.dtype.kind in "iu":', "        return answers"] if by_number else []),
        "    return [CLASSES.index(str(each)) for each in answers]",
    ]


def _string(words: str) -> str:
    """A string as a Python literal."""
    return json.dumps(words, ensure_ascii=False)


def _safe(words: str) -> str:
    return words.replace("\\", " ").replace('"', "'")


def _constructor(feature: Feature) -> str:
    return "flag" if _is_flag(feature) else feature.kind.value


def _is_flag(feature: Feature) -> bool:
    return feature.kind is Kind.INTEGER and (feature.low, feature.high) == (0, 1)


def _declared(feature: Feature) -> str:
    """The declaration of a feature in a domain's file."""
    parts: list[str] = [_string(each) for each in (feature.name, *feature.values)]
    if not _is_flag(feature) and feature.low is not None:
        parts += [repr(feature.low), repr(feature.high)]
    if feature.dtype is not None:
        parts.append(f"dtype={_string(feature.dtype)}")
    if feature.may_miss:
        parts.append("missing=True")
    return f"{_constructor(feature)}({', '.join(parts)})"


def _laws(
    table: CsvTable, features: Sequence[Feature], target: PredictedColumn, domain: str
) -> dict[str, str]:
    """Three laws: fairness (or a feature that should not matter), monotonicity, robustness."""
    ranked = sorted(_numbers(features, table), key=lambda each: -_agreement(table, each, target))
    groups = [each for each in features if 2 <= _values(each) <= _MOST_CLASSES]
    groups.sort(key=lambda each: (not _PROTECTED.search(each.name), each.kind is not Kind.CATEGORY))
    chosen: list[tuple[str, Feature]] = []
    if groups:
        chosen.append(("fair", groups[0]))
    elif ranked:
        chosen.append(("invariant", ranked[-1]))
    if ranked:
        chosen += [("monotone", ranked[0]), ("robust", ranked[1 % len(ranked)])]
    chosen += [("fair", each) for each in groups[1:]]
    return {
        f"{template}_{module_name(each.name)}": _law(template, each, target, domain)
        for template, each in chosen[:3]
    }


def _values(feature: Feature) -> int:
    """How many values a category or a flag has; 0 for other features."""
    return 2 if _is_flag(feature) else len(feature.values)


def _numbers(features: Sequence[Feature], table: CsvTable) -> list[Feature]:
    """Numeric features with a range, except flags and row numbers."""
    return [
        each
        for each in features
        if not each.holds_strings
        and not _is_flag(each)
        and each.low != each.high
        and not (each.name.lower().endswith("id") and len(set(table.column(each.name))) == table.size)
    ]


def _agreement(table: CsvTable, feature: Feature, target: PredictedColumn) -> float:
    """How strongly the target rises with a feature: their rank correlation."""
    pairs = [
        (float(number), _as_number(answer, target))
        for number, answer in zip(table.column(feature.name), table.column(target.name), strict=True)
        if isinstance(number, int | float) and answer is not None
    ]
    if len(pairs) < 3:
        return 0.0
    ranks = [
        np.argsort(np.argsort(np.array(side), kind="stable"), kind="stable")
        for side in zip(*pairs, strict=True)
    ]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _as_number(answer: Any, target: PredictedColumn) -> float:
    return float(target.classes.index(answer)) if target.by_name else float(answer)


def _law(template: str, feature: Feature, target: PredictedColumn, domain: str) -> str:
    share = _LITTLE if template == "robust" else _MORE
    amount, whole = 1.0, feature.kind is Kind.INTEGER
    if feature.low is not None and feature.high is not None:
        amount = _round(share * (feature.high - feature.low))
    if whole:
        amount = float(max(1, round(amount)))
    return new_law(
        template,
        feature=feature.name,
        amount=amount,
        domain=domain,
        tolerance=target.tolerance,
        whole=whole,
        any_name=True,
        others=_others(feature),
    )


def _others(feature: Feature) -> tuple[str, ...]:
    """All values of a feature, as laws write them; one drawn from its range if it is a number."""
    if _is_flag(feature) and not feature.may_miss:
        return ("1 - x1.{feature}",)
    if _is_flag(feature):
        return ("0", "1")
    if feature.values:
        return tuple(_string(each) for each in feature.values)
    if feature.low is None or feature.high is None:
        return ()
    draw = "randInt" if feature.kind is Kind.INTEGER else "randReal"
    return (f"{draw}({number_text(feature.low)}, {number_text(feature.high)})",)
