"""Channels in another order: the same function, another file, and a label whose proof still holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.channel_order import reorder_drafts
from dokimos.constructions.disguise import disguise_drafts
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.replay import replay
from dokimos.suites.instance import Certificate, Label

FREE = ("contractive-cnn", "paired-bias", "softmax-attention", "linear-attention", "polynomial")


@pytest.mark.parametrize("family", FREE)
def test_the_function_stays_the_same_and_so_does_the_proof(family: str) -> None:
    made = CONSTRUCTIONS[family]
    plain = made.draw(seed=0, timeout_seconds=1.0, disguise=(), with_twin=True, knobs={})
    other = made.draw(seed=0, timeout_seconds=1.0, disguise=("permute",), with_twin=True, knobs={})
    assert {one.truth.label for one in other.instances if one.truth} == {Label.UNSAT, Label.SAT}
    before, after = (pair.instances[0].instance.network_file for pair in (plain, other))
    assert before != after
    points = np.random.default_rng(0).uniform(-1, 1, size=(5, read_onnx(before).input_size))
    expected, found = (replay(file, points.astype(np.float32)) for file in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * abs(expected).max())


def test_proofs_that_depend_on_the_order_are_refused_at_once() -> None:
    rng = np.random.default_rng(0)
    family = CONSTRUCTIONS["contractive-cnn"]
    drafts = family.construct(family.knobs_class(), rng)
    ordered = [replace(draft, certificate=Certificate("nonexpansive")) for draft in drafts]
    with pytest.raises(InputError, match="depends on the order of the channels"):
        reorder_drafts(ordered, rng)
    with pytest.raises(ConstructionFailed, match="Leave out that step"):
        disguise_drafts(ordered, ["permute"], rng)


def test_other_steps_than_permute_are_refused() -> None:
    rng = np.random.default_rng(0)
    family = CONSTRUCTIONS["contractive-cnn"]
    with pytest.raises(ConstructionFailed, match="Steps other than permute apply to constant-on-box"):
        disguise_drafts(family.construct(family.knobs_class(), rng), ["scale"], rng)
