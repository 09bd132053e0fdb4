"""A question that a tool answers wrongly, to be changed, and its label proven after each change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log10
from typing import Any

import numpy as np

from dokimos.core.errors import DokimosError, InputError, InvalidProof
from dokimos.engine.linear import LinearSearch
from dokimos.engine.outcome import SearchEffort, proven_truth
from dokimos.hunting.file_graph import FileGraph, NoChange, read_graph
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.instance import (
    Certificate,
    Instance,
    Label,
    LabelledInstance,
    Semantics,
    Truth,
    sha256,
)
from dokimos.suites.vnnlib.model import Conjunction, Point, Property, require_fit
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import write_vnnlib1

#: Margins are not made smaller than this, or than they are if that is less.
LEAST_MARGIN = Fraction(1, 100)
#: What the proof of an `unsat` may take.
PROOF_SECONDS, PROOF_STEPS = 2.0, 4000
_NODE, _INPUT, _CONSTRAINT = 4, 3, 3


@dataclass(frozen=True)
class Specimen:
    """A network, a property and, if the label is `sat`, a witness.

    `text` is the property as it is written, where the wrong answer depends on that.
    """

    graph: FileGraph
    asked: Property
    witness: Point | None
    text: str | None = None

    @cached_property
    def network(self) -> bytes:
        """The network's file."""
        return self.graph.write()

    @cached_property
    def property_text(self) -> str:
        """The property's file. Raises NoChange if VNN-LIB 1.0 cannot express it."""
        try:
            return self.text or write_vnnlib1(self.asked)
        except InputError as error:
            raise NoChange(str(error)) from error

    @property
    def label(self) -> Label:
        """`sat` iff there is a witness."""
        return Label.UNSAT if self.witness is None else Label.SAT

    @cached_property
    def instance(self) -> Instance:
        """Both files under a name of their own."""
        text = self.property_text.encode("ascii")
        name = f"reduced-{sha256(self.network + text)[:10]}"
        return Instance(name, self.network, text, family="reduced")

    @property
    def constraints(self) -> int:
        """How many constraints on outputs the property has."""
        return sum(len(conjunction) for case in self.asked.cases for conjunction in case.any_of)

    @property
    def numbers(self) -> int:
        """How many numbers the network stores, zeros included."""
        return sum(values.size for _, values in self.graph.floats())

    @cached_property
    def cost(self) -> tuple[int, int, int]:
        """What a reduction makes smaller: what is there, what is not zero, and how many digits it has."""
        graph = self.graph
        size = self.numbers + _NODE * len(graph.nodes) + _INPUT * graph.input_size
        every = [one for case in self.asked.cases for part in case.any_of for one in part]
        size += _CONSTRAINT * self.constraints + sum(len(one.outputs) for one in every)
        size += len(self.text or "")
        size += sum(len(node.attributes) + _oddness(node.attributes) for node in graph.nodes)
        nonzero = sum(int(np.count_nonzero(values)) for _, values in graph.floats())
        digits = sum(digits_of(float(x)) for _, values in graph.floats() for x in values.reshape(-1))
        points = [x for case in self.asked.cases for end in (case.box.lower, case.box.upper) for x in end]
        points += self.witness or ()
        digits += sum(digits_of(float(x)) for x in points)
        return size, nonzero, digits


def _oddness(attributes: Mapping[str, Any]) -> int:
    """How far the attributes of a node are from 0 and 1, in all."""
    found = 0
    for value in attributes.values():
        numbers = value if isinstance(value, list | tuple) else [value]
        found += sum(abs(int(n)) for n in numbers if isinstance(n, int))
    return min(found, 1000)


def digits_of(value: float) -> int:
    """How long a number is: powers of two and short decimals are short."""
    if value == 0:
        return 0
    mantissa = abs(Fraction(value).numerator)
    while mantissa and mantissa % 2 == 0:
        mantissa //= 2
    shortest = len(repr(abs(value)).strip("0.").replace(".", ""))
    exponent = abs(floor(log10(abs(value)))) if value else 0
    return min(mantissa.bit_length(), shortest) + exponent


