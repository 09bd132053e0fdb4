"""One head of attention: softmax whose maxima stay where they are, linear with dominant keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dokimos.checker.base import CertificateKind, LowerBound, NoData, Problem, Proven, read_data
from dokimos.checker.lemmas.attention import (
    Balls,
    Centred,
    GraphReader,
    LinearAttentionGraph,
    Objective,
    SoftmaxAttentionGraph,
    absolute,
    attention_bound,
    largest,
    number,
    product,
    smallest,
)
from dokimos.checker.lemmas.constraints import margins
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.interval import enclose
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box

# Softmax attention whose largest scores stay where they are


class FixedOrdering(CertificateKind):
    """`unsat` for one head of softmax attention behind constant projections, with an affine head.

    Let x = c + δ with |δ| <= r, S_ij = f·q_i·k_j the scores (q, k affine in their token with weights W_Q,
    W_K; M = W_Q·W_Kᵀ), a_i = softmax(S_i), Z_i = Σ_j a_ij·V_j, and let everything without δ be taken at c.

    Lemma 1 (scores). S is bilinear, so |ΔS_ij| <= s_ij = |f|·(r_i·|W_Q·k_j| + r_j·|W_K·q_i| + r_i·|M|·r_j),
    and the gap S_iπ − S_ij falls by at most |f|·(r_i·|W_Q·(k_π − k_j)| + (r_π + r_j)·|W_K·q_i| +
    r_i·|M|·(r_π + r_j)). If the gaps of one π that remain are all positive, π is the row's maximiser on
    the whole box (a row for which that cannot be shown is refused).

    Lemma 2 (softmax). ‖Δa‖₁ <= ‖ΔS‖∞, and <= 4p(1 − p)·‖ΔS‖∞ if a_π >= p >= ½ wherever the gaps are those
    of Lemma 1. Proof. J·d = a∘(d − a·d), and ‖J·d‖₁ is convex in d, so largest over [−1, 1]^n at a sign
    vector; there it is 4P(1 − P) <= 1 with P the mass of the +1's, which is either >= p or <= 1 − p. The
    gaps on the segment from S(c) to S(x) lie between those at its ends, and a_π = 1/(1 + Σ e^−gap).

    Lemma 3 (curvature). ‖Δa − J·ΔS‖₁ <= K·‖ΔS‖∞² with K the constant of Lemma 2. Proof. Along the segment
    a'' = a∘((ΔS − m)² − v), m and v the mean and variance of ΔS under a, so ‖a''‖₁ <= 2v; v is convex in
    ΔS, and at a sign vector it is 4P(1 − P). Taylor's formula halves it.

    Theorem. With g = Σ_i G_i·Z_i, u_ij = G_i·V_j, R_i = max_j u_ij − min_j u_ij and t_i the bound of
    Lemma 2 (never more than 2),
    g(x) − g(c) = Σ_ij Δa_ij·u_ij + Σ_ij a_ij·Δu_ij + Σ_ij Δa_ij·Δu_ij.
    The second sum is linear in δ, the third at least −Σ_i t_i·max_j r_j·|W_V·G_i|. The first is (i) at
    least −Σ_i ½t_i·R_i, since Σ_j Δa_ij = 0, and (ii) the linear part of Σ_ij h_ij·ΔS_ij, with
    h_ij = a_ij·(u_ij − Σ_l a_il·u_il), less at most Σ_ij |h_ij|·|f|·r_i·|M|·r_j + Σ_i ½K_i·‖s_i‖∞²·R_i.
    All that is linear in δ is added up before its minimum −Σ r·|gradient| is taken; the larger of the two
    bounds counts. Hinges beside the attention add their own minima.

    In float32 the outputs are within the rounding bound of the reals; the margin is what that leaves.
    The data is empty: the checker derives everything from the files, in balls.
    """

    name: ClassVar[str] = "softmax-attention"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint by the theorem."""
        read_data(data, NoData)
        bound = softmax_bound(problem.network)
        return margins(problem, bound)


def softmax_bound(network: Network) -> LowerBound:
    """The lower bound of the theorem, as a function of constraint and box."""
    attention = GraphReader(network).softmax_attention()
    return attention_bound(
        network, attention.head, lambda at, _: _score_drift(attention, at), partial(_lower, attention)
    )


