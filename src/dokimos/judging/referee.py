"""An instance as the referee of a competition sees it: a property in doubles, the network in onnxruntime.

This does not use Dokimos' own reader of networks: onnxruntime, with its default optimisations, is all that
a competition uses, so every network that it can run has a referee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnreadableFile
from dokimos.core.gzipped import uncompressed
from dokimos.properties.model import Linear, Point
from dokimos.properties.reading import read_vnnlib

Doubles = NDArray[np.float64]

#: Onnxruntime's level for fatal problems: lesser ones reach the caller as exceptions, not on stderr.
_FATAL = 4
_TYPES: dict[str, Any] = {
    "tensor(float16)": np.float16,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
}


@dataclass(frozen=True)
class RefereeCase:
    """A box, in doubles, and the conjunctions of constraints that make a point of it unsafe."""

    lower: Doubles
    upper: Doubles
    any_of: tuple[tuple[Linear, ...], ...]


class Referee:
    """One instance, ready to examine many witnesses; `name` is its name in messages.

    Raises UnreadableFile, on first use, if onnxruntime cannot run the network or the property cannot be
    read.
    """

    def __init__(self, network_file: bytes, property_file: bytes, name: str) -> None:
        self._network_file = network_file
        self._property_file = property_file
        self._name = name
        self._seen: dict[Point, Doubles | None] = {}

    @cached_property
    def cases(self) -> tuple[RefereeCase, ...]:
        """The property, its bounds rounded to doubles."""
        asked = read_vnnlib(self._property_file, file=f"the property of {self._name}")
        return tuple(
            RefereeCase(doubles(case.box.lower), doubles(case.box.upper), case.any_of)
            for case in asked.cases
        )

    def rounded(self, values: Doubles) -> Doubles:
        """`values` rounded to the type of the network's input."""
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(self._input_type).astype(np.float64)

    def outputs(self, witness: Point) -> Doubles | None:
        """The first output at `witness`, flat; None if the witness does not have the size of the input.

        The witness is read in doubles and rounded to the network's input type; open dimensions are 1.
        """
        if witness not in self._seen:
            self._seen[witness] = self._run(witness)
        return self._seen[witness]

    def _run(self, witness: Point) -> Doubles | None:
        from onnxruntime import RunOptions

        source = self._session.get_inputs()[0]
        shape = tuple(size if isinstance(size, int) and size > 0 else 1 for size in source.shape)
        if prod(shape) != len(witness):
            return None
        options = RunOptions()
        options.log_severity_level = _FATAL
        with np.errstate(over="ignore", under="ignore"):
            tensor = doubles(witness).astype(self._input_type).reshape(shape)
        try:
            first = self._session.run(None, {source.name: tensor}, options)[0]
        except Exception as problem:  # onnxruntime's errors share no base class of their own
            raise self._failure("onnxruntime fails on its witness", problem) from None
        return np.asarray(first, dtype=np.float64).reshape(-1)

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = _FATAL
        content = uncompressed(self._network_file, file=f"the network of {self._name}")
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as problem:  # onnxruntime's errors share no base class of their own
            raise self._failure("onnxruntime cannot load it", problem) from None
        if len(session.get_inputs()) != 1:
            raise self._failure("it has several inputs", None)
        return session

    @cached_property
    def _input_type(self) -> Any:
        kind = self._session.get_inputs()[0].type
        if kind not in _TYPES:
            raise self._failure(f"its input is a {kind}, not a tensor of floats", None)
        return _TYPES[kind]

    def _failure(self, what: str, problem: Exception | None) -> UnreadableFile:
        line = (
            "" if problem is None else f": {str(problem).strip().partition(chr(10))[0][:300].rstrip('.')}"
        )
        return UnreadableFile(f"the network of {self._name}", f"{what}{line}.")


def doubles(values: Sequence[Fraction]) -> Doubles:
    """The doubles nearest to `values`; infinite if they are beyond all doubles."""
    return np.array([double(value) for value in values], dtype=np.float64)


def double(value: Fraction) -> float:
    """The double nearest to `value`; infinite if that is beyond all doubles."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
