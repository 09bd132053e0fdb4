"""Lowering of what makes images larger: Upsample and Resize to the nearest entry, and ConvTranspose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dokimos.networks.graph import Attribute, Shape
from dokimos.networks.reading.arithmetic import per_axis
from dokimos.networks.reading.lowering import Array, Lowering, OnnxCall, Rule, axes_of

# Upsample and Resize: along each axis, some entries are gathered


#: The longest axis after resampling: its entries are handled one by one.
_MOST_ENTRIES = 1 << 16
_KINDS: tuple[Callable[[Any], Any], ...] = (Fraction, np.float64, np.float32)


class _Axis(NamedTuple):
    """One axis: how many entries it has and gets, by which scale, and the part of it that is resampled."""

    old: Any
    new: Any
    scale: Any
    start: Any
    end: Any


class _Entry(NamedTuple):
    """An entry x of the new axis; all numbers are of one kind, and so is `half`."""

    x: Any
    axis: _Axis
    half: Any


def _half_pixel(e: _Entry) -> Any:
    return (e.x + e.half) / e.axis.scale - e.half


def _symmetric(e: _Entry) -> Any:
    return e.axis.old / 2 * (1 - e.axis.new / (e.axis.scale * e.axis.old)) + _half_pixel(e)


def _cropped(e: _Entry) -> Any:
    start, end, last = e.axis.start, e.axis.end, e.axis.old - 1
    if e.axis.new == 1:
        return e.half * (start + end) * last
    return start * last + e.x * (end - start) * last / (e.axis.new - 1)


#: Where on the old axis an entry of the new one lies, by coordinate_transformation_mode.
_PLACES: Mapping[str, Callable[[_Entry], Any]] = MappingProxyType(
    {
        "align_corners": lambda e: e.x * (e.axis.old - 1) / (e.axis.new - 1) if e.axis.new != 1 else e.x,
        "asymmetric": lambda e: e.x / e.axis.scale,
        "half_pixel": _half_pixel,
        "half_pixel_symmetric": _symmetric,
        "pytorch_half_pixel": lambda e: _half_pixel(e) if e.axis.new > 1 else e.x,
        "tf_crop_and_resize": _cropped,
        "tf_half_pixel_for_nn": lambda e: (e.x + e.half) / e.axis.scale,
    }
)
#: The opsets that know of a coordinate_transformation_mode, where not all do.
_OPSETS = MappingProxyType({"half_pixel_symmetric": range(19, 1000), "tf_half_pixel_for_nn": range(13)})
#: The entry nearest to a place, by nearest_mode.
_ROUNDED: Mapping[str, Callable[[Any, Any], int]] = MappingProxyType(
    {
        "ceil": lambda place, half: ceil(place),
        "floor": lambda place, half: floor(place),
        "round_prefer_ceil": lambda place, half: floor(place + half),
        "round_prefer_floor": lambda place, half: ceil(place - half),
    }
)


def _upsample(lowering: Lowering, call: OnnxCall) -> None:
    """Upsample, and Resize before opset 11."""
    attribute = np.array(call.attribute("scales") or (), dtype=np.float32)
    scales = attribute if call.opset < 9 else lowering.constant(call, 1, "its scales")
    axes = tuple(range(len(lowering.shape(call.inputs[0]))))
    _resample(lowering, call, _scaled(lowering, call, axes, scales, ()), "asymmetric", "floor")


def _resize(lowering: Lowering, call: OnnxCall) -> None:
    if call.opset < 11:
        _upsample(lowering, call)
        return
    if call.flag("antialias", 0) or call.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        call.refuse("neither antialias nor a keep_aspect_ratio_policy other than 'stretch' is supported.")
    place = call.text("coordinate_transformation_mode", "half_pixel")
    nearest = call.text("nearest_mode", "round_prefer_floor")
    if (
        place not in _PLACES
        or call.opset not in _OPSETS.get(place, (call.opset,))
        or nearest not in _ROUNDED
    ):
        call.refuse(f"opset {call.opset} has no coordinates {place!r} with nearest_mode {nearest!r}.")
    roi = (
        lowering.constant(call, 1, "its roi").reshape(-1).tolist() if place == "tf_crop_and_resize" else ()
    )
    scales, sizes = (
        lowering.constant(call, i, "its scales or sizes") if call.input(i) else np.zeros(0) for i in (2, 3)
    )
    rank = len(lowering.shape(call.inputs[0]))
    axes = axes_of(call, call.integers("axes") or range(rank), rank)
    if bool(scales.size) == bool(sizes.size):
        call.refuse("it must have either scales or sizes.")
    _resample(lowering, call, _scaled(lowering, call, axes, scales, roi, sizes), place, nearest)


def _scaled(
    lowering: Lowering,
    call: OnnxCall,
    axes: Sequence[int],
    scales: Array,
    roi: Sequence[float],
    sizes: Array | None = None,
) -> dict[int, _Axis]:
    """The axes that are resampled, in exact numbers, by their position in the shape."""
    given = scales if sizes is None or scales.size else sizes
    count, ends = len(axes), roi or (0.0,) * len(axes) + (1.0,) * len(axes)
    if given.size != count or len(ends) != 2 * count or not np.isfinite([*given.reshape(-1), *ends]).all():
        call.refuse(f"its scales, sizes or roi are not finite numbers for {count} axes.")
    found = {}
    for axis, number, start, end in zip(axes, given.reshape(-1).tolist(), ends, ends[count:], strict=False):
        old = lowering.shape(call.inputs[0])[axis]
        scale = Fraction(number) if given is scales else Fraction(int(number), old)
        lengths = {floor(kind(old) * kind(scale)) for kind in _KINDS} if given is scales else {int(number)}
        if len(lengths) > 1 or scale <= 0 or max(lengths) > _MOST_ENTRIES:
            call.refuse(f"axis {axis} would have {' or '.join(map(str, lengths))} entries by its scale.")
        found[axis] = _Axis(Fraction(old), Fraction(lengths.pop()), scale, Fraction(start), Fraction(end))
    return found


def _resample(
    lowering: Lowering, call: OnnxCall, axes: Mapping[int, _Axis], place: str, nearest: str
) -> None:
    if call.text("mode", "nearest") != "nearest":
        call.refuse(f"the mode {call.text('mode', 'nearest')!r} is not supported, only 'nearest'.")
    taken = {position: _nearest(call, axis, place, nearest) for position, axis in axes.items()}
    moved = [position for position, axis in axes.items() if taken[position] != tuple(range(int(axis.old)))]
    same_shape = all(axis.old == axis.new for axis in axes.values())
    if moved and (same_shape or any(axes[position].scale == 1 for position in moved)):
        call.refuse(
            "unlike ONNX, runtimes copy an input that keeps its shape; leave the node or the axis out."
        )
    source = call.inputs[0]
    for position in moved:
        indices = taken[position]
        chosen: dict[str, Attribute] = {
            "indices": indices,
            "indices_shape": (len(indices),),
            "axis": position,
        }
        source = lowering.emit(call, "Gather", [source], chosen)
    lowering.alias(call.outputs[0], source)


def _nearest(call: OnnxCall, axis: _Axis, place: str, nearest: str) -> tuple[int, ...]:
    """For each entry of the new axis, the entry of the old one that it copies."""
    # Before opset 11, ONNX does not say how the place of an entry is rounded.
    modes = (nearest, "ceil") if call.opset < 11 and axis.scale < 1 else (nearest,)
    lengths = {axis.new} if place == "half_pixel_symmetric" else {axis.new, axis.scale * axis.old}
    variants = [axis._replace(new=length) for length in lengths]
    settings = [(kind(0.5), _Axis(*map(kind, v)), kind) for v in variants for kind in _KINDS]
    taken = []
    for x in range(int(axis.new)):
        places = [
            (_PLACES[place](_Entry(kind(x), numbers, half)), half) for half, numbers, kind in settings
        ]
        if place == "tf_crop_and_resize" and not all(0 <= p <= axis.old - 1 for p, _ in places):
            call.refuse("its roi reaches beyond the input.")
        indices = {min(max(_ROUNDED[mode](*p), 0), int(axis.old) - 1) for p in places for mode in modes}
        if len(indices) > 1:
            call.refuse(f"runtimes disagree on which of the entries {sorted(indices)} is the nearest.")
        taken.append(indices.pop())
    return tuple(taken)


# Transposed convolution


def _conv_transpose(lowering: Lowering, call: OnnxCall) -> None:
    """A convolution of the input with zeros between its entries, its window turned round.

    y_o = Σ w_k·x_i over all i and k with i·stride + k·dilation − pad = o. With x'_j = x_i at j = i·stride
    and 0 elsewhere, this is Σ_k w_k·x'_{o + pad − k·dilation}: a convolution by w, its last weight first.
    """
    weights = lowering.constant(call, 1, "its weights")
    if call.input(2):
        lowering.constant(call, 2, "its bias")
    x, kernel = lowering.shape(call.inputs[0]), weights.shape[2:]
    rank, group = len(kernel), call.integer("group", 1)
    if rank == 0 or len(x) != rank + 2 or group < 1 or len(weights) % group:
        call.refuse(f"weights of shape {weights.shape} in {group} groups do not fit an input of shape {x}.")
    if (call.integers("kernel_shape") or kernel) != kernel:
        call.refuse(f"its kernel_shape differs from that of its weights, {list(kernel)}.")
    strides, dilations = per_axis(call, "strides", rank), per_axis(call, "dilations", rank)
    grown = _transposed_pads(call, x[2:], kernel, strides, dilations)
    spread = _spread(lowering, call, strides)
    size = lowering.shape(spread)
    if any(
        min(a, 0) + min(b, 0) <= -n for n, a, b in zip(size[2:], grown[:rank], grown[rank:], strict=True)
    ):
        call.refuse("its pads crop the whole input.")
    widths = (0, 0, *grown[:rank], 0, 0, *grown[rank:])
    padded = lowering.emit(call, "Pad", [spread], {"pads": widths, "value": 0.0})
    grouped = weights.reshape(group, len(weights) // group, *weights.shape[1:])
    turned = np.flip(grouped.swapaxes(1, 2), axis=tuple(range(3, 3 + rank)))
    turned = turned.reshape(group * turned.shape[1], *turned.shape[2:])
    attributes: dict[str, Attribute] = {
        "strides": (1,) * rank,
        "pads": (0,) * (2 * rank),
        "dilations": dilations,
        "group": group,
    }
    inputs = [padded, lowering.add_constant(call, turned), *filter(None, call.inputs[2:])]
    lowering.emit(call, "Conv", inputs, attributes, output=call.outputs[0])


def _transposed_pads(
    call: OnnxCall, space: Shape, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """By how much what is convolved is wider than the spread input, at the beginnings and at the ends."""
    rank = len(kernel)
    extra, pads = call.integers("output_padding") or (0,) * rank, call.integers("pads") or (0,) * (2 * rank)
    auto, wanted = call.text("auto_pad", "NOTSET"), call.integers("output_shape")
    if auto not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        call.refuse(f"its auto_pad {auto!r} is unknown.")
    if len(extra) != rank or len(pads) != 2 * rank or min(*extra, *pads) < 0:
        call.refuse(f"its pads {list(pads)} or output_padding {list(extra)} do not fit {rank} axes.")
    if (auto != "NOTSET" or wanted is not None) and any(pads):
        call.refuse("its pads contradict its auto_pad or output_shape; leave one of them out.")
    if auto.startswith("SAME") and wanted is None:
        wanted = tuple(n * stride for n, stride in zip(space, strides, strict=True))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if wanted is not None:
        full = [(n - 1) * s + e + k for n, s, e, k in zip(space, strides, extra, spans, strict=True)]
        totals = [a - b for a, b in zip(full, wanted, strict=False)]
        if len(wanted) != rank or any(total < 0 or total % 2 for total in totals):
            call.refuse("runtimes disagree on how its output_shape or auto_pad is met; write out its pads.")
        pads = tuple(total // 2 for total in totals) * 2
    begins = [span - 1 - pad for span, pad in zip(spans, pads[:rank], strict=True)]
    # The spread input ends with the zeros after its last entry, which belong to no window.
    ends = [
        span - 1 - pad + e - (stride - 1)
        for span, pad, e, stride in zip(spans, pads[rank:], extra, strides, strict=True)
    ]
    return (*begins, *ends)


def _spread(lowering: Lowering, call: OnnxCall, strides: Sequence[int]) -> str:
    """The input with stride − 1 zeros after each of its entries, along every axis of its space."""
    source, shape = call.inputs[0], lowering.shape(call.inputs[0])
    if all(stride == 1 for stride in strides):
        return source
    columns = [(n, 1) for n in shape[2:]]
    source = lowering.emit(
        call, "Reshape", [source], {"shape": (*shape[:2], *(n for c in columns for n in c))}
    )
    after = [width for stride in strides for width in (0, stride - 1)]
    widths = (*(0,) * len(lowering.shape(source)), 0, 0, *after)
    source = lowering.emit(call, "Pad", [source], {"pads": widths, "value": 0.0})
    wide = tuple(n * stride for n, stride in zip(shape[2:], strides, strict=True))
    return lowering.emit(call, "Reshape", [source], {"shape": (*shape[:2], *wide)})


RULES: Mapping[str, Rule] = MappingProxyType(
    {"ConvTranspose": _conv_transpose, "Resize": _resize, "Upsample": _upsample}
)
