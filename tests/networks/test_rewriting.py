from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from dokimos.checker.base import read_data
from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile, UnsupportedOp
from dokimos.networks.chain import (
    CancelPair,
    Chain,
    Duplicate,
    Identity,
    Layer,
    Merge,
    Permute,
    Rescale,
    Rewriting,
    SplitUnit,
    Step,
    as_chain,
)
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder, write_chain
from tests.checker.files import model

STEPS = [str(step.__struct_config__.tag) for step in get_args(Step)]


class OneStep(Struct):
    """A step as it stands in a certificate."""

    step: Step


def random_chain(rng: np.random.Generator, *, rectified: tuple[bool, ...] = (True, True, False)) -> Chain:
    sizes = [3, *rng.integers(2, 5, size=len(rectified))]
    layers = tuple(
        Layer(
            (rng.integers(-8, 9, size=(after, before)) / 4).astype(np.float32),
            (rng.integers(-8, 9, size=after) / 4).astype(np.float32),
            on,
        )
        for before, after, on in zip(sizes, sizes[1:], rectified, strict=False)
    )
    return Chain((3,), layers)


def outputs(chain: Chain, point: list[Fraction]) -> tuple[Fraction, ...]:
    return evaluate(read_onnx(write_chain(chain)), point).lower


def some_step(kind: str, chain: Chain, rng: np.random.Generator) -> Rewriting:
    size = len(chain.layers[0].bias)
    if kind == "permute":
        return Permute(0, tuple(int(i) for i in rng.permutation(size)))
    if kind == "scale":
        return Rescale(0, tuple(int(e) for e in rng.integers(-5, 6, size=size)))
    if kind == "duplicate":
        return Duplicate(1, int(rng.integers(len(chain.layers[1].bias))), int(rng.integers(1, 4)))
    if kind == "cancel":
        row = tuple((i, Fraction(int(w), 4)) for i, w in enumerate(rng.integers(-8, 9, size=2)))
        column = tuple(Fraction(int(v), 8) for v in rng.integers(-9, 10, size=len(chain.layers[1].bias)))
        return CancelPair(0, row, Fraction(int(rng.integers(-9, 10)), 4), column)
    if kind == "split":
        return SplitUnit(0, tuple(Fraction(int(t), 8) for t in rng.integers(-20, 21, size=size)))
    return Identity(1) if kind == "identity" else Merge(1)


@pytest.mark.parametrize("kind", sorted(STEPS))
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_every_step_keeps_the_function(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, rectified=(True, kind != "merge", False))
    step = some_step(kind, chain, rng)
    after = step.apply(chain)
    assert read_data({"step": strict_json.plain(step)}, OneStep).step == step
    for _ in range(5):
        point = [Fraction(int(k), 8) for k in rng.integers(-30, 31, size=3)]
        assert outputs(after, point) == outputs(chain, point)


def test_a_chain_survives_being_written_and_read() -> None:
    chain = random_chain(np.random.default_rng(0))
    assert write_chain(as_chain(read_onnx(write_chain(chain)))) == write_chain(chain)


def test_an_image_is_made_flat_first() -> None:
    image = ModelBuilder([1, 2, 2]).flatten().affine(np.eye(4), np.zeros(4)).relu().build(4)
    assert write_chain(as_chain(read_onnx(image))) == image


def test_chains_are_equal_number_for_number() -> None:
    chain = random_chain(np.random.default_rng(0))
    assert chain.equals(random_chain(np.random.default_rng(0)))
    first, *others = chain.layers
    changed = first.weight.copy()
    changed[0, 0] = np.nextafter(changed[0, 0], np.float32(np.inf))
    for other in (
        replace(chain, input_shape=(1, 3)),
        replace(chain, layers=chain.layers[:-1]),
        replace(chain, layers=(replace(first, rectified=False), *others)),
        replace(chain, layers=(replace(first, weight=changed), *others)),
        replace(chain, layers=(replace(first, weight=first.weight.T), *others)),
        replace(chain, layers=(replace(first, bias=first.bias + 1), *others)),
        replace(chain, layers=(replace(first, bias=first.bias * np.float32(np.nan)), *others)),
    ):
        assert not chain.equals(other)
        assert not other.equals(chain)


