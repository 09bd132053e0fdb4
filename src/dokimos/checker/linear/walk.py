"""A network over a box, and lower bounds of functionals of its tensors by one walk backwards.

`BoundedNetwork` knows the network, the box and facts that hold on all of it. `Regions` are many parts of
the box at once, each with facts of its own. `BoundedNetwork.lower_bounds` walks backwards through the graph
for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.linear.lines import DIFFERENCE, UNITS, Planes, difference_interval, planes_of
from dokimos.checker.linear.rewrites import Parts, in_pairs, rewrite
from dokimos.checker.linear.transposes import TRANSPOSES, AffineNode, Arrays, NumpyArrays, Transposed
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network, Node, Shape
from dokimos.networks.semantics.interval import INTERVAL_RULES, lift_constant
from dokimos.networks.semantics.outward import (
    FLOAT32,
    UNIT_ROUNDOFF,
    Floats,
    Format,
    Interval,
    Rounded,
    RoundedNode,
    down,
    gamma,
    infinite_beyond,
    point,
    safe,
    widen,
)
from dokimos.networks.semantics.rounding import ROUNDING_RULES, lifted, require_format

#: What the last rounding of a float64 sum loses, relative to the sum; and more than all underflows lose.
ROUNDED, FLUSHED = 2.0**-52, 2.0**-900
#: Networks of more steps are refused: what is lost to rounding must stay a sum of few terms.
MOST_STEPS = 2000
#: How many numbers the functionals that are bounded at once may have in the largest tensor.
MOST_NUMBERS = 1 << 19
#: The choice that stands for the usual line of a unit.
USUAL = np.full((1,), np.nan)


@dataclass(frozen=True)
class WalkStep:
    """One node of the network in the form that is walked through.

    `sources` are the tensors that vary, with their transposes if the step is affine; otherwise the step is
    a unit function of one tensor, the product of two, or a difference of ReLUs; or it has no lines
    (`is_opaque`), and walks end at what it writes.
    """

    node: Node
    sources: tuple[str, ...]
    transposes: tuple[Transposed, ...] | None
    terms: int = 0
    inexact: float = 0.0
    is_opaque: bool = False


def go_on() -> None:
    """Nothing is done between the walks of whoever has no limit of time."""


@dataclass(frozen=True)
class Steps:
    """A network as affine steps, unit functions and products, each ONNX node being one or several.

    `wholes` has, for a tensor of the network, the node that it was written by: it is this node whose
    rounding counts. Tensors are numbered: the input is 0, the k-th step writes tensor k + 1. `pause` is
    called between walks that bound tensors, and may raise.
    """

    network: Network
    constants: Mapping[str, Interval]
    shapes: Mapping[str, Shape]
    steps: tuple[WalkStep, ...]
    wholes: Mapping[str, Node]
    pause: Callable[[], None] = go_on

    @property
    def tensors(self) -> tuple[str, ...]:
        """All tensors that vary, by number."""
        return (self.network.input, *(step.node.output for step in self.steps))

    @property
    def units(self) -> dict[str, Shape]:
        """The steps that leave a choice, by the name of their output, with their shapes."""
        units = [s.node.output for s in self.steps if s.transposes is None and not s.is_opaque]
        return {name: self.shapes[name] for name in units}


def steps_of(network: Network, arrays: Arrays | None = None, pairs: Sequence[Pair] = ()) -> Steps:
    """The network as steps. A node that is in none of the tables, or too large for its parts, is opaque.

    The ReLU q of each pair (p, q) is written as a difference from p (see `in_pairs`); ReLUs are numbered by
    entries, in order. Raises InvalidProof for pairs that are not two ReLUs of one tensor, or where a q is
    paired twice or is a p.
    """
    arrays = NumpyArrays() if arrays is None else arrays
    constants = {name: lift_constant(array) for name, array in network.constants.items()}
    shapes: dict[str, Shape] = dict(network.shapes)
    found: list[WalkStep] = []
    bases, first = _bases(pairs), 0
    wholes: dict[str, Node] = {}
    for node in network.nodes:
        try:
            parts = rewrite(node, shapes, constants) or Parts((node,), {}, {})
        except UnsupportedOp:
            found.append(_opaque(node, constants))
            wholes[node.output] = node
            continue
        constants.update({name: lift_constant(array) for name, array in parts.constants.items()})
        shapes.update(parts.shapes)
        wholes[node.output] = node
        for part in parts.nodes:
            if part.op == "Relu" and bases and part.inputs[0] not in constants:
                last = first + prod(shapes[part.inputs[0]])
                own = _own_bases(bases, first, last)
                first = last
                if (own >= 0).any():
                    paired = in_pairs(part, shapes, constants, own)
                    constants.update(
                        {name: lift_constant(array) for name, array in paired.constants.items()}
                    )
                    shapes.update(paired.shapes)
                    found += [_step(each, constants, shapes, arrays) for each in paired.nodes]
                    continue
            found.append(_step(part, constants, shapes, arrays))
    if bases and max(bases) >= first:
        raise InvalidProof(f"a pair names a ReLU beyond the network's {first}")
    if len(found) > MOST_STEPS:
        raise InvalidProof(f"the network has more than {MOST_STEPS} steps")
    return Steps(network, constants, shapes, tuple(found), wholes)


def _opaque(node: Node, constants: Mapping[str, Interval]) -> WalkStep:
    varying = tuple(name for name in node.inputs if name and name not in constants)
    return WalkStep(node, varying, None, is_opaque=True)


def _bases(pairs: Sequence[Pair]) -> dict[int, int]:
    bases = {q: p for p, q in pairs}
    if len(bases) < len(pairs) or any(p in bases for p in bases.values()):
        raise InvalidProof("a ReLU is the second of two pairs, or the first of one and second of another")
    return bases


def _own_bases(bases: Mapping[int, int], first: int, last: int) -> NDArray[np.int64]:
    """Of the ReLUs from `first` on those that the others are paired with, −1 for none, from 0 on."""
    own = np.full(last - first, -1, dtype=np.int64)
    for q in range(first, last):
        if q in bases:
            if not first <= bases[q] < last:
                raise InvalidProof(f"the ReLUs {bases[q]} and {q} are not of one tensor")
            own[q - first] = bases[q] - first
    return own


def _step(
    node: Node, constants: Mapping[str, Interval], shapes: Mapping[str, Shape], arrays: Arrays
) -> WalkStep:
    given = [name for name in node.inputs if name]
    varying = tuple(name for name in given if name not in constants)
    if node.op in (*UNITS, DIFFERENCE) or (node.op == "Mul" and len(varying) == 2):
        return WalkStep(node, tuple(given), None)
    if not varying:
        return WalkStep(node, (), ())
    if node.op not in TRANSPOSES:
        return _opaque(node, constants)
    numbers = [constants[name].lower if name in constants else None for name in given]
    asked = AffineNode(node, numbers, [shapes[name] for name in given], shapes[node.output], arrays)
    try:
        back = TRANSPOSES[node.op](asked)
    except UnsupportedOp:
        return _opaque(node, constants)
    return WalkStep(node, varying, back.transposes, back.terms, back.inexact)


#: Two ReLUs, the second of which is bounded by its difference from the first.
Pair = tuple[int, int]
Facts = Mapping[str, Interval]
"""For tensors by name, between which numbers each entry lies."""
Choices = Mapping[str, Floats]
"""For the units of a step, by the name of its output, numbers in [0, 1], nan for the usual line."""
Sides = tuple[Choices, Choices]
"""The lines with which a tensor is bounded from below, and from above."""


@dataclass(frozen=True)
class TensorCuts:
    """Half-spaces  sign·(entry − value) >= 0  of one tensor, one for each of some regions.

    `multipliers` >= 0 may be anything.
    """

    tensor: str
    regions: np.ndarray
    entries: np.ndarray
    signs: Floats
    values: Floats
    multipliers: Floats


@dataclass(frozen=True)
class BoxRegions:
    """Parts of the box: the facts of each where they differ from those of the whole, and its cuts.

    The first axis of every array in `facts` stands for the regions.
    """

    count: int
    facts: Facts = field(default_factory=dict)
    cuts: Sequence[TensorCuts] = ()


class BoundedNetwork:
    """A network over a box: facts about every tensor, and functionals of tensors bounded from below.

    With `ulps`, every run in the float type `form` on a point of the box is covered, by noise at every
    node; without it, the network over the reals. The tensors in `refined` are bounded by functionals before
    they are read, with the lines that `choices` gives for each of them; the others only by intervals.

    Raises UnsupportedOp for other operators, and InvalidProof if a tensor is not bounded.
    """

    def __init__(
        self,
        steps: Steps,
        box: Interval,
        *,
        refined: Mapping[str, Sides],
        ulps: int | None,
        form: Format = FLOAT32,
    ) -> None:
        network = steps.network
        if ulps is not None:
            require_format(network, form)
        self.steps, self._ulps, self._form = steps, ulps, form
        inputs = box.map(lambda end: end.reshape(network.input_shape))
        self.facts: dict[str, Interval] = {**steps.constants, network.input: inputs}
        if ulps is not None and network.output in network.constants:
            self.facts[network.output] = lifted(network.constants[network.output], form).floats
        self._biases: dict[str, Floats] = {}
        self._losses: dict[str, Floats] = {}
        self._refined = set[str]()
        units = steps.units
        self._unit_steps = {s.node.output: s for s in steps.steps if s.node.output in units}
        with np.errstate(all="ignore"):
            for step in steps.steps:
                for name in step.sources:
                    if name in refined and name not in self._refined:
                        self._refine(name, refined[name])
                self._enter(step)

    def _enter(self, step: WalkStep) -> None:
        """Keep what the way back through a step needs, and the interval of what it writes.

        What an affine step writes is Σ A_s·v_s + b + n with |n| <= noise, what floats add in the node
        that the tensor was written by, at arguments within their facts and constants of their type.
        """
        node = step.node
        arguments = [self.facts[name] if name else None for name in node.inputs]
        found = _interval(node, arguments)
        noise = np.zeros(found.shape)
        whole = self.steps.wholes.get(node.output)
        if whole is not None:
            given = [self.facts[name] if name else None for name in whole.inputs]
            if whole is not node:
                found = _both(found, INTERVAL_RULES[whole.op](whole, given))
            if self._ulps is not None:
                rounded = [
                    a if a is None else self._read_as(name, a)
                    for name, a in zip(whole.inputs, given, strict=True)
                ]
                asked = RoundedNode(whole, found, rounded, self._ulps, self._form)
                noise = safe(ROUNDING_RULES[whole.op](asked))
                noise = infinite_beyond(found.magnitude + noise, noise, self._form)
                noise = np.broadcast_to(noise, found.shape)
        loss = noise
        if step.transposes is not None:
            out = prod(found.shape)
            zero = [
                a if a is None or name in self.steps.constants else point(np.zeros(a.shape))
                for name, a in zip(node.inputs, arguments, strict=True)
            ]
            constant = INTERVAL_RULES[node.op](node, zero)
            rate = gamma(step.terms) + gamma(out + 2) + step.inexact
            loss = rate * _size(node, arguments) + noise + (constant.upper - constant.lower)
            self._biases[node.output] = constant.lower
        self._losses[node.output] = safe(loss)
        if noise.any():
            found = widen(found.lower - noise, found.upper + noise)
        if not np.isfinite([found.lower, found.upper]).all():
            raise InvalidProof("a tensor is not bounded by finite numbers")
        self.facts[node.output] = found

    def _read_as(self, name: str, fact: Interval) -> Rounded:
        """A tensor as a node reads it in floats: constants of their type, what is computed as it was kept.

        In a type of 16 bits that may be in float32, and this node may read it rounded to the type while
        another one reads it as it is; an input is of the type.
        """
        if name in self.steps.network.constants:
            return lifted(self.steps.network.constants[name], self._form)
        is_kept = self._form.unit <= UNIT_ROUNDOFF or name == self.steps.network.input
        error = 0.0 if is_kept else safe(self._form.unit * fact.magnitude + self._form.tiny)
        return Rounded(fact.lower, fact.upper, np.broadcast_to(error, fact.shape))

    def _refine(self, name: str, choices: Sides) -> None:
        """Bound the entries of a tensor by functionals, once."""
        found = self.refine(BoxRegions(1), name, choices).facts[name]
        self.facts[name] = found.map(lambda end: end[0])
        self._refined.add(name)

    def bias(self, name: str) -> Floats:
        """The constant part of what an affine step writes."""
        return self._biases[name]

    def undecided(self, name: str, known: Interval) -> NDArray[np.bool_]:
        """Which entries of a tensor are worth bounding: [regions, size]; of ReLUs those of either sign."""
        readers = [s.node for s in self.steps.steps if name in s.sources and s.transposes is None]
        lower, upper = (
            end.reshape(-1, prod(self.steps.shapes[name])) for end in (known.lower, known.upper)
        )
        if all(node.op == "Relu" for node in readers):
            return np.asarray((lower < 0) & (upper > 0))
        return np.asarray(lower < upper)

    def refine(self, regions: BoxRegions, name: str, choices: Sides) -> BoxRegions:
        """The regions with one more fact each: the tensor's entries bounded from both sides.

        First by the units that it is computed from, within their facts, which is cheap; then all the way
        for entries that this leaves undecided. What is bounded in a region depends on that region alone.
        """
        shape = self.steps.shapes[name]
        known = self._fact(regions, name)
        flat = (regions.count, prod(shape))
        lower, upper = (
            np.broadcast_to(end.reshape(len(end), -1), flat).copy() for end in (known.lower, known.upper)
        )
        usual: dict[str, Planes | None] = {}
        planes: list[dict[str, Planes | None]] = [{} if own else usual for own in choices]
        for near in (True, False) if self._is_deep(name) else (False,):
            wanted = self.undecided(name, Interval(lower, upper))
            together = wanted.any(0, keepdims=True) if near else wanted
            entries = np.argsort(~together, axis=1, kind="stable")[:, : together.sum(1).max(initial=0)]
            size = max(1, MOST_NUMBERS // (len(entries) * self.largest))
            for start in range(0, entries.shape[1], size):
                self.steps.pause()
                some = entries[:, start : start + size]
                rows = np.zeros((*some.shape, prod(shape)))
                np.put_along_axis(rows, some[..., None], 1.0, 2)
                found = [
                    self.lower_bounds(
                        {name: sign * rows.reshape(*some.shape, *shape)},
                        regions,
                        own,
                        near=near,
                        planes=seen,
                    )
                    for sign, own, seen in zip((1.0, -1.0), choices, planes, strict=True)
                ]
                where = np.arange(regions.count)[:, None], some
                lowest, highest = (
                    np.where(wanted[where], sign * f, sign * -np.inf)
                    for sign, f in zip((1.0, -1.0), found, strict=True)
                )
                lower[where] = np.fmax(lower[where], lowest)
                upper[where] = np.fmin(upper[where], highest)
        fact = Interval(lower.reshape(-1, *shape), upper.reshape(-1, *shape))
        return replace(regions, facts={**regions.facts, name: fact})

    def _is_deep(self, name: str) -> bool:
        """Whether a tensor is computed from units, not from the input by affine steps alone."""
        behind = {name}
        for step in reversed(self.steps.steps):
            if step.node.output in behind:
                if step.transposes is None:
                    return True
                behind.update(step.sources)
        return False

    @property
    def largest(self) -> int:
        """The size of the largest tensor that varies."""
        return max(prod(self.steps.shapes[name]) for name in self.steps.tensors)

    @np.errstate(all="ignore")
    def lower_bounds(
        self,
        rows: Mapping[str, Floats],
        regions: BoxRegions,
        choices: Choices = MappingProxyType({}),
        *,
        near: bool = False,
        planes: dict[str, Planes | None] | None = None,
    ) -> Floats:
        """For each region and row a lower bound of Σ row·tensor, over the region and all noise.

        `rows` has for tensors by name arrays [regions or 1, rows, *shape]; the result is [regions, rows].
        With `near`, the walk ends at the units that it meets, and takes their facts. Lines are kept in
        `planes`, for further walks with the same regions and choices.

        Theorem. Let g = Σ_t λ_t·t + c. Going back, step by step: an affine step t = Σ A_s·v_s + b + n
        gives λ·t = Σ (A_sᵀλ)·v_s + λ·b + λ·n, and λ·n >= −|λ|·noise. A unit t = f(e) + n, with e in an
        interval on which s·e + r <= f(e) <= s'·e + r', gives λ·f(e) >= λ·s·e + λ·r where λ >= 0, and
        λ·s'·e + λ·r' where λ < 0; a product likewise with planes. Where a cut says that
        σ·(e − v) >= 0, g >= g − β·σ·(e − v) for every β >= 0. Every reader of a tensor comes after it, so
        its functional is complete when its turn comes. This leaves linear functions of the input, or of
        tensors with known facts, whose minima are at corners; so walks may end at any tensor.

        All of this is computed in float64, and `lost` bounds what that may lose. Coefficients are taken for
        the numbers that they are: where |v| <= m, |fl(Aᵀλ)·v − (Aᵀλ)·v| <= γ_n |λ|·(|A|·m) + n·2^-1074 Σ m
        (Higham, 3.1), n being the products that are added up for one entry, in any order; factors that are
        off by δ relative to themselves lose δ·|λ|·(|A|·m). fl(λ·s) and adding two functionals of one tensor
        round once each. A sum of N products loses γ_N of that of their sizes. m is taken over the whole
        box, of which regions are parts.
        `lost` is a sum of fewer than 2^13 terms >= 0, computed to a relative
        2^-42 each: `safe` makes up for that, FLUSHED for underflow.
        """
        walk = _Walk(np.zeros((1, 1)), np.zeros((1, 1)), dict(rows))
        planes = {} if planes is None else planes
        for step in reversed(self.steps.steps):
            name = step.node.output
            if name not in walk.pending or step.is_opaque or (near and step.transposes is None):
                continue
            functional = self._cut(walk, name, regions)
            if step.transposes is not None:
                walk.add(_dot(functional, self._biases[name][None]), 0.0)
                walk.lose(_dot(np.abs(functional), self._losses[name][None]), functional)
                flat = functional.reshape(-1, *self.steps.shapes[name])
                parts = [each(flat) for each in step.transposes]
            else:
                if name not in planes:
                    planes[name] = self._lines(step, regions, choices)
                if (lines := planes[name]) is None:
                    walk.pending[name] = functional
                    continue
                parts = self._through(walk, step, functional, lines)
            for source, part in zip(step.sources, parts, strict=True):
                shaped = part.reshape(-1, functional.shape[1], *self.steps.shapes[source])
                walk.pass_on(source, shaped, self.facts[source].magnitude)
        return self._ended(walk, regions)

    @np.errstate(all="ignore")
    def by_facts(self, rows: Mapping[str, Floats], regions: BoxRegions) -> Floats:
        """Bounds as `lower_bounds` gives them, by the facts about these tensors alone."""
        return self._ended(_Walk(np.zeros((1, 1)), np.zeros((1, 1)), dict(rows)), regions)

    def _ended(self, walk: _Walk, regions: BoxRegions) -> Floats:
        """The bounds where all that is pending takes the facts about its tensor."""
        for name, functional in walk.pending.items():
            ends = self._fact(regions, name)
            above, below = np.maximum(functional, 0.0), np.minimum(functional, 0.0)
            size = self.facts[name].magnitude[None]
            walk.add(_dot(above, ends.lower) + _dot(below, ends.upper), 0.0)
            walk.lose(gamma(2 * size.size + 2) * (_dot(above, size) - _dot(below, size)), functional)
        lowest = down(walk.constant - safe(walk.lost))
        found = np.where(np.isfinite(lowest), lowest, -np.inf)
        return np.broadcast_to(found, (regions.count, found.shape[1]))

    def _fact(self, regions: BoxRegions, name: str) -> Interval:
        """The fact of each region about a tensor: [regions or 1, *shape].

        About what a unit writes, it follows from the facts about what it reads, noise included: entry by
        entry, so that regions may come first. An opaque step may have axes of its own.
        """
        found = regions.facts.get(name)
        if found is not None:
            return found
        known = self.facts[name].map(lambda end: end[None])
        step = self._unit_steps.get(name)
        if step is None or not any(source in regions.facts for source in step.sources):
            return known
        wide = _interval(step.node, [self._fact(regions, each) for each in step.sources])
        noise = self._losses[name]
        return _both(known, widen(wide.lower - noise, wide.upper + noise) if noise.any() else wide)

    def _cut(self, walk: _Walk, name: str, regions: BoxRegions) -> Floats:
        """The functional of a tensor, taken from the walk, with −β·σ·(e − v) for each of its cuts."""
        functional = walk.pending.pop(name)
        cuts = [cut for cut in regions.cuts if cut.tensor == name and cut.multipliers.any()]
        if not cuts:
            return functional
        sizes = self.facts[name].magnitude.reshape(-1)
        flat = np.broadcast_to(functional, (regions.count, *functional.shape[1:]))
        flat = flat.reshape(*flat.shape[:2], -1).copy()
        shift, lost = (np.zeros(flat.shape[:2]) for _ in range(2))
        for cut in cuts:
            pull = cut.signs * cut.multipliers
            flat[cut.regions, :, cut.entries] -= pull[:, None]
            rounded = np.abs(flat[cut.regions, :, cut.entries]) * sizes[cut.entries, None]
            moved = pull * cut.values
            shift[cut.regions] += moved[:, None]
            lost[cut.regions] += ROUNDED * (rounded + np.abs(moved)[:, None] + np.abs(shift[cut.regions]))
        walk.add(shift, lost)
        return flat.reshape(*flat.shape[:2], *functional.shape[2:])

    def _lines(self, step: WalkStep, regions: BoxRegions, choices: Choices) -> Planes | None:
        """The planes below and above a unit in each region; None where it has no finite ones."""
        choice = choices.get(step.node.output, USUAL)
        count = 1 if choice is USUAL else len(choice)
        facts = [_times(self._fact(regions, name), count) for name in step.sources]
        try:
            return planes_of(step.node, facts, choice)
        except InvalidProof:
            return None

    def _through(self, walk: _Walk, step: WalkStep, functional: Floats, lines: Planes) -> list[Floats]:
        """Coefficients of a unit or product turned into those of what it reads."""
        sizes = [self.facts[name].magnitude for name in step.sources]
        loss, rate = self._losses[step.node.output], gamma(2 * functional[0, 0].size + 4)
        parts: list[Floats] = []
        for sign, own in zip(
            (np.maximum(functional, 0.0), np.minimum(functional, 0.0)), lines, strict=True
        ):
            *slopes, shift = own
            off = sum((ROUNDED * np.abs(s) * size for s, size in zip(slopes, sizes, strict=True)), loss)
            walk.add(_dot(sign, shift), 0.0)
            walk.lose(np.abs(_dot(sign, off + rate * np.abs(shift))), functional)
            turned = [sign * s[:, None] for s in slopes]
            parts = [a + b for a, b in zip(parts, turned, strict=True)] if parts else turned
        return parts


@dataclass
class _Walk:
    """A walk backwards so far: Σ pending·tensor + constant − lost is a lower bound of every row."""

    constant: Floats
    lost: Floats
    pending: dict[str, Floats]

    def add(self, shift: Floats, lost: Floats | float) -> None:
        """Add to the constant, which rounds once."""
        self.constant = self.constant + shift
        self.lost = self.lost + (lost + ROUNDED * np.abs(self.constant) + FLUSHED)

    def lose(self, weighed: Floats, functional: Floats) -> None:
        """Lose Σ |λ|·size, which was computed as a sum of products >= 0."""
        self.lost = self.lost + weighed * (1.0 + 2.0 * gamma(functional[0, 0].size + 2))

    def pass_on(self, name: str, part: Floats, size: Floats) -> None:
        """Add a functional to a tensor."""
        self.lost = self.lost + FLUSHED * (1.0 + size.sum())
        if name in self.pending:
            part = self.pending[name] + part
            self.lose(ROUNDED * _dot(np.abs(part), size[None]), part)
        self.pending[name] = part


def _dot(functional: Floats, vectors: Floats) -> Floats:
    """Σ functional·vector for functionals [n or 1, rows, *shape] and vectors [n or 1, *shape]."""
    left = functional.reshape(*functional.shape[:2], -1)
    right = np.ascontiguousarray(vectors).reshape(len(vectors), -1)
    if len(left) == 1:
        found = (left[0] @ right.T).T
    else:
        found = np.matmul(left, right[..., None])[..., 0] if len(right) > 1 else left @ right[0]
    return np.asarray(found)


def _times(fact: Interval, count: int) -> Interval:
    """The fact for each of so many regions, where it is one for all of them."""
    if len(fact.lower) == count or count == 1:
        return fact
    return fact.map(lambda end: np.broadcast_to(end, (count, *end.shape[1:])))


def _interval(node: Node, arguments: Sequence[Interval | None]) -> Interval:
    """What a step writes, from what it reads."""
    if node.op == DIFFERENCE:
        d, a, b = (each for each in arguments if each is not None)
        return difference_interval(d, a, b)
    return INTERVAL_RULES[node.op](node, arguments)


def _both(a: Interval, b: Interval) -> Interval:
    """What lies in both intervals, if they meet."""
    return Interval(np.fmax(a.lower, b.lower), np.fmin(a.upper, b.upper))


def _size(node: Node, arguments: Sequence[Interval | None]) -> Floats:
    """|A|·|v| + |b| of an affine node: a difference is as large as a sum."""
    signs = {name: abs(node.real(name)) for name in ("alpha", "beta", "value") if name in node.attributes}
    op = "Add" if node.op == "Sub" else node.op
    absolute = replace(node, op=op, attributes={**node.attributes, **signs})
    sizes = [None if a is None else point(a.magnitude) for a in arguments]
    if node.op == "BatchNormalization":  # (|x| + |mean|)·|scale|/√(variance + ε) + |bias|
        mean = sizes[3]
        assert mean is not None
        sizes[3:] = point(-mean.lower), arguments[4]
    return INTERVAL_RULES[op](absolute, sizes).magnitude
