"""Proofs of laws as JSON files: what was proven, for which model, and the cover that proves it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from msgspec import Struct

from dokimos import __version__
from dokimos.core import strict_json
from dokimos.core.errors import UnreadableFile
from dokimos.core.files import read_whole, write_whole
from dokimos.core.formats import expect_format
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.proving.covers import Cover, Cut
from dokimos.laws.proving.results import LawDecision
from dokimos.laws.proving.zones import Number, exact

FORMAT = "dokimos-law-proof"
_VERSION = 1
#: A double, written as a decimal, has at most about 310 digits before the point and 1,100 after it.
_FRACTION = re.compile(r"-?[0-9]{1,400}(/[1-9][0-9]{0,1200})?")


class _ProofForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file. `cover` is a preorder list of cuts (variable and place), null for a leaf."""

    format: str = FORMAT
    version: int = _VERSION
    dokimos: str = __version__
    law: str
    text: str
    text_sha256: str
    domain: str | None
    model: str
    model_sha256: str | None
    constrained: bool
    over: str
    semantics: str
    cover: list[tuple[int, str] | None]


@dataclass(frozen=True)
class SavedProof:
    """The claim in a file and its proof: not trusted until it is checked."""

    law: Law
    domain: str | None
    model: str
    model_sha256: str | None
    constrained: bool
    over: str
    semantics: str
    cover: Cover


def save_proof(decision: LawDecision, path: Path) -> None:
    """Write the proof of a law."""
    assert decision.cover is not None  # it is proven
    form = _ProofForm(
        law=decision.law.name,
        text=decision.law.text,
        text_sha256=hashlib.sha256(decision.law.text.encode()).hexdigest(),
        domain=place_of(decision.domain.place),
        model=place_of(decision.model.name) or "",
        model_sha256=decision.model.sha256,
        constrained=decision.settings.constrained,
        over=decision.over,
        semantics=decision.semantics,
        cover=written_cover(decision.cover),
    )
    write_whole(path, strict_json.write(form, indent=None))


def written_cover(cover: Cover) -> list[tuple[int, str] | None]:
    """A cover as written to a file: a preorder list of cuts (variable and place) and nulls for leaves."""
    return [None if step is None else (step.variable, str(step.at)) for step in cover.steps]


def cover_from(steps: Sequence[tuple[int, str] | None], path: Path) -> Cover:
    """The inverse of `written_cover`. Raises UnreadableFile."""
    return Cover(
        tuple(None if each is None else Cut(each[0], number_from(each[1], path)) for each in steps)
    )


def place_of(named: str | None) -> str | None:
    """The name of a domain or a model that works from any folder: for a file, its absolute path."""
    return str(Path(named).absolute()) if named is not None and Path(named).is_file() else named


def read_proof(path: Path) -> SavedProof:
    """Read a file of a proof. Raises UnreadableFile."""
    content = read_whole(path)
    document = strict_json.parse(content, file=path)
    expect_format(document, FORMAT, _VERSION, file=path, otherwise="is not a proof of a law")
    form = strict_json.convert(document, _ProofForm, file=path, what="a proof of a law")
    if hashlib.sha256(form.text.encode()).hexdigest() != form.text_sha256:
        raise UnreadableFile(path, "is damaged: the text of the law was changed.")
    cover = cover_from(form.cover, path)
    return SavedProof(
        law=parse_law(form.text, name=form.law),
        domain=form.domain,
        model=form.model,
        model_sha256=form.model_sha256,
        constrained=form.constrained,
        over=form.over,
        semantics=form.semantics,
        cover=cover,
    )


def number_from(text: str, path: Path) -> Number:
    """A fraction as `str` writes it; exponents, which could need endless digits, are refused."""
    if not _FRACTION.fullmatch(text):
        raise UnreadableFile(path, f"is damaged: {text[:40]!r} is not a number.")
    return exact(Fraction(text))
