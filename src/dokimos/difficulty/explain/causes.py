"""Which component causes timeouts: sweeps in which it moves and the other four stay.

In a campaign on ordinary suites components vary together, and a cause cannot be told from what varies with
it. If one of the five moves along a sweep while the others stay within a tenth, a difference in outcome is
caused by that component, or by something outside the five that moves with it: other measurements that move
are named. The suite `axes` has such a sweep for each of the five.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dokimos.difficulty.explain.breaking_points import rung, sweeps
from dokimos.difficulty.explain.rows import IsolatedAxis, Observation, Status
from dokimos.difficulty.explain.strata import Floats
from dokimos.suites.profile_file import COMPONENTS

#: What stays differs by no more than this share of its largest value.
STAYS = 0.1
#: What moves is at least so many times as large at one end as at the other.
MOVES = 2.0
#: Measured beside the five: named where it moves, too.
COMPANIONS = ("crown_gap", "unstable_units", "inputs", "parameters")
#: More ways than this to share out the outcomes are sampled.
MOST_WAYS = 20_000
#: A logarithm: what it counts is compared.
_LOGARITHMS = ("regions",)


def isolated_axes(subject: str, observations: Sequence[Observation]) -> tuple[IsolatedAxis, ...]:
    """Every sweep along which exactly one of the five moves; `observations` are of one verifier."""
    found = []
    for knob, _, group in sweeps(observations):
        component = moving_alone([o.components for o in group])
        if component is not None:
            found.append(_axis(subject, knob, component, group))
    tested = sum(axis.p_value is not None for axis in found)
    return tuple(
        axis if axis.p_value is None else replace(axis, p_value=min(1.0, axis.p_value * tested))
        for axis in sorted(found, key=lambda a: (a.suite, a.family, COMPONENTS.index(a.component)))
    )


def moving_alone(profiles: Sequence[Mapping[str, float | None]]) -> str | None:
    """The one of the five that moves while the others stay; None if there is none or a value is missing."""
    moving = []
    for name in COMPONENTS:
        values = [profile.get(name) for profile in profiles]
        known = [v for v in values if v is not None and math.isfinite(v)]
        if len(known) < len(values):
            return None
        if fold(name, known) >= MOVES:
            moving.append(name)
        elif not stays(known):
            return None
    return moving[0] if len(moving) == 1 else None


def fold(component: str, values: Sequence[float]) -> float:
    """The ratio of the largest to the smallest; 1 if a 0 or different signs leave it undefined."""
    low, high = min(values), max(values)
    if component in _LOGARITHMS:
        return math.exp(high - low)
    return max(high / low, low / high) if low * high > 0 else 1.0


def stays(values: Sequence[float]) -> bool:
    """Whether values differ by no more than `STAYS` of the largest."""
    return max(values) - min(values) <= STAYS * max(abs(v) for v in values)


def _axis(subject: str, knob: str, component: str, group: Sequence[Observation]) -> IsolatedAxis:
    values = [o.components[component] or 0.0 for o in group]
    by_step: dict[float, list[Observation]] = {}
    for o in group:
        by_step.setdefault(o.knobs[knob], []).append(o)
    rungs = [
        rung(float(np.median([o.components[component] or 0.0 for o in step])), step)
        for step in by_step.values()
    ]
    tested = [o for o in group if o.status in (Status.SOLVED, Status.TIMEOUT)]
    auc, p_value, note = _compared(tested, component, others=len(group) - len(tested))
    one = group[0]
    return IsolatedAxis(
        subject=subject,
        suite=one.suite,
        family=one.family,
        knob=knob,
        component=component,
        low=min(values),
        high=max(values),
        fold=fold(component, values),
        moving=_companions(group),
        rungs=tuple(sorted(rungs, key=lambda r: r.value)),
        solved=sum(o.status is Status.SOLVED for o in group),
        timeouts=sum(o.status is Status.TIMEOUT for o in group),
        auc=auc,
        p_value=p_value,
        note=note,
    )


def _companions(group: Sequence[Observation]) -> tuple[str, ...]:
    found = []
    for name in COMPANIONS:
        values = [{**o.components, **o.extras}.get(name) for o in group]
        known = [v for v in values if v is not None]
        if known and not stays(known):
            found.append(name)
    return tuple(found)


def _compared(
    tested: Sequence[Observation], component: str, *, others: int
) -> tuple[float | None, float | None, str]:
    """The AUC of timeouts against solved, its p-value, and what there is to say instead.

    `others` of the sweep are neither solved nor timed out.
    """
    late = np.array([o.status is Status.TIMEOUT for o in tested], dtype=bool)
    if not len(late):
        return None, None, "nothing is solved and nothing timed out"
    if late.all() or not late.any():
        if not others:
            return None, None, "everything timed out" if late.all() else "everything is solved"
        counted = f"{len(late)} timed out, none is solved" if late.all() else f"{len(late)} are solved"
        return None, None, f"{counted}, and {others} ended in neither"
    values = np.array([o.components[component] or 0.0 for o in tested])
    units = [o.network_sha256 or o.instance for o in tested]
    if len(set(units)) < len(units):
        return float(_aucs(values, late[None])[0]), None, "instances share networks, so nothing is claimed"
    ways = _ways(len(late), int(late.sum()))
    observed = float(_aucs(values, late[None])[0])
    p_value = float(np.mean(np.abs(_aucs(values, ways) - 0.5) >= abs(observed - 0.5) - 1e-9))
    return observed, p_value, ""


def _ways(count: int, chosen: int) -> Floats:
    """All ways in which so many of the outcomes are late, or a sample of them with the seed 0."""
    if math.comb(count, chosen) <= MOST_WAYS:
        rows = list(combinations(range(count), chosen))
    else:
        rng = np.random.default_rng(0)
        rows = [tuple(rng.permutation(count)[:chosen]) for _ in range(MOST_WAYS)]
    ways = np.zeros((len(rows), count), dtype=bool)
    ways[np.arange(len(rows))[:, None], rows] = True
    return ways


def _aucs(values: Floats, late: Floats) -> Floats:
    """For each row of outcomes the chance that a late one has the larger value; ties count half."""
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(float) + 1
    for value in set(values.tolist()):
        order[values == value] = order[values == value].mean()
    positives = late.sum(axis=1)
    sums = late @ order
    found: Floats = (sums - positives * (positives + 1) / 2) / (positives * (late.shape[1] - positives))
    return found
