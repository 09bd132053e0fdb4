"""A ReLU network written out as exact affine expressions, over the reals or in float32.

Theorem (float32 as extra inputs). Let every affine node, evaluated in float32 in any order and with or
without FMA, differ from its real value *on the same float32 inputs* by at most ν. Then each float32
run is a run of the real network in which that node adds some n with |n| <= ν. So whatever is proven
of the expressions below for all inputs in the box and all noise in its ranges is true of every float32
run. Relu and the operators that only move numbers are exact in float32 and add no noise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, lcm
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnsupportedOp
from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.outward import FLOAT32, TINY, Rounded, dot_rounding
from dokimos.networks.semantics.propagation import REARRANGE, concat, pad, propagate, window_rows, windows
from dokimos.suites.vnnlib.model import Box, Linear

# Sparse affine expressions with exact coefficients, over numbered variables


ZERO, ONE = Fraction(0), Fraction(1)
_NO_TERMS: Mapping[int, Fraction] = MappingProxyType({})
#: Denominators above this are brought to lowest terms.
_LONG = 1 << 256


class AffineExpression:
    """constant + Σ terms[v]·v, without zero coefficients. Treat it as read-only."""

    def __init__(self, constant: Fraction = ZERO, terms: Mapping[int, Fraction] = _NO_TERMS) -> None:
        denominator = lcm(constant.denominator, *[c.denominator for c in terms.values()])
        self._denominator = denominator
        self._whole = constant.numerator * (denominator // constant.denominator)
        self._wholes = {
            v: c.numerator * (denominator // c.denominator) for v, c in terms.items() if c.numerator
        }

    @classmethod
    def _over(cls, denominator: int, whole: int, wholes: dict[int, int]) -> AffineExpression:
        """(whole + Σ wholes[v]·v)/denominator; some of the wholes may be 0."""
        if 0 in wholes.values():
            wholes = {v: n for v, n in wholes.items() if n}
        if denominator > _LONG and (shared := gcd(denominator, whole, *wholes.values())) > 1:
            denominator, whole = denominator // shared, whole // shared
            wholes = {v: n // shared for v, n in wholes.items()}
        made = cls.__new__(cls)
        made._denominator, made._whole, made._wholes = denominator, whole, wholes
        return made

    @cached_property
    def constant(self) -> Fraction:
        """The constant term."""
        return Fraction(self._whole, self._denominator)

    @cached_property
    def terms(self) -> Mapping[int, Fraction]:
        """The coefficient of each variable that has one."""
        return {v: Fraction(n, self._denominator) for v, n in self._wholes.items()}

    @property
    def variables(self) -> Collection[int]:
        """The variables that have a coefficient."""
        return self._wholes.keys()

    @property
    def as_variable(self) -> int | None:
        """The variable that the expression is; None if it is anything else."""
        if self._whole or len(self._wholes) != 1:
            return None
        ((number, whole),) = self._wholes.items()
        return number if whole == self._denominator else None

    def factor(self, variable: int) -> Fraction:
        """The coefficient of one variable; 0 if it has none."""
        return Fraction(self._wholes.get(variable, 0), self._denominator)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineExpression):
            return NotImplemented
        return self._lowest == other._lowest

    def __hash__(self) -> int:
        return hash(self._lowest)

    @cached_property
    def _lowest(self) -> tuple[int, int, frozenset[tuple[int, int]]]:
        """The same for equal expressions: the integers, divided by what all of them share."""
        shared = gcd(self._denominator, self._whole, *self._wholes.values())
        wholes = frozenset((v, n // shared) for v, n in self._wholes.items())
        return self._denominator // shared, self._whole // shared, wholes

    def __repr__(self) -> str:
        return f"AffineExpression({self.constant!r}, {self.terms!r})"

    def minimum(self, lower: Mapping[int, Fraction], upper: Mapping[int, Fraction]) -> Fraction:
        """The smallest value over the box: each variable is at the end that its sign selects."""
        ends = [(n, lower[v] if n > 0 else upper[v]) for v, n in self._wholes.items()]
        scale = lcm(*[end.denominator for _, end in ends])
        total = sum(n * end.numerator * (scale // end.denominator) for n, end in ends)
        return Fraction(self._whole * scale + total, self._denominator * scale)

    def renamed(self, names: Sequence[int]) -> AffineExpression:
        """The same coefficients for other variables: names[v] for v, all different."""
        wholes = {names[v]: n for v, n in self._wholes.items()}
        return AffineExpression._over(self._denominator, self._whole, wholes)

    def without(self, variables: Container[int]) -> AffineExpression:
        """This expression with 0 in place of these variables."""
        wholes = {v: n for v, n in self._wholes.items() if v not in variables}
        return AffineExpression._over(self._denominator, self._whole, wholes)

    def plus_variable(self, variable: int) -> AffineExpression:
        """The sum with a variable that this expression does not have."""
        wholes = {**self._wholes, variable: self._denominator}
        return AffineExpression._over(self._denominator, self._whole, wholes)

    def replace(self, variable: int, share: Fraction, by: AffineExpression) -> AffineExpression:
        """This expression with share·by in place of a variable that it has."""
        own, added = self._denominator, share.denominator * by._denominator
        wholes = dict(self._wholes)
        factor = wholes.pop(variable) * share.numerator
        if not factor:
            return AffineExpression._over(own, self._whole, wholes)
        if added != 1:
            wholes = {v: added * n for v, n in wholes.items()}
        for v, n in by._wholes.items():
            wholes[v] = wholes.get(v, 0) + factor * n
        return AffineExpression._over(own * added, added * self._whole + factor * by._whole, wholes)


def variable(number: int) -> AffineExpression:
    """The expression that is just this variable."""
    return AffineExpression._over(1, 0, {number: 1})


def combine(
    weighted: Iterable[tuple[Fraction, AffineExpression]], constant: Fraction = ZERO
) -> AffineExpression:
    """constant + Σ factor·expression."""
    parts = [(factor, each) for factor, each in weighted if factor.numerator]
    denominator = lcm(constant.denominator, *[f.denominator * e._denominator for f, e in parts])
    whole = constant.numerator * (denominator // constant.denominator)
    wholes: dict[int, int] = {}
    for factor, each in parts:
        scale = factor.numerator * (denominator // (factor.denominator * each._denominator))
        whole += scale * each._whole
        if not wholes:
            wholes = {v: scale * n for v, n in each._wholes.items()} if scale != 1 else dict(each._wholes)
        else:
            for v, n in each._wholes.items():
                wholes[v] = wholes.get(v, 0) + scale * n
    return AffineExpression._over(denominator, whole, wholes)


Array = NDArray[Any]


@dataclass(frozen=True)
class PiecewiseLinear:
    """Variables are numbered as they arise; `outputs` and all definitions are affine in earlier ones.

    The first `inputs` variables are the network's inputs. `relus[v]` = e says that variable v is
    max(0, e); `noise[v]` = ν says that v is any number in [−ν, ν].
    """

    inputs: int
    relus: Mapping[int, AffineExpression]
    noise: Mapping[int, Fraction]
    outputs: tuple[AffineExpression, ...]


class _Translation:
    """The operator table, and the variables met so far."""

    def __init__(self, network: Network, rounding: Mapping[str, Rounded] | None) -> None:
        self._rounding = rounding
        self._inputs = network.input_size
        self._count = network.input_size
        self.relus: dict[int, AffineExpression] = {}
        self.noise: dict[int, Fraction] = {}
        self.table: dict[str, Callable[[Node, Sequence[Array | None]], Array]] = {
            "Add": self._add,
            "Concat": lambda node, parts: concat(node, [_expressions(_present(p)) for p in parts]),
            "Conv": self._conv,
            "Gemm": self._gemm,
            "MatMul": self._matmul,
            "Neg": lambda node, parts: _each(_negate, _only(parts)),
            "Pad": lambda node, parts: pad(
                node, _only(parts), AffineExpression(Fraction(node.real("value")))
            ),
            "Mul": self._scaled,
            "Div": self._scaled,
            "Relu": self._relu,
            "Sub": self._sub,
            **dict.fromkeys(REARRANGE, self._rearrange),
        }

    def new_variable(self) -> int:
        self._count += 1
        return self._count - 1

    def _sizes(self, name: str) -> Array | None:
        """Upper bounds on the absolute float32 values of a tensor; None over the reals."""
        if self._rounding is None:
            return None
        sizes = self._rounding[name].magnitude
        if not np.isfinite(sizes).all():
            raise UnsupportedOp("network", f"the float32 values of {name!r} may overflow on this box")
        return sizes

    def _noisy(self, exact: AffineExpression, terms: int, magnitude: float) -> AffineExpression:
        """A sum of `terms` products of at most this magnitude, with its rounding in float32."""
        if self._rounding is None:
            return exact
        bound = float(dot_rounding(terms, magnitude, FLOAT32))
        if not np.isfinite(bound):
            raise UnsupportedOp("network", "the float32 values of a sum may overflow on this box")
        return self._with_noise(exact, bound)

    def _with_noise(self, exact: AffineExpression, bound: float) -> AffineExpression:
        number = self.new_variable()
        self.noise[number] = Fraction(bound)
        return exact.plus_variable(number)

    def _affine(self, rows: Array, weights: Array, bias: Array, sizes: Array | None) -> Array:
        """Row r, column m of the answer: Σ_k weights[k, m]·rows[r, k] + bias[m], with its noise.

        Zero weights add exact zeros in float32, so only the others count as terms; a lone bias, or a
        lone weight of ±1, is off by no more than what flushing it to zero loses.
        """
        out = np.empty((rows.shape[0], weights.shape[1]), dtype=object)
        magnitudes = None if sizes is None else _magnitudes(sizes, weights, bias)
        names = _names(rows)
        for m in range(weights.shape[1]):
            support = np.flatnonzero(weights[:, m])
            column = dict(zip(support.tolist(), map(Fraction, weights[support, m].tolist()), strict=True))
            constant = Fraction(float(bias[m]))
            terms = len(column) + (constant != 0)
            lone = terms == 1 and (not column or abs(next(iter(column.values()))) == 1)
            whole_column = AffineExpression(constant, column)
            for r in range(rows.shape[0]):
                if names is not None:
                    exact = whole_column.renamed(names[r])
                else:
                    exact = combine(((factor, rows[r, k]) for k, factor in column.items()), constant)
                if magnitudes is None or not terms:
                    out[r, m] = exact
                elif lone:
                    out[r, m] = self._with_noise(exact, TINY)
                else:
                    out[r, m] = self._noisy(exact, max(terms, 2), _above(magnitudes[r][m]))
        return out

    def _gemm(self, node: Node, parts: Sequence[Array | None]) -> Array:
        a, b = _only(parts), _constant(node, _present(parts[1]))
        if node.real("alpha") != 1 or node.real("beta") != 1 or node.integer("transA"):
            raise UnsupportedOp("Gemm", "only alpha = beta = 1 and transA = 0 have an affine form here")
        weights = b.T if node.integer("transB") else b
        bias = np.broadcast_to(_bias(node, parts), (len(a), weights.shape[1]))
        if (bias != bias[0]).any():
            raise UnsupportedOp("Gemm", "a bias that differs from row to row has no affine form here")
        return self._affine(a, weights, bias[0], self._sizes(node.inputs[0]))

    def _matmul(self, node: Node, parts: Sequence[Array | None]) -> Array:
        left, right = _present(parts[0]), _present(parts[1])
        if left.dtype != object and right.dtype == object:
            return self._constant_times(node, left.astype(np.float64), right)
        return self._times_constant(_expressions(left), _constant(node, right), self._sizes(node.inputs[0]))

    def _times_constant(self, a: Array, weights: Array, sizes: Array | None) -> Array:
        """a · weights along the last axis of `a`."""
        if weights.ndim != 2:
            raise UnsupportedOp("MatMul", "only a constant matrix on the right has an affine form here")
        rows = self._affine(
            a.reshape(-1, a.shape[-1]),
            weights,
            np.zeros(weights.shape[1]),
            None if sizes is None else sizes.reshape(-1, a.shape[-1]),
        )
        return rows.reshape(*a.shape[:-1], weights.shape[1])

    def _constant_times(self, node: Node, weights: Array, x: Array) -> Array:
        """weights · x = (xᵀ · weightsᵀ)ᵀ: the same products, summed over the same terms."""
        if weights.ndim != 2:
            raise UnsupportedOp("MatMul", "only a constant matrix on the left has an affine form here")
        sizes = self._sizes(node.inputs[1])
        if x.ndim == 1:
            return self._times_constant(x, weights.T, sizes)
        turned = None if sizes is None else np.swapaxes(sizes, -1, -2)
        return np.swapaxes(self._times_constant(np.swapaxes(x, -1, -2), weights.T, turned), -1, -2)

    def _conv(self, node: Node, parts: Sequence[Array | None]) -> Array:
        x, w = _only(parts), _constant(node, _present(parts[1]))
        if len(x) != 1:
            raise UnsupportedOp("Conv", f"a batch of {len(x)} has no affine form here, only one of 1")
        channels, per_group, *kernel = w.shape
        bias = np.broadcast_to(_bias(node, parts), (channels,))
        sizes = self._sizes(node.inputs[0])
        seen = window_rows(node, x, kernel, AffineExpression())
        seen_sizes = None if sizes is None else window_rows(node, sizes, kernel, 0.0)
        taps = per_group * int(np.prod(kernel))
        groups = node.integer("group")
        share = channels // groups
        columns = []
        for g in range(groups):
            mine, its_taps = slice(g * share, (g + 1) * share), slice(g * taps, (g + 1) * taps)
            columns.append(
                self._affine(
                    seen[:, its_taps],
                    w[mine].reshape(share, taps).T,
                    bias[mine],
                    None if seen_sizes is None else seen_sizes[:, its_taps],
                )
            )
        space = windows(node, x, kernel, AffineExpression()).shape[2 : 2 + len(kernel)]
        return np.concatenate(columns, axis=1).T.reshape(1, channels, *space)

    def _sum(self, node: Node, parts: Sequence[Array | None], sign: int) -> Array:
        left, right = (_expressions(_present(part)) for part in parts)
        a, b = np.broadcast_arrays(left, right)
        sizes = [self._sizes(name) for name in node.inputs]
        size = np.zeros(a.shape)
        for part in sizes:
            size = size if part is None else np.nextafter(size + part, np.inf)
        out = np.empty(a.shape, dtype=object)
        for at, (x, y, bound) in enumerate(zip(a.flat, b.flat, size.flat, strict=True)):
            exact = combine([(Fraction(1), x), (Fraction(sign), y)])
            out.flat[at] = self._noisy(exact, 2, float(bound))
        return out

    def _add(self, node: Node, parts: Sequence[Array | None]) -> Array:
        return self._sum(node, parts, 1)

    def _sub(self, node: Node, parts: Sequence[Array | None]) -> Array:
        return self._sum(node, parts, -1)

    def _scaled(self, node: Node, parts: Sequence[Array | None]) -> Array:
        """A tensor times constants, or divided by constants, entry by entry: one rounding each.

        The product of two constants is one; a constant divided by a tensor has no affine form.
        """
        left, right = _present(parts[0]), _present(parts[1])
        turned = node.op == "Mul" and left.dtype != object
        own, other = (right, left) if turned else (left, right)
        constants = _constant(node, other)
        if node.op == "Div" and not constants.all():
            raise UnsupportedOp("Div", "a division by zero has no affine form")
        a, b = np.broadcast_arrays(_expressions(own), constants)
        sizes = self._sizes(node.inputs[1 if turned else 0])
        size = None if sizes is None else np.broadcast_to(sizes, a.shape)
        out = np.empty(a.shape, dtype=object)
        for at, (x, y) in enumerate(zip(a.flat, b.flat, strict=True)):
            factor = 1 / Fraction(float(y)) if node.op == "Div" else Fraction(float(y))
            exact = combine([(factor, x)])
            if size is None or not factor:
                out.flat[at] = exact
            else:
                out.flat[at] = self._noisy(exact, 2, _above(abs(factor) * Fraction(float(size.flat[at]))))
        return out

    def _relu(self, node: Node, parts: Sequence[Array | None]) -> Array:
        def rectify(e: AffineExpression) -> AffineExpression:
            number = self.new_variable()
            self.relus[number] = e
            return variable(number)

        return _each(rectify, _only(parts))

    def _rearrange(self, node: Node, parts: Sequence[Array | None]) -> Array:
        return REARRANGE[node.op](node, _only(parts))


def _names(rows: Array) -> list[list[int]] | None:
    """The variables that the expressions are, if each is one and no row has one twice; None otherwise."""
    names = [[e.as_variable for e in row] for row in rows]
    distinct = all(None not in row and len(set(row)) == len(row) for row in names)
    return cast("list[list[int]]", names) if distinct else None


def _magnitudes(sizes: Array, weights: Array, bias: Array) -> list[list[Fraction]]:
    """|bias_m| + Σ_k |weights[k, m]|·sizes[r, k], exactly."""
    seen, factors, added = (ball.exactly(abs(x)) for x in (sizes, weights, bias))
    return [[ball.fraction(value) for value in row] for row in ball.product(seen, factors) + added]


def _above(value: Fraction) -> float:
    """A float64 number above a nonnegative one."""
    return float(np.nextafter(float(value), np.inf)) if value < 2**1000 else np.inf


def _present(part: Array | None) -> Array:
    assert part is not None
    return part


def _only(parts: Sequence[Array | None]) -> Array:
    """The first argument, as expressions."""
    return _expressions(_present(parts[0]))


def _negate(e: AffineExpression) -> AffineExpression:
    return combine([(Fraction(-1), e)])


def _each(function: Callable[[AffineExpression], AffineExpression], x: Array) -> Array:
    out = np.empty(x.shape, dtype=object)
    for at, expression in enumerate(x.flat):
        out.flat[at] = function(expression)
    return out


def _constant(node: Node, x: Array) -> Array:
    """The numbers of a tensor that must be constant."""
    if x.dtype == object:
        raise UnsupportedOp(node.op, "the product of two computed tensors has no affine form")
    return x.astype(np.float64)


def _bias(node: Node, parts: Sequence[Array | None]) -> Array:
    """The optional third input, 0 where it is left out."""
    return np.zeros(1) if len(parts) < 3 or parts[2] is None else _constant(node, parts[2])


def _expressions(x: Array) -> Array:
    """A tensor of expressions, from expressions or from numbers."""
    if x.dtype == object:
        return x
    out = np.empty(x.shape, dtype=object)
    for at, value in enumerate(x.flat):
        out.flat[at] = AffineExpression(Fraction(float(value)))
    return out


def piecewise_linear(network: Network, *, rounding: Mapping[str, Rounded] | None = None) -> PiecewiseLinear:
    """The network as exact expressions; with `rounding` (bounds of every tensor), its float32 runs.

    Raises UnsupportedOp for operators that are not piecewise linear in this form.
    """
    translation = _Translation(network, rounding)
    shape = network.input_shape
    inputs = np.empty(network.input_size, dtype=object)
    inputs[:] = [variable(i) for i in range(network.input_size)]
    values = propagate(
        network,
        inputs.reshape(shape),
        lift=lambda constant: constant,
        table=translation.table,
        semantics="piecewise-linear",
    )
    return PiecewiseLinear(
        inputs=network.input_size,
        relus=MappingProxyType(translation.relus),
        noise=MappingProxyType(translation.noise),
        outputs=tuple(_expressions(values[network.output]).flat),
    )


# A constraint of the property as an expression over the network's variables


def objective(form: PiecewiseLinear, constraint: Linear) -> AffineExpression:
    """left side − bound: what a proof of `unsat` shows to be positive on the whole box."""
    return combine(
        [
            *((c, variable(i)) for i, c in constraint.inputs),
            *((d, form.outputs[j]) for j, d in constraint.outputs),
        ],
        -constraint.bound,
    )


def ranges(form: PiecewiseLinear, box: Box) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """The lower and upper ends of all variables that are free: the inputs and the noise."""
    lower = dict(enumerate(box.lower))
    upper = dict(enumerate(box.upper))
    for number, bound in form.noise.items():
        lower[number], upper[number] = -bound, bound
    return lower, upper
