"""Everything that the components read, each computed once, when first needed.

Before it, lower bounds of the margin: by intervals (L_IBP), and by backward linear relaxation (L_CROWN).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, prod
from types import MappingProxyType

import numpy as np
import torch

from dokimos.core.errors import InputError
from dokimos.difficulty.phases import Phases, phases
from dokimos.engine.attacks.gradients import descend
from dokimos.engine.attacks.margin_pass import MarginPass, MarginValues
from dokimos.engine.attacks.target import Target
from dokimos.engine.differentiable import one_thread
from dokimos.engine.float_bounds import (
    ATTENTION_RULES,
    AttentionBounds,
    LinearBounds,
    rectifiers,
    without_linear_bound,
)
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import enclose, lift_constant
from dokimos.networks.semantics.outward import Floats, Interval, add, bilinear, multiply, negate, total
from dokimos.suites.facts import ProfileSettings
from dokimos.suites.vnnlib.margins import (
    MarginForm,
    Rows,
    float_ends,
    margin_cases,
    margin_form,
    why_no_margin,
)
from dokimos.suites.vnnlib.model import Box, Property

# L_IBP: a sound lower bound of the margin by interval bound propagation


@dataclass(frozen=True, eq=False)
class Functional:
    """weights·(tensor) + offset, one in each row: weights [rows, *shape of the tensor], offset [rows]."""

    tensor: str
    weights: Interval
    offset: Interval


#: What a functional of a node's output is as one of its input, or None where the node is in the way.
Fold = Callable[[Network, Node, Functional], Functional | None]


def row_bounds(network: Network, enclosure: Mapping[str, Interval], rows: Rows) -> Floats:
    """A lower bound of each row's g over the box that `enclosure` was made for; −∞ if there is none."""
    with np.errstate(all="ignore"):
        count = rows.bounds.shape[0]
        shape = (count, *network.output_shape)
        start = Functional(
            network.output, rows.outputs.map(lambda end: end.reshape(shape)), negate(rows.bounds)
        )
        folded = fold(network, start)
        weights = folded.weights.map(lambda end: end.reshape(count, -1))
        if folded.tensor == network.input:
            sides = _apply(add(weights, rows.inputs), enclosure[network.input])
        else:
            sides = _apply(weights, enclosure[folded.tensor])
            sides = add(sides, _apply(rows.inputs, enclosure[network.input]))
        return np.asarray(add(sides, folded.offset).lower)


def _apply(weights: Interval, values: Interval) -> Interval:
    return total(multiply(weights, values.map(lambda end: end.reshape(1, -1))), (1,), keepdims=False)


def fold(network: Network, functional: Functional) -> Functional:
    """The functional of the earliest tensor that affine operators lead back to."""
    writers = {node.output: node for node in network.nodes}
    while (node := writers.get(functional.tensor)) is not None:
        rule = _FOLDS.get(node.op)
        earlier = None if rule is None else rule(network, node, functional)
        if earlier is None:
            break
        functional = earlier
    return functional


def _constant(network: Network, name: str) -> Interval | None:
    array = network.constants.get(name)
    return None if array is None else lift_constant(array)


def _plus(functional: Functional, constant: Interval) -> Interval:
    """The offset with weights·constant taken in; the constant broadcasts to the tensor."""
    products = multiply(functional.weights, constant)
    axes = tuple(range(1, len(products.shape)))
    return add(functional.offset, total(products, axes, keepdims=False))


def _shifted(sign: int) -> Fold:
    """Add (sign 1) and Sub (sign −1) where one side is a constant that does not change the shape."""

    def rule(network: Network, node: Node, f: Functional) -> Functional | None:
        left, right = (_constant(network, name) for name in node.inputs)
        if (left is None) == (right is None):
            return None
        constant, rest = (left, node.inputs[1]) if right is None else (right, node.inputs[0])
        if constant is None or network.shapes[rest] != network.shapes[node.output]:
            return None
        if sign > 0:
            return Functional(rest, f.weights, _plus(f, constant))
        if right is None:
            return Functional(rest, negate(f.weights), _plus(f, constant))
        return Functional(rest, f.weights, _plus(f, negate(constant)))

    return rule


def _negated(network: Network, node: Node, f: Functional) -> Functional:
    return Functional(node.inputs[0], negate(f.weights), f.offset)


def _reshaped(network: Network, node: Node, f: Functional) -> Functional:
    shape = (f.weights.shape[0], *network.shapes[node.inputs[0]])
    return Functional(node.inputs[0], f.weights.map(lambda end: end.reshape(shape)), f.offset)


