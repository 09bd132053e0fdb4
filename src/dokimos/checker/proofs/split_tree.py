"""Case distinctions on the ReLUs of any ReLU network, each case refuted by multipliers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dokimos.checker.base import CertificateKind, Problem, Proven, about, if_provable
from dokimos.checker.data import PLACE, expect_keys, rational
from dokimos.checker.lemmas.objective import objective, ranges
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.expressions import ZERO, AffineExpression, combine, variable
from dokimos.networks.semantics.piecewise_linear import PiecewiseLinear, piecewise_linear
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Conjunction, Property
from dokimos.suites.instance import Label

MOST_LEAVES = 100_000
LEAF = -1
ONE = Fraction(1)
#: Upper slopes are rounded up to a multiple of this: shorter numbers, a hardly weaker proof.
_SLOPE_GRID = 1 << 24


@dataclass(frozen=True)
class Leaf:
    """The multipliers of one case: of each constraint, and by ReLU of its two inequalities."""

    constraints: tuple[Fraction, ...]
    below: Mapping[int, Fraction]
    above: Mapping[int, Fraction]


@dataclass(frozen=True)
class Region:
    """Where some ReLUs have decided phases: enclosures of every ReLU's argument and of every variable.

    `phases[k]` says whether the argument of ReLU k (numbered from 0, in the order of the network) is >= 0.
    `arguments[k]` encloses that argument. `is_empty`: no input has these phases.
    """

    phases: Mapping[int, bool]
    arguments: tuple[tuple[Fraction, Fraction], ...]
    lower: Mapping[int, Fraction]
    upper: Mapping[int, Fraction]
    is_empty: bool


def region(form: PiecewiseLinear, box: Box, phases: Mapping[int, bool]) -> Region:
    """Enclose everything by interval arithmetic in exact rationals, ReLU by ReLU."""
    lower, upper = ranges(form, box)
    arguments: list[tuple[Fraction, Fraction]] = []
    for k, (number, inside) in enumerate(form.relus.items()):
        low, high = _ends(inside, lower, upper)
        if k in phases:
            low, high = (max(low, ZERO), high) if phases[k] else (low, min(high, ZERO))
        arguments.append((low, high))
        if low > high:
            return Region(phases, tuple(arguments), lower, upper, True)
        lower[number], upper[number] = max(low, ZERO), max(high, ZERO)
    return Region(phases, tuple(arguments), lower, upper, False)


def _ends(
    expression: AffineExpression, lower: Mapping[int, Fraction], upper: Mapping[int, Fraction]
) -> tuple[Fraction, Fraction]:
    """The smallest and the largest value over the box."""
    low = high = expression.constant
    for v, c in expression.terms.items():
        at_lower, at_upper = c * lower[v], c * upper[v]
        if c < 0:
            at_lower, at_upper = at_upper, at_lower
        low += at_lower
        high += at_upper
    return low, high


def upper_slope(low: Fraction, high: Fraction) -> Fraction:
    """A slope s with max(0, e) <= s·(e − low) for low <= e <= high, where low < 0 < high.

    Theorem. max(0, e) is convex and the right side affine, so it is enough that the inequality holds at
    both ends: 0 <= 0 at low, and high <= s·(high − low) at high for every s >= high/(high − low).
    """
    exact = high / (high - low)
    return Fraction(-(-exact.numerator * _SLOPE_GRID // exact.denominator), _SLOPE_GRID)


def inequalities(
    relu: tuple[int, AffineExpression], low: Fraction, high: Fraction
) -> tuple[AffineExpression, AffineExpression | None]:
    """Two expressions that are <= 0 wherever v = max(0, e) and low <= e <= high, for a ReLU (v, e).

    Below: e − v. Above: v − e where the argument is never negative, v − s·(e − low) where it changes
    sign, and none where it is never positive (then v is 0).
    """
    number, inside = relu
    value = variable(number)
    below = combine([(ONE, inside), (-ONE, value)])
    if high <= 0:
        return below, None
    if low >= 0:
        return below, combine([(ONE, value), (-ONE, inside)])
    slope = upper_slope(low, high)
    return below, combine([(ONE, value), (-slope, inside)], slope * low)


def refutation(
    form: PiecewiseLinear, objectives: Sequence[AffineExpression], where: Region, leaf: Leaf
) -> Fraction | None:
    """The margin by which a leaf shows that no point of its region is unsafe; None where none is there.

    Theorem. At an unsafe point every objective (left side − bound) is <= 0. So is every inequality of
    every ReLU, and hence any combination of all of them with multipliers >= 0. If the minimum m of that
    combination over the ranges of all variables is positive, the region holds no unsafe point; and if the
    multipliers of the objectives sum to S > 0, then at every point of it some objective is >= m/S.

    Raises InvalidProof where the minimum is not positive.
    """
    if where.is_empty:
        return None
    parts = [(m, e) for m, e in zip(leaf.constraints, objectives, strict=True) if m]
    relus = tuple(form.relus.items())
    for k in leaf.below.keys() | leaf.above.keys():
        below, above = inequalities(relus[k], *where.arguments[k])
        parts.append((leaf.below.get(k, ZERO), below))
        if above is not None:
            parts.append((leaf.above.get(k, ZERO), above))
    smallest = combine(parts).minimum(where.lower, where.upper)
    if smallest <= 0:
        raise InvalidProof(f"a leaf's bound is {about(smallest)}, which is not above 0")
    total = sum(leaf.constraints, ZERO)
    return smallest / total if total else None


class SplitTree(CertificateKind):
    """`unsat` for networks of affine operators and ReLUs, whatever their graph.

    Theorem. The argument of a ReLU is >= 0 or <= 0, so the leaves of a binary tree that asks this of one
    ReLU at each node cover all inputs. Every leaf is refuted as `refutation` states, by enclosures that
    follow from the box and the phases alone and by multipliers, of which any that are >= 0 will do.

    The data has one tree for each conjunction on a box that is not empty, in the order of the property:
    the ReLUs asked, in preorder (>= 0 first), −1 for a leaf; and for each leaf the multipliers of its
    constraints and, by ReLU, of the inequalities below and above. In float32 the rounding of each affine
    operator is one more variable in its range.
    """

    name: ClassVar[str] = "split-tree"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Refute every leaf, over the reals and then with the rounding of float32."""
        expect_keys(data, "trees")
        asked = list(questions(problem.property))
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if not isinstance(data["trees"], list) or len(data["trees"]) != len(asked):
            raise UnreadableFile(PLACE, f"'trees' must be a list of {len(asked)}, one for each conjunction")
        trees = [read_tree(tree, len(part)) for tree, (_, part) in zip(data["trees"], asked, strict=True)]
        if sum(len(tree) for tree in trees) > MOST_LEAVES:
            raise InvalidProof(f"the proof has more than {MOST_LEAVES} leaves")
        exact = piecewise_linear(problem.network)

        def in_float32(box: Box) -> PiecewiseLinear:
            bounds = rounding_bounds(problem.network, box.lower, box.upper, ulps=problem.ulps)
            return piecewise_linear(problem.network, rounding=bounds)

        def float32() -> Fraction:
            return _margin(
                refute_tree(in_float32(box), box, part, tree)
                for tree, (box, part) in zip(trees, asked, strict=True)
            )

        real = _margin(
            refute_tree(exact, box, part, tree) for tree, (box, part) in zip(trees, asked, strict=True)
        )
        return Proven(real=real, float32=if_provable(float32))


