"""A domain small enough to go through all of its cases, and models of it drawn at random."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover
from dokimos.core.errors import InvalidProof
from dokimos.laws import choice, flag, integer
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.engine.law_plan import LawPlan, make_plan
from dokimos.laws.models.trees import DecisionTree, Ensemble
from dokimos.laws.proving.question import LawQuestion, ZoneCloser, check_covers
from tests.laws.toy import law

#: "More points never lower the class", and the same on a choice, a flag, and with another input.
MORE = "input x1; var v := randInt(x1.points + 1, 5); var x2 := x1[points := v];"
BY = "input x1; var x2 := x1[points := x1.points + randInt(1, 2)];"
LATER = "input x1; var v := randInt(x1.kind + 1, 2); var x2 := x1[kind := v];"
SET = "input x1; requires x1.paid == 0; var x2 := x1[paid := 1];"
OTHER = "input x1; input other; var x2 := x1[kind := other.kind]; requires x1 != x2;"
SAME = "ENSURES d1 == d2"
LAWS = (MORE, BY, LATER, SET, OTHER + SAME)


def domain(*constraints: str) -> Domain:
    features = [integer("points", 0, 5), flag("paid"), choice("kind", "a", "b", "c", none=True)]
    parts = {"FEATURES": features, "CLASSES": ["low", "medium", "high"], "CONSTRAINTS": list(constraints)}
    return read_domain(SimpleNamespace(**parts), name="small")


def plan(text: str, *constraints: str) -> LawPlan:
    return make_plan(law(text), domain(*constraints))


def records() -> NDArray[np.float64]:
    """Every record of the domain, one-hot."""
    rows = []
    for points, paid, kind in product(range(6), range(2), range(-1, 3)):
        rows.append([points, paid, *(float(kind == each) for each in range(3))])
    return np.array(rows, dtype=np.float64)


def forest(seed: int, *, trees: int = 1, depth: int = 3, classes: int = 3, **more: Any) -> Ensemble:
    rng = np.random.default_rng(seed)
    return Ensemble(
        [_tree(rng, depth, classes) for _ in range(trees)], inputs=5, base=np.zeros(classes), **more
    )


def _tree(rng: np.random.Generator, depth: int, classes: int) -> DecisionTree:
    inner = 2**depth - 1
    nodes = 2 ** (depth + 1) - 1
    own = np.arange(nodes)
    is_leaf = own >= inner
    feature = np.where(is_leaf, -1, rng.integers(0, 5, nodes))
    threshold = np.where(feature == 0, rng.integers(0, 5, nodes) + 0.5, 0.5)
    left, right = (np.where(is_leaf, own, 2 * own + k) for k in (1, 2))
    value = rng.integers(0, 4, (nodes, classes)).astype(np.float64)
    return DecisionTree(feature, threshold, left, right, value)


def check_cover(question: LawQuestion, cover: Cover, closer: ZoneCloser) -> None:
    """Check that no case of the question's zone violates the law. Raises InvalidProof."""
    (is_proven,) = check_covers([(question.zone, cover)], closer)
    if not is_proven:
        raise InvalidProof("a zone of the cover is not shown to have no violation")