def _transposed(network: Network, node: Node, f: Functional) -> Functional:
    back = (0, *(1 + int(axis) for axis in np.argsort(node.integers("perm"))))
    return Functional(node.inputs[0], f.weights.map(lambda end: end.transpose(back)), f.offset)


def _gemm(network: Network, node: Node, f: Functional) -> Functional | None:
    matrix = _constant(network, node.inputs[1])
    plain = node.real("alpha") == 1 and node.real("beta") == 1 and not node.integer("transA")
    if matrix is None or not plain:
        return None
    if len(node.inputs) > 2 and node.inputs[2]:
        bias = _constant(network, node.inputs[2])
        if bias is None:
            return None
        f = replace(f, offset=_plus(f, bias))
    return _times(f, node.inputs[0], matrix if node.integer("transB") else _turned(matrix))


def _matmul(network: Network, node: Node, f: Functional) -> Functional | None:
    left, right = (_constant(network, name) for name in node.inputs)
    ranks = [len(network.shapes[name]) for name in node.inputs]
    if right is not None and ranks[1] == 2 and ranks[0] >= 2:
        return _times(f, node.inputs[0], _turned(right))
    if left is not None and ranks == [2, 2]:
        weights = bilinear(_turned(left), f.weights, np.matmul, left.shape[0])
        return Functional(node.inputs[1], weights, f.offset)
    return None


def _turned(matrix: Interval) -> Interval:
    return matrix.map(lambda end: end.T)


def _times(f: Functional, tensor: str, matrix: Interval) -> Functional:
    return Functional(tensor, bilinear(f.weights, matrix, np.matmul, matrix.shape[0]), f.offset)


_FOLDS: Mapping[str, Fold] = MappingProxyType(
    {
        "Add": _shifted(1),
        "Gemm": _gemm,
        "MatMul": _matmul,
        "Neg": _negated,
        "Reshape": _reshaped,
        "Sub": _shifted(-1),
        "Transpose": _transposed,
    }
)


# L_CROWN: a lower bound of the margin by backward linear relaxation (`networks.semantics.linear_bounds`)


#: What improving bounds may cost, in evaluations of the network for each sample (a forward and a backward
#: pass are about three): where this is enough for all layers, and where it is not.
ALLOWANCE, SMALL_ALLOWANCE = 2.0, 0.25


@dataclass(frozen=True)
class CrownBound:
    """The bound, and a note that qualifies it."""

    lower: float
    note: str | None


def crown_bound(
    network: Network,
    forms: Sequence[MarginForm],
    enclosures: Sequence[Mapping[str, Interval]],
    boxes: Sequence[Box],
    intervals: Sequence[Floats],
    *,
    samples: int,
) -> CrownBound | str:
    """The least bound over all cases, or why there is none; `intervals` bounds each case's constraints."""
    reason = without_linear_bound(network, ATTENTION_RULES)
    if reason is not None:
        return reason
    least, kept, layers = [], 0, 0
    with one_thread(), torch.no_grad():
        for form, enclosure, box, known in zip(forms, enclosures, boxes, intervals, strict=True):
            bounds = AttentionBounds(network, enclosure, *float_ends(box))
            layers = len(bounds.bounded)
            kept = max(kept, _improve(network, bounds, samples))
            least.append(form.least(np.fmax(_row_bounds(network, bounds, form), known)))
    what = "tensors" if layers > len(rectifiers(network)) else "ReLU layers"
    return CrownBound(min(least), f"{kept} of {layers} {what} keep their interval bounds" if kept else None)


def _improve(network: Network, bounds: LinearBounds, samples: int) -> int:
    """Improve the bounds of unstable units, layer by layer; how many layers were too costly."""
    costs = [_cost(network, node) for node in network.nodes]
    layers = [(name, place, 2.0 * sum(costs[:place])) for name, place in bounds.bounded]
    passes, kept = float(samples * sum(costs)), 0
    everything = sum(price * len(bounds.unstable(name)) for name, _, price in layers)
    left = passes * (ALLOWANCE if everything <= ALLOWANCE * passes else SMALL_ALLOWANCE)
    for name, place, price in layers:
        units = bounds.unstable(name)
        if price * len(units) > left:
            kept += 1
            continue
        left -= price * len(units)
        bounds.tighten(name, place, units)
    return kept


def _row_bounds(network: Network, bounds: LinearBounds, form: MarginForm) -> Floats:
    """A lower bound of each constraint's g."""
    found = []
    for start in range(0, len(form.bounds), bounds.batch):
        part = slice(start, start + bounds.batch)
        weights = torch.from_numpy(form.outputs[part]).reshape(-1, *network.output_shape)
        inputs = torch.from_numpy(form.inputs[part])
        found.append(bounds.lower(network.output, weights, len(network.nodes), inputs))
    return np.asarray(torch.cat(found).numpy() - form.bounds)


