"""Decides a question about trees: draws that may violate the law take turns with the search for a proof."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from dokimos.checker.trees.leaves import TreeStatement
from dokimos.core.errors import InvalidProof
from dokimos.engine.tree_search import TreeSearch
from dokimos.laws.proving.case_tables import Falsified
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.searching import Deadline, ExactCase, SearchEnd

Found = TypeVar("Found")
#: What the answer calls the search.
STEP = "leaf pairs"


class _Turns(Generic[Found]):
    """Steps that are taken one at a time, and the CPU seconds that all of them, and the last one, took."""

    def __init__(self, steps: Iterator[Found | None]) -> None:
        self._steps = steps
        self.used = self.last = 0.0
        self.is_over = False

    def next(self) -> Found | None:
        """What the next step finds."""
        begun = time.process_time()
        try:
            return next(self._steps)
        except StopIteration:
            self.is_over = True
            return None
        finally:
            self.last = time.process_time() - begun
            self.used += self.last


def _readable(steps: Iterator[Found | None]) -> Iterator[Found | None]:
    try:
        yield from steps
    except InvalidProof as problem:
        raise Refusal(str(problem)) from None


def search_trees(
    statement: TreeStatement,
    confirms: Callable[[ExactCase], bool],
    deadline: Deadline,
    draws: Iterable[Falsified | None] = (),
) -> tuple[str, SearchEnd]:
    """What decided, and how: a case that is confirmed, or a cover; or what share is open when time is up.

    Neither draws nor the search go on where they would then have used more time than the other, as far as
    one can tell from what their last step took. So both together take no more than about twice what the
    faster one takes alone, however much time there is. Raises Refusal for trees that the checker does not
    take.
    """
    search = TreeSearch(statement)
    proving, trying = _Turns(_readable(search.run())), _Turns(iter(draws))
    while not deadline.is_over and not proving.is_over:
        if trying.is_over or proving.used + proving.last < trying.used + trying.last:
            case = proving.next()
            if case is not None and confirms(case):
                return STEP, SearchEnd(case=case)
        else:
            drawn = trying.next()
            if drawn is not None:
                return drawn.step, SearchEnd(case=drawn.case)
    return STEP, SearchEnd(cover=search.cover, share=search.share)
