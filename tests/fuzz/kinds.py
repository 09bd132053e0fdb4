"""Puts every kind of proof to networks that its lemmas may not have been written for.

    python -m tests.fuzz.kinds SEED COUNT

draws COUNT networks of every rank, batch size, number of groups and order of operands that the reader
admits, puts every kind of proof to each, and compares what it proves with the exact values at points of the
box and with what onnxruntime computes there: a proven margin must not exceed the slack at any of them. It
prints how many certificates were tried and accepted for each kind, and every fault: a false margin, or an
error that is not one of ours.
"""

from __future__ import annotations

import base64
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import floor, prod
from typing import Any

import numpy as np
import onnx

from dokimos.checker import CERTIFICATES
from dokimos.checker.base import Problem, Proven
from dokimos.checker.linear.cover import pack
from dokimos.checker.linear.walk import Steps, steps_of
from dokimos.core.errors import DokimosError, about
from dokimos.engine.runtimes.sessions import load_session, run_session
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided, evaluate
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.checker.files import question
from tests.fuzz.graphs import DRAWS, Graph, Rng, Whole, integer, one_of

POINTS = 24


@dataclass(frozen=True)
class Side:
    """Σ d·Y_j + Σ c·X_i, for the outputs and inputs by number, less `least`."""

    outputs: Mapping[int, int]
    inputs: Mapping[int, int] = field(default_factory=dict)
    least: Fraction = Fraction(0)

    def at(self, point: Sequence[Fraction], ends: Callable[[int, bool], Fraction]) -> Fraction:
        """Its value at a point; `ends` gives the lower end of an output, or the upper one."""
        found = sum((c * point[i] for i, c in self.inputs.items()), -self.least)
        return found + sum((d * ends(j, d > 0) for j, d in self.outputs.items()), Fraction(0))

    def asked(self, bound: Fraction) -> str:
        """That it is at most the bound, in VNN-LIB."""
        terms = [f"(* {float(d)} Y_{j})" for j, d in self.outputs.items()]
        terms += [f"(* {float(c)} X_{i})" for i, c in self.inputs.items()]
        left = f"(+ {' '.join(terms)})" if len(terms) > 1 else terms[0]
        if not self.inputs and list(self.outputs.values()) == [1]:
            left = f"Y_{next(iter(self.outputs))}"
        return f"(<= {left} {exact_decimal(bound + self.least)})"


@dataclass(frozen=True)
class Drawn:
    """A network over a box, points of it, and a question: is every side of some group at most a bound?"""

    content: bytes
    network: Network
    bounds: tuple[tuple[Fraction, Fraction], ...]
    points: tuple[tuple[Fraction, ...], ...]
    groups: Sequence[Sequence[Side]]
    rng: Rng

    @cached_property
    def exact(self) -> list[Fraction]:
        """An upper bound, at each point where the network has a value, on the least of the groups' largest
        sides."""
        found = []
        for point in self.points:
            try:
                value = evaluate(self.network, point)
            except Undecided:
                continue
            ends = (value.lower, value.upper)
            found.append(self._least(point, lambda j, up: ends[up][j]))  # noqa: B023
        return found

    @cached_property
    def computed(self) -> list[Fraction]:
        """What onnxruntime gives for this at each point, all of which are float32 points."""
        found: list[Fraction] = []
        try:
            session = load_session(self.content, "network")
        except DokimosError:  # onnxruntime does not run every network that ONNX admits
            return found
        for point in self.points:
            values = np.array([float(v) for v in point], dtype=np.float32).reshape(self.network.input_shape)
            try:
                outputs = run_session(session, values, "network").reshape(-1)
            except DokimosError:
                continue
            if np.isfinite(outputs).all():
                exact = [Fraction(float(y)) for y in outputs]
                found.append(self._least(point, lambda j, _: exact[j]))  # noqa: B023
        return found

    def _least(self, point: Sequence[Fraction], ends: Callable[[int, bool], Fraction]) -> Fraction:
        return min(max(side.at(point, ends) for side in sides) for sides in self.groups)

    def question(self, bound: Fraction) -> Property:
        """Is every side of a group <= bound somewhere?"""
        decimals = [tuple(map(exact_decimal, ends)) for ends in self.bounds]
        asked = [[side.asked(bound) for side in sides] for sides in self.groups]
        if len(asked) > 1:
            asked = [[f"(or {' '.join(f'(and {chr(32).join(sides)})' for sides in asked)})"]]
        text = question(decimals, self.network.output_size, *asked[0])
        return read_vnnlib(text, file="fuzz")


