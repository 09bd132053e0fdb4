"""Which node of a verifier's own bounds is wrong: the first whose interval excludes a counterexample.

A verifier may write, beside its result, the file `bounds.npz` with what it proved about tensors of the
network over all inputs that the property allows: for each tensor, by its name in the file, the arrays
``NAME/lower`` and ``NAME/upper``, in the tensor's shape or flat. Where its `unsat` is wrong, every number
that the counterexample has in such a tensor must lie in its interval; the first one in graph order that
does not names the node whose bound is wrong. Numbers are those over the reals, and count only where they
leave the interval by more than rounding can explain.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_regular
from dokimos.core.inputs import uncompressed
from dokimos.core.readable import printable
from dokimos.core.tables import all_arrays
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.outward import Rounded
from dokimos.networks.semantics.rounding import own_format, rounding_bounds
from dokimos.suites.instance import DEFAULT_ULPS
from dokimos.suites.vnnlib.model import Point

_log = logging.getLogger(__name__)
MOST_BYTES = 64 << 20
Ends = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class ExcludedValue:
    """The first number at a counterexample that a verifier's interval excludes."""

    node: str
    operator: str
    entry: int
    lower: float
    upper: float
    value: float

    @property
    def in_words(self) -> str:
        """The finding in a sentence."""
        return (
            f"its interval for node {printable(self.node)}, entry {self.entry}, [{self.lower:.6g}, "
            f"{self.upper:.6g}], excludes {self.value:.6g}, which the counterexample has there"
        )


def read_bounds(path: Path) -> dict[str, Ends]:
    """The intervals in a file, by tensor, flat. Raises UnreadableFile if it is not such a file."""
    try:
        content = read_regular(path, most_bytes=MOST_BYTES)
        return _paired(all_arrays(content, file=path), path)
    except (OSError, ValueError) as error:
        raise UnreadableFile(path, f"it holds no bounds of tensors in .npz form ({error}).") from None


def _paired(arrays: Mapping[str, NDArray[Any]], path: Path) -> dict[str, Ends]:
    found = {}
    for name in arrays:
        tensor, slash, side = name.rpartition("/")
        if not slash or side not in ("lower", "upper") or f"{tensor}/lower" not in arrays:
            raise UnreadableFile(
                path, f"{printable(name)[:60]!r} is not NAME/lower or NAME/upper of a tensor."
            )
        if side == "upper":
            ends = [
                np.asarray(arrays[f"{tensor}/{end}"], dtype=np.float64).reshape(-1)
                for end in ("lower", "upper")
            ]
            found[tensor] = ends[0], ends[1]
    return found


def _fits(value: Rounded | None, *sizes: int) -> bool:
    return value is not None and all(size == value.lower.size for size in sizes)


def first_excluded(content: bytes, point: Point, bounds: Mapping[str, Ends]) -> ExcludedValue | None:
    """The first number, in the order of the file's nodes, that the point has outside of these bounds.

    None if there is none, or if the network cannot be evaluated node by node. Bounds of another size, and
    of tensors that the network does not have, are left out, with a remark.
    """
    network = read_onnx(content)
    model = onnx.ModelProto()
    model.ParseFromString(uncompressed(content, file="the network"))
    try:
        values = rounding_bounds(network, point, point, ulps=DEFAULT_ULPS, form=own_format(network))
    except InputError:
        return None
    unfit = [
        name for name, (low, high) in bounds.items() if not _fits(values.get(name), low.size, high.size)
    ]
    if unfit:
        _log.warning(
            "bounds of %d of %d tensors are left out, as of %s: none of that name and size is known",
            *(len(unfit), len(bounds), printable(unfit[0])[:60]),
        )
    for position, node in enumerate(model.graph.node):
        for tensor in node.output:
            if tensor not in bounds or tensor in unfit:
                continue
            lower, upper = bounds[tensor]
            least, most, error = (
                np.asarray(part, dtype=np.float64).reshape(-1)
                for part in (values[tensor].lower, values[tensor].upper, values[tensor].error)
            )
            with np.errstate(all="ignore"):
                outside = np.flatnonzero((most + error < lower) | (least - error > upper))
            if outside.size:
                at = int(outside[0])
                name = node.name or f"{node.op_type} number {position}"
                middle = float(least[at] / 2 + most[at] / 2)
                return ExcludedValue(name, node.op_type, at, float(lower[at]), float(upper[at]), middle)
    return None
