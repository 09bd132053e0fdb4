"""What a certificate of kind `linear` says: covers by cuts, and choices for their leaves."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, prod
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dokimos.checker.base import PLACE, Choice, Natural
from dokimos.checker.linear.walk import BoxRegions, Choices, Sides, Steps, TensorCuts
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.outward import Floats, Interval

LEAF = -1
MOST_LEAVES = 200_000
#: Leaves that are boxes of their own cost more: each is a network bounded anew.
MOST_OWN = 20_000
#: How many bytes the choices of one question may take when unpacked.
MOST_BYTES = 1 << 28
#: The byte of the usual line; k < 255 stands for k/254.
USUAL_BYTE = 255
_LONG = np.dtype("<f8")


class QuestionData(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A cover of one box for one conjunction, and the choices of its leaves.

    `refined` are tensors, by number, that are bounded by functionals on the whole box, and `again` those
    that are bounded anew on every leaf. With `own`, each leaf is a box of its own, about which nothing is
    known from the whole; then only inputs are cut. `tree` has the cuts in preorder, the part below first:
    the number of an entry (those of the input come first, then those of every tensor in order), −1 for a
    leaf; `at` has the values of cuts by their place in the tree, where they are not the usual ones: the
    middle for an entry of the input, 0 for others.

    The rest are bytes, packed by zlib, in base64; nothing stands for the usual choices. `root`: lines for
    bounding each of the refined tensors, from below and from above: one byte for each unit, as differences
    to the row before. `lines`: one byte for each unit, for each leaf, as differences to the leaf before.
    `multipliers`: a float32 for each cut on the path of each leaf that is not of an input. `weights`: a
    byte for each constraint, for each leaf. Where little is left, lines are float64 numbers instead, and
    multipliers too.
    """

    tree: tuple[Choice, ...] = (LEAF,)
    refined: tuple[Natural, ...] = ()
    again: tuple[Natural, ...] = ()
    own: bool = False
    at: dict[str, float] = {}
    root: str = ""
    lines: str = ""
    multipliers: str = ""
    weights: str = ""


