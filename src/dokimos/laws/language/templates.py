"""Laws to start from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.laws.language.formatting import format_law
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.problems import LawError


@dataclass(frozen=True)
class Template:
    """The purpose of a template, and its text.

    The placeholders are {feature}, {amount}, the draws ({more} up to the amount, {noise} around 0), and
    what depends on a tolerance: {what} is compared, {within}, and how ({ordered}, {same}).
    """

    about: str
    text: str


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
    parts = _compared(tolerance)
    filled = TEMPLATES[template].text.format(
        feature="{feature}", amount=most, more=more, noise=noise, **parts
    )
    if others and template in ("fair", "invariant"):
        filled = filled.partition("\n")[0] + "\n" + _each_of(others, parts["same"])
    if domain is not None:
        comment, _, rest = filled.partition("\n")
        filled = f"{comment}\nimport {domain};\n{rest}"
    return _about(filled, feature)


def _each_of(others: Sequence[str], same: str) -> str:
    """The law that one record, with a feature set to each of some expressions, is decided alike."""
    numbers = range(2, len(others) + 2)
    lines = ["input x1;"]
    lines += [f"var x{k} := x1[{{feature}} := {each}];" for k, each in zip(numbers, others, strict=True)]
    lines += [f"output d{k};" for k in (1, *numbers)]
    lines += ["{", *(f"    d{k} = predict(x{k})" for k in (1, *numbers)), "}"]
    return "\n".join([*lines, f"ensures {' && '.join(same.replace('d2', f'd{k}') for k in numbers)};\n"])


def _compared(tolerance: float) -> dict[str, str]:
    """The parts of a template that depend on a tolerance."""
    if not tolerance:
        return {"what": "decision", "within": "", "near": "", "ordered": "d1 <= d2", "same": "d1 == d2"}
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
    comment = comment.replace("{feature}", " ".join(feature.split()))
    if feature.isidentifier():
        try:
            return format_law(parse_law(f"{comment}\n{rest.replace('{feature}', feature)}"))
        except LawError:
            pass
    name = json.dumps(feature, ensure_ascii=False)
    rest = re.sub(
        r"x1\[\{feature\} := (.*)\];", lambda match: f"setFeat(x1, {{feature}}, {match[1]});", rest
    )
    rest = re.sub(r"(\w+)\.\{feature\}", r"getFeat(\1, {feature})", rest)
    return format_law(parse_law(f"{comment}\n{rest.replace('{feature}', name)}"))
