"""Disguised instances: accepted as they are made, refused as soon as anything differs."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from dokimos.checker import check
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import DISGUISES
from dokimos.core.errors import ConstructionFailed, DokimosError, InputError, InvalidProof, UnreadableFile
from dokimos.networks.chain import as_chain
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Instance, LabelledInstance, Semantics, Truth

KNOBS = {"inputs": 20, "pairs": 2, "gamma": 0.01}
#: Steps that fit any chain of dense layers and ReLUs.
ANYWHERE = sorted(set(DISGUISES) - {"merge"})
#: A network with two affine layers in a row, of so few bits that their product is exact in float32.
MERGEABLE = {"inputs": 20, "latent": 1}


@pytest.fixture(scope="module")
def disguised() -> LabelledInstance:
    return CONSTRUCTIONS["exclusive-pairs"](seed=4, disguise=ANYWHERE, **KNOBS)[0]


def truth_of(labelled: LabelledInstance) -> Truth:
    assert labelled.truth is not None
    return labelled.truth


def with_network(labelled: LabelledInstance, network: bytes) -> tuple[Instance, Truth]:
    """Another network in the same place, its hash repaired."""
    instance = replace(labelled.instance, network_file=network)
    return instance, replace(truth_of(labelled), network_sha256=instance.network_sha256)


def with_data(labelled: LabelledInstance, **changes: Any) -> Truth:
    truth = truth_of(labelled)
    data = {**truth.certificate.data, **changes}
    return replace(truth, certificate=Certificate("rewritten", data))


@pytest.mark.parametrize("kind", sorted(DISGUISES))
def test_each_disguise_is_proven_in_both_semantics(kind: str) -> None:
    family, knobs = ("constant-on-box", MERGEABLE) if kind == "merge" else ("exclusive-pairs", KNOBS)
    plain = CONSTRUCTIONS[family](seed=4, **knobs)
    made = CONSTRUCTIONS[family](seed=4, disguise=[kind], **knobs)
    for before, after in zip(plain, made, strict=True):
        assert after.instance.network_file != before.instance.network_file
        assert after.instance.property_file == before.instance.property_file
        truth = truth_of(after)
        check(after.instance, truth)
        assert truth.claims[Semantics.REAL].margin == truth_of(before).claims[Semantics.REAL].margin
        assert truth.claims[Semantics.FLOAT32].proven


@pytest.mark.no_cover
@settings(deadline=None, max_examples=70)
@given(choice=st.data(), towards=st.sampled_from([-np.inf, np.inf]))
def test_changed_networks_are_refused(
    disguised: LabelledInstance, choice: st.DataObject, towards: float
) -> None:
    """Whatever weight is changed by one float32 step, the steps no longer make the file."""
    model = onnx.load_from_string(disguised.instance.network_file)
    tensor = choice.draw(st.sampled_from(list(model.graph.initializer)))
    array = numpy_helper.to_array(tensor).copy()
    at = choice.draw(st.integers(0, array.size - 1))
    array.flat[at] = np.nextafter(array.flat[at], np.float32(towards))
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    changed = model.SerializeToString(deterministic=True)
    with pytest.raises(InvalidProof, match="sha256"):
        check(replace(disguised.instance, network_file=changed), truth_of(disguised))
    with pytest.raises(InvalidProof, match="do not turn the base network into the shipped network"):
        check(*with_network(disguised, changed))


def test_a_base_that_is_not_robust_does_not_pass() -> None:
    """The twin's network, disguised by the same steps, with the robust sibling's certificate."""
    robust, twin = CONSTRUCTIONS["exclusive-pairs"](seed=4, disguise=["permute"], **KNOBS)
    plain = CONSTRUCTIONS["exclusive-pairs"](seed=4, **KNOBS)[1]
    instance = replace(robust.instance, network_file=twin.instance.network_file)
    truth = with_data(robust, base=base64.b64encode(plain.instance.network_file).decode())
    with pytest.raises(InvalidProof, match="not above 0"):
        check(instance, replace(truth, network_sha256=instance.network_sha256))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"steps": []}, InvalidProof),
        ({"steps": [{"step": "merge", "layer": 0}]}, InvalidProof),
        ({"steps": [{"step": "burn"}]}, UnreadableFile),
        ({"steps": {}}, UnreadableFile),
        ({"kind": "witness"}, InvalidProof),
        ({"kind": "rewritten"}, InvalidProof),
        ({"kind": "nothing"}, InvalidProof),
        ({"kind": "convex-corners", "data": {}}, InvalidProof),
        ({"kind": 3}, UnreadableFile),
        ({"data": []}, UnreadableFile),
        ({"data": {}}, UnreadableFile),
        ({"base": "%%%"}, UnreadableFile),
        ({"base": ""}, UnreadableFile),
        ({"more": 1}, UnreadableFile),
    ],
)
def test_other_certificates_are_refused(
    disguised: LabelledInstance, changes: dict[str, Any], error: type[DokimosError]
) -> None:
    with pytest.raises(error):
        check(disguised.instance, with_data(disguised, **changes))


def test_too_large_a_claim_is_refused(disguised: LabelledInstance) -> None:
    truth = truth_of(disguised)
    for semantics, claim in truth.claims.items():
        assert claim.margin is not None
        larger = {**truth.claims, semantics: replace(claim, margin=claim.margin * 2)}
        with pytest.raises(InvalidProof, match="larger than what is proven"):
            check(disguised.instance, replace(truth, claims=larger))


def test_what_cannot_be_disguised_is_said() -> None:
    with pytest.raises(InputError, match="did you mean 'permute'"):
        CONSTRUCTIONS["exclusive-pairs"](seed=4, disguise=["permut"], **KNOBS)
    with pytest.raises(ConstructionFailed, match="disguises are for chains of dense layers"):
        CONSTRUCTIONS["paired-bias"](seed=4, disguise=["split"])


def test_a_merger_has_one_layer_less_and_can_be_disguised_further() -> None:
    plain = CONSTRUCTIONS["constant-on-box"](seed=4, **MERGEABLE)[0]
    merged = CONSTRUCTIONS["constant-on-box"](seed=4, disguise=["merge", "permute"], **MERGEABLE)[0]
    before, after = (as_chain(read_onnx(made.instance.network_file)) for made in (plain, merged))
    assert len(after.layers) == len(before.layers) - 1
    check(merged.instance, truth_of(merged))


def test_a_merger_that_did_not_happen_is_refused() -> None:
    """The plain file with the certificate of the merged one, and the merged one with another merger."""
    plain = CONSTRUCTIONS["constant-on-box"](seed=4, **MERGEABLE)[0]
    merged = CONSTRUCTIONS["constant-on-box"](seed=4, disguise=["merge"], **MERGEABLE)[0]
    assert truth_of(merged).certificate.data["steps"] == [{"step": "merge", "layer": 1}]
    with pytest.raises(InvalidProof, match="do not turn the base network into the shipped network"):
        check(*with_network(merged, plain.instance.network_file))
    with pytest.raises(InvalidProof, match="rectified, or the last"):
        check(merged.instance, with_data(merged, steps=[{"step": "merge", "layer": 2}]))


def test_what_cannot_be_merged_is_said() -> None:
    with pytest.raises(ConstructionFailed, match="no two adjacent affine layers"):
        CONSTRUCTIONS["exclusive-pairs"](seed=4, disguise=["merge"], **KNOBS)
    with pytest.raises(ConstructionFailed, match="not exact in float32"):
        CONSTRUCTIONS["constant-on-box"](seed=4, disguise=["merge"], latent=8)