def draw(rng: Rng, draws: Sequence[Callable[[Rng], Graph | Whole]]) -> Drawn | None:
    """A network, read; None where no graph came of it, or the reader refuses it."""
    try:
        graph = draws[integer(rng, 0, len(draws) - 1)](rng)
        content = graph.file()
    except (ValueError, IndexError, KeyError, onnx.shape_inference.InferenceError):
        return None
    try:
        network = read_onnx(content, name="fuzz.onnx")
    except DokimosError:
        return None
    if not network.output_size:
        return None
    centre = [Fraction(integer(rng, -4, 4), 4) for _ in range(network.input_size)]
    if isinstance(graph, Whole):
        ends = (graph.bounds + [(0.5, 1.0)] * len(centre))[: len(centre)]
        centre = [Fraction(round(32 * (low + high)), 64) for low, high in ends]
    widths = one_of(rng, (1, 4), (0, 1, 4, 16, 64), (1, 2), (1,), (1, 4), (2**9, 2**11), (2**6, 2**18))
    radius = [Fraction(one_of(rng, *widths), 64) for _ in centre]
    bounds = tuple((c - r, c + r) for c, r in zip(centre, radius, strict=True))
    parts = [one_of(rng, [0.0, 1.0], [0.5], np.arange(33) / 32) for _ in range(POINTS)]
    points = tuple(
        tuple(a + (b - a) * Fraction(float(rng.choice(part))) for a, b in bounds) for part in parts
    )
    groups = [drawn_sides(network, rng) for _ in range(one_of(rng, 1, 1, 1, 2, 3))]
    return Drawn(content, network, bounds, points, groups, rng)


def drawn_sides(network: Network, rng: Rng) -> list[Side]:
    """One, or several of which some are higher than others."""
    sides = [drawn_side(network, rng)]
    while rng.random() < 0.3:
        sides.append(replace(drawn_side(network, rng), least=Fraction(integer(rng, -8, 8), 4)))
    return sides


def drawn_side(network: Network, rng: Rng) -> Side:
    """One or two outputs, and now and then an input."""
    outputs = rng.permutation(network.output_size)[: integer(rng, 1, 2)]
    signs = (1, -1) if rng.random() < 0.5 else (1, 1)
    row = {int(j): s for j, s in zip(sorted(outputs), signs, strict=False)}
    asks_inputs = network.input_size and rng.random() < 0.2
    inputs = {integer(rng, 0, network.input_size - 1): one_of(rng, -2, -1, 3)} if asks_inputs else {}
    return Side(row, inputs)


def certificates(drawn: Drawn) -> Iterator[tuple[str, dict[str, Any]]]:
    """Data for every kind: any choice must be sound."""
    network, rng = drawn.network, drawn.rng
    tensors = [node.output for node in network.nodes] or [network.input]
    convolutions = [node.output for node in network.nodes if node.op == "Conv"] or tensors
    centre = [str((a + b) / 2) for a, b in drawn.bounds]
    tree = [0, -1, -1] if drawn.bounds and rng.random() < 0.5 else [-1]
    asked = len(drawn.groups)
    whole = {"questions": [{"tree": tree, "own": True}] * asked}
    pairs = [[0, 1]] if rng.random() < 0.7 else []
    for kind in ("contraction", "convex-corners", "fixed-routing", "linear-attention", "no-inputs",
                 "nonexpansive", "softmax-attention"):  # fmt: skip
        yield kind, {}
    yield "constant-on-box", {"tensor": str(rng.choice(tensors))}
    yield "convex-tangent", {"point": centre}
    with suppress(DokimosError):  # a network that it refuses is put to it all the same
        yield "linear", linear_data(network, rng, *map(len, drawn.groups))
    yield "linear", {"questions": [{"tree": tree}] * asked, "pairs": pairs}
    yield "linear", whole
    yield "ordered-pairs", {"convolution": str(rng.choice(convolutions)), "pairs": pairs}
    yield "pinning", {"unit": None, "cuts": [], "slopes": [], "halvings": [tree]}
    yield "rewritten", {"base": base64.b64encode(drawn.content).decode(), "steps": [],
                        "kind": "linear", "data": whole}  # fmt: skip
    yield "parity-lock", {"gate": 0, "bits": [0], "equations": [{"bits": [0], "odd": True}],
                          "contradiction": [], "penalty": "1", "kind": "linear",
                          "data": whole}  # fmt: skip


