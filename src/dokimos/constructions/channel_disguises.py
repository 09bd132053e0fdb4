"""Networks of convolutions, attention or powers, written differently: other channels, the same function.

Nothing here needs trust: the certificate stays what it is, up to the numbers of units that it names, and
the checker proves the label on the new file itself. So only those steps are here that the families' own
proofs survive, and layers that a certificate names are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dokimos.constructions.channels import Axis, Channels, channels_of
from dokimos.constructions.draft import Draft
from dokimos.core.errors import InputError
from dokimos.suites.instance import Certificate

#: Kinds of proof that find their layers by the order of channels.
_ORDERED = ("nonexpansive", "fixed-routing")
#: Channels are scaled by 2^-LARGEST_EXPONENT up to 2^LARGEST_EXPONENT.
_LARGEST_EXPONENT = 3

Values = NDArray[Any]
#: Changes the array of a constant, moved so that its first axis lists the channels.
Change = Callable[[Axis, Values], Values]
Step = Callable[[Sequence[Draft], np.random.Generator], tuple[Draft, ...]]


def disguise_channels(
    drafts: Sequence[Draft], kinds: Sequence[str], rng: np.random.Generator
) -> tuple[Draft, ...]:
    """The drafts, all rewritten by the same steps, drawn for the first.

    Raises InputError if a step does not apply to them.
    """
    if drafts[0].certificate.kind in _ORDERED:
        raise InputError("its proof depends on the order of the channels")
    for kind in kinds:
        if kind not in CHANNEL_DISGUISES:
            raise InputError(
                f"'{kind}' is for chains of dense layers; here there are {', '.join(CHANNEL_DISGUISES)}"
            )
        drafts = CHANNEL_DISGUISES[kind](drafts, rng)
    return tuple(drafts)


def permute_channels(drafts: Sequence[Draft], rng: np.random.Generator) -> tuple[Draft, ...]:
    """The channels of every layer in another order."""
    orders = [(group, rng.permutation(group.size)) for group in _free(drafts)]
    unit = drafts[0].certificate.data.get("unit")
    if isinstance(unit, int) and len(orders) != 1:
        raise InputError("its proof names a unit, and more than one layer has channels")
    places = {}
    if isinstance(unit, int):
        ((_, order),) = orders
        places = {"unit": int(np.flatnonzero(order == unit)[0])}
    changes = [(group, lambda _axis, values, order=order: values[order]) for group, order in orders]
    return tuple(_changed(draft, changes, places) for draft in drafts)


def scale_channels(drafts: Sequence[Draft], rng: np.random.Generator) -> tuple[Draft, ...]:
    """Channels times powers of two, and what reads them divided by the same.

    All channels of a convolution have the same factor: proofs multiply the norms of layers. A unit that
    the certificate names keeps its scale.
    """
    changes = []
    for group in _free(drafts):
        if not group.are_scalable:
            continue
        span = _LARGEST_EXPONENT
        exponents = rng.integers(-span, span + 1, size=1 if group.are_images else group.size)
        exponents = np.broadcast_to(exponents, (group.size,)).copy()
        unit = drafts[0].certificate.data.get("unit")
        if isinstance(unit, int) and unit < group.size:
            exponents[unit] = 0
        changes.append((group, _scaling(exponents)))
    if not changes:
        raise InputError("it has no channels that can be scaled")
    return tuple(_changed(draft, changes, {}) for draft in drafts)


def duplicate_channels(drafts: Sequence[Draft], rng: np.random.Generator) -> tuple[Draft, ...]:
    """One channel of every layer written twice, and each read with half of its weight."""
    unit = drafts[0].certificate.data.get("unit")
    changes = []
    for group in _free(drafts):
        chosen = int(rng.choice([k for k in range(group.size) if k != unit]))
        changes.append((group, _duplication(chosen)))
    return tuple(_changed(draft, changes, {}) for draft in drafts)


def copy_after_relu(drafts: Sequence[Draft], rng: np.random.Generator) -> tuple[Draft, ...]:
    """A layer that copies, and a ReLU, after the ReLU of one convolution."""
    model = onnx.load_from_string(drafts[0].network)
    convolutions = {node.output[0] for node in model.graph.node if node.op_type == "Conv"}
    relus = [n.output[0] for n in model.graph.node if n.op_type == "Relu" and n.input[0] in convolutions]
    named = {text for draft in drafts for text in _texts(draft.certificate.data)}
    free = [name for name in relus if not named.intersection(_before(model, name))]
    if not free:
        raise InputError("it has no convolution with a ReLU that its proof does not name")
    chosen = str(rng.choice(free))
    return tuple(replace(draft, network=_with_copy(draft.network, chosen)) for draft in drafts)


#: The steps by the name of the disguise.
CHANNEL_DISGUISES: Mapping[str, Step] = MappingProxyType(
    {
        "permute": permute_channels,
        "scale": scale_channels,
        "duplicate": duplicate_channels,
        "identity": copy_after_relu,
    }
)


def _free(drafts: Sequence[Draft]) -> list[Channels]:
    """The channels of layers that no certificate names."""
    named = {text for draft in drafts for text in _texts(draft.certificate.data)}
    found = [one for one in channels_of(drafts[0].network) if not named.intersection(one.written_by)]
    if not found:
        raise InputError("it has no channels whose order is free")
    return found


def _scaling(exponents: Values) -> Change:
    def change(axis: Axis, values: Values) -> Values:
        shape = (-1, *[1] * (values.ndim - 1))
        factors = np.exp2(axis.power * exponents.astype(np.float64)).reshape(shape)
        return _exact(values, factors)

    return change


def _duplication(chosen: int) -> Change:
    def change(axis: Axis, values: Values) -> Values:
        if axis.power < 0:
            factors = np.where(np.arange(len(values)) == chosen, 0.5, 1.0)
            values = _exact(values, factors.reshape(-1, *[1] * (values.ndim - 1)))
        return np.concatenate([values, values[chosen : chosen + 1]])

    return change


def _exact(values: Values, factors: Values) -> Values:
    """The product in float32. Raises InputError if it is not exact."""
    product = values.astype(np.float64) * factors
    with np.errstate(over="ignore"):
        rounded = product.astype(np.float32)
    if not np.array_equal(rounded.astype(np.float64), product):
        raise InputError("a rewritten weight is not exact in float32")
    return rounded


def _changed(draft: Draft, changes: Sequence[tuple[Channels, Change]], places: Mapping[str, int]) -> Draft:
    model = onnx.load_from_string(draft.network)
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for group, change in changes:
        for one in group.axes:
            tensor = constants[one.constant]
            values = numpy_helper.to_array(tensor)
            before, after = values.shape[: one.axis], values.shape[one.axis + 1 :]
            runs = values.shape[one.axis] // group.size
            listed = np.moveaxis(values.reshape(*before, group.size, runs, *after), one.axis, 0)
            moved = np.moveaxis(change(one, listed), 0, one.axis).reshape(*before, -1, *after)
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(moved), one.constant))
    del model.graph.value_info[:]  # shapes may have changed
    certificate = draft.certificate
    if renamed := {key: place for key, place in places.items() if key in certificate.data}:
        certificate = Certificate(certificate.kind, {**certificate.data, **renamed})
    return replace(
        draft, network=bytes(model.SerializeToString(deterministic=True)), certificate=certificate
    )


def _before(model: onnx.ModelProto, relu: str) -> set[str]:
    """The output of this ReLU, and that of what it reads."""
    return {relu, *(n.input[0] for n in model.graph.node if n.output[0] == relu)}


def _with_copy(network: bytes, relu: str) -> bytes:
    """The network with a 1×1 convolution that copies, and a ReLU, after this ReLU."""
    model = onnx.load_from_string(network)
    nodes = list(model.graph.node)
    place = next(k for k, node in enumerate(nodes) if node.output[0] == relu)
    convolution = next(node for node in nodes if node.output[0] == nodes[place].input[0])
    (size,) = (t.dims[0] for t in model.graph.initializer if t.name == convolution.input[1])
    names = [f"{relu}_{part}" for part in ("filter", "bias", "copy", "again")]
    arrays = (np.eye(size, dtype=np.float32).reshape(size, size, 1, 1), np.zeros(size, np.float32))
    model.graph.initializer.extend(
        numpy_helper.from_array(array, name) for array, name in zip(arrays, names[:2], strict=True)
    )
    for node in nodes[place + 1 :]:
        node.input[:] = [names[3] if name == relu else name for name in node.input]
    added = [
        helper.make_node("Conv", [relu, *names[:2]], [names[2]], kernel_shape=[1, 1]),
        helper.make_node("Relu", [names[2]], [names[3]]),
    ]
    del model.graph.node[:]
    model.graph.node.extend([*nodes[: place + 1], *added, *nodes[place + 1 :]])
    return bytes(model.SerializeToString(deterministic=True))


def _texts(data: object) -> Iterator[str]:
    """All strings in the data of a certificate."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)
