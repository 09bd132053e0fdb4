"""Linear attention in which one key of every row outweighs all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dokimos.checker.base import CertificateKind, LowerBound, Problem, Proven
from dokimos.checker.data import NoData, read_data
from dokimos.checker.lemmas.attention_graph import GraphReader, LinearAttentionGraph
from dokimos.checker.lemmas.attention_objective import (
    Balls,
    Centred,
    Objective,
    absolute,
    attention_bound,
    product,
    smallest,
)
from dokimos.checker.lemmas.rounding_slack import margins
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.interval import enclose
from dokimos.properties.model import Box
from dokimos.suites.instance import Label


@dataclass(frozen=True)
class RowWeights:
    """What is known about one row of the weights over the box.

    `key` dominates; all others together get at most `others`; weight j is between `lower_j` and `upper_j`.
    """

    key: int
    others: Any
    lower: Balls
    upper: Balls


class DominantKey(CertificateKind):
    """`unsat` for linear attention with row normalisation, with an affine head.

    Let w_ij = φ(q_i)·φ(k_j) >= 0 with φ the ReLU, a_ij = w_ij / Σ_l w_il, Z_i = Σ_j a_ij·V_j, on a box
    x = c + δ, |δ| <= r.

    Lemma. Let row i have a key k with w_ik >= ρ_i·Σ_{j≠k} w_ij and w_ik > 0 on the whole box. Then the row
    sum is positive and the other keys get at most o_i = 1/(1 + ρ_i) of the weight. Moreover
    l_j/(l_j + Σ_{m≠j} u_m) <= a_ij <= u_j/(u_j + Σ_{m≠j} l_m) if l <= w_i <= u, since a_ij increases in
    w_ij and decreases in the others.

    ρ_i is derived here, from enclosures of φ(q) and φ(k) over the box: o_i = b/(a + b) where w_ik >= a and
    Σ_{j≠k} w_ij <= b, which is 1/(1 + ρ_i) for ρ_i = a/b.

    Theorem. Let t_ij = G_i·(V_j − V_k(i)), which lies within (r_j + r_k)·|W_V·G_i| of its value at c. For
    any constants b_ij with Σ_j b_ij = 1,
      Σ_i G_i·Z_i = Σ_ij b_ij·G_i·V_j + Σ_i Σ_{j≠k(i)} (a_ij − b_ij)·t_ij.
    The first sum is affine with an exact minimum. (i) With b_ik = 1 the second is at least
    Σ_i o_i·min(0, min_j t_ij): rows stay close to their dominant values. (ii) With b the weights at c, each
    term of the second is at least the smallest product of a_ij − b_ij and t_ij over their ranges. The
    larger of the two bounds counts. Hinges beside the attention add their own minima.

    In float32 the outputs are within the rounding bound of the reals; the margin is what that leaves.
    The data is empty: the checker derives everything from the files.
    """

    name: ClassVar[str] = "linear-attention"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint by the theorem."""
        read_data(data, NoData)
        bound = linear_bound(problem.network)
        return margins(problem, bound)


def linear_bound(network: Network) -> LowerBound:
    """The lower bound of the theorem, as a function of constraint and box."""
    attention = GraphReader(network).linear_attention()
    return attention_bound(
        network,
        attention.head,
        lambda _, box: row_weights(network, attention, box),
        partial(_lower, attention),
    )


def row_weights(network: Network, attention: LinearAttentionGraph, box: Box) -> list[RowWeights]:
    """The lemma for every row; refuses a row whose sum is not provably positive."""
    tensors = enclose(network, box.lower, box.upper)
    queries, keys = tensors[attention.queries], tensors[attention.keys]
    # Products of nonnegative factors: the ends are products of ends.
    least = product(ball.lift(queries.lower[0]), ball.lift(keys.lower[0]).T)
    most = product(ball.lift(queries.upper[0]), ball.lift(keys.upper[0]).T)
    result = []
    for i in range(len(least)):
        key = max(range(len(least)), key=lambda j: float(least[i, j].mid()))
        if not least[i, key] > 0:
            raise InvalidProof(f"the sum of row {i} of the weights is not provably positive on the box")
        all_least, all_most = _all_but_one(least[i]), _all_but_one(most[i])
        result.append(
            RowWeights(
                key=key,
                others=all_most[key] / (least[i, key] + all_most[key]),
                lower=least[i] / (least[i] + all_most),
                upper=most[i] / (most[i] + all_least),
            )
        )
    return result


def _all_but_one(values: Balls) -> Balls:
    """Σ_{m≠j} values_m for every j."""
    sums = [sum((v for m, v in enumerate(values) if m != j), arb(0)) for j in range(len(values))]
    return np.array(sums, dtype=object)


def _lower(attention: LinearAttentionGraph, at: Centred, rows: list[RowWeights], goal: Objective) -> Any:
    head = attention.head
    seen = product(goal.mixed, at.rows(head.values.name).T)  # i, j: G_i·V_j
    slopes = product(goal.mixed, ball.lift(head.values.weight).T)  # row i: W_V·G_i
    reach = product(absolute(slopes), at.radii.T)  # i, j: r_j·|W_V·G_i|
    at_centre = at.rows(head.weights)
    only_dominant = np.full(at_centre.shape, arb(0), dtype=object)
    close, drifting = arb(0), arb(0)
    for i, row in enumerate(rows):
        only_dominant[i, row.key] = arb(1)
        rest = [j for j in range(len(seen)) if j != row.key]
        if not rest:
            continue
        middle, spread = seen[i, rest] - seen[i, row.key], reach[i, rest] + reach[i, row.key]
        close = close + row.others * smallest(middle - spread).min(arb(0))
        changes = row.lower[rest] - at_centre[i, rest], row.upper[rest] - at_centre[i, rest]
        products = [change * t for change in changes for t in (middle - spread, middle + spread)]
        drifting = drifting + sum(
            smallest(np.array(four, dtype=object)) for four in zip(*products, strict=True)
        )

    def affine_minimum(weights: Balls) -> Any:
        linear = goal.inputs + product(weights.T, slopes)
        return (weights * seen).sum() - (at.radii * absolute(linear)).sum()

    bounds = affine_minimum(only_dominant) + close, affine_minimum(at_centre) + drifting
    fixed = goal.constant + goal.hinge_minimum + (goal.inputs * at.centre).sum()
    return fixed + bounds[0].max(bounds[1])
