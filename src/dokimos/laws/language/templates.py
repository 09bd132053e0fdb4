"""Laws to start from."""

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
from dokimos.core.readable import printable, unknown_name
from dokimos.laws.domain.data_frames import Cell, CsvTable, as_choice, column_feature
from dokimos.laws.domain.features import Feature, Kind
from dokimos.laws.language.law_layout import format_law, format_literal
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import LawError


@dataclass(frozen=True)
class Template:
    """The purpose of a template, and its text.

    The placeholders are {feature}, {amount}, the draws ({more} up to the amount, {noise} around 0), and
    what depends on a tolerance: {what} is compared, {within}, and how ({ordered}, {same}).
    """

    about: str
    text: str


#: Where the feature's name will stand. No text made of data has it: literals of laws spell it out.
_PLACE = "\0"
_BLOCK = """output d1;
output d2;
{{
    d1 = predict(x1)
    d2 = predict(x2)
}}
"""

#: Larger changes are refused: integers in laws are exact below this.
_MOST = 10**15

TEMPLATES: Mapping[str, Template] = {
    "monotone": Template(
        "a larger value of a feature never lowers the decision",
        "# A larger {feature} never lowers the {what}{within}.\n"
        "input x1;\nvar v1 := x1.{feature};\nvar v2 := v1 + {more};\n"
        "var x2 := x1[{feature} := v2];\n" + _BLOCK + "ensures {ordered};\n",
    ),
    "invariant": Template(
        "a feature never matters",
        "# {feature} never changes the {what}{within}.\n"
        "input x1;\ninput other;\nvar x2 := x1[{feature} := other.{feature}];\n"
        "requires x1 != x2;\n" + _BLOCK + "ensures {same};\n",
    ),
    "robust": Template(
        "a small change of a feature does not change the decision",
        "# Changing {feature} by up to {amount} does not change the {what}{within}.\n"
        "input x1;\nvar x2 := x1[{feature} := x1.{feature} + {noise}];\n" + _BLOCK + "ensures {same};\n",
    ),
    "fair": Template(
        "two people who differ only in a protected feature are treated alike",
        "# People who differ only in {feature} get the same {what}{near}.\n"
        "input x1;\ninput other;\nvar v1 := x1.{feature};\nvar v2 := other.{feature};\n"
        "var x2 := x1[{feature} := v2];\nrequires v1 != v2;\n" + _BLOCK + "ensures {same};\n",
    ),
}

#: Those that a feature does not matter: a record is decided alike with each of its values.
OF_EVERY_VALUE = ("fair", "invariant")


def new_law(
    template: str,
    *,
    feature: str,
    amount: float = 10,
    domain: str | None = None,
    tolerance: float = 0,
    whole: bool | None = None,
    any_name: bool = False,
    others: Sequence[str] = (),
    what: str = "decision",
) -> str:
    """The text of a law made from a template. Raises InputError.

    Changes are integers if `amount` is, unless `whole` says otherwise. With a `tolerance`, predictions are
    numbers and may differ by that much. With `any_name`, a feature may have any name. With `others`, laws
    that a feature does not matter set it to each of these expressions, in the same record; otherwise to the
    value of another record, as a template knows no values.
    """
    if template not in TEMPLATES:
        raise unknown_name("template", template, list(TEMPLATES))
    if not feature.isidentifier() and not any_name:
        raise InputError(f"{feature!r} is not the name of a feature; names are letters, digits and _.")
    if not 0 < amount < _MOST:
        raise InputError(f"The largest change must be above 0 and below {_MOST:,}, not {amount:g}.")
    if not 0 <= tolerance < _MOST:
        raise InputError(f"The tolerance must be at least 0 and below {_MOST:,}, not {tolerance:g}.")
    most = number_text(amount)
    more = (
        f"randInt(1, {most})"
        if float(amount).is_integer() and whole is not False
        else f"randReal(0, {most})"
    )
    noise = f"randInt(-{most}, {most})" if whole else f"randReal(-{most}, {most})"
    parts = _compared(tolerance, what)
    filled = TEMPLATES[template].text.format(feature=_PLACE, amount=most, more=more, noise=noise, **parts)
    if others and template in OF_EVERY_VALUE:
        filled = filled.partition("\n")[0] + "\n" + _each_of(others, parts["same"])
    if domain is not None:
        comment, _, rest = filled.partition("\n")
        filled = f"{comment}\nimport {domain};\n{rest}"
    return _about(filled, feature)


def _each_of(others: Sequence[str], same: str) -> str:
    """The law that one record, with a feature set to each of some expressions, is decided alike."""
    numbers = range(2, len(others) + 2)
    lines = ["input x1;"]
    lines += [f"var x{k} := x1[{_PLACE} := {each}];" for k, each in zip(numbers, others, strict=True)]
    lines += [f"output d{k};" for k in (1, *numbers)]
    lines += ["{", *(f"    d{k} = predict(x{k})" for k in (1, *numbers)), "}"]
    return "\n".join([*lines, f"ensures {' && '.join(same.replace('d2', f'd{k}') for k in numbers)};\n"])


def _compared(tolerance: float, what: str) -> dict[str, str]:
    """The parts of a template that depend on a tolerance."""
    if not tolerance:
        return {"what": what, "within": "", "near": "", "ordered": "d1 <= d2", "same": "d1 == d2"}
    most = number_text(tolerance)
    return {
        "what": "prediction",
        "within": f" by more than {most}",
        "near": f", within {most}",
        "ordered": f"d1 <= d2 + {most}",
        "same": f"abs(d1 - d2) <= {most}",
    }


