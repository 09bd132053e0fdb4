"""What all files of proofs of laws begin with: which law, of which domain and model, in which set."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.formats import expect_format
from dokimos.laws.domain.definition import Domain
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.model import Model
from dokimos.laws.proving.covers import Cover, Cut
from dokimos.laws.proving.results import VerifySettings
from dokimos.laws.proving.zones import Number, exact

#: What a double is, written as a fraction, has at most some 310 digits before and 1,100 digits behind.
_FRACTION = re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,1200})?")

#: A cover as a file has it: a cut, its variable and where, or null for a leaf, in preorder.
WrittenCover = list[tuple[int, str] | None]


class HeadForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that every such file has; each kind adds `format`, `version` and its own."""

    dokimos: str = __version__
    law: str
    text: str
    text_sha256: str
    domain: str | None
    model: str
    model_sha256: str | None
    constrained: bool


Form = TypeVar("Form", bound=HeadForm)


@dataclass(frozen=True)
class SavedHead:
    """What a file says it is about: believed of nothing but what is checked against it."""

    law: Law
    domain: str | None
    model: str
    model_sha256: str | None
    constrained: bool


def head_fields(law: Law, domain: Domain, model: Model, settings: VerifySettings) -> dict[str, Any]:
    """The head of a file to be written, by field of `HeadForm`."""
    return {
        "law": law.name,
        "text": law.text,
        "text_sha256": hashlib.sha256(law.text.encode()).hexdigest(),
        "domain": _place_of(domain.place),
        "model": _place_of(model.name) or "",
        "model_sha256": model.sha256,
        "constrained": settings.constrained,
    }


def read_form(path: Path, form: type[Form], format_: str, version: int, what: str) -> Form:
    """A file as a form that begins with a head. Raises UnreadableFile."""
    document = strict_json.parse(read_whole(path), file=path)
    expect_format(document, format_, version, file=path, otherwise=f"is not {what}")
    found = strict_json.convert(document, form, file=path, what=what)
    if hashlib.sha256(found.text.encode()).hexdigest() != found.text_sha256:
        raise UnreadableFile(path, "is damaged: the text of the law was changed.")
    return found


def saved_fields(form: HeadForm) -> dict[str, Any]:
    """The head of a file that was read, by field of `SavedHead`. Raises LawError."""
    return {
        "law": parse_law(form.text, name=form.law),
        "domain": form.domain,
        "model": form.model,
        "model_sha256": form.model_sha256,
        "constrained": form.constrained,
    }


def format_of(path: Path) -> str:
    """What a file says it is; empty where it says nothing. Raises UnreadableFile."""
    document = strict_json.parse(read_whole(path), file=path)
    found = document.get("format") if isinstance(document, dict) else None
    return found if isinstance(found, str) else ""


def written_cover(cover: Cover) -> WrittenCover:
    """A cover as a file has it."""
    return [None if step is None else (step.variable, str(step.at)) for step in cover.steps]


def cover_from(steps: Sequence[tuple[int, str] | None], path: Path) -> Cover:
    """What `written_cover` wrote. Raises UnreadableFile."""
    return Cover(
        tuple(None if each is None else Cut(each[0], number_from(each[1], path)) for each in steps)
    )


def number_from(text: str, path: Path) -> Number:
    """A fraction as `str` writes it: no exponents, whose digits might be without end."""
    if not _FRACTION.fullmatch(text):
        raise UnreadableFile(path, f"is damaged: {text[:40]!r} is not a number.")
    return exact(Fraction(text))


def _place_of(named: str | None) -> str | None:
    """What names a domain or a model, from any folder: the whole path where it is a file."""
    return str(Path(named).absolute()) if named is not None and Path(named).is_file() else named
