"""Other implementations: onnxruntime, with and without its optimisations, and ONNX's reference."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError, InputError
from dokimos.networks.graph import Network
from dokimos.networks.semantics.replay import (
    ONNXRUNTIME,
    REFERENCE,
    ReferenceSession,
    load_session,
    run_for_tensors,
    run_session,
)
from dokimos.properties.model import Point


class CannotRun(DokimosError):
    """A runtime does not load a network, or fails at a point; the message is the reason."""


class Runtime(ABC):
    """One network loaded into one runtime."""

    name: ClassVar[str]

    def __init__(self, session: Any, network: Network) -> None:
        self._session = session
        self._network = network

    def outputs(self, point: Point) -> list[float]:
        """The outputs at a point of the network's own type, in row-major order. Raises CannotRun."""
        source = self._session.get_inputs()[0]
        dtype = np.float64 if source.type == "tensor(double)" else np.float32
        try:
            found = run_session(self._session, _row(point, self._network, dtype), "network")
        except InputError as error:
            raise CannotRun(_reason(error)) from None
        return [float(y) for y in found.reshape(-1)]


class OnnxRuntime(Runtime):
    """onnxruntime on one CPU thread; runs each node as it is in the file unless `optimised`."""

    name: ClassVar[str] = ONNXRUNTIME

    def __init__(self, content: bytes, network: Network, *, optimised: bool = False) -> None:
        try:
            super().__init__(load_session(content, "network", optimised=optimised), network)
        except InputError as error:
            raise CannotRun(_reason(error)) from None


class OnnxReference(Runtime):
    """The reference evaluator of the package onnx: slow, but it supports every opset.

    It has bugs in the shapes of windows and slices: if it disagrees with the shapes that ONNX infers, it
    counts as unable to run the network.
    """

    name: ClassVar[str] = REFERENCE

    def __init__(self, content: bytes, network: Network) -> None:
        try:
            super().__init__(ReferenceSession(content, "network"), network)
        except InputError as error:
            raise CannotRun(_reason(error)) from None

    def outputs(self, point: Point) -> list[float]:
        """See Runtime."""
        found = super().outputs(point)
        if len(found) != self._network.output_size:
            # Our reader's shapes are checked against ONNX's inference, so the evaluator is the one that is
            # wrong.
            raise CannotRun(f"{self.name} gives {len(found)} outputs, but ONNX infers a different number")
        return found


def _row(point: Point, network: Network, dtype: Any) -> NDArray[Any]:
    return np.array([float(x) for x in point], dtype=dtype).reshape(network.input_shape)


def _reason(error: InputError) -> str:
    """The message without the name of the file, which the caller adds."""
    return str(error).removeprefix("network: ").removesuffix(".")


def intermediate_values(
    model: onnx.ModelProto, network: Network, names: Sequence[str], point: Point
) -> tuple[str, dict[str, NDArray[Any]]]:
    """The values that a runtime computes for the intermediate tensors `names`, and which runtime it was.

    Raises CannotRun if neither onnxruntime nor ONNX's reference evaluator can.
    """
    telling = onnx.ModelProto()
    telling.CopyFrom(model)
    known = {value.name for value in telling.graph.output}
    telling.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in known)
    content, refusals = telling.SerializeToString(), []
    loaders: tuple[tuple[str, Callable[[bytes, str], Any]], ...] = (
        (ONNXRUNTIME, load_session),
        (REFERENCE, ReferenceSession),
    )
    for name, load in loaders:
        try:
            session = load(content, "network")
            dtype = np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32
            found = run_for_tensors(session, _row(point, network, dtype), "network", list(names))
        except InputError as error:
            refusals.append(_reason(error))
        else:
            return name, dict(zip(names, found, strict=True))
    raise CannotRun("; ".join(refusals))
