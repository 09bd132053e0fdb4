"""Calls of a domain's functions, in batches if it has batch versions, and failures of user code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dokimos.core.errors import DokimosError, InputError
from dokimos.laws.domain.functions import DomainFunction, explain, has_parameter
from dokimos.laws.engine.case_frame import Frame, Records, Rows, Value, column, full, stack

# Cases that ended in an exception of user code: how many, and the first of each kind


_KEPT_ERRORS = 20
#: If this many cases fail in the same way and none succeeds, the rest are taken to fail too.
PATIENCE = 20


@dataclass(frozen=True)
class CaseError:
    """A failure in one case: the reason, and the case (a frame of one)."""

    reason: str
    case: Frame


@dataclass
class CaseErrors:
    """Cases in which user code failed: how many, and the first few that differ."""

    count: int = 0
    kept: list[CaseError] = field(default_factory=list)
    by_kind: Counter[str] = field(default_factory=Counter)

    def copy(self) -> CaseErrors:
        """The failures so far."""
        return CaseErrors(self.count, list(self.kept), self.by_kind.copy())

    def add(self, reason: str, case: Frame) -> None:
        """Count a case, and keep it if its reason is of a new kind."""
        self.count += 1
        kind = kind_of(reason)
        self.by_kind[kind] += 1
        if len(self.kept) < _KEPT_ERRORS and all(kind_of(each.reason) != kind for each in self.kept):
            self.kept.append(CaseError(reason, case))

    @property
    def are_alike(self) -> bool:
        """Whether so many cases have failed in the same way that more would add nothing."""
        return max(self.by_kind.values(), default=0) >= PATIENCE


def kind_of(reason: str) -> str:
    """The kind of a reason: for an exception its type and place, without its message."""
    return re.sub(r"( raised \w+): .*( at .*)", r"\1\2", reason)


class AllFailed(Exception):
    """No case is left: user code failed in all of them."""


class GivenUp(AllFailed):
    """Many cases failed in the same way and none succeeded, so the rest were not run."""


@dataclass
class Failures:
    """What went wrong, by case; only the first failure of each case counts.

    With `gives_up`, code that runs case by case stops if the first cases all fail, and enough of them in
    the same way.
    """

    by_case: dict[int, str] = field(default_factory=dict)
    gives_up: bool = False

    def add(self, case: int, reason: str) -> None:
        """Note what went wrong in a case."""
        self.by_case.setdefault(case, reason)

    def expect_another(self, cases: Rows) -> None:
        """Raise GivenUp if that is allowed and all `cases` run so far failed, many of them alike."""
        if not self.gives_up or len(cases) < PATIENCE:
            return
        reasons = [self.by_case[case] for case in cases.tolist() if case in self.by_case]
        if len(reasons) == len(cases) and max(Counter(map(kind_of, reasons)).values()) >= PATIENCE:
            raise GivenUp

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Suspend giving up, while cases other than those being run may still succeed."""
        before, self.gives_up = self.gives_up, False
        try:
            yield
        finally:
            self.gives_up = before


#: The random streams of a case: one for the calls in the law, one for the block.
_CALLS, _BLOCK = 0, 1
#: The site of a call in a law: its number among the calls, and the values of the enclosing `forall`s.
CallSite = tuple[int, ...]


def call_rng(seed: int, site: CallSite) -> np.random.Generator:
    """The generator for one call in a case: the same numbers for the same seed, whatever the batch.

    Calls at different sites draw independently of each other, and of the block.
    """
    return np.random.default_rng([int(seed), _CALLS, *(each % 2**64 for each in site)])


def block_rng(seed: int) -> np.random.Generator:
    """The generator for the block of a case, shared by its calls in order."""
    return np.random.default_rng([int(seed), _BLOCK])


