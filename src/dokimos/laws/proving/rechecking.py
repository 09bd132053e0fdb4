"""Rechecks proofs of laws from the law's text, the domain and the model, without whatever found them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InvalidProof
from dokimos.core.gzipped import uncompressed
from dokimos.laws.domain.definition import Domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.engine.plan import LawPlan, make_plan
from dokimos.laws.engine.pools import data_of
from dokimos.laws.engine.record_rules import undeclared_gaps
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.model import Model
from dokimos.laws.models.same_decisions import (
    are_close,
    expect_faithful_trees,
    expect_same_decisions,
    random_cases,
)
from dokimos.laws.models.trees import Ensemble
from dokimos.laws.proving.covers import Cover, check_cover
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.network_closing import NetworkCloser
from dokimos.laws.proving.network_reach import NetworkReach
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.translation import expect_translatable, translate
from dokimos.laws.proving.tree_reach import TreeCloser, TreeReach
from dokimos.laws.proving.zones import Grid
from dokimos.networks.reading.onnx_file import read_onnx

#: The arithmetic in which a proof about a network holds.
REAL, BOTH = "over the reals", "over the reals and in float32"


@dataclass(frozen=True)
class StatedLaw:
    """A law about a model as a question, and what closes its zones.

    Zones that `closer` closes have no violation in the arithmetic that `semantics` names; those that
    `stricter` closes, if there is one, have none in further arithmetics. `left_out` says which rows of the
    data are not in the set, because a value is missing that the domain does not declare may be.
    """

    question: LawQuestion
    closer: TreeCloser | NetworkCloser
    semantics: str
    stricter: NetworkCloser | None = None
    left_out: str = ""

    def check(self, cover: Cover) -> str:
        """Check that a cover proves the law, and say in which arithmetic. Raises InvalidProof."""
        check_cover(self.question, cover, self.closer)
        if self.stricter is not None:
            try:
                check_cover(self.question, cover, self.stricter)
            except InvalidProof:
                return self.semantics
            return BOTH
        return self.semantics


def state_law(plan: LawPlan, model: Model) -> StatedLaw:
    """The question about a model whose structure is known. Raises Refusal for any other model.

    What was read of the model is compared with the model itself. Raises InputError where they differ.
    """
    expect_translatable(plan)
    made_of = model.made_of
    if isinstance(made_of, Ensemble):
        classes: Sequence[Any] = made_of.classes or range(len(made_of.base))
        question = translate(plan, classes, reals=Grid.DOUBLE)
        data = data_of(plan.domain)
        closer = TreeCloser(question, TreeReach(made_of, _layout(plan)))
        expect_faithful_trees(model, _layout(plan), data)
        left_out = _left_out(_layout(plan), data)
        return StatedLaw(question, closer, "as the trees compute, in doubles", left_out=left_out)
    if isinstance(made_of, bytes):
        question = translate(plan, range(_outputs(made_of, model)))
        data = data_of(plan.domain)
        reach = NetworkReach(made_of, _layout(plan), name=model.name)
        _expect_faithful_layers(reach, model, _layout(plan), data)
        exact = NetworkCloser(question, reach, np.zeros(reach.classes))
        rounding = reach.rounding
        stricter = None if rounding is None else NetworkCloser(question, reach, rounding)
        return StatedLaw(question, exact, REAL, stricter, _left_out(_layout(plan), data))
    raise Refusal(f"{model.name} is neither an ensemble of trees nor a network whose layers can be read")


def _left_out(layout: Layout, data: NDArray[Any] | None) -> str:
    if data is None:
        return ""
    gaps = [(slot.feature.name, int(rows.sum())) for slot, rows in undeclared_gaps(layout, data)]
    said = [f"{count:,} of {len(data):,} rows of the data have no {name}" for name, count in gaps]
    them = "; declare it with missing=True to have them in the set" if said else ""
    return ", ".join(said) + them


def _expect_faithful_layers(
    reach: NetworkReach, model: Model, layout: Layout, data: NDArray[Any] | None
) -> None:
    """Compare the layers that were read with a run of the network. Raises InputError."""
    if data is not None:
        data = data[np.isfinite(data).all(axis=1)]  # where a value is missing, there is no score
    columns = {column: np.zeros(0) for column in range(layout.width)}
    expect_same_decisions(
        model.predict,
        lambda rows: reach.scores(rows).argmax(axis=1),
        data,
        random_cases(data, layout, layout.width, columns, inside=True),
        what=f"{model.name}: read as layers, it",
        layout=layout,
        is_rounding=lambda row: are_close(np.asarray(model.scores(row)).reshape(1, -1), reach.scores(row)),
    )


def _outputs(content: bytes, model: Model) -> int:
    try:
        return read_onnx(uncompressed(content, file=model.name), name=model.name).output_size
    except DokimosError as problem:
        raise Refusal(f"{model.name} cannot be read layer by layer: {str(problem).rstrip('.')}") from None


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


def recheck(plan: LawPlan, model: Model, cover: Cover) -> ProvenClaim:
    """What a cover proves about a law and a model. Raises InvalidProof, or Refusal."""
    stated = state_law(plan, model)
    return ProvenClaim(stated.question.over, stated.check(cover))


def _layout(plan: LawPlan) -> Layout:
    assert plan.domain.layout is not None  # the law was translated
    return plan.domain.layout
