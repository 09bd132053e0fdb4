"""Products by integers in float64 against sums of fractions, up to the largest numbers that they take."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dokimos.networks.graph import Node
from dokimos.networks.semantics import ball
from dokimos.networks.semantics.whole_products import whole_product

F = Fraction
FLOATS = {"float32": np.float32, "float64": np.float64}


def times(rows: NDArray[np.object_], matrix: NDArray[np.floating]) -> NDArray[np.object_] | None:
    terms = rows.shape[1]
    return whole_product(rows, matrix, np.matmul, terms=terms, reads=terms)


def by_fractions(rows: NDArray[np.object_], matrix: NDArray[np.floating]) -> list[list[Fraction]]:
    columns = [[F(float(value)) for value in column] for column in matrix.T]
    exact = [[ball.fraction(value) for value in row] for row in rows]
    return [[sum(map(F.__mul__, row, column), F(0)) for column in columns] for row in exact]


def expect_exact(rows: NDArray[np.object_], matrix: NDArray[np.floating]) -> None:
    found = times(rows, matrix)
    assert found is not None
    assert {type(value) for value in found.flat} == {fmpq}
    assert [[ball.fraction(value) for value in row] for row in found] == by_fractions(rows, matrix)


@settings(deadline=None, max_examples=200)
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 40), st.integers(1, 4)),
    bits=st.integers(1, 500),
    below=st.sampled_from([1, 3, 10**5, 2**70, 3**50]),
    spread=st.sampled_from([0, 10, 60]),
    name=st.sampled_from(sorted(FLOATS)),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_are_sums_of_fractions(
    shape: tuple[int, int, int], bits: int, below: int, spread: int, name: str, seed: int
) -> None:
    rows, length, columns = shape
    rng = np.random.default_rng(seed)
    numbers = [
        F(int.from_bytes(rng.bytes(bits // 8 + 1), "little", signed=True), below)
        for _ in range(rows * length)
    ]
    values = rng.normal(size=(length, columns)) * 2.0 ** rng.integers(
        -spread, spread + 1, (length, columns)
    )
    values[rng.random(values.shape) < 0.2] = 0.0
    expect_exact(ball.from_fractions(numbers, (rows, length)), values.astype(FLOATS[name]))


@pytest.mark.parametrize("length", [1, 2, 3, 64, 65, 4096, 4097])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_digits_and_parts_stay_exact(length: int, sign: int) -> None:
    """All bits of all digits and of all mantissas are 1: the sums are as large as they get."""
    rows = ball.from_fractions([F(sign * (2**160 - 1))] * length, (1, length))
    for each in (np.float32, np.float64):
        matrix = np.full((length, 1), np.nextafter(each(1), each(0)))
        found = times(rows, matrix)
        assert found is not None
        assert ball.fraction(found[0, 0]) == length * sign * (2**160 - 1) * F(float(matrix[0, 0]))


@pytest.mark.parametrize("name", sorted(FLOATS))
def test_the_smallest_and_the_largest_floats(name: str) -> None:
    kind = np.finfo(FLOATS[name])
    rows = ball.from_fractions([F(5, 7), F(-3)], (1, 2))
    expect_exact(
        rows, np.array([[kind.smallest_subnormal], [-kind.smallest_subnormal]], dtype=FLOATS[name])
    )
    expect_exact(rows, np.array([[kind.max], [kind.max]], dtype=FLOATS[name]))
    expect_exact(rows, np.zeros((2, 3), dtype=FLOATS[name]))


def test_what_is_no_gain_is_left_to_others() -> None:
    one = ball.from_fractions([F(1), F(1)], (1, 2))
    assert times(one, np.array([[1e-300], [1e300]])) is None
    assert times(ball.from_fractions([F(1), F(2**9000)], (1, 2)), np.ones((2, 1))) is None
    assert times(ball.from_fractions([F(1), F(1, 3**6000)], (1, 2)), np.ones((2, 1))) is None
    assert times(np.empty((0, 2), dtype=object), np.ones((2, 1))) is None


@pytest.mark.parametrize(
    "matrix", [np.array([[1e-300], [1e300]]), np.ones((2, 1)), np.full((2, 1), 2.0**-1074)]
)
def test_stored_matrices_multiply_as_rationals_do(matrix: NDArray[np.float64]) -> None:
    """With more columns than it takes for digits, from either side, and where these are no gain."""
    wide = np.repeat(matrix, 600, axis=1)
    rows = ball.from_fractions([F(1, 3), F(-7)], (1, 2))
    exact = ball.product(rows, ball.exactly(wide))
    assert (ball.product(rows, wide) == exact).all()
    assert (ball.product(wide.T, rows.T) == exact.T).all()


@pytest.mark.parametrize("group", [1, 2])
def test_convolutions_with_stored_filters(group: int) -> None:
    rng = np.random.default_rng(group)
    x = ball.from_fractions([F(int(n), 30) for n in rng.integers(-999, 999, 2 * 30 * 25)], (2, 30, 5, 5))
    filters = rng.normal(size=(4, 30 // group, 3, 3)).astype(np.float32)
    spaces = {"strides": (2, 1), "pads": (1, 0, 1, 2), "dilations": (1, 1)}
    node = Node("Conv", ("x", "w"), "y", {**spaces, "group": group})
    found = ball.TABLE["Conv"](node, [x, ball.stored(filters)])
    assert (found == ball.TABLE["Conv"](node, [x, ball.exactly(filters)])).all()
    filters[3, 1, 2, 0] = np.nextafter(filters[3, 1, 2, 0], np.float32(9))
    assert (found != ball.TABLE["Conv"](node, [x, ball.stored(filters)])).any()


def test_only_finite_floats_are_stored() -> None:
    assert ball.stored(np.ones(3, np.float32)).dtype == np.float32
    assert ball.is_exact(ball.stored(np.ones(3)))
    assert not ball.is_exact(ball.stored(np.array([1.0, np.inf])))
    assert {type(x) for x in ball.entries(ball.stored(np.ones(3))).flat} == {fmpq}


TWO = np.array([[1.5, -2.0], [0.25, 3.0]], dtype=np.float32)
WINDOW = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
OF_CONSTANTS = {
    "Add": ({}, [TWO, TWO]),
    "BatchNormalization": ({"epsilon": 3.0}, [TWO[None, :, :, None], *[np.ones(2, np.float32)] * 4]),
    "Concat": ({"axis": 0}, [TWO, TWO]),
    "Conv": ({**WINDOW, "group": 1}, [TWO[None, None], TWO[None, None, :1]]),
    "Div": ({}, [TWO, TWO]),
    "Floor": ({}, [TWO]),
    "Gemm": ({"transA": 1, "transB": 0, "alpha": 2.0, "beta": 0.5}, [TWO, TWO, TWO]),
    "MatMul": ({}, [TWO, TWO]),
    "Max": ({}, [TWO, -TWO]),
    "MaxPool": ({**WINDOW, "kernel": (2, 2)}, [TWO[None, None]]),
    "Mul": ({}, [TWO, TWO]),
    "Neg": ({}, [TWO]),
    "Pad": ({"pads": (1, 0, 0, 1), "value": 0.5}, [TWO]),
    "Pow": ({"exponent": 2.0}, [TWO]),
    "ReduceMean": ({"axes": (1,), "keepdims": 0}, [TWO]),
    "Relu": ({}, [TWO]),
    "Reshape": ({"shape": (4,)}, [TWO]),
    "Sign": ({}, [TWO]),
    "Sub": ({}, [TWO, TWO.T]),
    "Transpose": ({"perm": (1, 0)}, [TWO]),
}


@pytest.mark.parametrize("op", sorted(OF_CONSTANTS))
def test_operators_of_constants_alone_take_them_stored(op: str) -> None:
    attributes, constants = OF_CONSTANTS[op]
    node = Node(op, tuple("abcde"[: len(constants)]), "y", attributes)
    found = ball.TABLE[op](node, [ball.stored(each) for each in constants])
    assert {type(value) for value in found.flat} == {fmpq}
    assert (found == ball.TABLE[op](node, [ball.exactly(each) for each in constants])).all()
