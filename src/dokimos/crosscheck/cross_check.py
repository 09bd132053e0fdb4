"""Whether runtimes compute what the network means as it is read here.

The checker proves a label of the network as Dokimos reads it. Were a rule of the reader wrong, or a file
ambiguous, that would not be the network that everybody else runs. So the values at a few points are
compared: float32 evaluation differs from the exact value by no more than the rounding bound at that very
point, or somebody misreads the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dokimos.checker.base import DEFAULT_ULPS, about
from dokimos.core.errors import InputError, InvalidProof
from dokimos.crosscheck.points import points_to_compare
from dokimos.crosscheck.runtimes import CannotRun, OnnxReference, OnnxRuntime, Runtime
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided, evaluate
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Point
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.instance import Instance, Semantics, Truth

#: Up to so many multiplications the exact value is computed where outward-rounded float64 does not decide,
#: in less than a second of CPU time. Beyond, float64 has to do, and fewer points are compared.
EXACT_WORK = 500_000


@dataclass(frozen=True)
class CrossCheck:
    """What the comparison of one instance came to.

    `runtime` is what the exact values were compared with, empty where nothing could be: then `remark` says
    why. `contradiction` is the sentence that refuses the label. A `remark` refuses nothing.
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
    """The exact outputs at one point, enclosed, and how far float32 may be off at each."""

    network: Network
    where: str
    point: Point
    lower: Sequence[Fraction]
    upper: Sequence[Fraction]
    error: Sequence[Fraction]

    def explains(self, found: Sequence[float]) -> bool:
        """Whether rounding explains these outputs wherever in the enclosure the exact ones are."""
        return len(found) == len(self.lower) and all(
            np.isfinite(y) and high - error <= Fraction(y) <= low + error
            for y, low, high, error in zip(found, self.lower, self.upper, self.error, strict=True)
        )

    @cached_property
    def narrowed(self) -> _Expected:
        """The same with the exact values themselves, where they can be computed in reasonable time."""
        if self.network.multiplications > EXACT_WORK:
            return self
        try:
            value = evaluate(self.network, self.point)
        except Undecided:
            return self
        return replace(self, lower=value.lower, upper=value.upper)

    def disagreement(self, found: Sequence[float]) -> str:
        """What is wrong with these outputs, in words; empty where rounding explains them."""
        if len(found) != len(self.lower):
            return f"gives {len(found)} outputs, but the network is read as having {len(self.lower)}"
        for j, y in enumerate(found):
            low, high = self.lower[j] - self.error[j], self.upper[j] + self.error[j]
            if not np.isfinite(y) or not low <= Fraction(y) <= high:
                exact = about((self.lower[j] + self.upper[j]) / 2)
                return (
                    f"computes Y_{j} = {y:.9g} at {self.where}, where the network as it is read has the "
                    f"exact value {exact} and rounding explains {about(self.error[j])} at most"
                )
        return ""


def cross_check(instance: Instance, truth: Truth) -> CrossCheck:
    """Compare the exact values of the network at a few points with those of a runtime.

    onnxruntime runs the nodes as they are in the file; where it cannot, ONNX's reference evaluator does.
    With its optimisations onnxruntime may fold weights and so leave the bound: a remark, no contradiction.
    """
    try:
        network = read_onnx(instance.network_file, name=f"{instance.name}.onnx")
        question = read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib")
        few, dtype = network.multiplications > EXACT_WORK, float_type(network)
        points = points_to_compare(question, truth.witness, few=few, dtype=dtype)
        ulps = truth.claim(Semantics.FLOAT32).ulps or DEFAULT_ULPS
        expected = _expected(network, points, ulps)
    except (InputError, Undecided) as error:
        return CrossCheck("", remark=str(error))
    if not expected:
        return CrossCheck("", remark="float32 evaluation may overflow at every point that was tried")
    return _compare(instance.network_file, network, expected)


def _compare(content: bytes, network: Network, expected: Sequence[_Expected]) -> CrossCheck:
    refusals: list[str] = []
    for kind in (OnnxRuntime, OnnxReference):
        try:
            runtime: Runtime = kind(content, network)
            problem = _first_disagreement(runtime, expected)
        except CannotRun as error:
            refusals.append(str(error))
            continue
        if problem:
            return CrossCheck(kind.name, contradiction=f"{kind.name} {problem}: one of the two misreads it")
        remark = "; ".join(refusals) or _optimised_remark(content, network, expected)
        return CrossCheck(kind.name, remark=remark)
    return CrossCheck("", remark="; ".join(refusals))


def _first_disagreement(runtime: Runtime, expected: Sequence[_Expected]) -> str:
    for one in expected:
        found = runtime.outputs(one.point)
        if not one.explains(found) and (problem := one.narrowed.disagreement(found)):
            return problem
    return ""


def _optimised_remark(content: bytes, network: Network, expected: Sequence[_Expected]) -> str:
    try:
        problem = _first_disagreement(OnnxRuntime(content, network, optimised=True), expected)
    except CannotRun as error:
        return f"with its optimisations, {error}"
    return f"onnxruntime with its optimisations {problem}" if problem else ""


def _expected(network: Network, points: Mapping[str, Point], ulps: int) -> list[_Expected]:
    """The values at the points at which float32 certainly does not overflow, enclosed in float64."""
    found = []
    double = float_type(network) == np.float64
    for where, point in points.items():
        if len(point) != network.input_size:
            raise InputError(f"the property has {len(point)} inputs, the network {network.input_size}")
        rounded = rounding_bounds(network, point, point, ulps=ulps, float64=double)[network.output]
        if not np.isfinite([rounded.error, rounded.lower, rounded.upper]).all():
            continue
        lower, upper, error = (
            [Fraction(float(v)) for v in end.reshape(-1)]
            for end in (rounded.lower, rounded.upper, rounded.error)
        )
        found.append(_Expected(network, where, point, lower, upper, error))
    return found


def float_type(network: Network) -> np.dtype[Any]:
    """The type of a network's numbers; float32 where it has none of its own."""
    return next((array.dtype for array in network.constants.values()), np.dtype(np.float32))


class Contradiction(InvalidProof):
    """A runtime computes something else than the network means as it is read: no label of it counts."""


def require_agreement(instance: Instance, truth: Truth) -> CrossCheck:
    """`cross_check`; raises Contradiction, with both values, where the label has to be refused."""
    compared = cross_check(instance, truth)
    if compared.contradiction:
        raise Contradiction(f"{instance.name}: {compared.contradiction}.")
    return compared
