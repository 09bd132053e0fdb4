"""What onnxruntime computes: each node as it is in the file, in its type, on one CPU thread.

If it cannot load a network (it lacks kernels for float64, and the newest opsets), ONNX's reference
evaluator computes instead.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from importlib import resources
from math import prod
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import onnx
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.core.errors import DokimosError, InputError, UnreadableFile
from dokimos.core.inputs import uncompressed
from dokimos.engine.runtimes.narrow import NARROW, stored_in
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import FORMATS
from dokimos.suites.vnnlib.model import Point

Points = NDArray[Any]


def as_float32(content: bytes) -> bytes:
    """What stands for a file in runtimes: a network of 16 bits as it is `stored_in` its type."""
    try:
        graph = onnx.load_model_from_string(content).graph
    except DecodeError:
        return content
    kinds = {value.type.tensor_type.elem_type for value in graph.input}
    kinds |= {tensor.data_type for tensor in graph.initializer}
    narrow = [FORMATS[name] for name, kind in NARROW.items() if kind in kinds]
    return stored_in(content, narrow[0]) if len(narrow) == 1 else content


ONNXRUNTIME = "onnxruntime"
REFERENCE = "ONNX's reference evaluator"
NO_RUNTIME = "no runtime"

#: The versions of each operator, named by the opset that they came with, on which ONNX's reference
#: evaluator agreed with onnxruntime on all of hundreds of random nodes that are read here. It is wrong on
#: others, BatchNormalization of opset 9 among them. To find them again, which takes minutes:
#:     python -m pytest -m slow tests/networks/reading/test_differential.py -k reference
REFERENCE_AGREES: Mapping[str, frozenset[int]] = {
    op: frozenset(map(int, versions))
    for op, *versions in map(
        str.split,
        resources.files("dokimos.engine.runtimes")
        .joinpath("reference_agrees.txt")
        .read_text(encoding="ascii")
        .splitlines(),
    )
}
#: Onnxruntime's level for fatal problems: lesser ones reach the caller as exceptions, not on stderr.
_FATAL = 4
#: Points per run by default: keeps intermediate tensors small.
_ROWS_PER_RUN = 256
#: How far rows of a batch may be from single runs: other kernels add up in another order.
_RELATIVE_TOLERANCE = 1e-4
#: The tensors of networks in small files take at most this much memory, all together: a few bytes can
#: ask for any amount. A large file says itself how much it needs.
MOST_MEMORY = 1 << 30
_SMALL_FILE = 1 << 24
_MOST_AXES = 32
#: What onnxruntime puts before its reason: a number and a word, and where in its own source it is.
_CODE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ : |/\S+\.(?:h|cc):\d+ [^()]*\((?:[^()]|\([^()]*\))*+\)(?: const)? ?"
)
_OUT_OF_MEMORY = re.compile(r"Available memory of \d+ is smaller than requested bytes of \d+")
_TYPES = {"tensor(float)": np.float32, "tensor(double)": np.float64}


class Replayer:
    """A network loaded once into onnxruntime, without graph optimisations, for many points.

    Points are flat: [k, input_size] in, [k, output_size] out. They are float32, or float64 if the network
    is (`dtype`), and so are the outputs: those of a float64 network at float32 points are rounded.
    The results of a network of 16 bits are rounded to its type, and given in float32. `runtime` says what
    computes: onnxruntime, or ONNX's reference evaluator for networks that onnxruntime
    cannot load, mostly for lack of a kernel. A single point is run exactly as the file says. Several are
    run as one batch if the network allows it: then a row may differ from its single run in the last bits,
    but never by more than the order of summation explains; networks that mix the rows of a batch, or fix
    its size, are run point by point.
    """

    def __init__(self, model: bytes, *, name: str = "network") -> None:
        """Load the content of an ONNX file, which may be compressed; `name` is its name in messages.

        Raises UnreadableFile if neither can load it.
        """
        content = as_float32(uncompressed(model, file=name))
        self._name = name
        self.runtime, self._single = _session_for(content, name)
        inputs, outputs = self._single.get_inputs(), self._single.get_outputs()
        if len(inputs) != 1 or len(outputs) != 1:
            found = f"{len(inputs)} inputs and {len(outputs)} outputs"
            raise UnreadableFile(name, f"has {found}; exactly 1 of each is supported.")
        if inputs[0].type not in _TYPES:
            raise UnreadableFile(
                name, f"its input is a {inputs[0].type}, not a tensor of float32 or float64."
            )
        self.dtype = np.dtype(_TYPES[inputs[0].type])
        self._shape = _fixed(inputs[0].shape, name)
        self.input_size = prod(self._shape)
        if self.input_size * self.dtype.itemsize > MOST_MEMORY // 8 or len(self._shape) > _MOST_AXES:
            raise UnreadableFile(name, f"its input of shape {self._shape} is too large.")
        self._content = content
        self.output_size = self._run(self._single, np.zeros((1, self.input_size), np.float32)).size

    @cached_property
    def _batched(self) -> Any:
        """What runs batches, loaded when first needed; None if nothing can."""
        loads = self.runtime == ONNXRUNTIME
        return _batched_session(self._content, self._name) if loads else None

    def __call__(self, points: Points, *, rows_per_run: int = _ROWS_PER_RUN) -> Points:
        """The outputs at `points`, both flat, one row each, at most `rows_per_run` at a time.

        Raises InputError if the points do not fit the network, or onnxruntime fails on them.
        """
        if points.ndim != 2 or points.shape[1] != self.input_size:
            wanted = f"a network of {self.input_size} inputs"
            raise InputError(f"{self._name}: points of shape {points.shape} do not fit {wanted}.")
        if points.dtype not in (np.float32, self.dtype):
            raise InputError(f"{self._name}: points must be {self.dtype}, not {points.dtype}.")
        answer = np.empty((len(points), self.output_size), points.dtype)
        for start in range(0, len(points), rows_per_run):
            chunk = points[start : start + rows_per_run]
            answer[start : start + rows_per_run] = self._chunk(chunk)
        return answer

    def _chunk(self, points: Points) -> Points:
        if len(points) > 1 and self._batched is not None:
            outputs = self._try_batch(points)
            if outputs is not None:
                return outputs
            self._batched = None
        return np.concatenate([self._run(self._single, point[None]) for point in points])

    def _try_batch(self, points: Points) -> Points | None:
        """The outputs of one batch; None if the network does not treat its rows one by one."""
        try:
            outputs = self._run(self._batched, points)
        except InputError:
            return None
        if outputs.shape != (len(points), self.output_size):
            return None
        probes = sorted({0, len(points) // 2, len(points) - 1})
        alone = np.concatenate([self._run(self._single, points[k : k + 1]) for k in probes])
        finite = np.abs(alone[np.isfinite(alone)])
        scale = float(finite.max()) if finite.size else 1.0
        agree = np.allclose(
            outputs[probes],
            alone,
            rtol=_RELATIVE_TOLERANCE,
            atol=_RELATIVE_TOLERANCE * scale,
            equal_nan=True,
        )
        return outputs if agree else None

    def _run(self, session: Any, points: Points) -> Points:
        """One run; the first dimension of what the network gives must be that of the batch."""
        shape = self._shape if len(points) == 1 else (len(points), *self._shape[1:])
        output = run_session(session, points.astype(self.dtype).reshape(shape), self._name)
        output = np.asarray(output, dtype=points.dtype)
        if len(points) > 1 and (output.ndim == 0 or output.shape[0] != len(points)):
            raise InputError(f"{self._name}: its output of shape {output.shape} has no batch dimension.")
        return output.reshape(len(points), -1)


def replay(model: bytes, points: Points, *, name: str = "network") -> Points:
    """The outputs of onnxruntime at `points` [k, input_size], as [k, output_size]; see Replayer."""
    return Replayer(model, name=name)(points)


def run_session(session: Any, value: NDArray[Any], name: str) -> NDArray[Any]:
    """The output of a session of one input and one output; raises InputError if onnxruntime fails."""
    (output,) = run_for_tensors(session, value, name, None)
    return output


def run_for_tensors(
    session: Any, value: NDArray[Any], name: str, wanted: list[str] | None
) -> list[NDArray[Any]]:
    """The outputs `wanted` of a session of one input, or all; raises InputError if onnxruntime fails."""
    from onnxruntime import RunOptions

    options = RunOptions()
    options.log_severity_level = _FATAL
    try:
        outputs = session.run(wanted, {session.get_inputs()[0].name: value}, options)
    except Exception as problem:  # onnxruntime's errors share no base class of their own
        runtime = REFERENCE if isinstance(session, ReferenceSession) else ONNXRUNTIME
        raise InputError(f"{name}: {runtime} failed: {reason_of(problem)}.") from None
    return [np.asarray(output) for output in outputs]


class ReferenceSession:
    """ONNX's reference evaluator with an onnxruntime session's interface: slow, but it reads every
    opset."""

    def __init__(self, content: bytes, name: str) -> None:
        """Raises UnreadableFile if the evaluator cannot load the network, or may be wrong on a node."""
        expect_one_file(content, name)
        from onnx.reference import ReferenceEvaluator

        try:
            model = onnx.load_from_string(content)
            self._evaluator = ReferenceEvaluator(model)
            graph = model.graph
            weights = {tensor.name for tensor in graph.initializer}
            self._inputs = [_described(value) for value in graph.input if value.name not in weights]
            self._outputs = [_described(value) for value in graph.output]
            strange = next((said for node in graph.node if (said := _not_shown(model, node))), "")
        except Exception as problem:  # whatever the evaluator comes upon
            raise UnreadableFile(name, f"{REFERENCE} cannot load it: {_first_line(problem)}.") from None
        if strange:
            reason = f"is not asked: nothing shows that it is right on {strange}"
            raise UnreadableFile(name, f"{REFERENCE} {reason}.")

    def get_inputs(self) -> list[Any]:
        """The inputs that are not weights: name, type and shape, as onnxruntime describes them."""
        return self._inputs

    def get_outputs(self) -> list[Any]:
        """The outputs."""
        return self._outputs

    def run(self, names: list[str] | None, fed: dict[str, NDArray[Any]], options: Any = None) -> list[Any]:
        """The named outputs for these inputs, or all; raises whatever numpy raises."""
        with np.errstate(all="ignore"):
            return list(self._evaluator.run(names, fed))


def _described(value: onnx.ValueInfoProto) -> SimpleNamespace:
    tensor = value.type.tensor_type
    kinds: dict[int, str] = {
        onnx.TensorProto.FLOAT: "tensor(float)",
        onnx.TensorProto.DOUBLE: "tensor(double)",
    }
    shape = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in tensor.shape.dim]
    return SimpleNamespace(name=value.name, type=kinds.get(tensor.elem_type, "another type"), shape=shape)


def _not_shown(model: onnx.ModelProto, node: onnx.NodeProto) -> str:
    """The node's operator and opset if the reference evaluator is not known to be right on it, else ""."""
    (opset,) = (entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    version = onnx.defs.get_schema(node.op_type, opset, "").since_version
    is_shown = version in REFERENCE_AGREES.get(node.op_type, ())
    return "" if is_shown else f"{node.op_type} of opset {opset}"


def _session_for(content: bytes, name: str) -> tuple[str, Any]:
    """onnxruntime's session, or the reference evaluator's where only that loads the network."""
    try:
        return ONNXRUNTIME, load_session(content, name)
    except UnreadableFile:
        try:
            session = ReferenceSession(content, name)
        except UnreadableFile:
            session = None
        types = {value.type for value in session.get_inputs()} if session else set()
        if not types or not types <= set(_TYPES):
            raise
    return REFERENCE, session


def nearest_float(x: Fraction, dtype: np.dtype[Any]) -> Fraction | None:
    """The number of the float type nearest to `x` (ties to even); None if that is infinite.

    Rounding first to float64, then to float32, misses it only if the float64 number is halfway between two
    float32 numbers: halfway points are float64 numbers, and rounding to float64 takes nothing past them.
    """
    try:
        wide = float(x)
    except OverflowError:
        return None
    if dtype == np.float64:
        return Fraction(wide)
    if dtype.itemsize == 2:
        form = FORMATS[dtype.name]
        near = round(x / form.step(x)) * form.step(x)
        return near if abs(near) <= form.largest else None
    with np.errstate(over="ignore", under="ignore"):
        guess = np.float32(wide)
        if float(guess) == x:
            return x
        others = [np.nextafter(guess, np.float32(end)) for end in (-np.inf, np.inf)]
    if not np.isfinite(guess):
        return None
    for other in others:
        if float(guess) + float(other) == 2 * wide and x != wide and (x > wide) == (other > guess):
            guess = other
            break
    return Fraction(float(guess))


def nearest_point(point: Point, dtype: np.dtype[Any]) -> Point | None:
    """The nearest number of the type for each coordinate (see `nearest_float`); None if one is infinite."""
    if dtype.itemsize == 2:
        rounded = [nearest_float(x, dtype) for x in point]
        return None if None in rounded else tuple(x for x in rounded if x is not None)
    try:
        wide = np.array([float(x) for x in point], dtype=np.float64)
    except OverflowError:
        return None
    with np.errstate(over="ignore", under="ignore"):
        near = wide.astype(dtype)
        ends = [np.nextafter(near, dtype.type(end)).astype(np.float64) for end in (-np.inf, np.inf)]
    if not np.isfinite(near).all():
        return None
    halfway = [near.astype(np.float64) + end == 2 * wide for end in ends]
    doubtful = (halfway[0] | halfway[1]) & (wide != near)
    found = [Fraction(x) for x in near.tolist()]
    for k in np.flatnonzero(doubtful).tolist():
        found[k] = nearest_float(point[k], dtype) or Fraction(0)
    return tuple(found)


def expect_one_file(content: bytes, name: str) -> None:
    """Raise UnreadableFile if tensors of a network are stored in other files.

    Loaded from memory, a network would get them from whatever folder we are in.
    """
    if b"location" not in content:  # the key that every such tensor has
        return
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return
    if any(_is_elsewhere(message) for message in _messages(model)):
        raise UnreadableFile(name, "a tensor is stored in another file; save the network as one file.")


def _is_elsewhere(message: Message) -> bool:
    return isinstance(message, onnx.TensorProto) and (
        message.data_location == onnx.TensorProto.EXTERNAL or len(message.external_data) > 0
    )


def _messages(root: Message) -> Iterator[Message]:
    """All messages in a message, itself included."""
    left = [root]
    while left:
        message = left.pop()
        yield message
        for kind, value in message.ListFields():
            if kind.message_type is not None:
                left += [value] if isinstance(value, Message) else value


@lru_cache(maxsize=2)
def load_session(content: bytes, name: str, *, optimised: bool = False) -> Any:
    """An onnxruntime session on one CPU thread, each node as it is in the file unless `optimised`.

    Nodes that no output depends on are loaded, but not run. The last two sessions are kept. Raises
    UnreadableFile if onnxruntime cannot load the network.
    """
    expect_one_file(content, name)
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL
    if len(content) < _SMALL_FILE:
        _limit_memory()
        options.add_session_config_entry("session.use_env_allocators", "1")
    # Without the fallback to the same provider, which prints what failed on standard output.
    how = {"providers": ["CPUExecutionProvider"], "enable_fallback": 0}
    try:
        session = onnxruntime.InferenceSession(content, options, **how)
        live = live_part(content)
        return session if live is None else onnxruntime.InferenceSession(live, options, **how)
    except Exception as problem:  # onnxruntime's errors share no base class of their own
        raise UnreadableFile(name, f"onnxruntime cannot load it: {reason_of(problem)}.") from None


def live_part(content: bytes) -> bytes | None:
    """The network with only the nodes that an output depends on; None if these are all.

    onnxruntime runs the others too, and does not come back from some, as a Conv of no channels.
    """
    model = onnx.load_model_from_string(content)
    nodes, needed = list(model.graph.node), {each.name for each in model.graph.output}
    kept = []
    for node in reversed(nodes):
        if any(each.type in (each.GRAPH, each.GRAPHS) for each in node.attribute):
            return None  # it may read tensors that are not among its inputs
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    if len(kept) == len(nodes):
        return None
    del model.graph.node[:]
    model.graph.node.extend(reversed(kept))
    return bytes(model.SerializeToString())


@cache
def _limit_memory() -> None:
    """Create, once, the allocator that sessions may share: of at most MOST_MEMORY."""
    import onnxruntime

    arena = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    place = onnxruntime.OrtMemoryInfo("Cpu", arena, 0, onnxruntime.OrtMemType.DEFAULT)
    onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg({"max_mem": MOST_MEMORY}))


