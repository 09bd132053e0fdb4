"""Lowering of Upsample and Resize to the nearest entry: along each axis, some entries are gathered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from dokimos.networks.graph import Attribute
from dokimos.networks.reading.lowering import Array, Lowering, OnnxCall, Rule, axes_of

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


RULES: Mapping[str, Rule] = MappingProxyType({"Resize": _resize, "Upsample": _upsample})