def number_text(value: float) -> str:
    """A number as laws write it."""
    if float(value).is_integer():
        return str(int(value))
    shown = repr(float(value))
    return shown if "e" not in shown else f"{value:.20f}".rstrip("0")


def _about(text: str, feature: str) -> str:
    """The law about a feature; if laws cannot write its name directly, it is given as a string."""
    comment, _, rest = text.partition("\n")
    comment = comment.replace(_PLACE, printable(" ".join(feature.split())))
    if feature.isidentifier():
        try:
            return format_law(parse_law(f"{comment}\n{rest.replace(_PLACE, feature)}"))
        except LawError:
            pass
    name = format_literal(feature)
    rest = re.sub(rf"x1\[{_PLACE} := (.*)\];", lambda match: f"setFeat(x1, {_PLACE}, {match[1]});", rest)
    rest = re.sub(rf"(\w+)\.{_PLACE}", lambda match: f"getFeat({match[1]}, {_PLACE})", rest)
    return format_law(parse_law(f"{comment}\n{rest.replace(_PLACE, name)}"))


# A domain and three first laws for the data in a CSV file, as a starting point to edit


#: Features that decisions should rarely depend on: the fairness law prefers one of these.
_PROTECTED = re.compile(r"sex|gender|race|ethnic|religion|nation|origin|foreign|skin|disab", re.IGNORECASE)
#: A target with more distinct numbers than this is a number to predict, not a class.
_MOST_CLASSES = 20
#: Changes, and tolerances of regressors, as shares of a range.
_MORE, _LITTLE, _TOLERANCE = 0.1, 0.01, 0.05
#: A step of at most this share of a range counts as small.
_FINE = 0.05


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
    columns = [(name, cells) for name, cells in table.columns.items() if name != target]
    features = [as_choice(column_feature(name, cells)) for name, cells in columns]
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
        _docstring(f"{table.path.name}: {table.size:,} records; a model predicts `{target.name}`."),
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
    lines.append(f"    return [CLASSES.index(each) if each in CLASSES else -1 for each in {answers}]")
    return "\n".join([*lines, ""])


def _string(words: str) -> str:
    """A string as a Python literal, in which everything that cannot be seen is escaped."""
    return json.dumps(words, ensure_ascii=False) if words.isprintable() else repr(words)


def _docstring(words: str) -> str:
    is_plain = words.isprintable() and not set(words) & {'"', "\\"}
    return f'"""{words}"""' if is_plain else _string(words)


def _constructor(feature: Feature) -> str:
    return "flag" if _is_flag(feature) else feature.kind.value


def _is_flag(feature: Feature) -> bool:
    return feature.kind is Kind.INTEGER and (feature.low, feature.high) == (0, 1)


def _declared(feature: Feature) -> str:
    """The declaration of a feature in a domain's file."""
    parts: list[str] = [_string(each) for each in (feature.name, *feature.values)]
    if not _is_flag(feature) and not feature.values and feature.low is not None:
        parts += [repr(feature.low), repr(feature.high)]
    if feature.dtype is not None:
        parts.append(f"dtype={_string(feature.dtype)}")
    if feature.may_miss or feature.has_none:
        parts.append("missing=True" if feature.may_miss else "none=True")
    return f"{_constructor(feature)}({', '.join(parts)})"


def _laws(
    table: CsvTable, features: Sequence[Feature], target: PredictedColumn, domain: str
) -> dict[str, str]:
    """Three laws: fairness (or a feature that should not matter), monotonicity, robustness."""
    ranked = sorted(_numbers(features, table), key=lambda each: -_agreement(table, each, target))
    groups = [each for each in features if 2 <= _values(each) <= _MOST_CLASSES]
    groups.sort(key=lambda each: (not _PROTECTED.search(each.name), not each.values))
    chosen: list[tuple[str, Feature]] = []
    if groups:
        chosen.append(("fair", groups[0]))
    elif ranked:
        chosen.append(("invariant", ranked[-1]))
    if ranked:
        fine = [each for each in (*ranked[1:], ranked[0]) if _step("robust", each) <= _FINE * _span(each)]
        chosen += [("monotone", ranked[0]), ("robust", [*fine, ranked[1 % len(ranked)]][0])]
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
        if each.kind in (Kind.INTEGER, Kind.REAL)
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


def _span(feature: Feature) -> float:
    return 0.0 if feature.low is None or feature.high is None else feature.high - feature.low


def _step(template: str, feature: Feature) -> float:
    """By how much a law changes a feature at most."""
    amount = _round((_LITTLE if template == "robust" else _MORE) * _span(feature))
    return float(max(1, round(amount))) if feature.kind is Kind.INTEGER else amount


def _law(template: str, feature: Feature, target: PredictedColumn, domain: str) -> str:
    # What only rises needs no tolerance: with one, no step that is smaller would matter.
    is_number = target.tolerance > 0
    return new_law(
        template,
        feature=feature.name,
        amount=_step(template, feature),
        domain=domain,
        tolerance=0.0 if template == "monotone" else target.tolerance,
        what="prediction" if is_number else "decision",
        whole=feature.kind is Kind.INTEGER,
        any_name=True,
        others=every_value(feature),
    )


def every_value(feature: Feature) -> tuple[str, ...]:
    """All values of a feature, as laws write them; one drawn from its range if it is a number."""
    if _is_flag(feature) and not feature.may_miss:
        return (f"1 - x1.{_PLACE}",)
    if _is_flag(feature):
        return ("0", "1")
    if feature.values:
        return tuple(format_literal(each) for each in feature.values)
    if feature.low is None or feature.high is None:
        return ()
    draw = "randInt" if feature.kind is Kind.INTEGER else "randReal"
    return (f"{draw}({number_text(feature.low)}, {number_text(feature.high)})",)