def test_rows_beside_each_other_are_no_chain() -> None:
    """Each of two rows goes through the layer by itself: not what one layer does to both."""
    rows = model(
        [("Reshape", ["X", "i_shape"], "rows"), ("Gemm", ["rows", "W"], "Y")],
        {"i_shape": np.array([2, 2], dtype=np.int64), "W": np.eye(2, dtype=np.float32)},
        [1, 4],
        [2, 2],
    )
    with pytest.raises(UnsupportedOp, match="only chains of dense layers"):
        as_chain(read_onnx(rows))


def test_what_is_no_dense_chain_is_refused() -> None:
    convolution = ModelBuilder([1, 3, 3]).conv(np.ones((1, 1, 3, 3)), np.zeros(1)).flatten().build(1)
    with pytest.raises(UnsupportedOp, match="only chains of dense layers"):
        as_chain(read_onnx(convolution))
    twice = ModelBuilder([2]).affine(np.eye(2), np.zeros(2)).relu().relu().build(2)
    with pytest.raises(UnsupportedOp):
        as_chain(read_onnx(twice))


@pytest.mark.parametrize(
    "step",
    [
        Permute(0, (0, 0, 1)),
        Permute(2, (0, 1)),
        CancelPair(0, ((3, Fraction(1)),), Fraction(0), (Fraction(1), Fraction(1))),
        CancelPair(0, ((0, Fraction(1)), (0, Fraction(1))), Fraction(0), (Fraction(1), Fraction(1))),
        CancelPair(0, ((-1, Fraction(1)),), Fraction(0), (Fraction(1), Fraction(1))),
        CancelPair(0, ((0, Fraction(1)),), Fraction(0), (Fraction(1),) * 9),
        CancelPair(2, ((0, Fraction(1)),), Fraction(0), (Fraction(1),)),
        Permute(-1, (0, 1)),
        Rescale(0, (0,)),
        Rescale(0, (200, 0, 0)),
        Duplicate(0, 99, 1),
        Duplicate(0, 0, 0),
        SplitUnit(7, (Fraction(0),)),
        SplitUnit(0, (Fraction(0),)),
        SplitUnit(0, (Fraction(1, 10), Fraction(0), Fraction(0))),
        SplitUnit(0, (Fraction(10**300), Fraction(0), Fraction(0))),
        Identity(2),
        Merge(0),
        Merge(2),
    ],
)
def test_steps_that_do_not_fit_are_refused(step: Rewriting) -> None:
    chain = Chain(
        (2,),
        (
            Layer(np.ones((3, 2), np.float32), np.zeros(3, np.float32), True),
            Layer(np.ones((2, 3), np.float32), np.zeros(2, np.float32), True),
            Layer(np.ones((1, 2), np.float32), np.zeros(1, np.float32), False),
        ),
    )
    with pytest.raises(InputError):
        step.apply(chain)


def test_what_float32_does_not_hold_is_refused() -> None:
    chain = Chain(
        (1,),
        (
            Layer(np.array([[1 + 2**-20]], np.float32), np.zeros(1, np.float32), False),
            Layer(np.array([[1 + 2**-20]], np.float32), np.zeros(1, np.float32), False),
        ),
    )
    with pytest.raises(InputError, match="not exact in float32"):
        Merge(0).apply(chain)


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"step": "burn", "layer": 0},
        {"step": "permute", "layer": 0},
        {"step": "identity", "layer": 0, "more": 1},
        {"step": "identity", "layer": "0"},
        {"step": "identity", "layer": True},
        {"step": "identity", "layer": [0]},
        {"step": "permute", "layer": 0, "order": 1},
        {"step": "permute", "layer": 0, "order": ["0"]},
        {"step": "split", "layer": 0, "thresholds": [1]},
        {"step": "split", "layer": 0, "thresholds": ["x", "0", "0"]},
        {"step": "split", "layer": 0, "thresholds": ["1/0", "0", "0"]},
        {"step": "merge", "layer": 1.0},
    ],
)
def test_what_is_no_step_is_refused(document: object) -> None:
    with pytest.raises(UnreadableFile):
        read_data({"step": document}, OneStep)