def questions(property: Property) -> Iterable[tuple[Box, Conjunction]]:
    """Every conjunction with its box, where that is not empty."""
    return ((c.box, part) for c in property.cases if not c.box.is_empty for part in c.any_of)


def _margin(margins: Iterable[Fraction | None]) -> Fraction:
    """The smallest of them."""
    known = [margin for margin in margins if margin is not None]
    if not known:
        raise InvalidProof("no leaf holds any input, which cannot be")
    return min(known)


def refute_tree(
    form: PiecewiseLinear,
    box: Box,
    conjunction: Conjunction,
    tree: Sequence[tuple[Mapping[int, bool], Leaf]],
) -> Fraction | None:
    """The smallest margin of the leaves of a tree."""
    objectives = [objective(form, constraint) for constraint in conjunction]
    margins = []
    for phases, leaf in tree:
        if any(k >= len(form.relus) for k in (*phases, *leaf.below, *leaf.above)):
            raise InvalidProof(f"a leaf names a ReLU beyond the network's {len(form.relus)}")
        margins.append(refutation(form, objectives, region(form, box, phases), leaf))
    return min((margin for margin in margins if margin is not None), default=None)


def read_tree(data: Any, constraints: int) -> list[tuple[Mapping[int, bool], Leaf]]:
    """The leaves of a tree with their phases. Raises UnreadableFile where it has the wrong shape."""
    if not isinstance(data, dict):
        raise UnreadableFile(PLACE, "a tree must be an object")
    expect_keys(data, "splits", "leaves")
    splits, leaves = data["splits"], data["leaves"]
    if not isinstance(splits, list) or not isinstance(leaves, list):
        raise UnreadableFile(PLACE, "'splits' and 'leaves' must be lists")
    if any(not isinstance(k, int) or isinstance(k, bool) or k < LEAF for k in splits):
        raise UnreadableFile(PLACE, "'splits' must be numbers of ReLUs, -1 for a leaf")
    paths = _paths(splits)
    if len(paths) != len(leaves):
        raise UnreadableFile(PLACE, f"a tree has {len(paths)} leaves, but {len(leaves)} are given")
    return [(path, _leaf(leaf, constraints)) for path, leaf in zip(paths, leaves, strict=True)]