def specimen_of(instance: Instance, truth: Truth) -> Specimen:
    """A labelled instance as a specimen. Raises InputError for a form that cannot be made smaller."""
    asked = read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib")
    network = read_onnx(instance.network_file, name=f"{instance.name}.onnx")
    require_fit(network, asked)
    try:
        graph = read_graph(instance.network_file)
        try:
            _ = graph.shapes
        except NoChange:  # some depend on values that are constants once they are computed
            graph = graph.folded()
            _ = graph.shapes
    except NoChange as error:
        raise InputError(f"{instance.name} cannot be made smaller: {error}.") from error
    text = instance.property_file.decode("ascii")
    return Specimen(graph, asked, truth.witness, text)


class LabelProver:
    """Proves the label of a changed specimen, and lets the threshold follow where it must.

    `least` is the margin that no change may go below; `is_float32`: whether the label must hold in float32.
    """

    def __init__(self, least: Fraction, *, is_float32: bool) -> None:
        self._least, self._is_float32 = least, is_float32

    def variants(self, specimen: Specimen) -> Iterator[Specimen]:
        """The specimen with thresholds by which the label holds: as they are, if it does; then close."""
        try:
            network = read_onnx(specimen.network, name="network")
            require_fit(network, specimen.asked)
            yield from self._sat(specimen, network) if specimen.witness else self._unsat(specimen, network)
        except (DokimosError, Undecided, OverflowError):
            return

    def proven(self, specimen: Specimen) -> LabelledInstance | None:
        """The instance with its proof; None if the checker does not accept one."""
        instance = specimen.instance
        try:
            certificate = Certificate("witness")
            if specimen.witness is None:
                network = read_onnx(instance.network_file)
                data = LinearSearch(network, specimen.asked, _effort()).run().data
                if data is None:
                    return None
                certificate = Certificate("linear", data)
            truth = proven_truth(instance, certificate, specimen.label, specimen.witness)
        except (DokimosError, Undecided):
            return None
        margin = truth.claim(Semantics.REAL).margin or 0
        if margin < self._least or (self._is_float32 and not truth.holds_in(Semantics.FLOAT32)):
            return None
        return LabelledInstance(instance, truth)

    def _sat(self, specimen: Specimen, network: Network) -> Iterator[Specimen]:
        assert specimen.witness is not None
        found = violation_at(network, specimen.asked, specimen.witness)
        if not found.in_box:
            return
        margin = found.margin_lower
        if found.violates and margin is not None and margin >= self._least:
            yield specimen
            if margin <= 4 * self._least:
                return
        if specimen.text is None:
            y = found.outputs.upper
            slacks = [one.slack(specimen.witness, y) for one in first_conjunction(specimen.asked)]
            yield self._moved(specimen, [self._least - slack for slack in slacks], ceil)

    def _unsat(self, specimen: Specimen, network: Network) -> Iterator[Specimen]:
        finding = LinearSearch(network, specimen.asked, _effort()).run()
        if finding.data is not None:
            yield specimen
        elif specimen.text is None and np.isfinite(finding.bound) and specimen.constraints == 1:
            yield self._moved(specimen, [Fraction(finding.bound) - 2 * self._least], floor)

    def _moved(
        self, specimen: Specimen, by: Sequence[Fraction], rounded: Callable[[Fraction], int]
    ) -> Specimen:
        """With the bounds of the first conjunction moved by so much, to short decimals."""
        step = Fraction(10) ** floor(log10(self._least))
        found = tuple(
            replace(one, bound=rounded((one.bound + far) / step) * step)
            for one, far in zip(first_conjunction(specimen.asked), by, strict=True)
        )
        first, *others = specimen.asked.cases
        first = replace(first, any_of=(found, *first.any_of[1:]))
        return replace(specimen, asked=replace(specimen.asked, cases=(first, *others)))


def first_conjunction(asked: Property) -> Conjunction:
    """The first conjunction of the first case."""
    return asked.cases[0].any_of[0]


def _effort() -> SearchEffort:
    return SearchEffort(PROOF_SECONDS, PROOF_STEPS)


def margin_of(truth: Truth) -> Fraction:
    """The margin that is proven over the reals. Raises InvalidProof if there is none."""
    margin = truth.claim(Semantics.REAL).margin
    if margin is None or margin <= 0:
        raise InvalidProof("the label has no margin, so nothing can be made smaller")
    return margin