def _cost(network: Network, node: Node) -> int:
    """How many multiplications a node takes, about."""
    size = prod(network.shapes[node.output])
    if node.op == "Conv":
        return size * prod(network.shapes[node.inputs[1]][1:])
    if node.op in ("Gemm", "MatMul"):
        shape = network.shapes[node.inputs[0]]
        return size * shape[0 if node.op == "Gemm" and node.integer("transA") else -1]
    return size


# The samples of a profile: seeded points of a box, half of them uniform, half on its faces and corners


def sample(box: Box, count: int, rng: np.random.Generator) -> Floats:
    """[count, size]: the first half uniform, then a quarter on faces, then a quarter of corners.

    The ends are the nearest float64 numbers and no point lies outside them. A point of the second kind is
    uniform except for some coordinates, which are at a random one of their two ends: at least one, and each
    with a probability that is itself uniform, so that faces of every dimension occur. A corner has all its
    coordinates at an end. If the number is odd, the first half is the larger one.
    """
    lower, upper = float_ends(box)
    points = lower + (upper - lower) * rng.random((count, box.size))
    np.clip(points, lower, upper, out=points)
    uniform = (count + 1) // 2
    corners = (count - uniform) // 2
    boundary = points[uniform:]
    at_end = rng.random(boundary.shape) < rng.random((len(boundary), 1))
    free = np.flatnonzero(lower < upper)
    if free.size:
        at_end[np.arange(len(boundary)), rng.choice(free, size=len(boundary))] = True
    at_end[len(boundary) - corners :] = True
    ends = np.where(rng.random(boundary.shape) < 0.5, lower, upper)
    boundary[:] = np.where(at_end, ends, boundary)
    return points


#: A case has at least this many samples, however many cases share them.
LEAST_SAMPLES = 2
#: How many numbers the gradients of all samples together may hold (800 MB).
MOST_NUMBERS = 10**8


