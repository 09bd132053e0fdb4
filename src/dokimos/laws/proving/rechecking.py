"""Rechecks proofs of laws from the law's text, the domain and the model, without whatever found them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos import __version__
from dokimos.checker.lemmas.zones import Cover, Cut, Grid, Number, Zone, exact
from dokimos.core import strict_json
from dokimos.core.documents import expect_format
from dokimos.core.errors import DokimosError, InvalidProof, UnreadableFile
from dokimos.core.files import read_whole, write_whole
from dokimos.core.inputs import uncompressed
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.domain.functions import Above
from dokimos.laws.engine.law_plan import LawPlan, make_plan
from dokimos.laws.engine.pools import data_of
from dokimos.laws.engine.record_rules import undeclared_gaps
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.layers import EXPONENTIAL, LOGISTIC, thresholded, without_link
from dokimos.laws.models.same_decisions import (
    are_close,
    expect_faithful_trees,
    expect_same_decisions,
    random_cases,
)
from dokimos.laws.models.tested_model import Model, largest
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Unread
from dokimos.laws.proving.network_closing import NetworkCloser, NetworkReach
from dokimos.laws.proving.question import LawQuestion, LinearCover, check_covers
from dokimos.laws.proving.results import LawDecision, VerifySettings
from dokimos.laws.proving.translation import expect_translatable, translate
from dokimos.laws.proving.tree_questions import TreeQuestion, of_scores
from dokimos.networks.reading.onnx_file import read_onnx

#: The arithmetic in which a proof about a network holds.
REAL, BOTH = "over the reals", "over the reals and in float32"
_LINKS: Mapping[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "": lambda scores: scores,
    LOGISTIC: lambda scores: 1 / (1 + np.exp(-scores)),
    EXPONENTIAL: np.exp,
}


@dataclass(frozen=True)
class StatedLaw:
    """A law about a model as a question, and what closes its zones.

    Zones that `closer` closes have no violation in the arithmetic that `semantics` names; those that
    `stricter` closes, if there is one, have none in further arithmetics. `left_out` says which rows of the
    data are not in the set, because a value is missing that the domain does not declare may be.
    """

    question: LawQuestion
    closer: TreeQuestion | NetworkCloser
    semantics: str
    stricter: NetworkCloser | None = None
    left_out: str = ""

    @property
    def scores(self) -> Callable[[NDArray[Any]], NDArray[Any]]:
        """What gives the scores of records, in floats."""
        return self.closer.ensemble if isinstance(self.closer, TreeQuestion) else self.closer.reach.scores

    def check(self, cover: Cover | LinearCover) -> str:
        """Check that a cover proves the law, and say in which arithmetic. Raises InvalidProof."""
        if isinstance(self.closer, TreeQuestion):
            if isinstance(cover, LinearCover):
                raise InvalidProof("a proof about copies of a network proves nothing of trees")
            self.closer.check(cover)
            return self.semantics
        if isinstance(cover, LinearCover):
            return BOTH if CopiesOfNetwork(self.closer).check(cover) else REAL
        claim = (self.question.zone, cover)
        if not self.proven([claim])[0]:
            raise InvalidProof("a zone of the cover is not shown to have no violation")
        return BOTH if self.stricter is not None and self.strictly_proven([claim])[0] else self.semantics

    def proven(self, claims: Sequence[tuple[Zone, Cover]]) -> list[bool]:
        """Of which zones their covers show that no case violates the law. Raises InvalidProof."""
        if isinstance(self.closer, TreeQuestion):
            return self.closer.proven(claims)
        return check_covers(claims, self.closer)

    def strictly_proven(self, claims: Sequence[tuple[Zone, Cover]]) -> list[bool]:
        """Of which zones they show it in further arithmetics too. Raises InvalidProof."""
        return [False] * len(claims) if self.stricter is None else check_covers(claims, self.stricter)


def state_law(plan: LawPlan, model: Model) -> StatedLaw:
    """The question about a model whose structure is known. Raises Refusal for any other model.

    What was read of the model is compared with the model itself. Raises InputError where they differ.
    """
    expect_translatable(plan)
    made_of = model.made_of
    if isinstance(made_of, Ensemble):
        if plan.domain.decide is not None:
            raise Unread("what `decide` makes of the sum of trees is tested, not proven")
        is_number = len(made_of.base) == 1
        classes: Sequence[Any] = made_of.classes or range(len(made_of.base))
        question = translate(plan, None if is_number else classes, reals=Grid.DOUBLE)
        data = data_of(plan.domain)
        asked = TreeQuestion(question, made_of)
        expect_faithful_trees(model, _layout(plan), data)
        left_out = _left_out(_layout(plan), data)
        in_words = "float32" if made_of.float32_sums else "doubles"
        return StatedLaw(question, asked, f"as the trees compute, in {in_words}", left_out=left_out)
    if isinstance(made_of, bytes):
        return _state_network(plan, model, made_of)
    why = f": {model.unread}" if model.unread else ""
    raise Unread(
        f"{model.name} is neither an ensemble of trees nor a network whose layers can be read{why}"
    )


def _state_network(plan: LawPlan, model: Model, content: bytes) -> StatedLaw:
    layout, data, decide = _layout(plan), data_of(plan.domain), plan.domain.decide
    given_content = uncompressed(content, file=model.name)
    content, link = without_link(given_content)
    outputs = _outputs(content, model)
    if isinstance(decide, Above):
        if outputs != 1 or (link and (link, decide.threshold) != (LOGISTIC, 0.5)):
            raise Unread("what is above a threshold is proven of one number, of a probability only at 0.5")
        content, link, outputs = thresholded(content, 0.0 if link else decide.threshold), "", 2
    given = () if model.class_scores is None else model.class_scores.labels
    labels = tuple(given) if len(given) == outputs else tuple(range(outputs))
    question = translate(plan, None if outputs == 1 else labels)
    if link and outputs == 1:
        question = replace(question, limits=tuple(of_scores(each, link) for each in question.limits))
    is_whole = content == given_content and model.class_scores is None
    reach = NetworkReach(content, layout, name=model.name, labels=labels, is_whole=is_whole)
    _expect_faithful_layers(reach, model, layout, data, link)
    exact = NetworkCloser(question, reach, np.zeros(reach.classes))
    rounding = reach.rounding
    stricter = None if rounding is None else NetworkCloser(question, reach, rounding)
    return StatedLaw(question, exact, REAL, stricter, _left_out(layout, data))


def _left_out(layout: Layout, data: NDArray[Any] | None) -> str:
    if data is None:
        return ""
    gaps = [(slot.feature.name, int(rows.sum())) for slot, rows in undeclared_gaps(layout, data)]
    said = [f"{count:,} of {len(data):,} rows of the data have no {name}" for name, count in gaps]
    them = "; declare it with missing=True to have them in the set" if said else ""
    return ", ".join(said) + them


def _expect_faithful_layers(
    reach: NetworkReach, model: Model, layout: Layout, data: NDArray[Any] | None, link: str
) -> None:
    """Compare the layers that were read with a run of the network. Raises InputError."""
    if data is not None:
        data = data[np.isfinite(data).all(axis=1)]  # where a value is missing, there is no score
    columns = {column: np.zeros(0) for column in range(layout.width)}

    def linked(rows: NDArray[Any]) -> NDArray[Any]:
        found = reach.scores(rows)
        return found if len(found[0]) > 1 else _LINKS[link](found)

    def decided(rows: NDArray[Any]) -> NDArray[Any]:
        if reach.classes > 1:
            return np.asarray(np.array(reach.labels, dtype=object)[largest(reach.scores(rows))])
        ours, theirs = linked(rows)[:, 0], np.asarray(model.predict(rows)).astype(np.float64)
        return np.where([are_close(*pair) for pair in zip(theirs, ours, strict=True)], theirs, ours)

    expect_same_decisions(
        model.predict,
        decided,
        data,
        random_cases(data, layout, layout.width, columns, inside=True),
        what=f"{model.name}: read as layers, it",
        layout=layout,
        is_rounding=lambda row: _are_alike(np.asarray(model.scores(row)), linked(row)),
    )


def _are_alike(theirs: NDArray[Any], ours: NDArray[Any]) -> bool:
    """Whether rounding explains the difference of scores; of decisions, that ours are not far apart."""
    if theirs.size == ours.size and theirs.dtype.kind == "f":
        return are_close(theirs.reshape(1, -1), ours)
    second, first = np.sort(ours.ravel())[-2:]
    return are_close(first, second)


def _outputs(content: bytes, model: Model) -> int:
    try:
        return read_onnx(uncompressed(content, file=model.name), name=model.name).output_size
    except DokimosError as problem:
        raise Unread(f"{model.name} cannot be read layer by layer: {str(problem).rstrip('.')}") from None


def planned(law: Law, domain: Domain | None, *, constrained: bool, allow_code: bool) -> LawPlan:
    """The plan of a law, with or without the CONSTRAINTS of its domain. Raises LawError or InputError."""
    if domain is not None and not constrained:
        domain = replace(domain, constraints=())
    return make_plan(law, domain, allow_code=allow_code)


@dataclass(frozen=True)
class ProvenClaim:
    """What a proof shows: the set of cases, and the arithmetic."""

    over: str
    semantics: str


def recheck(plan: LawPlan, model: Model, cover: Cover | LinearCover) -> ProvenClaim:
    """What a cover proves about a law and a model. Raises InvalidProof, or Refusal."""
    stated = state_law(plan, model)
    return ProvenClaim(stated.question.over, stated.check(cover))


def _layout(plan: LawPlan) -> Layout:
    assert plan.domain.layout is not None  # the law was translated
    return plan.domain.layout


# What all files of proofs of laws begin with: which law, of which domain and model, in which set


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


# Proofs of laws as JSON files: what was proven, for which model, and the cover that proves it


FORMAT = "dokimos-law-proof"
_VERSION = 1


class _ProofForm(HeadForm, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file holds."""

    format: str = FORMAT
    version: int = _VERSION
    over: str
    semantics: str
    cover: WrittenCover | None = None
    linear: dict[str, Any] | None = None


