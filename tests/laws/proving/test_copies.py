"""Laws on networks by linear bounds of copies: decided as going through all cases decides them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dokimos.checker.base import Problem
from dokimos.checker.linear.proof import LinearProof
from dokimos.core.errors import DokimosError, InvalidProof, UnreadableFile
from dokimos.core.strict_json import parse, write
from dokimos.laws.engine.law_plan import make_plan
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.proving.copies import CopiesOfNetwork
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.law_search import search_copies
from dokimos.laws.proving.network_closing import NetworkCloser, exactly_violated
from dokimos.laws.proving.question import Deadline, ExactCase, LinearCover, SearchEnd, first_end
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.saved_proofs import read_proof, save_proof
from dokimos.laws.proving.stated_laws import BOTH, state_law
from dokimos.laws.proving.verifying import LawDecision
from dokimos.networks.writing.builder import ModelBuilder
from tests.laws.proving.small import BY, LAWS, MORE, domain, plan
from tests.laws.proving.test_networks import model_of, network, stated
from tests.laws.proving.test_trees import _all_cases
from tests.laws.toy import law


def _searched(text: str, content: bytes, *, seconds: float = 5) -> tuple[CopiesOfNetwork, SearchEnd, bool]:
    """The copies, how the search ends, and whether some case violates the law."""
    found, closer = stated(plan(text), content)

    def confirms(case: ExactCase) -> bool:
        return exactly_violated(found.question, closer.reach, case) is True

    copies = CopiesOfNetwork(closer)
    is_violated = any(map(confirms, _all_cases(found.question)))
    deadline = Deadline.after(seconds)
    end = first_end(search_copies(copies, confirms, deadline), deadline) or SearchEnd()
    return copies, end, is_violated


@pytest.mark.parametrize("text", LAWS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_is_true(text: str, seed: int) -> None:
    copies, end, is_violated = _searched(text, network(seed, rising=0.5 if seed == 2 else 0.0), seconds=2)
    assert (end.case is None or is_violated) and (end.cover is None or not is_violated)
    if end.cover is not None:
        copies.check(end.cover)


def test_a_rising_network_is_proven_and_another_is_not() -> None:
    content = network(2, rising=0.5)
    copies, end, is_violated = _searched(BY, content)
    assert end.cover is not None and not is_violated
    assert copies.check(end.cover) is True  # in float32, too
    _, closer = stated(plan(BY), network(3))
    with pytest.raises((InvalidProof, Refusal)):
        CopiesOfNetwork(closer).check(end.cover)
    _, other = stated(plan(LAWS[2]), content)
    with pytest.raises(DokimosError):
        CopiesOfNetwork(other).check(LinearCover({"questions": end.cover.data["questions"][:1]}))


def test_float32_is_claimed_only_beyond_the_rounding() -> None:
    copies, end, _ = _searched(BY, network(2, rising=0.5))
    assert end.cover is not None
    rounded = copies.closer.reach
    rounded.__dict__["rounding"] = rounded.rounding + 1e6 if rounded.rounding is not None else None
    assert copies.check(end.cover) is False
    rounded.__dict__["rounding"] = None
    assert copies.check(end.cover) is False


@pytest.mark.parametrize(("ensures", "times"), [("d1 <= d2", 2), ("100 * d1 <= 99.5 * d2 + 0.5 * d1", 398)])
def test_in_float32_every_score_of_a_comparison_is_off(ensures: str, times: int) -> None:
    """Two scores are off by twice what one is, and factors multiply that: a smaller margin says nothing."""
    of = replace(domain(), classes=())
    weight = np.array([[1.0, 0, 0, 0, 0]])
    content = (
        ModelBuilder([5]).affine(weight, np.ones(1)).relu().affine(np.ones((1, 1)), np.zeros(1)).build(1)
    )
    found = state_law(
        make_plan(law(f"{BY} ENSURES {ensures}"), of), onnx_model(content, of, name="network")
    )
    assert isinstance(found.closer, NetworkCloser)
    copies, deadline = CopiesOfNetwork(found.closer), Deadline.after(10)
    end = first_end(search_copies(copies, lambda _: False, deadline), deadline)
    assert end is not None and isinstance(end.cover, LinearCover)
    margin = float(
        LinearProof().prove(Problem(copies.made[0], copies.made[1].property), end.cover.data).real
    )
    for share, holds in ((1.01, False), (0.99, True)):
        found.closer.reach.__dict__["rounding"] = np.array([share * margin / times])
        assert copies.check(end.cover) is holds


def test_a_proof_goes_through_a_file(tmp_path: Path) -> None:
    content, made = network(2, rising=0.5), plan(MORE)
    found, closer = stated(made, content)
    end = first_end(
        search_copies(CopiesOfNetwork(closer), lambda _: False, Deadline.after(10)), Deadline.after(10)
    )
    assert end is not None and end.cover is not None
    model, place = model_of(content), tmp_path / "proof.json"
    decided = LawDecision(made.law, made.domain, model, VerifySettings(), LawAnswer.PROVEN, cover=end.cover)
    save_proof(replace(decided, over=found.question.over, semantics=BOTH), place)
    saved = read_proof(place)
    assert isinstance(saved.cover, LinearCover) and found.check(saved.cover) == BOTH
    form = parse(place.read_bytes(), file=place)
    assert isinstance(form, dict)
    for broken in ({**form, "cover": [None]}, {**form, "linear": None}):
        place.write_text(write(broken))
        with pytest.raises(UnreadableFile):
            read_proof(place)