@dataclass(frozen=True, eq=False)
class Inspection:
    """What a profile measures one instance by: samples, margins, gradients and enclosures.

    The samples are divided evenly among the cases of the property. They are random; the points that
    gradients lead to (`guided`) are kept apart, so that means and counts over samples describe the box, not
    its lowest places.
    """

    network: Network
    property: Property
    settings: ProfileSettings

    @cached_property
    def no_margin(self) -> str | None:
        """Why the property has no margin, or None."""
        return why_no_margin(self.property)

    @cached_property
    def forms(self) -> tuple[MarginForm, ...]:
        """The margin of each case that has one."""
        sizes = self.network.input_size, self.network.output_size
        return tuple(margin_form(case, *sizes) for case in margin_cases(self.property))

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The box of each case that has a margin; of every case if none has one."""
        cases = margin_cases(self.property) or self.property.cases
        return tuple(case.box for case in cases if not case.box.is_empty)

    @cached_property
    def points(self) -> tuple[Floats, ...]:
        """The samples of each case that has a margin."""
        boxes = self.boxes
        share, rest = divmod(self.settings.samples, len(boxes))
        return tuple(
            sample(
                box,
                max(share + (number < rest), LEAST_SAMPLES),
                np.random.default_rng([self.settings.seed, number]),
            )
            for number, box in enumerate(boxes)
        )

    @cached_property
    def sampled(self) -> MarginValues:
        """The margins and gradients at the samples, case after case; 0 along inputs that a box fixes."""
        self._require_memory()
        margins, gradients = [], []
        for form, box, points in zip(self.forms, self.boxes, self.points, strict=True):
            found = MarginPass(self.network, form)(points)
            lower, upper = float_ends(box)
            margins.append(found.margins)
            gradients.append(found.gradients * (lower < upper))
        return MarginValues(np.concatenate(margins), np.concatenate(gradients))

    def _require_memory(self) -> None:
        count, size = sum(map(len, self.points)), self.network.input_size
        if count * size > MOST_NUMBERS:
            raise InputError(
                f"{count} samples of {size} inputs need too much memory; use `samples` "
                f"{MOST_NUMBERS // size} or fewer."
            )

    @cached_property
    def sampled_cases(self) -> tuple[MarginValues, ...]:
        """What was sampled, separately for each case."""
        ends = np.cumsum([len(points) for points in self.points])[:-1]
        apart = np.split(self.sampled.margins, ends), np.split(self.sampled.gradients, ends)
        return tuple(MarginValues(*case) for case in zip(*apart, strict=True))

    @cached_property
    def guided(self) -> tuple[GuidedSamples, ...]:
        """Where gradients lead from the samples of each case."""

        return tuple(
            guided_samples(
                self.network,
                self.forms[number],
                self.boxes[number],
                self.points[number],
                known.gradients,
                np.random.default_rng([self.settings.seed, number, 1]),
            )
            for number, known in enumerate(self.sampled_cases)
        )

    @cached_property
    def least_margin(self) -> float | None:
        """M̂_min, or None if the margin of a sample is not a finite float64."""
        margins = self.sampled.margins
        if not np.isfinite(margins).all():
            return None
        return min(float(margins.min()), *(case.least_margin for case in self.guided))

    @cached_property
    def enclosures(self) -> tuple[Mapping[str, Interval], ...]:
        """Over each of the boxes, an interval for every tensor."""
        return tuple(enclose(self.network, box.lower, box.upper) for box in self.boxes)

    @cached_property
    def ibp_bound(self) -> float:
        """L_IBP: a lower bound of the margin over all cases, sound for the real network."""
        return min(form.least(rows) for form, rows in zip(self.forms, self._ibp_rows, strict=True))

    @cached_property
    def _ibp_rows(self) -> tuple[Floats, ...]:
        """The interval bound of each constraint, case by case."""
        return tuple(
            row_bounds(self.network, enclosure, form.exact)
            for form, enclosure in zip(self.forms, self.enclosures, strict=True)
        )

    @cached_property
    def crown(self) -> CrownBound | str:
        """L_CROWN over all cases, or why there is none."""
        return crown_bound(
            self.network,
            self.forms,
            self.enclosures,
            self.boxes,
            self._ibp_rows,
            samples=self.settings.samples,
        )

    @cached_property
    def phases(self) -> Phases:
        """How many units are nonlinear, and how many of them are unstable on one of the boxes."""
        return phases(self.network, self.enclosures, self.settings.tau_slope)


# Points of a box that gradients lead to, where the margin is smaller than at random samples


#: For this many samples, one face and one descent.
SAMPLES_A_FACE, SAMPLES_A_DESCENT = 10, 25
#: Eight steps reach from one end of the box to the other.
STEPS, STEP = 12, 0.25
#: How far to go down the gradient at the centre, as shares of the radius.
WAY_DOWN = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class GuidedSamples:
    """Points that gradients lead to, what is found there, and the least margin on the way.

    The least margin is ∞ if it is never finite.
    """

    points: Floats
    found: MarginValues
    least_margin: float


def guided_samples(
    network: Network,
    form: MarginForm,
    box: Box,
    points: Floats,
    gradients: Floats,
    rng: np.random.Generator,
) -> GuidedSamples:
    """Follow gradients on the box of one case, of which `points` are samples with these gradients.

    The first of the points are uniform (see `sampling`).
    """
    margins_at = MarginPass(network, form)
    target = Target(network, form, box, dtype=np.float64)
    centre = target.point[None]
    slope = np.nan_to_num(margins_at(centre).gradients[0])
    descents = len(points) // SAMPLES_A_DESCENT
    reached = [
        centre,
        way_down(box, slope),
        downhill_faces(box, slope, len(points) // SAMPLES_A_FACE, rng),
        descend(target, points[:descents], gradients[:descents], [STEP] * STEPS if descents else ()),
    ]
    together = np.concatenate(reached)
    found = margins_at(together)
    finite = found.margins[np.isfinite(found.margins)]
    return GuidedSamples(together, found, float(finite.min(initial=target.least_margin)))


def way_down(box: Box, gradient: Floats) -> Floats:
    """[steps, size]: from the centre against the signs of the gradient, as far as the corner."""
    lower, upper = float_ends(box)
    middle, radius = (lower + upper) / 2, (upper - lower) / 2
    steps = np.outer(WAY_DOWN, radius * np.sign(gradient))
    return np.clip(middle - steps, lower, upper)


def downhill_faces(box: Box, gradient: Floats, count: int, rng: np.random.Generator) -> Floats:
    """[count, size]: uniform, but for the √size inputs of the largest effect, each at its lower end of μ.

    The effect of an input is its gradient times its radius; if all are 0, the points are uniform.
    """
    lower, upper = float_ends(box)
    points = np.clip(lower + (upper - lower) * rng.random((count, box.size)), lower, upper)
    with np.errstate(over="ignore"):
        effect = np.abs(gradient) * (upper - lower)
    chosen = np.argsort(-effect, kind="stable")[: max(1, isqrt(box.size))]
    chosen = chosen[effect[chosen] > 0]
    points[:, chosen] = np.where(gradient > 0, lower, upper)[chosen]
    return points
