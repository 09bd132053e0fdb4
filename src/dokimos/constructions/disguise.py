"""Disguises: the same function written differently, so that a verifier cannot recognise the family."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from dokimos.constructions.channels import Axis, Channels, channels_of
from dokimos.constructions.draft import Draft
from dokimos.core import strict_json
from dokimos.core.errors import ConstructionFailed, InputError, UnsupportedOp
from dokimos.core.registry import unknown_name
from dokimos.networks.chain import (
    Chain,
    Duplicate,
    Identity,
    Merge,
    Permute,
    Rescale,
    Rewriting,
    SplitUnit,
    as_chain,
)
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import write_chain
from dokimos.suites.instance import Certificate, Label

# Networks of convolutions, attention or powers, written differently: other channels, the same function


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


#: Neurons are scaled by 2^-LARGEST_EXPONENT up to 2^LARGEST_EXPONENT.
LARGEST_EXPONENT = 3


def _hidden(chain: Chain) -> list[int]:
    return [k for k, layer in enumerate(chain.layers[:-1]) if layer.rectified]


def _permutations(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    sizes = {k: len(chain.layers[k].bias) for k in _hidden(chain)}
    return [Permute(k, tuple(int(i) for i in rng.permutation(size))) for k, size in sizes.items()]


def _scalings(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    span = LARGEST_EXPONENT
    sizes = {k: len(chain.layers[k].bias) for k in _hidden(chain)}
    return [
        Rescale(k, tuple(int(e) for e in rng.integers(-span, span + 1, size=size)))
        for k, size in sizes.items()
    ]


def _duplications(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    return [
        Duplicate(k, int(rng.integers(len(chain.layers[k].bias))), int(rng.integers(1, 3)))
        for k in _hidden(chain)
    ]


def _splits(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    size = len(chain.layers[0].bias)
    return [SplitUnit(0, tuple(Fraction(int(t), 64) for t in rng.integers(-4, 5, size=size)))]


def _identities(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    return [Identity(int(rng.choice(_hidden(chain))))]


def _mergers(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    """From the last layer to the first, so that the numbers of earlier layers do not change."""
    plain = [k for k, layer in enumerate(chain.layers[:-1]) if not layer.rectified]
    if not plain:
        raise InputError("it has no two adjacent affine layers (without a ReLU between them) to merge")
    return [Merge(k) for k in reversed(plain)]


#: The kinds of disguise, and the steps that each draws for a chain.
DISGUISES: Mapping[str, Callable[[Chain, np.random.Generator], list[Rewriting]]] = MappingProxyType(
    {
        "permute": _permutations,
        "scale": _scalings,
        "duplicate": _duplications,
        "split": _splits,
        "identity": _identities,
        "merge": _mergers,
    }
)


def disguise_drafts(
    drafts: Sequence[Draft], kinds: Sequence[str], rng: np.random.Generator
) -> tuple[Draft, ...]:
    """The drafts, all rewritten by the same steps (drawn for the first), so that they still look alike.

    Raises InputError for an unknown kind, ConstructionFailed if the networks cannot be rewritten.
    """
    for kind in kinds:
        if kind not in DISGUISES:
            raise unknown_name("disguise", kind, sorted(DISGUISES))
    if not kinds:
        return tuple(drafts)
    try:
        try:
            chain = as_chain(read_onnx(drafts[0].network))
        except UnsupportedOp:
            return disguise_channels(drafts, kinds, rng)
        steps: list[Rewriting] = []
        for kind in kinds:
            for step in DISGUISES[kind](chain, rng):
                chain = step.apply(chain)
                steps.append(step)
        return tuple(_rewritten(draft, steps) for draft in drafts)
    except InputError as error:
        raise ConstructionFailed(
            f"The instance cannot be disguised by {', '.join(kinds)}: {error}. Leave out that step; "
            "docs/families.md says where each one applies."
        ) from None


def _rewritten(draft: Draft, steps: Sequence[Rewriting]) -> Draft:
    chain = as_chain(read_onnx(draft.network))
    for step in steps:
        chain = step.apply(chain)
    network = write_chain(chain)
    if draft.label is Label.SAT:
        return replace(draft, network=network)
    data = {
        "base": base64.b64encode(draft.network).decode("ascii"),
        "steps": strict_json.parse(strict_json.write(steps), file="steps"),
        "kind": draft.certificate.kind,
        "data": dict(draft.certificate.data),
    }
    return replace(draft, network=network, certificate=Certificate("rewritten", data))
