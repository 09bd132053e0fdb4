"""From a constraint and a network to the numbers that proofs work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from dokimos.checker.base import PLACE, Choice, LowerBound, Problem, Proven, refute
from dokimos.core.errors import InvalidProof, UnreadableFile, about
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.outward import Floats, Interval, down, up
from dokimos.networks.semantics.piecewise_linear import AffineExpression, PiecewiseLinear, combine, variable
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.vnnlib.model import Box, Linear

# A constraint of the property as an expression over the network's variables


def objective(form: PiecewiseLinear, constraint: Linear) -> AffineExpression:
    """left side − bound: what a proof of `unsat` shows to be positive on the whole box."""
    return combine(
        [
            *((c, variable(i)) for i, c in constraint.inputs),
            *((d, form.outputs[j]) for j, d in constraint.outputs),
        ],
        -constraint.bound,
    )


def ranges(form: PiecewiseLinear, box: Box) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """The lower and upper ends of all variables that are free: the inputs and the noise."""
    lower = dict(enumerate(box.lower))
    upper = dict(enumerate(box.upper))
    for number, bound in form.noise.items():
        lower[number], upper[number] = -bound, bound
    return lower, upper


# From a margin over the reals to one in float32, by the rounding bound on the outputs


def output_errors(problem: Problem) -> LowerBound:
    """How far float32 rounding may move the left side of a constraint, over a box.

    The network is traversed once for each box. Raises InvalidProof if there is no finite bound.
    """
    network = problem.network

    @cache
    def errors(box: Box) -> list[float]:
        tensors = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
        return [float(bound) for bound in tensors[network.output].error.reshape(-1)]

    def error(constraint: Linear, box: Box) -> Fraction:
        bounds = errors(box)
        if not np.isfinite([bounds[j] for j, _ in constraint.outputs]).all():
            raise InvalidProof("float32 evaluation may overflow on this box")
        return sum((abs(d) * Fraction(bounds[j]) for j, d in constraint.outputs), Fraction(0))

    return error


def margins(problem: Problem, bound: LowerBound, error: LowerBound | None = None) -> Proven:
    """The margin that the bound over the reals gives, and what rounding leaves of it in float32.

    `error` bounds how far rounding moves the left side of a constraint (default: that of `output_errors`).
    """
    error = output_errors(problem) if error is None else error
    return Proven(
        real=refute(problem.property, bound),
        float32=problem.in_float32(
            lambda: refute(problem.property, lambda c, box: bound(c, box) - error(c, box))
        ),
    )


# Exact numbers and boxes, rounded outward to float64


def outward(values: Sequence[Fraction]) -> Interval:
    """These numbers: exact if they are float64 numbers, otherwise between two neighbours."""
    if any(abs(v) >= 2**1000 for v in values):
        raise InvalidProof("a number is too large for float64 intervals")
    near = np.array([float(v) for v in values])
    exact = np.array([Fraction(x) == v for x, v in zip(near.tolist(), values, strict=True)])
    return Interval(np.where(exact, near, down(near)), np.where(exact, near, up(near)))


def box_floats(box: Box) -> tuple[Floats, Floats]:
    """The ends of the box, each rounded outward to float64."""
    return outward(box.lower).lower, outward(box.upper).upper


# The affine layers of a network, as matrices


def affine_layer(network: Network, node: Node) -> tuple[Floats, Floats]:
    """Weights [outputs, inputs] and biases of a Gemm with constant weights that reads one row.

    They are exact in float64. Raises InvalidProof for any other Gemm.
    """
    constants = [network.constants.get(name) for name in node.inputs[1:] if name]
    if not constants or any(c is None for c in constants):
        raise InvalidProof("the weights of an affine layer are not constant")
    if node.real("alpha") != 1 or node.real("beta") != 1 or node.integer("transA"):
        raise InvalidProof("an affine layer scales or transposes what it reads")
    if len(network.shapes[node.inputs[0]]) != 2 or network.shapes[node.inputs[0]][0] != 1:
        raise InvalidProof("an affine layer reads more than one row")
    exact = [_finite(c) for c in constants]
    weights = exact[0] if node.integer("transB") else exact[0].T
    biases = np.zeros(len(weights)) if len(exact) < 2 else exact[1].reshape(-1)
    return weights, np.broadcast_to(biases, (len(weights),))


def in_a_row(network: Network) -> bool:
    """Whether each node reads the one before, from the input to the output."""
    before = network.input
    for node in network.nodes:
        if node.inputs[0] != before:
            return False
        before = node.output
    return before == network.output


def _finite(array: Any) -> Floats:
    exact: Floats = np.asarray(array, dtype=np.float64)
    if not np.isfinite(exact).all():
        raise InvalidProof("a weight is not a finite number")
    return exact


# Cuts a network in two at a tensor that everything behind it is computed from


def before(network: Network, tensor: str) -> Network:
    """The network from the input to `tensor`: only the nodes that it is computed from."""
    if all(node.output != tensor for node in network.nodes):
        raise InvalidProof(f"the network has no tensor {tensor!r}")
    needed = {tensor}
    nodes = []
    for node in reversed(network.nodes):
        if node.output in needed:
            nodes.append(node)
            needed.update(node.inputs)
    return replace(network, output=tensor, nodes=tuple(reversed(nodes)))


def behind(network: Network, tensor: str) -> Network:
    """The network from `tensor` to the output.

    Raises InvalidProof if the output is computed from more than `tensor` and constants.
    """
    known = {tensor, *network.constants}
    nodes = []
    for node in network.nodes:
        if node.output != tensor and all(not name or name in known for name in node.inputs):
            nodes.append(node)
            known.add(node.output)
    if network.output not in known:
        raise InvalidProof(f"the output depends on more than {tensor!r}")
    return replace(network, input=tensor, nodes=tuple(nodes))


# Trees of case distinctions on ReLUs, as certificates write them


#: The entry for a leaf among the splits of a tree.
LEAF = -1


class LeafData(Struct, frozen=True, forbid_unknown_fields=True):
    """A weight for each constraint; and under each name that the arithmetic knows, numbers by ReLU."""

    constraints: tuple[Fraction, ...]
    choices: dict[str, dict[Annotated[str, Meta(pattern=r"^[0-9]{1,9}\Z")], Fraction]]


class TreeData(Struct, frozen=True, forbid_unknown_fields=True):
    """The ReLUs asked, in preorder (>= 0 first), -1 for a leaf; and what is chosen at each leaf."""

    splits: tuple[Choice, ...]
    leaves: tuple[LeafData, ...]


@dataclass(frozen=True)
class Leaf:
    """One case of a conjunction, and what the certificate chooses in it.

    `phases[k]` says whether the argument of ReLU k is >= 0 here (else it is <= 0); ReLUs are numbered from
    0, in the order of the network. `constraints` has a weight >= 0 for each constraint; `choices` has,
    under each name that the arithmetic knows, numbers by ReLU.
    """

    phases: Mapping[int, bool]
    constraints: tuple[Fraction, ...]
    choices: Mapping[str, Mapping[int, Fraction]]

    def margin(self, smallest: Fraction) -> Fraction | None:
        """What follows if Σ weights·(left side − bound) is >= `smallest` in this case.

        Theorem. At an unsafe point every left side − bound is <= 0, and so is their sum with weights >= 0.
        If `smallest` is positive, the case holds no unsafe point; and if the weights sum to S > 0, then at
        every point of it some left side − bound is >= smallest/S. If S = 0, the case holds no input: None.

        Raises InvalidProof if `smallest` is not positive.
        """
        if smallest <= 0:
            raise InvalidProof(f"a leaf's bound is {about(smallest)}, which is not above 0")
        total = sum(self.constraints, Fraction(0))
        return smallest / total if total else None


def read_tree(data: TreeData, constraints: int, limits: Mapping[str, float]) -> list[Leaf]:
    """The leaves of a tree, for a conjunction with this number of constraints.

    `limits` names the choices of a leaf and how large each may be. Raises UnreadableFile if the data has
    the wrong shape, InvalidProof if a weight or a choice is outside its limits.
    """
    paths = _paths(data.splits)
    if len(paths) != len(data.leaves):
        raise UnreadableFile(PLACE, f"a tree has {len(paths)} leaves, but {len(data.leaves)} are given")
    leaves = []
    for path, leaf in zip(paths, data.leaves, strict=True):
        if len(leaf.constraints) != constraints or leaf.choices.keys() != limits.keys():
            raise UnreadableFile(
                PLACE, f"a leaf needs {constraints} 'constraints', and {', '.join(limits)}"
            )
        if any(weight < 0 for weight in leaf.constraints):
            raise InvalidProof("an entry of 'constraints' is negative")
        for key, by_relu in leaf.choices.items():
            if any(not 0 <= value <= limits[key] for value in by_relu.values()):
                raise InvalidProof(f"an entry of {key!r} is negative or above {limits[key]:g}")
        choices = {key: {int(k): v for k, v in by_relu.items()} for key, by_relu in leaf.choices.items()}
        leaves.append(Leaf(path, leaf.constraints, choices))
    return leaves


def _paths(splits: Sequence[int]) -> list[dict[int, bool]]:
    """What was decided on the way to each leaf of the tree in preorder, >= 0 first."""
    pending: list[dict[int, bool]] = [{}]
    paths = []
    for k in splits:
        if not pending:
            raise UnreadableFile(PLACE, "a tree continues after its last leaf")
        path = pending.pop()
        if k == LEAF:
            paths.append(path)
        elif k in path:
            raise UnreadableFile(PLACE, f"a tree asks ReLU {k} twice on one path")
        else:
            pending += [{**path, k: False}, {**path, k: True}]
    if pending:
        raise UnreadableFile(PLACE, "a tree ends before its last leaf")
    return paths


def require_relus(leaves: Sequence[Leaf], count: int) -> None:
    """Raise InvalidProof if a leaf names a ReLU that the network does not have."""
    for leaf in leaves:
        if any(k >= count for named in (leaf.phases, *leaf.choices.values()) for k in named):
            raise InvalidProof(f"a leaf names a ReLU beyond the network's {count}")
