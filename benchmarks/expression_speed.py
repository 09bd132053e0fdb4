"""Exact affine expressions: integers over one denominator against a fraction for each coefficient.

    python benchmarks/expression_speed.py [PAIRS]

Both bound the first constraint of an instance of `exclusive-pairs` (256 pairs unless given) over the reals
by the same substitutions: those of the kind of proof `slopes-and-splits`. The bounds must be equal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dokimos.checker.lemmas.constraints import objective, ranges
from dokimos.checker.proofs.relu_cases import SlopedForm
from dokimos.constructions import CONSTRUCTIONS
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.suites.vnnlib.model import Box, Linear
from dokimos.suites.vnnlib.reader import read_vnnlib

_REPEATS = 5


@dataclass(frozen=True)
class Plain:
    """constant + Σ terms[v]·v, each number a fraction."""

    constant: Fraction
    terms: Mapping[int, Fraction]

    def replace(self, variable: int, factor: Fraction, by: Plain) -> Plain:
        terms = {v: c for v, c in self.terms.items() if v != variable}
        if factor:
            for v, c in by.terms.items():
                terms[v] = terms.get(v, Fraction(0)) + factor * c
        return Plain(self.constant + factor * by.constant, {v: c for v, c in terms.items() if c})

    def minimum(self, lower: Mapping[int, Fraction], upper: Mapping[int, Fraction]) -> Fraction:
        parts = (c * (lower[v] if c > 0 else upper[v]) for v, c in self.terms.items())
        return self.constant + sum(parts, Fraction(0))


def plain_bound(
    form: PiecewiseLinear,
    relus: Mapping[int, Plain],
    slopes: Mapping[int, Fraction],
    case: tuple[Linear, Box],
) -> Fraction:
    """What `SlopedForm.lower_bound` computes, with fractions."""
    constraint, box = case
    lower, upper = ranges(form, box)
    start = objective(form, constraint)
    pending, found = [Plain(start.constant, start.terms)], []
    while pending:
        expression = pending.pop()
        last = max((v for v in expression.terms if v in slopes), default=None)
        if last is None:
            found.append(expression.minimum(lower, upper))
            continue
        factor = expression.terms[last]
        if factor > 0:
            pending.append(expression.replace(last, factor * slopes[last], relus[last]))
        else:
            pending += [expression.replace(last, f, relus[last]) for f in (factor, Fraction(0))]
    return min(found)


def best_seconds(action: Callable[[], object]) -> float:
    """The least CPU time of a few runs."""
    times = []
    for _ in range(_REPEATS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def main(pairs: int) -> None:
    robust, _ = CONSTRUCTIONS["exclusive-pairs"](seed=1, pairs=pairs)
    assert robust.truth is not None
    slopes = [Fraction(str(s)) for s in robust.truth.certificate.data["slopes"]]
    form = piecewise_linear(read_onnx(robust.instance.network_file, name="network"))
    question = read_vnnlib(robust.instance.property_file, file="property")
    case = question.cases[0]
    constraint = case.any_of[0][0]
    relus = {v: Plain(e.constant, e.terms) for v, e in form.relus.items()}
    slope_of = dict(zip(form.relus, slopes, strict=True))
    sloped = SlopedForm(form, slopes)
    if sloped.lower_bound(constraint, case.box) != plain_bound(
        form, relus, slope_of, (constraint, case.box)
    ):
        raise SystemExit("the two bounds differ")
    fast = best_seconds(lambda: sloped.lower_bound(constraint, case.box))
    slow = best_seconds(lambda: plain_bound(form, relus, slope_of, (constraint, case.box)))
    print(f"{pairs} pairs, {len(form.relus)} ReLUs, equal bounds")
    print(f"integers over one denominator {fast:8.4f} s\na fraction for each number      {slow:8.4f} s")
    print(f"ratio                         {slow / fast:8.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
