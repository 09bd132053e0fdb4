"""Proofs of laws checked again: from the law's text, the domain and the model, without what found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.engine.plan import LawPlan, make_plan
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.model import Model
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.covers import Cover, ZoneCloser, check_cover
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.translation import translate
from dokimos.laws.proving.tree_reach import TreeCloser, TreeReach
from dokimos.laws.proving.zones import Grid


@dataclass(frozen=True)
class StatedLaw:
    """A law of a model as a question, and what closes zones of it."""

    question: LawQuestion
    closer: ZoneCloser
    semantics: str


def state_law(plan: LawPlan, model: Model) -> StatedLaw:
    """What is asked of a model that can be looked into. Raises Refusal for any other."""
    made_of = model.made_of
    if isinstance(made_of, Ensemble):
        classes: Sequence[Any] = made_of.classes or range(len(made_of.base))
        question = translate(plan, classes, reals=Grid.DOUBLE)
        closer = TreeCloser(question, TreeReach(made_of, _layout(plan)))
        return StatedLaw(question, closer, "as the trees compute, in doubles")
    raise Refusal(f"{model.name} is neither trees nor a network whose inside can be looked into")


def planned(law: Law, domain: Domain | None, *, constrained: bool, allow_code: bool) -> LawPlan:
    """The plan of a law, with or without the CONSTRAINTS of its domain. Raises LawError or InputError."""
    if domain is not None and not constrained:
        domain = replace(domain, constraints=())
    return make_plan(law, domain, allow_code=allow_code)


def recheck(plan: LawPlan, model: Model, cover: Cover) -> None:
    """Check that a cover proves a law of a model. Raises InvalidProof, or Refusal."""
    stated = state_law(plan, model)
    check_cover(stated.question, cover, stated.closer)


def _layout(plan: LawPlan) -> Layout:
    assert plan.domain.layout is not None  # the law was translated
    return plan.domain.layout
