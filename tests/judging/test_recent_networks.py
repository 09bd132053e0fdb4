from __future__ import annotations

from fractions import Fraction

import pytest

from dokimos.core.errors import UnreadableFile
from dokimos.judging import witness_replay
from dokimos.judging.witness_replay import Question, RecentNetworks, replay_witness
from tests.scripting import at_least, relu_network


@pytest.fixture(autouse=True)
def each_reading_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`read_onnx` keeps what it has read last, too."""
    monkeypatch.setattr(witness_replay, "read_onnx", witness_replay.read_onnx.__wrapped__)


ONE, TWO, THREE = (relu_network(scale) for scale in (1.0, 2.0, 3.0))


def test_the_same_file_is_read_once() -> None:
    networks = RecentNetworks(most_bytes=10 * len(ONE))
    first = networks.read(ONE, name="a")
    assert networks.read(bytes(bytearray(ONE)), name="b") is first
    assert networks.read(TWO, name="b") is not first


def test_the_file_used_longest_ago_goes_first() -> None:
    networks = RecentNetworks(most_bytes=len(ONE) + len(TWO))
    first, second = networks.read(ONE, name="a"), networks.read(TWO, name="b")
    assert networks.read(ONE, name="a") is first
    networks.read(THREE, name="c")
    assert networks.read(ONE, name="a") is first
    assert networks.read(TWO, name="b") is not second


def test_a_file_that_is_too_large_is_not_kept() -> None:
    networks = RecentNetworks(most_bytes=len(ONE) - 1)
    assert networks.read(ONE, name="a") is not networks.read(ONE, name="a")


def test_a_file_that_cannot_be_read_is_refused_by_each_name() -> None:
    networks = RecentNetworks(most_bytes=1000)
    for name in ("one", "other"):
        with pytest.raises(UnreadableFile, match=name):
            networks.read(b"no network", name=name)


def test_questions_about_one_network_share_it() -> None:
    point = (Fraction(1), Fraction(1))
    first, second = (Question(ONE, at_least(bound), bound) for bound in ("1.5", "2.5"))
    assert first.network is second.network
    assert replay_witness(first, point).exact is not None
    assert replay_witness(second, point).exact is None
