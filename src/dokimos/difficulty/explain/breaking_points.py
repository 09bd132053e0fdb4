"""Which knob of which family breaks a verifier, and where.

A sweep is a set of instances of one family and label that differ in one knob only (and in what was drawn by
chance). On the suite `ladder` every family has one; in other suites there may be several, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from dokimos.difficulty.explain.rows import (
    SEVERITY,
    BreakingCurve,
    Observation,
    Rung,
    Status,
    Uniqueness,
    UniqueResult,
)
from dokimos.difficulty.explain.strata import all_digits
from dokimos.verifiers.base import CertificateStyle

_Sweep = tuple[str, str, str | None, str, tuple[tuple[str, float], ...]]


def breaking_curves(subject: str, observations: Sequence[Observation]) -> tuple[BreakingCurve, ...]:
    """Every sweep of at least two values, by suite, family and knob; `observations` are of one verifier.

    Unchecked answers are left out: they are neither solved nor failed.
    """
    curves = [_curve(subject, knob, fixed, group) for knob, fixed, group in sweeps(observations)]
    return tuple(sorted(curves, key=lambda c: (c.suite, c.family, c.knob, -len(c.points))))


def sweeps(
    observations: Sequence[Observation],
) -> Iterator[tuple[str, Mapping[str, float], list[Observation]]]:
    """Every knob with at least two values, what is fixed along it, and the checked observations."""
    observations = [o for o in observations if o.status is not Status.UNCHECKED]
    found: dict[tuple[str, _Sweep], list[Observation]] = {}
    for knob in sorted({name for o in observations for name in o.knobs}):
        for o in observations:
            if knob in o.knobs:
                fixed = tuple(sorted((name, value) for name, value in o.knobs.items() if name != knob))
                key = (o.suite, o.family, o.label, o.variant, fixed)
                found.setdefault((knob, key), []).append(o)
    for (knob, (*_, fixed)), group in found.items():
        if len({o.knobs[knob] for o in group}) > 1:
            yield knob, dict(fixed), group


def _curve(
    subject: str, knob: str, fixed: Mapping[str, float], group: Sequence[Observation]
) -> BreakingCurve:
    points = tuple(
        rung(value, [o for o in group if o.knobs[knob] == value])
        for value in sorted({o.knobs[knob] for o in group})
    )
    breaks_at, rising, note = _breaking_point(points)
    broken = next((p for p in points if p.value == breaks_at), None)
    one = group[0]
    return BreakingCurve(
        subject=subject,
        suite=one.suite,
        family=one.family,
        knob=knob,
        label=one.label,
        fixed=fixed,
        points=points,
        breaks_at=breaks_at,
        broken_by=None if broken is None else broken.status,
        last_solved=_last_solved(points, rising),
        rising=rising,
        note=note,
    )


def rung(value: float, group: Sequence[Observation]) -> Rung:
    """All results at one value of the moving knob or component."""
    status = min((o.status for o in group), key=SEVERITY.index)
    return Rung(
        value=value,
        status=status,
        seconds=median(o.seconds for o in group),
        solved=sum(o.status is Status.SOLVED for o in group),
        total=len(group),
        instances=tuple(o.instance for o in group),
    )


def _breaking_point(points: Sequence[Rung]) -> tuple[float | None, bool, str]:
    """Where nothing is solved any more, whether that is upwards, and a remark."""
    solved = [k for k, p in enumerate(points) if p.solved]
    if not solved:
        kinds = {p.status for p in points}
        if kinds == {Status.FAILED}:
            return None, True, "it fails on all of them, whatever the knob's value"
        return None, True, "it solves none of them"
    first, last = solved[0], solved[-1]
    gaps = [p.value for p in points[first : last + 1] if not p.solved]
    note = f"not solved in between: {_listed(gaps)}" if gaps else ""
    begins, ends = first == 0, last == len(points) - 1
    if begins and ends:
        whole = all(p.solved == p.total for p in points)
        return None, True, note or ("it solves every step" if whole else "it solves some of every step")
    if begins:
        return points[last + 1].value, True, note
    if ends:
        return points[first - 1].value, False, note
    return None, True, f"no clear breaking point: solved only at {_listed(points[k].value for k in solved)}"


def _listed(values: Iterable[float]) -> str:
    return ", ".join(map(all_digits, values))


def _last_solved(points: Sequence[Rung], rising: bool) -> float | None:
    solved = [p.value for p in points if p.solved]
    if not solved:
        return None
    return solved[-1] if rising else solved[0]


# Instances that only one verifier solves, or only one fails


#: The status of a style whose verifiers differ: not finishing is better than failing.
_BEST_FIRST = (
    Status.SOLVED,
    Status.UNCHECKED,
    Status.UNKNOWN,
    Status.TIMEOUT,
    Status.MEMOUT,
    Status.FAILED,
    Status.WRONG,
)


def find_unique_results(observations: Sequence[Observation]) -> tuple[UniqueResult, ...]:
    """All instances that every verifier was run on and that exactly one solved, or all but one.

    If no instance was run by all of them, the instances that several were run on count. An instance with an
    unchecked answer is left out, since that answer may be right.
    """
    by_instance: dict[tuple[str, str], list[Observation]] = {}
    for o in observations:
        by_instance.setdefault(o.key, []).append(o)
    verifiers = len({o.verifier for o in observations})
    common = [group for group in by_instance.values() if len(group) == verifiers]
    found = []
    for group in common or by_instance.values():
        if len(group) < 2 or any(o.status is Status.UNCHECKED for o in group):
            continue
        solved = [o for o in group if o.status is Status.SOLVED]
        others = [o for o in group if o.status is not Status.SOLVED]
        if len(solved) == 1:
            found.append(_alone(solved[0], Uniqueness.SOLVED, len(others)))
        if len(others) == 1:
            found.append(_alone(others[0], Uniqueness.FAILED, len(solved)))
    return tuple(found)


def _alone(o: Observation, lone: Uniqueness, others: int) -> UniqueResult:
    return UniqueResult(
        subject=o.verifier,
        lone=lone,
        suite=o.suite,
        instance=o.instance,
        family=o.family,
        status=o.status,
        seconds=o.seconds,
        others=others,
    )


def best_of_style(observations: Sequence[Observation], style: CertificateStyle) -> tuple[Observation, ...]:
    """For each instance the best result of a style's verifiers, under the style's name.

    Solved is best, and faster is better.
    """

    def rank(o: Observation) -> tuple[int, float]:
        return _BEST_FIRST.index(o.status), o.seconds

    best: dict[tuple[str, str], Observation] = {}
    for o in observations:
        if style in o.styles:
            best[o.key] = min(best.get(o.key, o), o, key=rank)
    return tuple(replace(o, verifier=style.value, styles=(style,)) for o in best.values())
