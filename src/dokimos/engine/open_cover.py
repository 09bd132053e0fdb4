"""Covers while they grow: their parts and cuts, and how a search that is not over is kept and read again.

What is kept proves nothing: whoever goes on from it proves every leaf anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, prod
from typing import Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from dokimos.checker.base import Natural
from dokimos.checker.linear.cover import LEAF, MOST_BYTES, Path, QuestionData, pack, paths, unpack
from dokimos.checker.linear.walk import Steps
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.outward import Floats, Interval

#: Where errors in it are said to be.
KEPT = "search"


class OpenCover(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A search that is not over: `questions` as in a certificate, as far as it has come.

    `pairs` are those of the certificate. `cuts_inputs`: whether inputs are cut, or units. `open` are
    the numbers of the open leaves of the last question, in order (if there is none, the next question has
    not been cut), and `bounds` what is known of the margin
    on each of them, in floats (null for nothing). `scales` are packed float32 numbers, one for each
    multiplier: how large it may be expected to be.
    """

    questions: tuple[QuestionData, ...]
    cuts_inputs: bool = False
    open: tuple[Natural, ...] = ()
    bounds: tuple[float | None, ...] = ()
    scales: str = ""
    pairs: tuple[tuple[Natural, Natural], ...] = ()


class NothingToCut(Exception):
    """A part of the box is open although everything in it is decided: it is too close to call."""


@dataclass(frozen=True)
class ChosenCut:
    """A cut at an entry: how large its multiplier may be expected to be, and with which it begins."""

    entry: int
    scale: float = 1.0
    below: float = 0.0
    above: float = 0.0


@dataclass
class OpenPart:
    """A node of the cover that is not closed yet, or a leaf that is.

    `known` are signs of entries that are decided, where inputs are cut. `failures`: how often the checker's
    arithmetic did not prove it or what it is a part of, though it was closed; `waited`: how many cuts since
    then, or at all, had a bound that seemed to suffice.
    """

    node: int
    lower: Floats
    upper: Floats
    cuts: NDArray[np.int64]
    signs: NDArray[np.float32]
    scales: NDArray[np.float32]
    lines: NDArray[np.uint8] | None
    multipliers: NDArray[np.float32]
    weights: NDArray[np.float32] | None
    bound: float
    split: ChosenCut | None = None
    known: NDArray[np.int8] | None = None
    failures: int = 0
    waited: int = 0


@dataclass
class CutTree:
    """The cuts of all nodes, and their children: the part below first."""

    cuts: list[int] = field(default_factory=lambda: [LEAF])
    children: list[tuple[int, int] | None] = field(default_factory=lambda: [None])
    depths: list[int] = field(default_factory=lambda: [0])

    @classmethod
    def of(cls, tree: Sequence[int]) -> CutTree:
        """The tree of a certificate."""
        found, pending = cls(), [0]
        for entry in tree:
            node = pending.pop()
            if entry != LEAF:
                pending += reversed(found.cut(node, entry))
        return found

    def cut(self, node: int, entry: int) -> tuple[int, int]:
        """Cut a leaf in two."""
        self.cuts[node] = entry
        self.children[node] = pair = (len(self.cuts), len(self.cuts) + 1)
        self.cuts += [LEAF, LEAF]
        self.children += [None, None]
        self.depths += 2 * [self.depths[node] + 1]
        return pair

    def preorder(self) -> Iterator[int]:
        """The nodes in the order of a certificate."""
        pending = [0]
        while pending:
            node = pending.pop()
            yield node
            if (pair := self.children[node]) is not None:
                pending += reversed(pair)

    def leaves(self) -> list[int]:
        """The nodes that are not cut, in the order of a certificate."""
        return [node for node in self.preorder() if self.children[node] is None]


def cover_of(
    known: QuestionData,
    tree: CutTree,
    leaves: Sequence[OpenPart],
    *,
    cuts_inputs: bool,
    weighs: bool,
    level: int = 1,
) -> QuestionData:
    """The choices of these leaves, as a certificate has them, packed quickly or, with `level` 9, well.

    Its weights are bytes, those of leaves have the sum 1; multipliers belong to the weighted sum.
    """
    cuts = tuple(tree.cuts[node] for node in tree.preorder())
    known, totals = structs.replace(known, tree=cuts), np.ones(len(leaves))
    if weighs:
        shares = np.stack([leaf.weights for leaf in leaves if leaf.weights is not None])
        weights = np.rint(255 * shares / shares.max(1, keepdims=True)).astype(np.uint8)
        known, totals = (
            structs.replace(known, weights=pack(weights.tobytes(), level)),
            weights.sum(1, dtype=float),
        )
    if cuts_inputs:
        return structs.replace(known, again=known.refined if len(cuts) > 1 else ())
    lines = np.stack([leaf.lines for leaf in leaves if leaf.lines is not None])
    lines = np.diff(lines, axis=0, prepend=np.zeros((1, lines.shape[1]), np.uint8))
    multipliers = np.concatenate(
        [leaf.multipliers * total for leaf, total in zip(leaves, totals, strict=True)]
    ).astype("<f4")
    return structs.replace(
        known,
        lines=pack(lines.astype(np.uint8).tobytes(), level),
        multipliers=pack(multipliers.tobytes(), level) if len(multipliers) else "",
    )


