"""Laws to start from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dokimos.core.errors import InputError
from dokimos.core.suggestions import did_you_mean
from dokimos.laws.language.formatting import format_law
from dokimos.laws.language.parser import parse_law


@dataclass(frozen=True)
class Template:
    """What a template is for, and its text; {feature}, {amount} and {more} (what is drawn up to it) are."""

    about: str
    text: str


_BLOCK = """output d1;
output d2;
{{
    d1 = predict(x1)
    d2 = predict(x2)
}}
"""

#: Changes beyond this are refused: integers of a law are exact below it.
_MOST = 10**15

TEMPLATES: Mapping[str, Template] = {
    "monotone": Template(
        "more of a feature never lowers the decision",
        "# With more {feature} the decision never falls.\n"
        "input x1;\nvar v1 := x1.{feature};\nvar v2 := v1 + {more};\n"
        "var x2 := x1[{feature} := v2];\n" + _BLOCK + "ensures d1 <= d2;\n",
    ),
    "invariant": Template(
        "a feature never matters",
        "# {feature} never changes the decision.\n"
        "input x1;\ninput other;\nvar x2 := x1[{feature} := other.{feature}];\n"
        "requires x1 != x2;\n" + _BLOCK + "ensures d1 == d2;\n",
    ),
    "robust": Template(
        "a little more or less of a feature does not change the decision",
        "# {amount} more or less of {feature} does not change the decision.\n"
        "input x1;\nvar x2 := x1[{feature} := x1.{feature} + randReal(-{amount}, {amount})];\n"
        + _BLOCK
        + "ensures d1 == d2;\n",
    ),
    "fair": Template(
        "two who differ in a protected feature only are treated alike, whoever is better off",
        "# Whoever differs in {feature} only gets the same decision.\n"
        "input x1;\ninput other;\nvar v1 := x1.{feature};\nvar v2 := other.{feature};\n"
        "var x2 := x1[{feature} := v2];\nrequires v1 != v2;\n" + _BLOCK + "ensures d1 == d2;\n",
    ),
}


def new_law(template: str, *, feature: str, amount: float = 10, domain: str | None = None) -> str:
    """The text of a law made from a template; changes are integers where `amount` is. Raises InputError."""
    if template not in TEMPLATES:
        hint = did_you_mean(template, TEMPLATES)
        raise InputError(f"There is no template {template}{hint}; there are {', '.join(TEMPLATES)}.")
    if not feature.isidentifier():
        raise InputError(f"{feature!r} is no name of a feature; names are letters, digits and _.")
    if not 0 < amount < _MOST:
        raise InputError(f"The largest change must be above 0 and below {_MOST:,}, not {amount:g}.")
    whole = float(amount).is_integer()
    most = str(int(amount)) if whole else repr(float(amount))
    more = f"randInt(1, {most})" if whole else f"randReal(0, {most})"
    text = TEMPLATES[template].text.format(feature=feature, amount=most, more=more)
    if domain is not None:
        comment, _, rest = text.partition("\n")
        text = f"{comment}\nimport {domain};\n{rest}"
    return format_law(parse_law(text))
