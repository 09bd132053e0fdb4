"""A search that is not over is kept, read strictly, and goes on; its leaves are all proven anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from dokimos.checker.base import Problem
from dokimos.checker.linear.cover import LEAF, QuestionData, pack
from dokimos.checker.linear.proof import LinearProof
from dokimos.core.errors import UnreadableFile
from dokimos.core.strict_json import read, write
from dokimos.engine.linear import LinearFinding, LinearSearch
from dokimos.engine.open_cover import OpenCover
from dokimos.engine.outcome import SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.files import question
from tests.checker.small_networks import SmallReluNetwork

MODES = {"inputs": 12, "units": 0}
PARTS = {"inputs": 3, "units": 6}


@cache
def files() -> tuple[bytes, bytes]:
    """Two questions, each of two constraints, whose proofs take some cuts."""
    small = SmallReluNetwork.draw(np.random.default_rng(5), sizes=(2, 10, 10, 2))
    lifted = small.lifted(2 - small.grid_minimum())
    unsafe = "(or (and (<= Y_0 Y_1) (<= Y_0 50.0)) (and (<= Y_0 Y_1) (<= Y_0 60.0)))"
    radius = float(lifted.radius)
    return lifted.instance().network_file, question([(-radius, radius)] * 2, 2, unsafe)


@cache
def instance() -> tuple[Network, Property]:
    network, asked = files()
    return read_onnx(network), read_vnnlib(asked, file="p")


def ended(mode: str, most: float, kept: OpenCover | None = None) -> tuple[LinearFinding, OpenCover | None]:
    """A search that ends after so many parts."""
    network, asked = instance()
    effort = SearchEffort(most_steps=most)
    search = LinearSearch(network, asked, effort, few_inputs=MODES[mode], kept=kept)
    found = search.run()
    return found, None if found.data is not None else search.open_cover()


@cache
def kept_of(mode: str) -> OpenCover:
    """A search that is somewhere in the second question."""
    kept = None
    for _ in range(60):
        _, kept = ended(mode, PARTS[mode], kept)
        if kept is not None and len(kept.questions) == 2 and kept.open:
            return kept
    raise AssertionError


@pytest.mark.parametrize("mode", MODES)
def test_a_search_in_parts_proves_what_one_search_proves(mode: str) -> None:
    kept, parts, sizes = None, 0, [0]
    found = LinearFinding(None, -inf)
    while found.data is None:
        found, kept = ended(mode, PARTS[mode], kept)
        parts += 1
        assert parts < 40
        if kept is not None:
            kept = read(write(kept), OpenCover, file="kept", what="a search")
            sizes.append(len(kept.questions[-1].tree) + 1000 * len(kept.questions))
    assert parts > 2 and sizes == sorted(sizes)
    assert LinearProof().prove(Problem(*instance()), found.data).real > 0
    whole, _ = ended(mode, inf)
    assert whole.data is not None
    leaves = [sum(len(each["tree"]) for each in data["questions"]) for data in (found.data, whole.data)]
    assert leaves[0] <= 2 * leaves[1] + 20


@pytest.mark.parametrize("mode", MODES)
def test_whatever_is_said_to_be_closed_is_proven_anew(mode: str) -> None:
    """A search that says of all leaves but one that they are closed: what it ends with is still a proof."""
    kept = kept_of(mode)
    last = replace(kept.questions[1], multipliers="")
    forged = replace(kept, open=kept.open[:1], bounds=(100.0,), questions=(kept.questions[0], last))
    cuts = sum(len(path) for path in _paths(last.tree))
    if mode == "units":
        forged = replace(
            forged,
            questions=(kept.questions[0], replace(last, multipliers=pack(b"\0\0\0\0" * cuts))),
        )
    found, _ = ended(mode, inf, forged)
    assert found.data is not None
    assert LinearProof().prove(Problem(*instance()), found.data).real > 0


def _paths(tree: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The cuts above each leaf."""
    found: list[tuple[int, ...]] = []
    pending: list[tuple[int, ...]] = [()]
    for entry in tree:
        path = pending.pop()
        if entry == LEAF:
            found.append(path)
        else:
            pending += 2 * [(*path, entry)]
    return found


def last(**changes: Any) -> Callable[[OpenCover], OpenCover]:
    """A change of the last question."""

    def change(kept: OpenCover) -> OpenCover:
        question: QuestionData = replace(kept.questions[-1], **changes)
        return replace(kept, questions=(*kept.questions[:-1], question))

    return change


WRONG: dict[str, Callable[[OpenCover], OpenCover]] = {
    "no questions": lambda kept: replace(kept, questions=()),
    "too many questions": lambda kept: replace(kept, questions=3 * kept.questions),
    "other pairs": lambda kept: replace(kept, pairs=((0, 1),)),
    "too few bounds": lambda kept: replace(kept, bounds=()),
    "out of order": lambda kept: replace(kept, open=(1, 0), bounds=(0.0, 0.0)),
    "twice": lambda kept: replace(kept, open=(1, 1), bounds=(0.0, 0.0)),
    "no such leaf": lambda kept: replace(kept, open=(10**6,), bounds=(0.0,)),
    "other cuts": lambda kept: replace(kept, cuts_inputs=not kept.cuts_inputs),
    "a leaf only": last(tree=(LEAF,)),
    "no end": last(tree=(0, LEAF)),
    "two trees": last(tree=(LEAF, LEAF)),
    "no such entry": last(tree=(10**6, LEAF, LEAF)),
    "boxes of their own": last(own=True),
    "values of cuts": last(at={"0": 0.25}),
    "no weights": last(weights=""),
    "weights that are no bytes": last(weights="?"),
    "bounds by other lines": last(root=pack(b"12")),
    "multipliers without cuts": last(multipliers=pack(b"1234567")),
    "too few scales": lambda kept: replace(kept, scales=pack(b"1234567")),
}
WRONG_UNITS: dict[str, Callable[[OpenCover], OpenCover]] = {
    "no lines": last(lines=""),
    "negative": lambda kept: last(multipliers=_filled(kept, -1.0))(kept),
    "not a number": lambda kept: last(multipliers=_filled(kept, nan))(kept),
    "no scale": lambda kept: replace(kept, scales=_filled(kept, 0.0)),
    "endless scale": lambda kept: replace(kept, scales=_filled(kept, inf)),
}


def _filled(kept: OpenCover, value: float) -> str:
    cuts = sum(map(len, _paths(kept.questions[-1].tree)))
    return pack(np.full(cuts, value, "<f4").tobytes())


@pytest.mark.parametrize(
    ("mode", "name"), [*(("units", n) for n in {**WRONG, **WRONG_UNITS}), *(("inputs", n) for n in WRONG)]
)
def test_what_does_not_fit_is_refused(mode: str, name: str) -> None:
    with pytest.raises(UnreadableFile):
        ended(mode, 1, {**WRONG, **WRONG_UNITS}[name](kept_of(mode)))