@dataclass(frozen=True)
class ScoreDrift:
    """How scores and weights move over the box.

    Rows of `by_query` are f·W_Q·k_j and rows of `by_key` f·W_K·q_i: the linear part of ΔS_ij is
    δ_i·by_query_j + δ_j·by_key_i, the rest is at most `bilinear_ij`. Of row i, `moved` bounds ‖Δa_i‖₁
    and `curved` bounds ‖Δa_i − J·ΔS_i‖₁.
    """

    by_query: Balls
    by_key: Balls
    bilinear: Balls
    moved: list[Any]
    curved: list[Any]


def _score_drift(attention: SoftmaxAttentionGraph, at: Centred) -> ScoreDrift:
    """Lemmas 1 to 3 for every row."""
    factor = number(attention.factor)
    of_query, of_key = ball.lift(attention.queries.weight), ball.lift(attention.keys.weight)
    by_query = product(at.rows(attention.keys.name), of_query.T) * factor
    by_key = product(at.rows(attention.queries.name), of_key.T) * factor
    kernel = absolute(product(of_query, of_key.T) * factor)
    bilinear = product(product(at.radii, kernel), at.radii.T)
    by_own = product(at.radii, absolute(by_query).T)  # i, j: r_i·|by_query_j|
    by_others = product(absolute(by_key), at.radii.T)  # i, j: r_j·|by_key_i|
    scores = at.rows(attention.scores)
    moved, curved = [], []
    for i in range(len(scores)):
        change = largest(by_own[i] + by_others[i] + bilinear[i])
        pattern = max(range(len(scores)), key=lambda j: float(scores[i, j].mid()))
        rest = [j for j in range(len(scores)) if j != pattern]
        each = by_others[i] + bilinear[i]
        falls = absolute(by_query[pattern] - by_query[rest]) @ at.radii[i] + each[pattern] + each[rest]
        gaps = scores[i, pattern] - scores[i, rest] - falls
        if not all(gap > 0 for gap in gaps):
            raise InvalidProof(f"no key provably keeps the largest score of row {i} over the box")
        steepness = _steepness(gaps)
        moved.append((change * steepness).min(arb(2)))
        curved.append(change * change * steepness)
    return ScoreDrift(by_query, by_key, bilinear, moved, curved)


def _steepness(gaps: Balls) -> Any:
    """The constant of Lemma 2 for these gaps below the maximiser."""
    others = sum((((-gap).exp()) for gap in gaps), arb(0))
    mass = (1 / (1 + others)).lower()
    return 4 * mass * (1 - mass) if mass > arb(0.5) else arb(1)


def _lower(attention: SoftmaxAttentionGraph, at: Centred, drift: ScoreDrift, goal: Objective) -> Any:
    head = attention.head
    weights = at.rows(head.weights)
    seen = product(goal.mixed, at.rows(head.values.name).T)  # i, j: u_ij
    slopes = product(goal.mixed, ball.lift(head.values.weight).T)  # row i: W_V·G_i
    reach = product(absolute(slopes), at.radii.T)  # i, j: r_j·|W_V·G_i|
    means = (weights * seen).sum(axis=1)
    pull = weights * (seen - means[:, None])  # i, j: h_ij
    through_values = goal.inputs + product(weights.T, slopes)
    through_scores = product(pull, drift.by_query) + product(pull.T, drift.by_key)
    spreads = [largest(row) - smallest(row) for row in seen]
    joint = sum((t * largest(row) for t, row in zip(drift.moved, reach, strict=True)), arb(0))

    def less(linear: Balls, moved: list[Any]) -> Any:
        turned = sum((t * spread / 2 for t, spread in zip(moved, spreads, strict=True)), arb(0))
        return -(at.radii * absolute(linear)).sum() - turned

    first = less(through_values, drift.moved)
    second = less(through_values + through_scores, drift.curved) - (absolute(pull) * drift.bilinear).sum()
    fixed = goal.constant + goal.hinge_minimum + (goal.inputs * at.centre).sum()
    return fixed + (goal.mixed * at.rows(head.mixed)).sum() - joint + first.max(second)


# Linear attention in which one key of every row outweighs all others


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
        partial(_linear_attention_lower, attention),
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


def _linear_attention_lower(
    attention: LinearAttentionGraph, at: Centred, rows: list[RowWeights], goal: Objective
) -> Any:
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
