"""Linear attention in which one key of every row outweighs all others."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from flint import arb

from dokimos.certificates.attention_graph import GraphReader, LinearAttention
from dokimos.certificates.attention_objective import (
    BITS,
    Centred,
    Objective,
    absolute,
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
from dokimos.networks.interval import enclose
from dokimos.properties.model import Box, Linear


class DominantKey(CertificateKind):
    """`unsat` for linear attention with row normalisation, with an affine head.

    Let w_ij = φ(q_i)·φ(k_j) >= 0 with φ the ReLU, a_ij = w_ij / Σ_l w_il, Z_i = Σ_j a_ij·V_j.

    Lemma. Let row i have a key k with w_ik >= ρ_i·Σ_{j≠k} w_ij and w_ik > 0 on the whole box. Then the row
    sum is positive and the other keys get at most o_i = 1/(1 + ρ_i) of the weight, and for any vector G
    G·Z_i = G·V_k + Σ_{j≠k} a_ij·G·(V_j − V_k) >= G·V_k + o_i·min(0, min_j G·(V_j − V_k)).

    ρ_i is derived here, from enclosures of φ(q) and φ(k) over the box: o_i = b/(a + b) where w_ik >= a and
    Σ_{j≠k} w_ij <= b, which is never more than 1/(1 + ρ_i) for ρ_i = a/b.

    Theorem. On the box x = c + δ, |δ| <= r, Σ_i G_i·Z_i is at least the sum of the exact minimum of the
    affine function Σ_i G_i·V_k(i) and of
    Σ_i o_i·min(0, min_j (G_i·(V_j − V_k)(c) − (r_j + r_k)·|W_V·G_i|)).
    (Since nothing is compared with the centre, this is half of what a two-sided bound on the drift of Z
    loses.) Hinges beside the attention add their own minima.

    In float32 the outputs are within the rounding bound of the reals; the margin is what that leaves.
    The data is empty: the checker derives everything from the files.
    """

    name: ClassVar[str] = "linear-attention"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint by the theorem."""
        expect_keys(data)
        bound = linear_bound(problem.network)
        return Proven(
            real=refute(problem.property, bound),
            float32=if_provable(lambda: float32_refutation(problem, bound)),
        )


def linear_bound(network: Network) -> LowerBound:
    """The lower bound of the theorem, as a function of constraint and box."""
    attention = GraphReader(network).linear_attention()

    @cache
    def over(box: Box) -> tuple[Centred, list[tuple[int, Any]]]:
        return Centred.of(network, box), dominant_keys(network, attention, box)

    @cache
    def bound(constraint: Linear, box: Box) -> Fraction:
        with ball.precision(BITS):
            at, dominant = over(box)
            goal = Objective.of(constraint, network, attention.head, at)
            return rational_lower(_lower(attention, at, dominant, goal))

    return bound


def dominant_keys(network: Network, attention: LinearAttention, box: Box) -> list[tuple[int, Any]]:
    """For each row its dominant key k(i) and an upper bound o_i on the share of all other keys."""
    tensors = enclose(network, box.lower, box.upper)
    queries, keys = tensors[attention.queries], tensors[attention.keys]
    # Products of nonnegative factors: the ends are products of ends.
    least = ball.lift(queries.lower[0]) @ ball.lift(keys.lower[0]).T
    most = ball.lift(queries.upper[0]) @ ball.lift(keys.upper[0]).T
    result = []
    for i in range(len(least)):
        key = max(range(len(least)), key=lambda j: float(least[i, j].mid()))
        others = sum((most[i, j] for j in range(len(least)) if j != key), arb(0)).upper()
        floor = least[i, key].lower()
        if not floor > 0:
            raise InvalidProof(f"the sum of row {i} of the weights is not provably positive on the box")
        result.append((key, others / (floor + others)))
    return result


def _lower(
    attention: LinearAttention, at: Centred, dominant: list[tuple[int, Any]], goal: Objective
) -> Any:
    values = attention.head.values
    seen = goal.mixed @ at.rows(values.name).T  # i, j: G_i·V_j
    slopes = goal.mixed @ ball.lift(values.weight).T  # row i: W_V·G_i
    reach = at.radii @ absolute(slopes).T  # j, i: r_j·|W_V·G_i|
    linear = goal.inputs.copy()
    total = goal.constant + goal.hinge_minimum + (goal.inputs * at.centre).sum()
    for i, (key, share) in enumerate(dominant):
        total = total + seen[i, key]
        linear[key] = linear[key] + slopes[i]
        rest = [j for j in range(len(seen)) if j != key]
        if rest:
            below = smallest(seen[i, rest] - seen[i, key] - reach[rest, i] - reach[key, i])
            total = total + share * below.min(arb(0))
    return total - (at.radii * absolute(linear)).sum()
