"""Channels written differently: the same function, another file, and a label whose proof still holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.channels import channels_of
from dokimos.constructions.disguise import disguise_channels, disguise_drafts
from dokimos.constructions.draft import Draft
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import GraphBuilder
from dokimos.runtimes.sessions import replay
from dokimos.suites.instance import Certificate, Label

EVERYWHERE = ("permute", "scale", "duplicate")
FREE = {
    "contractive-cnn": (*EVERYWHERE, "identity"),
    "paired-bias": (*EVERYWHERE, "identity"),
    "softmax-attention": EVERYWHERE,
    "linear-attention": EVERYWHERE,
    "polynomial": EVERYWHERE,
}


def drafts_of(family: str) -> tuple[Draft, ...]:
    made = CONSTRUCTIONS[family]
    return tuple(made.construct(made.knobs_class(), np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("family", "steps"),
    [*FREE.items(), *(("contractive-cnn", (one,)) for one in FREE["contractive-cnn"])],
)
def test_the_function_stays_the_same_and_so_does_the_proof(family: str, steps: tuple[str, ...]) -> None:
    made = CONSTRUCTIONS[family]
    plain = made.draw(seed=0, timeout_seconds=1.0, disguise=(), with_twin=True, knobs={})
    other = made.draw(seed=0, timeout_seconds=1.0, disguise=steps, with_twin=True, knobs={})
    assert {one.truth.label for one in other.instances if one.truth} == {Label.UNSAT, Label.SAT}
    before, after = (pair.instances[0].instance.network_file for pair in (plain, other))
    assert before != after
    points = np.random.default_rng(0).uniform(-1, 1, size=(5, read_onnx(before).input_size))
    expected, found = (replay(file, points.astype(np.float32)) for file in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_a_duplicate_adds_a_channel_and_a_copy_adds_a_layer() -> None:
    drafts = drafts_of("contractive-cnn")
    sizes = [one.size for one in channels_of(drafts[0].network)]
    (twice, *_) = disguise_channels(drafts, ["duplicate"], np.random.default_rng(0))
    assert [one.size for one in channels_of(twice.network)] == [size + 1 for size in sizes]
    (copied, *_) = disguise_channels(drafts, ["identity"], np.random.default_rng(0))
    assert len(read_onnx(copied.network).nodes) == len(read_onnx(drafts[0].network).nodes) + 2


def test_a_number_added_to_all_channels_forbids_scaling() -> None:
    """Scaled, it would have to be another number for each channel."""
    graph = GraphBuilder()
    weight = graph.constant(np.ones((2, 3), np.float32))
    first = graph.node("Add", graph.node("MatMul", "X", weight), graph.constant(np.float32(1)))
    last = graph.node("MatMul", first, graph.constant(np.ones((3, 1), np.float32)))
    file = graph.build({"X": ("float", [1, 2])}, last, [1, 1], output_name="Y")
    (found,) = channels_of(file)
    assert found.size == 3 and not found.are_scalable
    draft = replace(drafts_of("contractive-cnn")[0], network=file)
    with pytest.raises(InputError, match="no channels that can be scaled"):
        disguise_channels([draft], ["scale"], np.random.default_rng(0))


def test_what_float32_does_not_hold_is_refused() -> None:
    graph = GraphBuilder()
    first = graph.node("MatMul", "X", graph.constant(np.ones((2, 2), np.float32)))
    least = graph.constant(np.full((2, 1), 2.0**-149, np.float32))
    file = graph.build(
        {"X": ("float", [1, 2])}, graph.node("MatMul", first, least), [1, 1], output_name="Y"
    )
    draft = replace(drafts_of("contractive-cnn")[0], network=file)
    with pytest.raises(InputError, match="not exact in float32"):
        disguise_channels([draft], ["duplicate"], np.random.default_rng(0))


@pytest.mark.parametrize("step", ["permute", "scale"])
def test_proofs_that_depend_on_the_order_are_refused_at_once(step: str) -> None:
    rng = np.random.default_rng(0)
    drafts = drafts_of("contractive-cnn")
    ordered = [replace(draft, certificate=Certificate("nonexpansive")) for draft in drafts]
    with pytest.raises(InputError, match="depends on the order of the channels"):
        disguise_channels(ordered, [step], rng)
    with pytest.raises(ConstructionFailed, match="Leave out that step"):
        disguise_drafts(ordered, [step], rng)


def test_steps_that_the_proofs_do_not_survive_are_refused() -> None:
    with pytest.raises(ConstructionFailed, match="'split' is for chains of dense layers; here there are"):
        disguise_drafts(drafts_of("contractive-cnn"), ["split"], np.random.default_rng(0))
    with pytest.raises(ConstructionFailed, match="no convolution with a ReLU"):
        disguise_drafts(drafts_of("polynomial"), ["identity"], np.random.default_rng(0))
