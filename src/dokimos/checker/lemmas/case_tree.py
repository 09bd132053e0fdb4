"""Trees of case distinctions on ReLUs, as certificates write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from msgspec import Meta, Struct

from dokimos.checker.base import about
from dokimos.checker.data import PLACE, Choice
from dokimos.core.errors import InvalidProof, UnreadableFile

#: The entry for a leaf among the splits of a tree.
LEAF = -1


class LeafData(Struct, frozen=True, forbid_unknown_fields=True):
    """A weight for each constraint; and under each name that the arithmetic knows, numbers by ReLU."""

    constraints: tuple[Fraction, ...]
    choices: dict[str, dict[Annotated[str, Meta(pattern=r"^[0-9]{1,9}\Z")], Fraction]]


class TreeData(Struct, frozen=True, forbid_unknown_fields=True):
    """The ReLUs asked, in preorder (>= 0 first), -1 for a leaf; and what is chosen at each leaf."""

    splits: tuple[Choice, ...]
    leaves: tuple[LeafData, ...]


@dataclass(frozen=True)
class Leaf:
    """One case of a conjunction, and what the certificate chooses in it.

    `phases[k]` says whether the argument of ReLU k is >= 0 here (else it is <= 0); ReLUs are numbered from
    0, in the order of the network. `constraints` has a weight >= 0 for each constraint; `choices` has,
    under each name that the arithmetic knows, numbers by ReLU.
    """

    phases: Mapping[int, bool]
    constraints: tuple[Fraction, ...]
    choices: Mapping[str, Mapping[int, Fraction]]

    def margin(self, smallest: Fraction) -> Fraction | None:
        """What follows if Σ weights·(left side − bound) is >= `smallest` in this case.

        Theorem. At an unsafe point every left side − bound is <= 0, and so is their sum with weights >= 0.
        If `smallest` is positive, the case holds no unsafe point; and if the weights sum to S > 0, then at
        every point of it some left side − bound is >= smallest/S. If S = 0, the case holds no input: None.

        Raises InvalidProof if `smallest` is not positive.
        """
        if smallest <= 0:
            raise InvalidProof(f"a leaf's bound is {about(smallest)}, which is not above 0")
        total = sum(self.constraints, Fraction(0))
        return smallest / total if total else None


def read_tree(data: TreeData, constraints: int, limits: Mapping[str, float]) -> list[Leaf]:
    """The leaves of a tree, for a conjunction with this number of constraints.

    `limits` names the choices of a leaf and how large each may be. Raises UnreadableFile if the data has
    the wrong shape, InvalidProof if a weight or a choice is outside its limits.
    """
    paths = _paths(data.splits)
    if len(paths) != len(data.leaves):
        raise UnreadableFile(PLACE, f"a tree has {len(paths)} leaves, but {len(data.leaves)} are given")
    leaves = []
    for path, leaf in zip(paths, data.leaves, strict=True):
        if len(leaf.constraints) != constraints or leaf.choices.keys() != limits.keys():
            raise UnreadableFile(
                PLACE, f"a leaf needs {constraints} 'constraints', and {', '.join(limits)}"
            )
        if any(weight < 0 for weight in leaf.constraints):
            raise InvalidProof("an entry of 'constraints' is negative")
        for key, by_relu in leaf.choices.items():
            if any(not 0 <= value <= limits[key] for value in by_relu.values()):
                raise InvalidProof(f"an entry of {key!r} is negative or above {limits[key]:g}")
        choices = {key: {int(k): v for k, v in by_relu.items()} for key, by_relu in leaf.choices.items()}
        leaves.append(Leaf(path, leaf.constraints, choices))
    return leaves


def _paths(splits: Sequence[int]) -> list[dict[int, bool]]:
    """What was decided on the way to each leaf of the tree in preorder, >= 0 first."""
    pending: list[dict[int, bool]] = [{}]
    paths = []
    for k in splits:
        if not pending:
            raise UnreadableFile(PLACE, "a tree continues after its last leaf")
        path = pending.pop()
        if k == LEAF:
            paths.append(path)
        elif k in path:
            raise UnreadableFile(PLACE, f"a tree asks ReLU {k} twice on one path")
        else:
            pending += [{**path, k: False}, {**path, k: True}]
    if pending:
        raise UnreadableFile(PLACE, "a tree ends before its last leaf")
    return paths


def require_relus(leaves: Sequence[Leaf], count: int) -> None:
    """Raise InvalidProof if a leaf names a ReLU that the network does not have."""
    for leaf in leaves:
        if any(k >= count for named in (leaf.phases, *leaf.choices.values()) for k in named):
            raise InvalidProof(f"a leaf names a ReLU beyond the network's {count}")