@dataclass(frozen=True)
class SavedProof(SavedHead):
    """The claim in a file and its proof: not trusted until it is checked."""

    over: str
    semantics: str
    cover: Cover | LinearCover


def save_proof(decision: LawDecision, path: Path) -> None:
    """Write the proof of a law."""
    assert decision.cover is not None  # it is proven
    form = _ProofForm(
        **head_fields(decision.law, decision.domain, decision.model, decision.settings),
        over=decision.over,
        semantics=decision.semantics,
        cover=written_cover(decision.cover) if isinstance(decision.cover, Cover) else None,
        linear=decision.cover.data if isinstance(decision.cover, LinearCover) else None,
    )
    write_whole(path, strict_json.write(form, indent=None))


def read_proof(path: Path) -> SavedProof:
    """What a file says. Raises UnreadableFile."""
    form = read_form(path, _ProofForm, FORMAT, _VERSION, "a proof of a law")
    if (form.cover is None) == (form.linear is None):
        raise UnreadableFile(path, "is damaged: it must have 'cover' or 'linear', and not both.")
    linear = None if form.linear is None else LinearCover(form.linear)
    return SavedProof(
        **saved_fields(form),
        over=form.over,
        semantics=form.semantics,
        cover=linear or cover_from(form.cover or [], path),
    )
