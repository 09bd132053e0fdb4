"""What runs a network beside us: onnxruntime, with and without its optimisations, and ONNX's reference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from dokimos.core.errors import DokimosError, InputError
from dokimos.networks.graph import Network
from dokimos.networks.semantics.replay import load_session, run_session
from dokimos.properties.model import Point


class CannotRun(DokimosError):
    """A runtime does not load a network, or fails at a point; the message is its reason."""


class Runtime(ABC):
    """One network loaded into one runtime."""

    name: ClassVar[str]

    @abstractmethod
    def outputs(self, point: Point) -> list[float]:
        """What it computes at a float32 point, row-major. Raises CannotRun where it does not."""


class OnnxRuntime(Runtime):
    """onnxruntime on one thread of the CPU, each node as it is in the file unless it is `optimised`."""

    name: ClassVar[str] = "onnxruntime"

    def __init__(self, content: bytes, network: Network, *, optimised: bool = False) -> None:
        self._network = network
        try:
            self._session = load_session(content, "network", optimised=optimised)
        except InputError as error:
            raise CannotRun(_reason(error)) from None

    def outputs(self, point: Point) -> list[float]:
        """What onnxruntime computes at `point`."""
        source = self._session.get_inputs()[0]
        dtype = np.float64 if source.type == "tensor(double)" else np.float32
        try:
            found = run_session(self._session, _row(point, self._network, dtype), "network")
        except InputError as error:
            raise CannotRun(_reason(error)) from None
        return [float(y) for y in found.reshape(-1)]


class OnnxReference(Runtime):
    """The reference evaluator of the package onnx: slow, and it reads every opset.

    It has errors of its own in the shapes of windows and slices: where it is at odds with the shapes that
    ONNX infers, it counts as unable to run the network. So it does where it is known to be wrong.
    """

    name: ClassVar[str] = "ONNX's reference evaluator"

    def __init__(self, content: bytes, network: Network) -> None:
        self._network = network
        try:
            model = onnx.load_from_string(content)
            source = next(value for value in model.graph.input if value.name == network.input)
            kind = source.type.tensor_type.elem_type
            self._dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
            self._evaluator = ReferenceEvaluator(model)
            misread = any(_is_misread(node) for node in model.graph.node)
        except Exception as error:  # whatever the evaluator comes upon
            raise CannotRun(f"{self.name} cannot load it ({_first_line(error)})") from None
        if misread:
            raise CannotRun(f"{self.name} adds one bias to all groups of a ConvTranspose")

    def outputs(self, point: Point) -> list[float]:
        """What the evaluator computes at `point`."""
        try:
            with np.errstate(all="ignore"):
                fed = {self._network.input: _row(point, self._network, self._dtype)}
                (found,) = self._evaluator.run(None, fed)
        except Exception as error:  # whatever numpy raises
            raise CannotRun(f"{self.name} fails ({_first_line(error)})") from None
        outputs = [float(y) for y in np.asarray(found).reshape(-1)]
        if len(outputs) != self._network.output_size:
            # The reader holds its shapes against ONNX's inference, and the evaluator is at odds with it.
            raise CannotRun(f"{self.name} gives {len(outputs)} outputs where ONNX infers another number")
        return outputs


def _is_misread(node: onnx.NodeProto) -> bool:
    """Whether the reference evaluator gives another value than ONNX defines."""
    grouped = any(attribute.name == "group" and attribute.i > 1 for attribute in node.attribute)
    return node.op_type == "ConvTranspose" and grouped and len(node.input) > 2 and bool(node.input[2])


def _row(point: Point, network: Network, dtype: Any) -> NDArray[Any]:
    return np.array([float(x) for x in point], dtype=dtype).reshape(network.input_shape)


def _reason(error: InputError) -> str:
    """The message without the name of the file, which the caller gives."""
    return str(error).removeprefix("network: ").removesuffix(".")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
