"""Checks that runtimes compute the network that Dokimos has read, and that the label survives their values.

The checker proves a label of the network as Dokimos reads it. If a rule of the reader were wrong, or a file
ambiguous, that would not be the network that everybody else runs. So the values at a few points are
compared: if float32 evaluation differs from the exact value by more than the rounding bound at that point,
one of the two misreads the file.

And if a lemma of the checker were wrong, a point may tell. An `unsat` is refuted by one input of the set
whose exact outputs are unsafe, and its claim for float32 by one whose outputs in a runtime are; a `sat`
that is claimed for float32, by a runtime that finds its witness safe.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.base import FLOATS
from dokimos.core.errors import InputError, InvalidProof, about
from dokimos.engine.runtimes.narrow import written_for
from dokimos.engine.runtimes.sessions import (
    CannotRun,
    OnnxReference,
    OnnxRuntime,
    Replayer,
    Runtime,
    nearest_float,
    nearest_point,
)
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Enclosure, Undecided, evaluate
from dokimos.networks.semantics.outward import Format
from dokimos.networks.semantics.rounding import own_format, rounded_outputs
from dokimos.suites.instance import DEFAULT_ULPS, Instance, Label, Semantics, Truth
from dokimos.suites.vnnlib.model import Box, Case, Point, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at, violation_of

# The points at which a network is compared, few and chosen so that a misreading shows, and those of a box
# at which an `unsat` is put to the test, more of them and drawn at random


_FLOAT32, _NARROW = np.dtype(np.float32), ("float16", "bfloat16")


def points_to_compare(
    question: Property, witness: Point | None, *, few: bool, dtype: np.dtype[Any] = _FLOAT32
) -> Mapping[str, Point]:
    """The witness, the centre of the first box, and a corner of the first and of the last box, by name.

    The ends of a corner are drawn at random with a fixed seed: if all were lower ends, a window in the
    wrong place might see the same numbers. Every point is rounded to the nearest point of type `dtype` and
    may leave its box; the network has a value there as well. With `few`, only the witness and one corner.
    """
    named = {name: nearest_point(point, dtype) for name, point in _named(question, witness, few=few)}
    found: dict[Point, str] = {}
    for name, point in named.items():
        if point is not None:
            found.setdefault(point, name)
    return {name: point for point, name in found.items()}


def _named(question: Property, witness: Point | None, *, few: bool) -> Iterator[tuple[str, Point]]:
    if witness is not None:
        yield "the witness", witness
    boxes = [case.box for case in question.cases if not case.box.is_empty]
    if not boxes:
        return
    yield "a corner of the first box", _corner(boxes[0])
    if not few:
        yield "the centre of the first box", boxes[0].centre
        yield "a corner of the last box", _corner(boxes[-1])


def _corner(box: Box) -> Point:
    upper = np.random.default_rng(box.size).random(box.size) < 0.5
    return tuple(b if up else a for a, b, up in zip(box.lower, box.upper, upper, strict=True))


def drawn_points(box: Box, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Points of type `dtype` in the box, [at most `count`, inputs]: half of them corners, half uniform.

    Every end is rounded inward; there are no points if a coordinate has no number of the type.
    """
    low, high = _ends(box.lower, np.inf, dtype), _ends(box.upper, -np.inf, dtype)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        return np.empty((0, box.size), dtype)
    rng = np.random.default_rng(box.size)
    share = rng.random((count, box.size))
    share[: count // 2] = share[: count // 2] < 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        inside = (1 - share) * low.astype(np.float64) + share * high.astype(np.float64)
    return np.asarray(np.clip(np.nan_to_num(inside).astype(dtype), low, high))


def _ends(ends: Point, towards: float, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The ends of a box, each rounded towards the inside; not finite where there is no such number."""
    near = [nearest_float(x, dtype) for x in ends]
    found = np.array([np.nan if n is None else float(n) for n in near], dtype=dtype)
    outside = [n is not None and (n < x if towards > 0 else n > x) for n, x in zip(near, ends, strict=True)]
    return np.where(outside, np.nextafter(found, dtype.type(towards)), found)


def as_point(row: NDArray[Any]) -> Point:
    """A row of floats as the exact numbers that they are."""
    return tuple(Fraction(float(x)) for x in row)


#: Up to this many multiplications, the exact value is computed if outward-rounded float64 does not decide,
#: in less than a second of CPU time. Above, float64 must suffice, and fewer points are compared.
EXACT_WORK = 500_000
#: At so many points of a box an `unsat` is put to the test, and so many of the worst are evaluated exactly.
DRAWN, WORST = 100, 3


@dataclass(frozen=True)
class CrossCheck:
    """The result of the comparison on one instance.

    `runtime` is what the exact values were compared with; if it is empty, nothing was compared, and
    `remark` says why. `contradiction` is the sentence that refuses the label; a `remark` does not refuse
    it.
    """

    runtime: str
    contradiction: str = ""
    remark: str = ""

    @property
    def is_done(self) -> bool:
        """Whether anything was compared."""
        return bool(self.runtime)


@dataclass(frozen=True)
class _Expected:
    """Enclosures of the exact outputs at one point, and the rounding bound of its float type for each."""

    network: Network
    where: str
    point: Point
    lower: Sequence[Fraction]
    upper: Sequence[Fraction]
    error: Sequence[Fraction]

    def explains(self, found: Sequence[float]) -> bool:
        """Whether rounding explains these outputs wherever in the enclosures the exact ones are."""
        return len(found) == len(self.lower) and all(
            np.isfinite(y) and high - error <= Fraction(y) <= low + error
            for y, low, high, error in zip(found, self.lower, self.upper, self.error, strict=True)
        )

    @cached_property
    def narrowed(self) -> _Expected:
        """The same with the exact values themselves, if they can be computed in reasonable time."""
        if self.network.multiplications > EXACT_WORK:
            return self
        try:
            value = evaluate(self.network, self.point)
        except Undecided:
            return self
        return replace(self, lower=value.lower, upper=value.upper)

    def disagreement(self, found: Sequence[float]) -> str:
        """What is wrong with these outputs, in words; empty if rounding explains them."""
        if len(found) != len(self.lower):
            return f"gives {len(found)} outputs, but the network is read as having {len(self.lower)}"
        for j, y in enumerate(found):
            low, high = self.lower[j] - self.error[j], self.upper[j] + self.error[j]
            if not np.isfinite(y) or not low <= Fraction(y) <= high:
                exact = about((self.lower[j] + self.upper[j]) / 2)
                return (
                    f"computes Y_{j} = {y:.9g} at {self.where}, but the exact value of the network as "
                    f"read is {exact}, and rounding explains at most {about(self.error[j])}"
                )
        return ""


def cross_check(instance: Instance, truth: Truth) -> CrossCheck:
    """Compare the exact values of the network at a few points with a runtime's, and the label with both.

    onnxruntime runs the nodes as they are in the file; if it cannot, ONNX's reference evaluator does. With
    its optimisations, onnxruntime may fold weights and so exceed the bound: that is a remark, not a
    contradiction. A small network with an `unsat` is also run at points drawn from its first and last box.
    """
    try:
        network = read_onnx(instance.network_file, name=f"{instance.name}.onnx")
        question = read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib")
        few, dtype = network.multiplications > EXACT_WORK, network.dtype
        points = points_to_compare(question, truth.witness, few=few, dtype=dtype)
        if not points:
            return CrossCheck("", remark="the property leaves no input to evaluate the network at")
        ulps = truth.claim(Semantics.FLOAT32).ulps or DEFAULT_ULPS
        expected = _expected(network, points, ulps)
        stake = _Stake(truth, network, question)
        if refuted := stake.refuted_exactly(expected) or stake.refuted_beyond(points, expected):
            return CrossCheck("", contradiction=refuted)
    except (InputError, Undecided) as error:
        return CrossCheck("", remark=str(error))
    if not expected:
        return CrossCheck(
            "", remark=f"{network.dtype} evaluation may overflow at every point that was tried"
        )
    compared = _compare(instance.network_file, network, expected, stake)
    if compared.is_done and not compared.contradiction and not few:
        try:
            compared = replace(compared, contradiction=stake.refuted_by_runs(instance.network_file))
        except (CannotRun, InputError) as error:
            compared = replace(compared, remark=str(error))
    if compared.is_done and not compared.contradiction and not few:
        return replace(compared, contradiction=stake.refuted_by_drawing(instance.network_file))
    return compared


@dataclass(frozen=True)
class _Stake:
    """What a point could refute: a label that is claimed, for the reals and perhaps for float32."""

    truth: Truth
    network: Network
    question: Property

    @property
    def is_unsat(self) -> bool:
        return self.truth.label is Label.UNSAT and self.truth.claim(Semantics.REAL).proven

    def refuted_exactly(self, expected: Sequence[_Expected]) -> str:
        """What is wrong with an `unsat` by the exact values at these points; empty if nothing is."""
        for one in expected if self.is_unsat else ():
            enclosed = Enclosure(tuple(one.lower), tuple(one.upper))
            if violation_of(self.question, one.point, enclosed).violates is False:
                continue
            if found := self._refuted_at(one.point, one.where):
                return found
        return ""

    def refuted_beyond(self, points: Mapping[str, Point], expected: Sequence[_Expected]) -> str:
        """The same at points where floats may overflow; only of small networks, where it costs little."""
        if not self.is_unsat or self.network.multiplications > EXACT_WORK:
            return ""
        known = {one.point for one in expected}
        left = (self._refuted_at(point, where) for where, point in points.items() if point not in known)
        return next(filter(None, left), "")

    def _refuted_at(self, point: Point, where: str) -> str:
        try:
            if violation_at(self.network, self.question, point).violates:
                return (
                    f"the label is unsat, but the exact outputs at {where} are unsafe: the proof is false"
                )
        except Undecided:
            pass
        return ""

    def refuted_in_float32(self, point: Point, where: str, found: Sequence[float]) -> str:
        """What is wrong with a claim for float32 by what a runtime computes; empty if nothing is."""
        return self._refuted_in(Semantics.FLOAT32, point, where, found)

    def _refuted_in(self, semantics: Semantics, point: Point, where: str, found: Sequence[float]) -> str:
        alone = self.truth.under(semantics)
        if alone is None or not np.isfinite(found).all():
            return ""
        unsafe = self.question.unsafe(point, [Fraction(y) for y in found])
        if alone.label is Label.UNSAT and unsafe:
            return f"finds an unsafe output at {where}, but the label is unsat in {semantics.value} too"
        if alone.label is Label.SAT and point == alone.witness and not unsafe:
            return f"finds the witness safe, but the label is sat in {semantics.value} too"
        return ""

    def refuted_by_runs(self, content: bytes) -> str:
        """What is wrong with the answers that have proofs of their own, by runs of their semantics."""
        for semantics, claim in self.truth.claims.items():
            if not claim.proven or (claim.own is None and semantics.value not in _NARROW):
                continue
            runtime = OnnxRuntime(written_for(content, semantics), self.network)
            form = FLOATS[semantics][0]
            points = [("a point drawn from the box", row) for row in self._drawn(form)]
            witnesses = {each.own.witness for each in self.truth.claims.values() if each.own is not None}
            named = [
                ("a witness", point) for point in witnesses | {self.truth.witness} if point is not None
            ]
            for where, point in (*named, *points):
                held = all(map(form.holds, point))
                if held and (said := self._refuted_in(semantics, point, where, runtime.outputs(point))):
                    return f"{runtime.name} {said}"
        return ""

    def _drawn(self, form: Format) -> Iterator[Point]:
        """Points of a type, drawn from the first box and from the last."""
        boxes = [case.box for case in self.question.cases if not case.box.is_empty]
        for box in dict.fromkeys(boxes[:1] + boxes[-1:]):
            for row in drawn_points(box, _FLOAT32, DRAWN):
                point = tuple(round(x / form.step(x)) * form.step(x) for x in as_point(row))
                if point in box:
                    yield point

    def refuted_by_drawing(self, content: bytes) -> str:
        """What is wrong with an `unsat` at points drawn from its first and last box; empty if none."""
        cases = [case for case in self.question.cases if not case.box.is_empty] if self.is_unsat else []
        where = "a point drawn from the box"
        if self.network.dtype.itemsize == 2:
            return ""  # they are drawn for `refuted_by_runs`
        try:
            runtime = OnnxRuntime(content, self.network)
            for case in dict.fromkeys(cases[:1] + cases[-1:]):
                points = drawn_points(case.box, self.network.dtype, DRAWN)
                for row in points[_by_danger(case, points, Replayer(content)(points))[:WORST]]:
                    point = as_point(row)
                    if found := self._refuted_at(point, where):
                        return found
                    if found := self.refuted_in_float32(point, where, runtime.outputs(point)):
                        return f"{runtime.name} {found}"
        except (CannotRun, InputError):
            return ""
        return ""


def _by_danger(case: Case, points: NDArray[Any], outputs: NDArray[Any]) -> NDArray[np.intp]:
    """The numbers of the points, the most unsafe first: by the least slack of the best conjunction."""
    inputs, outputs = points.astype(np.float64), outputs.astype(np.float64)
    best = np.full(len(points), -np.inf)
    with np.errstate(all="ignore"):
        for conjunction in case.any_of:
            least = np.full(len(points), np.inf)
            for constraint in conjunction:
                slack = np.full(len(points), float(constraint.bound))
                for values, terms in ((inputs, constraint.inputs), (outputs, constraint.outputs)):
                    for k, factor in terms:
                        slack = slack - float(factor) * values[:, k]
                least = np.fmin(least, slack)
            best = np.fmax(best, least)
    return np.argsort(-best, kind="stable")


def _compare(content: bytes, network: Network, expected: Sequence[_Expected], stake: _Stake) -> CrossCheck:
    refusals: list[str] = []
    for kind in (OnnxRuntime, OnnxReference):
        try:
            runtime: Runtime = kind(content, network)
            found = [runtime.outputs(one.point) for one in expected]
        except CannotRun as error:
            refusals.append(str(error))
            continue
        if problem := _first_disagreement(expected, found):
            return CrossCheck(kind.name, contradiction=f"{kind.name} {problem}: one of the two misreads it")
        refuted = (
            stake.refuted_in_float32(one.point, one.where, outputs)
            for one, outputs in zip(expected, found, strict=True)
        )
        if said := next(filter(None, refuted), ""):
            return CrossCheck(kind.name, contradiction=f"{kind.name} {said}")
        remark = "; ".join(refusals) or _optimised_remark(content, network, expected)
        return CrossCheck(kind.name, remark=remark)
    return CrossCheck("", remark="; ".join(refusals))


def _first_disagreement(expected: Sequence[_Expected], found: Sequence[Sequence[float]]) -> str:
    for one, outputs in zip(expected, found, strict=True):
        if not one.explains(outputs) and (problem := one.narrowed.disagreement(outputs)):
            return problem
    return ""


def _optimised_remark(content: bytes, network: Network, expected: Sequence[_Expected]) -> str:
    try:
        runtime = OnnxRuntime(content, network, optimised=True)
        problem = _first_disagreement(expected, [runtime.outputs(one.point) for one in expected])
    except CannotRun as error:
        return f"with its optimisations, {error}"
    return f"onnxruntime with its optimisations {problem}" if problem else ""


def _expected(network: Network, points: Mapping[str, Point], ulps: int) -> list[_Expected]:
    """Enclosures, in float64, of the values at the points at which floats certainly do not overflow."""
    found = []
    for where, point in points.items():
        if len(point) != network.input_size:
            raise InputError(
                f"the property has {len(point)} inputs, but the network has {network.input_size}"
            )
        rounded = rounded_outputs(network, point, point, ulps, own_format(network))
        if not np.isfinite([rounded.error, rounded.lower, rounded.upper]).all():
            continue
        lower, upper, error = (
            [Fraction(float(v)) for v in end.reshape(-1)]
            for end in (rounded.lower, rounded.upper, rounded.error)
        )
        found.append(_Expected(network, where, point, lower, upper, error))
    return found


class Contradiction(InvalidProof):
    """A runtime disagrees with the network as Dokimos reads it, so none of its labels counts."""


def require_agreement(instance: Instance, truth: Truth) -> CrossCheck:
    """Like `cross_check`, but raises Contradiction, with both values, if the label must be refused."""
    compared = cross_check(instance, truth)
    if compared.contradiction:
        raise Contradiction(f"{instance.name}: {compared.contradiction}.")
    return compared
