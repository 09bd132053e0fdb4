"""Looks for a case that violates a law, the cheapest way first: all cases, random draws, guided search."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from dokimos.laws.proving.case_tables import CaseTables, Table, is_finite
from dokimos.laws.proving.searching import Deadline, ExactCase

#: If there are no more cases than this, all are tried.
_MOST_CASES = 200_000
#: Cases drawn in all, and at a time.
_DRAWN, _BATCH = 60_000, 8192
#: Cases that a search starts with, and that are kept as parents; children per round; rounds without
#: progress before a restart. Many short searches find more than a few long ones.
_STARTED, _KEPT, _CHILDREN, _PATIENCE = 512, 192, 2048, 20
#: The larger, the more the best parents are preferred.
_PREFERENCE = 2
#: How many promising cases of a batch are tried exactly.
_TRIED = 8

#: Whether a case certainly violates the law.
Confirms = Callable[[ExactCase], bool]


@dataclass(frozen=True)
class Falsified:
    """A case that certainly violates the law, and which step found it."""

    case: ExactCase
    step: str


def falsify(
    tables: CaseTables,
    confirms: Confirms,
    *,
    seed: int,
    deadline: Deadline,
    draws: bool = True,
    guided: bool = True,
) -> Falsified | None:
    """A violation; None if none was found in time.

    A case counts only if `confirms` says so. With `draws`, all cases are tried if they are few, otherwise
    random ones; with `guided`, the search continues from the cases nearest to a violation.
    """
    steps: list[tuple[str, Iterator[Table]]] = []
    rng = np.random.default_rng(seed)
    are_few = is_finite(tables.question) and tables.question.zone.log_size <= math.log(_MOST_CASES)
    if draws and are_few:
        steps.append(("every case", iter((tables.every(),))))
    elif draws:
        steps.append(("draws from the ranges", _draws(tables, rng)))
    if guided and not are_few:
        steps.append(("a search guided by the margin", _guided(tables, rng, deadline)))
    for name, batches in steps:
        for cases in batches:
            found = _confirmed(tables, cases, confirms)
            if found is not None:
                return Falsified(found, name)
            if deadline.is_over:
                return None
    return None


def _confirmed(tables: CaseTables, cases: Table, confirms: Confirms) -> ExactCase | None:
    cases = cases[tables.admitted(cases)]
    worth = tables.worth(cases)
    promising = np.flatnonzero(worth >= 0)
    for row in promising[np.argsort(-worth[promising], kind="stable")][:_TRIED]:
        case = tables.exact_case(cases[row])
        if confirms(case):
            return case
    return None


def _draws(tables: CaseTables, rng: np.random.Generator) -> Iterator[Table]:
    for start in range(0, _DRAWN, _BATCH):
        yield tables.drawn(rng, min(_BATCH, _DRAWN - start))


def _guided(tables: CaseTables, rng: np.random.Generator, deadline: Deadline) -> Iterator[Table]:
    """Children of the cases nearest to a violation, with several variables changed at once.

    If nothing comes nearer for a while, the search restarts, since it may be at a local optimum. Nearness
    is measured in two ways, in turn: by the worth of a case, and in steps (`steps_away`).
    """
    for measure in cycle((tables.worth, tables.steps_away, tables.steps_away)):
        if deadline.is_over:
            return
        kept = tables.drawn(rng, _STARTED)
        kept = kept[tables.admitted(kept)]
        if len(kept) == 0:
            continue
        worth = measure(kept)
        best, idle = -np.inf, 0
        while idle < _PATIENCE and not deadline.is_over:
            order = np.argsort(-worth, kind="stable")[:_KEPT]
            kept, worth = kept[order], worth[order]
            idle = 0 if worth[0] > best else idle + 1
            best = max(best, float(worth[0]))
            parents = (rng.random(_CHILDREN) ** _PREFERENCE * len(kept)).astype(np.int64)
            children = tables.changed(kept[parents], rng)
            children = np.unique(children[tables.admitted(children)], axis=0)
            yield children
            kept = np.concatenate([kept, children])
            worth = np.concatenate([worth, measure(children)])
            kept, first = np.unique(kept, axis=0, return_index=True)
            worth = worth[first]
