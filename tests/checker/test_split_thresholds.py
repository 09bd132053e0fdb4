"""Thresholds of a split that no float32 weight can hold: refused at once, in one sentence."""

from __future__ import annotations

import base64
from fractions import Fraction

import numpy as np
import pytest

from dokimos.checker.check import prove
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.chain import Chain, Layer, SplitUnit
from dokimos.networks.writing.builder import write_chain
from dokimos.suites.instance import Certificate, Label
from tests.checker.files import instance_of, question

CHAIN = Chain((1,), (Layer(np.ones((1, 1), np.float32), np.ones(1, np.float32), False),))


def proven_with(threshold: str) -> None:
    data = {
        "base": base64.b64encode(write_chain(CHAIN)).decode(),
        "steps": [{"step": "split", "layer": 0, "thresholds": [threshold]}],
        "kind": "contraction",
        "data": {},
    }
    shipped = SplitUnit(0, (Fraction(1, 2),)).apply(CHAIN)
    instance = instance_of(write_chain(shipped), question([("0.0", "1.0")], 1, "(<= Y_0 0.5)"))
    prove(instance, Certificate("rewritten", data), Label.UNSAT, None)


@pytest.mark.parametrize("threshold", ["1/2", "0.5"])
def test_a_threshold_may_be_spelt_either_way(threshold: str) -> None:
    proven_with(threshold)


@pytest.mark.parametrize("threshold", ["1e300", "1e-300", "0.1", "1/3"])
def test_a_threshold_that_is_no_float32_number_is_refused(threshold: str) -> None:
    with pytest.raises(InvalidProof):
        proven_with(threshold)


@pytest.mark.parametrize("threshold", ["1e999999999", "1" + "0" * 399, "1/0", "half", "nan", ""])
def test_a_threshold_that_is_no_number_is_unreadable(threshold: str) -> None:
    with pytest.raises(UnreadableFile):
        proven_with(threshold)