def call_function(
    function: DomainFunction,
    arguments: Sequence[Value],
    frame: Frame,
    failures: Failures,
    site: CallSite = (),
) -> Value:
    """The function's value in each case; a case in which it raises is noted in `failures`.

    Raises AllFailed if it raises in every case.
    """
    if function.batch is not None and not has_parameter(function.batch, "rng"):
        rngs = [call_rng(int(seed), site) for seed in frame.seeds] if function.takes_rngs else []
        options = {"rngs": rngs} if function.takes_rngs else {}
        try:
            return _as_value(
                function.batch(*(_batch(each, frame.size) for each in arguments), **options),
                arguments,
                frame,
            )
        except DokimosError:
            raise
        except Exception as problem:
            if function.single is None and frame.size == 1:
                failures.add(int(frame.ids[0]), explain(problem, function.name))
                raise AllFailed from None
    return _case_by_case(function, arguments, frame, failures, site)


def _case_by_case(
    function: DomainFunction,
    arguments: Sequence[Value],
    frame: Frame,
    failures: Failures,
    site: CallSite,
) -> Value:
    if function.takes_model:
        raise InputError(f"{function.name} runs the model; call it in the block, where outputs get values.")
    results: list[Any] = []
    good: int | None = None
    for row in range(frame.size):
        try:
            singles = [single_value(each, row) for each in arguments]
            results.append(call_single(function, singles, call_rng(int(frame.seeds[row]), site)))
            good = row if good is None else good
        except DokimosError:
            raise
        except Exception as problem:
            failures.add(int(frame.ids[row]), explain(problem, function.name))
            results.append(None)
            failures.expect_another(frame.ids[: row + 1])
    if good is None:
        raise AllFailed
    failed = failures.by_case
    filled = [results[good] if int(frame.ids[row]) in failed else each for row, each in enumerate(results)]
    return _as_value(filled, arguments, frame)


def call_single(
    function: DomainFunction,
    arguments: Sequence[Any],
    rng: np.random.Generator,
    predict: Callable[[Any], Any] | None = None,
) -> Any:
    """The function's value in one case, by its version for single values if there is one."""
    chosen = function.single or function.batch
    assert chosen is not None  # a domain's function has one or the other
    known = {"rng": rng, "rngs": [rng], "predict": predict}
    options = {name: value for name, value in known.items() if has_parameter(chosen, name)}
    if function.single is not None:
        return chosen(*arguments, **options)
    batches = [stack([each]) if isinstance(each, np.ndarray) else column([each]) for each in arguments]
    return chosen(*batches, **options)[0]


def _batch(value: Value, size: int) -> Any:
    return value.data.copy() if isinstance(value, Records) else full(value, size).copy()


def single_value(value: Value, row: int) -> Any:
    """A value of one case as user code sees it: its own copy of the record, or a plain Python value."""
    if isinstance(value, Records):
        record = value.data[row]
        return record.copy() if isinstance(record, np.ndarray) else record
    single = value if value.ndim == 0 else value[row]
    return single.item() if isinstance(single, np.generic | np.ndarray) else single


def _as_value(result: Any, arguments: Sequence[Value], frame: Frame) -> Value:
    """The results of a function, as records unless they are plain values."""
    given = next((each for each in arguments if isinstance(each, Records)), None)
    origin = None if given is None else given.origin
    if isinstance(result, np.ndarray) and result.shape[:1] == (frame.size,) and result.dtype != object:
        return result if result.ndim == 1 else Records(result, origin)
    values = list(result)
    if len(values) != frame.size:
        raise ValueError(f"{len(values)} values for {frame.size} cases")
    is_text = (
        given is not None and given.texts is not None and all(isinstance(each, str) for each in values)
    )
    plain = all(_is_plain(each) for each in values) and not is_text
    return column(values) if plain else Records(stack(values), origin)


def _is_plain(value: Any) -> bool:
    return value is None or bool(np.isscalar(value)) or (hasattr(value, "item") and np.ndim(value) == 0)
