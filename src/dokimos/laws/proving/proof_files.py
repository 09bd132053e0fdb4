"""Proofs of laws as JSON files: what was proven, for which model, and the cover that proves it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dokimos.core import strict_json
from dokimos.core.files import write_whole
from dokimos.laws.proving.covers import Cover
from dokimos.laws.proving.proof_heads import (
    HeadForm,
    SavedHead,
    WrittenCover,
    cover_from,
    head_fields,
    read_form,
    saved_fields,
    written_cover,
)
from dokimos.laws.proving.results import LawDecision

FORMAT = "dokimos-law-proof"
_VERSION = 1


class _ProofForm(HeadForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds."""

    format: str = FORMAT
    version: int = _VERSION
    over: str
    semantics: str
    cover: WrittenCover


@dataclass(frozen=True)
class SavedProof(SavedHead):
    """The claim in a file and its proof: not trusted until it is checked."""

    over: str
    semantics: str
    cover: Cover


def save_proof(decision: LawDecision, path: Path) -> None:
    """Write the proof of a law."""
    assert decision.cover is not None  # it is proven
    form = _ProofForm(
        **head_fields(decision.law, decision.domain, decision.model, decision.settings),
        over=decision.over,
        semantics=decision.semantics,
        cover=written_cover(decision.cover),
    )
    write_whole(path, strict_json.write(form, indent=None))


def read_proof(path: Path) -> SavedProof:
    """What a file says. Raises UnreadableFile."""
    form = read_form(path, _ProofForm, FORMAT, _VERSION, "a proof of a law")
    return SavedProof(
        **saved_fields(form),
        over=form.over,
        semantics=form.semantics,
        cover=cover_from(form.cover, path),
    )
