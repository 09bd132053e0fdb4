"""Transformers whose attention stays with the same tokens all over the box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dokimos.checker.base import CertificateKind, Problem, Proven
from dokimos.checker.data import NoData, read_data
from dokimos.checker.lemmas.rounding_slack import margins
from dokimos.checker.lemmas.routing import routed_bound
from dokimos.suites.instance import Label


class FixedRouting(CertificateKind):
    """`unsat` for transformers: layers of attention and of ReLUs in cancelling pairs, with residual sums.

    Theorem. Attention writes Z_i = Σ_j a_ij·V_j with weights that add up to 1, so for any token π it is
    V_π + Σ_{j≠π} a_ij·(V_j − V_π). If over the box the score of π exceeds the others by at least g, every
    other weight is at most e^−g, and Z_i is V_π but for (n − 1)·e^−g·max_j |V_j − V_π|. Pairs of ReLUs
    cancel, V·(ReLU(z) − ReLU(−z)) = V·z, which is checked on the weights. So the network is an affine
    function of the input and a remainder. Affine forms, with one number for each input, follow it layer by
    layer; their reach bounds the queries and keys of the next layer, and so its gaps (see
    `lemmas/routing`). On a box with half-widths r, a constraint whose form is c + a·(x − x₀) is at least
    c − |a|·r less the remainder.

    In float32 the affine function is the same. What each node may round counts as the affine maps behind it
    pass it on, computed from the output back. The data is empty: the checker derives everything from the
    files.
    """

    name: ClassVar[str] = "fixed-routing"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint by its affine form."""
        read_data(data, NoData)
        return margins(problem, *routed_bound(problem.network, problem.ulps))
