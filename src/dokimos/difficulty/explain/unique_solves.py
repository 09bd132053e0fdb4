"""Instances that only one verifier solves, or only one fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dokimos.difficulty.explain.rows import Observation, Status, Uniqueness, UniqueResult
from dokimos.verifiers.styles import CertificateStyle

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
