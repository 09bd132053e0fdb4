"""The JSON files of a suite, as types: suite.json and the truth files.

Both state the version of their format. A file of another version is refused, with the command that makes
the suite again.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from dokimos.core.errors import UnreadableFile
from dokimos.core.strict_json import convert, parse
from dokimos.properties.decimals import parse_decimal
from dokimos.suites.instance import Label, Semantics

#: The version changes whenever the contents of the files may change, including certificates' data.
FORMAT = 2
T = TypeVar("T")


class SuiteForm(Struct, frozen=True, forbid_unknown_fields=True):
    """suite.json: who made the suite, from which recipe (a shipped one has a name), and the families."""

    format: int
    dokimos: str
    recipe: dict[str, Any]
    families: dict[str, str]
    suite: str = ""


class ClaimForm(Struct, frozen=True, forbid_unknown_fields=True):
    """What is claimed under one semantics."""

    proven: bool
    margin: Fraction | UnsetType = UNSET
    ulps: Annotated[int, Meta(gt=0, lt=2**16)] | None = None


class CertificateForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The kind of a proof, and its data, whose format depends on the kind."""

    kind: str
    data: dict[str, Any]


class HashesForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The two files that a truth is about."""

    network: str
    property: str


class TruthForm(Struct, frozen=True, forbid_unknown_fields=True):
    """A truth file."""

    format: int
    label: Label
    semantics: dict[Semantics, ClaimForm]
    certificate: CertificateForm
    sha256: HashesForm
    witness: tuple[Fraction, ...] | None = None
    origin: dict[str, Any] = {}


def read_form(text: str, form: type[T], *, file: str | Path) -> T:
    """The content of a file of a suite. Raises UnreadableFile, naming the file and what is wrong."""
    document = parse(text, file=file)
    if isinstance(document, dict):
        found, name = document.get("format"), document.get("suite")
        if type(found) is not int or found != FORMAT:
            named = isinstance(name, str) and re.fullmatch(r"[\w-]{1,40}", name)
            raise UnreadableFile(
                file,
                f"it does not have format {FORMAT}, which this version reads; make the suite again with "
                f"`dokimos generate --suite {name if named else 'NAME'} --out FOLDER`",
            )
    what = f"a {'suite.json' if form is SuiteForm else 'truth file'} of format {FORMAT}"
    return convert(document, form, file=file, what=what, hooks={Fraction: _decimal})


def _decimal(value: Any) -> Fraction:
    if not isinstance(value, str):
        raise ValueError("expected a decimal, written as a string")
    return parse_decimal(value)
