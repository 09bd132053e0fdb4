"""The search tree over the phases of ReLUs."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any, Generic, TypeVar

from dokimos.checker.lemmas.case_tree import LEAF, Leaf

#: The ReLUs decided on the way to a case, in order, each with its phase (True: its argument is >= 0).
Path = tuple[tuple[int, bool], ...]
W = TypeVar("W")


@dataclass
class Tree:
    """A growing tree: a split or a leaf for the path to each node; a path with neither is an open case."""

    splits: dict[Path, int] = field(default_factory=dict)
    leaves: dict[Path, Leaf] = field(default_factory=dict)
    left_open: int = 0

    def as_data(self, write: Callable[[Fraction], str] = str) -> dict[str, Any]:
        """The tree as the data of a `relu-tree`, its leaves' choices written as `write` does."""
        splits: list[int] = []
        leaves: list[dict[str, Any]] = []
        pending: list[Path] = [()]
        while pending:
            path = pending.pop()
            if path in self.splits:
                relu = self.splits[path]
                splits.append(relu)
                pending += [(*path, (relu, False)), (*path, (relu, True))]
            else:
                splits.append(LEAF)
                leaf = self.leaves[path]
                choices = {
                    name: {str(relu): write(value) for relu, value in sorted(by_relu.items())}
                    for name, by_relu in leaf.choices.items()
                }
                weights = [str(weight) for weight in leaf.constraints]
                leaves.append({"constraints": weights, "choices": choices})
        return {"splits": splits, "leaves": leaves}


@dataclass(frozen=True, eq=False)
class CaseFinding(Generic[W]):
    """The result of examining one case: a counterexample, a leaf that closes it, or a ReLU to split it at.

    With none of them the case is left open. If the search is not depth first, the parts of cases with the
    least `bound` are examined first.
    """

    counterexample: W | None = None
    leaf: Leaf | None = None
    split: int | None = None
    bound: float = 0.0


def grow(look: Callable[[Mapping[int, bool]], CaseFinding[W]], *, depth_first: bool) -> Tree | W:
    """Examine cases, split by split, until each is closed or left open, or a counterexample is found."""
    tree = Tree()
    ties = count()
    pending: list[tuple[float, int, Path]] = [(0.0, next(ties), ())]
    while pending:
        path = heapq.heappop(pending)[-1]
        found = look(dict(path))
        if found.counterexample is not None:
            return found.counterexample
        if found.leaf is not None:
            tree.leaves[path] = found.leaf
        elif found.split is None:
            tree.left_open += 1
        else:
            tree.splits[path] = found.split
            for phase in (True, False):
                at = (-len(path), next(ties)) if depth_first else (found.bound, next(ties))
                heapq.heappush(pending, (*at, (*path, (found.split, phase))))
    return tree
