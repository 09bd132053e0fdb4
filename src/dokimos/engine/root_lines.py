"""Lines that bound the arguments of units on the whole box better than the usual ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dokimos.checker.linear.cover import USUAL_BYTE, pack
from dokimos.engine.differentiable import Adam, one_thread
from dokimos.engine.fast_walk import MOST_NUMBERS, Batch, FastWalk
from dokimos.networks.semantics.outward import Floats

#: How often lines are improved, how fast, and for how many entries of a tensor at once.
ROUNDS, PACE, SAMPLE = 12, 0.15, 64


def root_lines(fast: FastWalk, refined: Sequence[str], rows: Mapping[str, Floats]) -> str:
    """The choices for bounding the tensors in `refined` from below and above, packed for a certificate.

    The facts of `fast` are narrowed by what they give, as floats see it. What matters to the functionals
    `rows` most is looked at: a sample of each tensor's entries shares one line for each unit before it.
    """
    goals = {name: torch.tensor(each, dtype=torch.float32) for name, each in rows.items()}
    units = fast.steps.units
    spans = dict(zip(units, pairwise(np.cumsum([0, *map(prod, units.values())]).tolist()), strict=True))
    table = np.full((2 * len(refined), sum(map(prod, units.values()))), USUAL_BYTE, dtype=np.uint8)
    with one_thread():
        for number, name in enumerate(refined):
            behind = fast.before(name)
            lower, upper = (end.flatten() for end in fast.facts[name])
            open_ = np.flatnonzero(((lower < 0) & (upper > 0)).numpy())
            if not behind or not len(open_):
                continue
            entries = _sample(fast, name, open_, goals)
            lines = _improved(fast, name, entries, behind)
            for relu, each in lines.items():
                first, last = spans[relu]
                rounded = np.rint(each.flatten(1).numpy() * 254.0).astype(np.uint8)
                table[2 * number : 2 * number + 2, first:last] = rounded
                lines[relu] = torch.from_numpy(rounded / 254.0).to(torch.float32).reshape(each.shape)
            _narrow(fast, name, open_, lines)
    changes = np.diff(table, axis=0, prepend=np.zeros((1, table.shape[1]), np.uint8))
    return pack(changes.astype(np.uint8).tobytes())


def _sample(
    fast: FastWalk, name: str, open_: NDArray[np.int64], goals: Mapping[str, Tensor]
) -> NDArray[np.int64]:
    """The open entries whose gaps weigh most in the goals."""
    seen: dict[str, Tensor] = {}
    with torch.no_grad():
        fast.lower_bounds(goals, Batch(1, {}, {}, {}, torch.zeros(0)), seen)
    lower, upper = (end.flatten() for end in fast.facts[name])
    weight = torch.zeros(len(lower))
    for written, functional in seen.items():
        if name in fast.argument[written]:
            weight = weight + functional.flatten(2).abs().sum((0, 1))
    gap = -lower * upper / (upper - lower).clamp(min=1e-30)
    score = (weight * gap).numpy()[open_]
    return open_[np.argsort(-score)[:SAMPLE]]


def _rows(fast: FastWalk, name: str, entries: NDArray[np.int64]) -> Tensor:
    """One row for each entry: the entry in the first region, its negative in the second."""
    shape = fast.steps.shapes[name]
    rows = torch.zeros((2, len(entries), prod(shape)))
    rows[0, torch.arange(len(entries)), torch.from_numpy(entries)] = 1.0
    rows[1] = -rows[0]
    return rows.reshape(2, -1, *shape)


def _improved(
    fast: FastWalk, name: str, entries: NDArray[np.int64], behind: Sequence[str]
) -> dict[str, Tensor]:
    """Lines for both sides of a tensor, by gradient ascent on the bounds of some entries."""
    lines = {}
    for relu in behind:
        usual = fast.usual(relu)
        lines[relu] = usual.expand(2, *usual.shape[1:]).clone().requires_grad_()
    steps, rows = Adam(lines.values(), rate=PACE), _rows(fast, name, entries)
    best = {relu: each.detach().clone() for relu, each in lines.items()}
    record = torch.full((2,), -torch.inf)
    for turn in range(ROUNDS + 1):
        fast.steps.pause()
        bounds, _ = fast.lower_bounds({name: rows}, Batch(2, {}, {}, lines, torch.zeros(0)))
        worth = bounds.clamp(max=0.0).sum(1)
        better = worth.detach() > record
        record = torch.where(better, worth.detach(), record)
        for relu, each in lines.items():
            mask = better.reshape(-1, *(1,) * (each.ndim - 1))
            best[relu] = torch.where(mask, each.detach(), best[relu])
        if turn == ROUNDS:
            break
        steps.zero_grad()
        (-worth.sum()).backward()
        steps.step()
        with torch.no_grad():
            for each in lines.values():
                each.clamp_(0.0, 1.0)
    return best


def _narrow(fast: FastWalk, name: str, entries: NDArray[np.int64], lines: Mapping[str, Tensor]) -> None:
    """The facts about a tensor, narrowed by bounds with these lines."""
    lower, upper = (end.flatten(1).clone() for end in fast.facts[name])
    most = max(1, MOST_NUMBERS // (2 * fast.largest))
    with torch.no_grad():
        for start in range(0, len(entries), most):
            fast.steps.pause()
            some = entries[start : start + most]
            batch = Batch(2, {}, {}, lines, torch.zeros(0))
            bounds, _ = fast.lower_bounds({name: _rows(fast, name, some)}, batch)
            lower[0, some] = torch.maximum(lower[0, some], bounds[0])
            upper[0, some] = torch.minimum(upper[0, some], -bounds[1])
    shape = fast.steps.shapes[name]
    fast.facts[name] = (lower.reshape(1, *shape), upper.reshape(1, *shape))