def unpack(text: str, what: str) -> bytes:
    """The bytes of a packed text. Raises UnreadableFile if it is none, or unpacks to too many."""
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        found = unpacker.decompress(packed, MOST_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof or unpacker.unused_data:
            raise UnreadableFile(PLACE, f"{what!r} does not end, or is too long")
    except (binascii.Error, ValueError, zlib.error):
        raise UnreadableFile(PLACE, f"{what!r} is not packed bytes in base64") from None
    return found


def pack(data: bytes, level: int = 9) -> str:
    """The text that `unpack` reads."""
    return base64.b64encode(zlib.compress(data, level)).decode("ascii")


@dataclass(frozen=True)
class Path:
    """The part of the box at a leaf: its ends, and the cuts of other tensors on the way to it.

    A cut is (number of the entry, sign, value): sign·(entry − value) >= 0.
    """

    lower: Floats
    upper: Floats
    cuts: tuple[tuple[int, float, float], ...]


def paths(box: Interval, data: QuestionData, most_entry: int) -> Iterator[Path]:
    """The leaves of a cover, in order.

    Theorem. An entry e of a tensor that is bounded is <= v or >= v, for every number v. So the two
    parts of a cut cover what they cut, and the leaves of a tree of cuts cover the box at its root: every
    run of the network on a point of the box is in one of them.

    Raises InvalidProof if it is not one tree, or names an entry that there is not.
    """
    size = box.lower.size
    pending = [Path(box.lower.reshape(-1), box.upper.reshape(-1), ())]
    for place, entry in enumerate(data.tree):
        if not pending:
            raise InvalidProof("a tree of cuts continues after its last leaf")
        path = pending.pop()
        if entry == LEAF:
            yield path
            continue
        if entry >= most_entry:
            raise InvalidProof(f"there is no entry {entry} to cut at")
        value = data.at.get(str(place))
        if entry >= size:
            at = 0.0 if value is None else value
            parts = [Path(path.lower, path.upper, (*path.cuts, (entry, s, at))) for s in (1.0, -1.0)]
            pending += parts
            continue
        low, high = path.lower[entry], path.upper[entry]
        at = float(np.clip(0.5 * low + 0.5 * high if value is None else value, low, high))
        below, above = path.upper.copy(), path.lower.copy()
        below[entry] = above[entry] = at
        pending += [Path(above, path.upper, path.cuts), Path(path.lower, below, path.cuts)]
    if pending:
        raise InvalidProof("a tree of cuts ends before its last leaf")


class CutCover:
    """One question's cover, read and ready to be turned into regions, some leaves at a time."""

    def __init__(self, steps: Steps, box: Interval, data: QuestionData, constraints: int) -> None:
        most = MOST_OWN if data.own else MOST_LEAVES
        if len(data.tree) > 2 * most:
            raise InvalidProof(f"the proof has more than {most} leaves")
        if not all(isfinite(value) for value in data.at.values()):
            raise UnreadableFile(PLACE, "'at' has a number that is not finite")
        self._steps, self._data = steps, data
        sizes = [prod(steps.shapes[name]) for name in steps.tensors]
        self._starts = np.cumsum([0, *sizes])
        self.leaves = list(paths(box, data, int(self._starts[-1])))
        units = sum(prod(shape) for shape in steps.units.values())
        count = len(self.leaves)
        self.refined = self._sides(data, units)
        self._leaf_lines = self._lines(data.lines, "lines", count, units)
        self._weights = _table(data.weights, "weights", (np.dtype(np.uint8),), count, constraints)
        cut = sum(len(leaf.cuts) for leaf in self.leaves)
        multipliers = _table(data.multipliers, "multipliers", (np.dtype("<f4"), _LONG), 1, cut)
        self._multipliers = np.zeros(cut) if multipliers is None else multipliers[0].astype(np.float64)
        if not (np.isfinite(self._multipliers) & (self._multipliers >= 0)).all():
            raise InvalidProof("a multiplier is negative or not finite")
        self._firsts = np.cumsum([0, *(len(leaf.cuts) for leaf in self.leaves)])

    def names(self, numbers: Sequence[int]) -> list[str]:
        """The tensors with these numbers, in the order of the graph. Raises InvalidProof."""
        tensors = self._steps.tensors
        if any(number >= len(tensors) for number in numbers):
            raise InvalidProof(f"there is no tensor {max(numbers)} to bound")
        return [tensors[number] for number in sorted(set(numbers))]

    def _sides(self, data: QuestionData, units: int) -> dict[str, Sides]:
        """The tensors that are refined on the whole box, with the lines that bound them."""
        names = self.names(data.refined)
        lines = self._lines(data.root, "root", 2 * len(names), units)
        if lines is None:
            return dict.fromkeys(names, ({}, {}))
        rows = [self._by_step(lines[k : k + 1]) for k in range(len(lines))]
        return {name: (rows[2 * k], rows[2 * k + 1]) for k, name in enumerate(names)}

    def _lines(self, text: str, what: str, count: int, units: int) -> NDArray[Any] | None:
        found = _table(text, what, (np.dtype(np.uint8), _LONG), count, units)
        return found if found is None or found.dtype == _LONG else np.cumsum(found, axis=0, dtype=np.uint8)

    def _by_step(self, table: NDArray[Any]) -> Choices:
        """Bytes or numbers [n, units] as choices for the units of each step: [n, *shape]."""
        numbers = table if table.dtype == _LONG else np.where(table == USUAL_BYTE, np.nan, table / 254.0)
        shapes = self._steps.units
        ends = np.cumsum([0, *(prod(shape) for shape in shapes.values())])
        return {
            name: numbers[:, start:end].reshape(-1, *shape)
            for (name, shape), (start, end) in zip(shapes.items(), pairwise(ends), strict=True)
        }

    def choices(self, some: Sequence[int]) -> Choices:
        """The lines that these leaves choose."""
        return {} if self._leaf_lines is None else self._by_step(self._leaf_lines[list(some)])

    def weights(self, some: Sequence[int]) -> NDArray[np.uint8] | None:
        """The weights of the constraints that these leaves choose: [leaves, constraints]; None for none."""
        return None if self._weights is None else self._weights[list(some)]

    def regions(self, facts: Mapping[str, Interval], some: Sequence[int]) -> tuple[BoxRegions, list[int]]:
        """These leaves as regions, without those that hold no run; and which they are.

        `facts` hold on the whole box. What a cut says of a tensor is a fact of its region.
        """
        inner = self._steps.network.input
        ends: dict[str, tuple[Floats, Floats]] = {}
        leaves = [self.leaves[number] for number in some]
        ends[inner] = tuple(  # type: ignore[assignment]
            np.stack([getattr(leaf, end) for leaf in leaves]) for end in ("lower", "upper")
        )
        cuts = self._cuts(some)
        for cut in cuts:
            if cut.tensor not in ends:
                known = facts[cut.tensor]
                ends[cut.tensor] = tuple(  # type: ignore[assignment]
                    np.tile(end.reshape(-1), (len(leaves), 1)) for end in (known.lower, known.upper)
                )
            lower, upper = ends[cut.tensor]
            where = (cut.regions, cut.entries)
            up = cut.signs > 0
            lower[where] = np.where(up, np.maximum(lower[where], cut.values), lower[where])
            upper[where] = np.where(up, upper[where], np.minimum(upper[where], cut.values))
        holds = np.all([(lower <= upper).all(-1) for lower, upper in ends.values()], axis=0)
        found = {
            name: Interval(*(end.reshape(-1, *self._steps.shapes[name]) for end in pair))
            for name, pair in ends.items()
        }
        kept = np.flatnonzero(holds)
        return only(BoxRegions(len(leaves), found, cuts), kept), [some[k] for k in kept.tolist()]

    def _cuts(self, some: Sequence[int]) -> list[TensorCuts]:
        """The cuts of these leaves: those that stand first on their paths together, and so on."""
        by_place: dict[tuple[int, int], list[tuple[int, int, float, float, float]]] = {}
        for row, number in enumerate(some):
            first = self._firsts[number]
            for place, (entry, sign, value) in enumerate(self.leaves[number].cuts):
                tensor = int(np.searchsorted(self._starts, entry, side="right")) - 1
                inside = entry - int(self._starts[tensor])
                multiplier = float(self._multipliers[first + place])
                by_place.setdefault((place, tensor), []).append((row, inside, sign, value, multiplier))
        cuts = []
        for (_, tensor), found in by_place.items():
            rows, entries, signs, values, multipliers = map(np.array, zip(*found, strict=True))
            cuts.append(TensorCuts(self._steps.tensors[tensor], rows, entries, signs, values, multipliers))
        return cuts


def only(regions: BoxRegions, kept: NDArray[np.intp]) -> BoxRegions:
    """Some of the regions, with new numbers."""
    cuts = []
    for cut in regions.cuts:
        stays = np.isin(cut.regions, kept)
        if stays.any():
            parts = (each[stays] for each in (cut.entries, cut.signs, cut.values, cut.multipliers))
            cuts.append(TensorCuts(cut.tensor, np.searchsorted(kept, cut.regions[stays]), *parts))
    facts = {
        name: fact.map(lambda end: end[kept] if len(end) > 1 or regions.count == 1 else end)
        for name, fact in regions.facts.items()
    }
    return BoxRegions(len(kept), facts, cuts)


def _table(
    text: str, what: str, forms: Sequence[np.dtype[Any]], rows: int, columns: int
) -> NDArray[Any] | None:
    """A packed table of numbers in one of these forms, which the size tells; None for an empty text.

    Raises UnreadableFile if the size is another.
    """
    if not text:
        return None
    found = unpack(text, what)
    for form in forms:
        if len(found) == rows * columns * form.itemsize:
            return np.frombuffer(found, dtype=form).reshape(rows, columns)
    raise UnreadableFile(PLACE, f"{what!r} must have {rows} times {columns} numbers")
