"""Laws about models as questions, and what decides whether a zone of these has a violation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, Grid, Zone
from dokimos.core.errors import DokimosError, InvalidProof
from dokimos.core.inputs import uncompressed
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.domain.functions import Above
from dokimos.laws.engine.law_plan import LawPlan, make_plan
from dokimos.laws.engine.pools import data_of
from dokimos.laws.engine.record_rules import undeclared_gaps
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.layers import EXPONENTIAL, LOGISTIC, thresholded, without_link
from dokimos.laws.models.same_decisions import (
    are_close,
    expect_faithful_trees,
    expect_same_decisions,
    random_cases,
)
from dokimos.laws.models.tested_model import Model, decided_labels, largest
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Unread
from dokimos.laws.proving.network_closing import NetworkCloser, NetworkReach
from dokimos.laws.proving.question import ExactCase, LawQuestion, LinearCover, check_covers
from dokimos.laws.proving.row_zones import CaseReplay
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

    plan: LawPlan
    model: Model
    question: LawQuestion
    closer: TreeQuestion | NetworkCloser
    semantics: str
    stricter: NetworkCloser | None = None
    left_out: str = ""

    @cached_property
    def replay(self) -> CaseReplay:
        """What runs cases of the question again."""
        return CaseReplay(self.plan, self.model, self.question, self.closer.decided)

    def confirms(self, case: ExactCase) -> bool:
        """Whether a case violates the law when the model is run; for a network, also exactly."""
        return self.replay.violates(case) and self.closer.is_exactly_violated(case)

    def check(self, cover: Cover | LinearCover) -> str:
        """Check that a cover proves the law, and say in which arithmetic. Raises InvalidProof."""
        if isinstance(self.closer, TreeQuestion):
            self.closer.check(cover)
            return self.semantics
        if isinstance(cover, LinearCover):
            return BOTH if CopiesOfNetwork(self.closer).check(cover) else REAL
        claim = (self.question.zone, cover)
        if not self.proven([claim])[0]:
            raise InvalidProof("a zone of the cover is not shown to have no violation")
        return BOTH if self.strictly_proven([claim])[0] else self.semantics

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
        classes = decided_labels(made_of.classes, plan.domain) or range(len(made_of.base))
        question = translate(plan, None if is_number else classes, reals=Grid.DOUBLE)
        data = data_of(plan.domain)
        asked = TreeQuestion(question, made_of)
        expect_faithful_trees(model, _layout(plan), data)
        left_out = _left_out(_layout(plan), data)
        in_words = "float32" if made_of.float32_sums else "doubles"
        semantics = f"as the trees compute, in {in_words}"
        return StatedLaw(plan, model, question, asked, semantics, left_out=left_out)
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
    labels = tuple(decided_labels(given, plan.domain) if len(given) == outputs else range(outputs))
    question = translate(plan, None if outputs == 1 else labels)
    if link and outputs == 1:
        question = replace(question, forbidden=tuple(of_scores(e, link) for e in question.forbidden))
    is_whole = content == given_content and model.class_scores is None
    reach = NetworkReach(content, layout, name=model.name, labels=labels, is_whole=is_whole)
    _expect_faithful_layers(reach, model, layout, data, link)
    exact = NetworkCloser(question, reach, np.zeros(reach.classes))
    rounding = reach.rounding
    stricter = None if rounding is None else NetworkCloser(question, reach, rounding)
    return StatedLaw(plan, model, question, exact, REAL, stricter, _left_out(layout, data))


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


def _layout(plan: LawPlan) -> Layout:
    assert plan.domain.layout is not None  # the law was translated
    return plan.domain.layout