def _paths(splits: Sequence[int]) -> list[dict[int, bool]]:
    pending: list[dict[int, bool]] = [{}]
    paths = []
    for k in splits:
        if not pending:
            raise UnreadableFile(PLACE, "a tree goes on after its last leaf")
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


def _leaf(data: Any, constraints: int) -> Leaf:
    if not isinstance(data, dict):
        raise UnreadableFile(PLACE, "a leaf must be an object")
    expect_keys(data, "constraints", "below", "above")
    given = data["constraints"]
    if not isinstance(given, list) or len(given) != constraints:
        raise UnreadableFile(PLACE, f"'constraints' must be a list of {constraints} numbers")
    leaf = Leaf(
        tuple(rational(value, "a multiplier") for value in given),
        _multipliers(data["below"], "below"),
        _multipliers(data["above"], "above"),
    )
    if any(m < 0 for m in (*leaf.constraints, *leaf.below.values(), *leaf.above.values())):
        raise InvalidProof("a multiplier is negative")
    return leaf


def _multipliers(data: Any, key: str) -> dict[int, Fraction]:
    if not isinstance(data, dict) or not all(k.isascii() and k.isdigit() and len(k) < 10 for k in data):
        raise UnreadableFile(PLACE, f"{key!r} must be an object with a number for each ReLU named")
    return {int(k): rational(value, f"an entry of {key!r}") for k, value in data.items()}


def write_tree(splits: Sequence[int], leaves: Sequence[Leaf]) -> dict[str, Any]:
    """A tree as the data of a certificate."""
    return {
        "splits": list(splits),
        "leaves": [
            {
                "constraints": [str(m) for m in leaf.constraints],
                "below": {str(k): str(m) for k, m in leaf.below.items()},
                "above": {str(k): str(m) for k, m in leaf.above.items()},
            }
            for leaf in leaves
        ],
    }