def linear_data(network: Network, rng: Rng, *constraints: int) -> dict[str, Any]:
    """Covers that are drawn, for conjunctions of so many constraints (one of one, if none are given); some
    share what holds on the whole box."""
    pairs = drawn_pairs(network, rng)
    steps = steps_of(network, pairs=pairs)
    questions = [linear_question(steps, rng, count) for count in constraints or (1,)]
    if rng.random() < 0.5:
        first = questions[0]
        questions = [{**each, **{key: first[key] for key in ("refined", "root")}} for each in questions]
    return {"questions": questions, "pairs": pairs}


def linear_question(steps: Steps, rng: Rng, constraints: int) -> dict[str, Any]:
    """A cover of a few cuts of any entries at any values, with any choices."""
    sizes = [prod(steps.shapes[name]) for name in steps.tensors]
    tree: list[int] = []
    at: dict[str, float] = {}
    depths: list[int] = []  # for each leaf the cuts of other tensors than the input on its path

    def grow(depth: int, cuts: int) -> None:
        if depth == 0 or not sum(sizes) or rng.random() < 0.3:
            tree.append(-1)
            depths.append(cuts)
            return
        number = integer(rng, 0, len(sizes) - 1)
        entry = sum(sizes[:number]) + integer(rng, 0, max(sizes[number] - 1, 0))
        if rng.random() < 0.4:
            at[str(len(tree))] = float(rng.normal())
        tree.append(entry)
        inner = entry >= sizes[0]
        grow(depth - 1, cuts + inner)
        grow(depth - 1, cuts + inner)

    grow(integer(rng, 0, 3), 0)
    units = sum(prod(shape) for shape in steps.units.values())
    refined = [k for k in range(len(sizes)) if rng.random() < 0.6]
    again = [k for k in range(len(sizes)) if rng.random() < 0.3]

    is_long = rng.random() < 0.3

    def some(*shape: int) -> str:
        drawn = rng.integers(0, 256, size=shape, dtype=np.uint8)
        return pack(drawn.tobytes()) if rng.random() < 0.7 else ""

    def lines(*shape: int) -> str:
        """As numbers, a few of which no choice should be, or as bytes."""
        if not is_long:
            return some(*shape)
        odd = rng.choice([np.nan, np.inf, -1.0, 2.0, -0.0], size=shape)
        return pack(np.where(rng.random(shape) < 0.9, rng.random(shape), odd).astype("<f8").tobytes())

    multipliers = rng.exponential(1.0, size=sum(depths)) * (rng.random(sum(depths)) < 0.7)
    return {
        "tree": tree,
        "at": at,
        "refined": refined,
        "again": again,
        "own": not sum(depths) and rng.random() < 0.5,
        "root": lines(2 * len(refined), units),
        "lines": lines(len(depths), units),
        "multipliers": pack(multipliers.astype("<f8" if is_long else "<f4").tobytes()),
        "weights": some(len(depths), constraints),
    }


