"""Softmax attention whose largest scores stay where they are."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
from flint import arb

from dokimos.certificates.attention_graph import GraphReader, SoftmaxAttention
from dokimos.certificates.attention_objective import (
    BITS,
    Balls,
    Centred,
    Objective,
    absolute,
    largest,
    number,
    product,
    rational_lower,
    smallest,
)
from dokimos.certificates.base import CertificateKind, LowerBound, Problem, Proven, if_provable, refute
from dokimos.certificates.data import expect_keys
from dokimos.certificates.rounding_slack import float32_refutation
from dokimos.errors import InvalidProof
from dokimos.instances.model import Label
from dokimos.networks import ball
from dokimos.networks.graph import Network
from dokimos.properties.model import Box, Linear


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

    Theorem. With g = Σ_i G_i·Z_i, u_ij = G_i·V_j and t_i the bound of Lemma 2 (never more than 2),
    g(x) − g(c) = Σ_ij Δa_ij·u_ij + Σ_ij a_ij·Δu_ij + Σ_ij Δa_ij·Δu_ij
      >= −Σ_i ½t_i·(max_j u_ij − min_j u_ij) − Σ_j r_j·|W_V·Σ_i a_ij·G_i| − Σ_i t_i·max_j r_j·|W_V·G_i|,
    the first since Σ_j Δa_ij = 0. Hinges beside the attention add their own minima.

    In float32 the outputs are within the rounding bound of the reals; the margin is what that leaves.
    The data is empty: the checker derives everything from the files, in balls.
    """

    name: ClassVar[str] = "softmax-attention"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint by the theorem."""
        expect_keys(data)
        bound = softmax_bound(problem.network)
        return Proven(
            real=refute(problem.property, bound),
            float32=if_provable(lambda: float32_refutation(problem, bound)),
        )


def softmax_bound(network: Network) -> LowerBound:
    """The lower bound of the theorem, as a function of constraint and box."""
    attention = GraphReader(network).softmax_attention()

    @cache
    def over(box: Box) -> tuple[Centred, Balls]:
        at = Centred.of(network, box)
        return at, np.array(_mass_moved(attention, at), dtype=object)

    @cache
    def bound(constraint: Linear, box: Box) -> Fraction:
        with ball.precision(BITS):
            at, moved = over(box)
            goal = Objective.of(constraint, network, attention.head, at)
            return rational_lower(_lower(attention, at, moved, goal))

    return bound


def _mass_moved(attention: SoftmaxAttention, at: Centred) -> list[Any]:
    """For each row i the bound t_i on ‖Δa_i‖₁ over the box."""
    factor = number(attention.factor)
    queries, keys = at.rows(attention.queries.name), at.rows(attention.keys.name)
    of_query, of_key = ball.lift(attention.queries.weight), ball.lift(attention.keys.weight)
    scores = at.rows(attention.scores)
    size = abs(factor)
    seen_by_query = product(keys, of_query.T) * factor  # row j: f·W_Q·k_j
    by_keys = size * product(absolute(product(queries, of_key.T)), at.radii.T)  # i, j: |f|·r_j·|W_K·q_i|
    both = size * product(
        product(at.radii, absolute(product(of_query, of_key.T))), at.radii.T
    )  # i, j: |f|·r_i·|M|·r_j
    moves = product(absolute(seen_by_query), at.radii.T)  # j, i: |f|·r_i·|W_Q·k_j|
    result = []
    for i in range(len(scores)):
        change = largest(moves[:, i] + by_keys[i] + both[i])
        pattern = max(range(len(scores)), key=lambda j: float(scores[i, j].mid()))
        rest = [j for j in range(len(scores)) if j != pattern]
        apart = absolute(seen_by_query[pattern] - seen_by_query[rest]) @ at.radii[i]
        falls = apart + by_keys[i, pattern] + by_keys[i, rest] + both[i, pattern] + both[i, rest]
        gaps = scores[i, pattern] - scores[i, rest] - falls
        if not all(gap > 0 for gap in gaps):
            raise InvalidProof(f"no key provably keeps the largest score of row {i} over the box")
        result.append((change * _steepness(gaps)).min(arb(2)))
    return result


def _steepness(gaps: Balls) -> Any:
    """The constant of Lemma 2 for these gaps below the maximiser."""
    others = sum((((-gap).exp()) for gap in gaps), arb(0))
    mass = (1 / (1 + others)).lower()
    return 4 * mass * (1 - mass) if mass > arb(0.5) else arb(1)


def _lower(attention: SoftmaxAttention, at: Centred, moved: Balls, goal: Objective) -> Any:
    head = attention.head
    of_value = ball.lift(head.values.weight)
    seen = product(goal.mixed, at.rows(head.values.name).T)  # i, j: u_ij
    slopes = product(goal.mixed, of_value.T)  # row i: W_V·G_i
    linear = goal.inputs + product(at.rows(head.weights).T, slopes)
    joint = product(at.radii, absolute(slopes).T)  # j, i: r_j·|W_V·G_i|
    total = goal.constant + goal.hinge_minimum
    total = total + (goal.inputs * at.centre).sum() + (goal.mixed * at.rows(head.mixed)).sum()
    total = total - (at.radii * absolute(linear)).sum()
    for i, t in enumerate(moved):
        spread = largest(seen[i]) - smallest(seen[i])
        total = total - t * (spread / 2 + largest(joint[:, i]))
    return total