def reason_of(problem: Exception) -> str:
    """Why onnxruntime failed, in one line; a request for too much memory is reworded."""
    if _OUT_OF_MEMORY.search(str(problem)):
        return f"its tensors need more than {MOST_MEMORY >> 20:,} MB, too much for a file of this size"
    return _first_line(problem)


def _batched_session(content: bytes, name: str) -> Any:
    """A session whose first dimension is open, None if there can be none."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        return None
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    (source,) = (value for value in graph.input if value.name not in weights)
    dimensions = source.type.tensor_type.shape.dim
    if len(dimensions) < 2 or dimensions[0].dim_value > 1:
        return None
    dimensions[0].dim_param = "batch"
    _open_reshapes(graph)
    del graph.value_info[:]
    graph.output[0].type.tensor_type.ClearField("shape")
    try:
        return load_session(model.SerializeToString(), name)
    except UnreadableFile:
        return None


def _open_reshapes(graph: onnx.GraphProto) -> None:
    """Where a network reshapes to a batch of 1, keep the batch that there is.

    That need not be what it means: the rows of batches are compared with single runs.
    """
    reshapes = [node for node in graph.node if node.op_type == "Reshape"]
    targets = {node.input[1] for node in reshapes if len(node.input) == 2 and not node.attribute}
    others = {name for node in graph.node for name in node.input if node.op_type != "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in targets - others:
            sizes = numpy_helper.to_array(tensor).copy()
            if sizes.ndim == 1 and sizes.size > 1 and sizes[0] == 1:
                sizes[0] = 0  # in ONNX: the size that the input has there
                tensor.CopyFrom(numpy_helper.from_array(sizes, tensor.name))


def _fixed(shape: list[Any], name: str) -> tuple[int, ...]:
    """The shape for one point: an open first dimension is 1, others must be given."""
    sizes = [size if isinstance(size, int) and size > 0 else None for size in shape]
    if None in sizes[1:]:
        raise UnreadableFile(
            name, f"its input has the shape {shape}; only the first dimension may be open."
        )
    return tuple(size or 1 for size in sizes)


def _first_line(problem: Exception) -> str:
    line = _CODE.sub("", str(problem).strip().partition("\n")[0]).rstrip(".")
    return line if len(line) <= 300 else line[:297] + "..."


# Other implementations: onnxruntime, with and without its optimisations, and ONNX's reference


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
            session = load_session(as_float32(content), "network", optimised=optimised)
            super().__init__(session, network)
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