def drawn_pairs(network: Network, rng: Rng) -> list[tuple[int, int]]:
    """Now and then, ReLUs of one tensor in pairs, some with the same first."""
    pairs: list[tuple[int, int]] = []
    first = 0
    for node in network.nodes if rng.random() < 0.5 else ():
        if node.op == "Relu" and node.inputs[0] not in network.constants:
            size = prod(network.shapes[node.output])
            order = [first + int(k) for k in rng.permutation(size)]
            firsts = order[: max(1, size // 2)]
            pairs += [(one_of(rng, *firsts), q) for q in order[len(firsts) :] if rng.random() < 0.7]
            first += size
    return pairs


def false(proven: Proven, bound: Fraction, drawn: Drawn) -> str:
    """What is false about margins that were proven; empty if nothing is known to be."""
    for margin, values, what in (
        (proven.real, drawn.exact, "exact value"),
        (proven.floats, drawn.computed if proven.floats is not None else [], "value of onnxruntime"),
    ):
        if margin is not None and values and min(values) - bound < margin:
            return f"margin {about(margin)}, but the {what} leaves {about(min(values) - bound)}"
    return ""


def false_at(proven: Proven, bound: Fraction, drawn: Drawn) -> str:
    """The same of a witness, which is the first of the points: a side is surely above the bound there."""
    try:
        value = evaluate(drawn.network, drawn.points[0])
    except Undecided:
        return ""
    ends = (value.upper, value.lower)
    least = min(
        max(side.at(drawn.points[0], lambda j, up: ends[up][j]) for side in sides) for sides in drawn.groups
    )
    return f"a side is {about(least)} there" if least > bound else ""


@dataclass
class Tally:
    """What came of the certificates."""

    tried: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)

    def put(self, kind: str, drawn: Drawn, bound: Fraction, data: dict[str, Any], case: str) -> None:
        """Put one certificate to its kind. A witness is any point; a bound is wanted from the others."""
        self.tried[kind] += 1
        witness = drawn.points[0] if CERTIFICATES[kind].proves is Label.SAT else None
        try:
            problem = Problem(drawn.network, drawn.question(bound), witness)
            proven = CERTIFICATES[kind].prove(problem, data)
        except DokimosError:
            return
        except Exception as error:  # the fault that is looked for
            self._fault(f"{case} {kind}: {type(error).__name__}: {error}", drawn)
            return
        self.accepted[kind] += 1
        if proven.floats is not None and drawn.network.dtype != np.float32:
            found = "a margin in float32, but the network is float64"
        else:
            found = (false if witness is None else false_at)(proven, bound, drawn)
        if found:
            self._fault(f"{case} {kind}: {found}", drawn)

    def _fault(self, text: str, drawn: Drawn) -> None:
        self.faults.append(text)
        self.contents.append(drawn.content)


def put_to_all(seed: int, count: int, draws: Sequence[Callable[[Rng], Graph | Whole]] = DRAWS) -> Tally:
    """The kinds put to `count` networks drawn with this seed."""
    tally = Tally()
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        case = f"seed {seed} number {number}"
        try:
            drawn = draw(rng, draws)
            if drawn is None or not drawn.exact:
                continue
        except Exception as error:  # of the reader, or of the exact values
            tally.faults.append(f"{case}: {type(error).__name__}: {error}")
            continue
        least, grain = min(drawn.exact), one_of(rng, 2**20, 2**20, 2**60)
        # At the value itself, where nothing can be proven, or just below, or far below.
        less = one_of(rng, 0, 1, *[integer(rng, 1, 2 * grain)] * 4)
        below = Fraction(floor(least * grain) - less, grain)
        for kind, data in certificates(drawn):
            tally.put(kind, drawn, below - (1000 if kind == "contraction" else 0), data, case)
        for bound in (below, Fraction(floor(least * 2**20) + 2**20, 2**20)):
            tally.put("witness", drawn, bound, {}, case)
    return tally


if __name__ == "__main__":
    done = put_to_all(int(sys.argv[1]), int(sys.argv[2]))
    for name in sorted(CERTIFICATES):
        print(f"{name:20} {done.tried[name]:8,} tried {done.accepted[name]:8,} accepted")
    tried, accepted = sum(done.tried.values()), sum(done.accepted.values())
    print(f"{tried:,} certificates, {accepted:,} accepted, {len(done.faults)} faults")
    for fault in done.faults[:40]:
        print(fault)