def kept_cover(
    known: QuestionData,
    tree: CutTree,
    parts: Mapping[int, OpenPart],
    closed: Mapping[int, OpenPart],
    *,
    cuts_inputs: bool,
    weighs: bool,
) -> OpenCover | None:
    """A search with these leaves, by node; None if it has cut nothing, or is too large."""
    nodes = tree.leaves()
    leaves = [closed[node] if node in closed else parts[node] for node in nodes]
    wide = 0 if leaves[0].lines is None else leaves[0].lines.size
    if len(leaves) == 1 or len(leaves) * wide > MOST_BYTES:
        return None
    open_ = [number for number, node in enumerate(nodes) if node not in closed]
    scales = np.concatenate([leaf.scales for leaf in leaves]).astype("<f4")
    return OpenCover(
        (cover_of(known, tree, leaves, cuts_inputs=cuts_inputs, weighs=weighs),),
        cuts_inputs,
        tuple(open_),
        tuple(leaves[k].bound if isfinite(leaves[k].bound) else None for k in open_),
        pack(scales.tobytes()) if len(scales) else "",
    )


def leaves_of(
    kept: OpenCover, steps: Steps, box: Interval, constraints: int
) -> tuple[CutTree, list[OpenPart], list[OpenPart]]:
    """The tree of a kept search, its open leaves and its closed ones.

    Raises UnreadableFile where the numbers do not fit the network or one another.
    """
    data = kept.questions[-1]
    inputs = prod(steps.shapes[steps.network.input])
    entries = sum(prod(steps.shapes[name]) for name in steps.tensors)
    try:
        found = list(paths(box, data, entries))
    except InvalidProof as error:
        raise UnreadableFile(KEPT, str(error)) from None
    of_inputs = {0 <= entry < inputs for entry in data.tree if entry != LEAF}
    if data.own or data.at or of_inputs != {kept.cuts_inputs}:
        raise UnreadableFile(KEPT, "its cuts are not those of a search")
    count = len(found)
    if len(kept.bounds) != len(kept.open):
        raise UnreadableFile(KEPT, "it must have a bound for each open leaf")
    if list(kept.open) != sorted({*kept.open}) or kept.open[-1] >= count:
        raise UnreadableFile(KEPT, "its open leaves are not leaves in order")
    units = 0 if kept.cuts_inputs else sum(prod(shape) for shape in steps.units.values())
    lines = _numbers(data.lines, "lines", np.dtype(np.uint8), count * units).reshape(count, units)
    lines = np.cumsum(lines, axis=0, dtype=np.uint8)
    cuts = [len(path.cuts) for path in found]
    multipliers, scales = (
        _numbers(text, what, np.dtype("<f4"), sum(cuts))
        for text, what in ((data.multipliers, "multipliers"), (kept.scales, "scales"))
    )
    if not ((multipliers >= 0) & (multipliers < inf) & (scales > 0) & (scales < inf)).all():
        raise UnreadableFile(KEPT, "a multiplier or a scale is not a number above 0")
    weights = np.ones((count, 1), np.float32)
    if constraints > 1:
        bytes_ = _numbers(data.weights, "weights", np.dtype(np.uint8), count * constraints)
        weights = bytes_.reshape(count, constraints).astype(np.float32)
        totals = np.maximum(weights.sum(1), 1.0)
        weights /= totals[:, None]
        multipliers = (multipliers / np.repeat(totals, cuts)).astype(np.float32)
    tree = CutTree.of(data.tree)
    ends = np.cumsum(cuts)[:-1]
    own = zip(np.split(multipliers, ends), np.split(scales, ends), strict=True)
    parts = [
        _part(node, path, *pair, None if kept.cuts_inputs else lines[k], weights[k])
        for k, (node, path, pair) in enumerate(zip(tree.leaves(), found, own, strict=True))
    ]
    for number, bound in zip(kept.open, kept.bounds, strict=True):
        parts[number].bound = -inf if bound is None else bound
    open_ = {*kept.open}
    return tree, [parts[k] for k in kept.open], [p for k, p in enumerate(parts) if k not in open_]


def _part(
    node: int,
    path: Path,
    multipliers: NDArray[np.float32],
    scales: NDArray[np.float32],
    lines: NDArray[np.uint8] | None,
    weights: NDArray[np.float32],
) -> OpenPart:
    cuts = np.array([entry for entry, _, _ in path.cuts], dtype=np.int64)
    signs = np.array([sign for _, sign, _ in path.cuts], dtype=np.float32)
    return OpenPart(
        node, path.lower, path.upper, cuts, signs, scales.copy(), lines, multipliers.copy(), weights, -inf
    )


def _numbers(text: str, what: str, form: np.dtype[Any], count: int) -> NDArray[Any]:
    """So many packed numbers; an empty text for none."""
    found = unpack(text, what) if text else b""
    if len(found) != count * form.itemsize:
        raise UnreadableFile(KEPT, f"{what!r} must have {count} numbers")
    return np.frombuffer(found, dtype=form)
