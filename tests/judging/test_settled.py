"""A certificate that a verifier left settles an instance without a label, however it is judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.campaigns.job import proof_path
from dokimos.checker.check import prove
from dokimos.engine.outcome import claims_of
from dokimos.judging.bulk import CampaignWatcher
from dokimos.judging.judged_campaign import judge_campaigns
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.instance import Certificate, Instance, Label, Truth
from dokimos.suites.suite_files import dump_truth
from tests.difficulty.explain.sample import record, write_campaign, write_suite
from tests.judging.unlabelled import Readable
from tests.scripting import at_least


class Robust(Readable):
    """Never violated, and interval bounds show it."""

    @property
    def asked(self) -> bytes:
        return at_least("99")


def certificate() -> str:
    """A proof that the instance is `unsat`, as a verifier writes it."""
    made = Robust("i")
    instance, proof = (
        Instance("i", made.network, made.asked),
        Certificate("linear", {"questions": [{}]}),
    )
    claims = claims_of(prove(instance, proof, Label.UNSAT, None))
    hashes = instance.network_sha256, instance.property_sha256
    return dump_truth(Truth(Label.UNSAT, claims, proof, *hashes), origin={})


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Two verifiers say `unsat`, and one says `sat` without a witness; none has left a certificate yet."""
    suite = write_suite(tmp_path / "suite", [Robust("i", label=None)])
    runs = [
        record("i", Answer.UNSAT, verifier="reference"),
        record("i", Answer.UNSAT, verifier="marabou"),
        record("i", Answer.SAT, verifier="nnenum"),
    ]
    return write_campaign(tmp_path / "run", suite, runs, verifiers=["reference", "marabou", "nnenum"])


def one_by_one(folder: Path) -> tuple[Judgement, ...]:
    return judge_campaigns([folder]).judgements


def in_processes(folder: Path) -> tuple[Judgement, ...]:
    return judge_campaigns([folder], jobs=1, judged=lambda *_: None).judgements


def while_it_grows(folder: Path) -> tuple[Judgement, ...]:
    return CampaignWatcher(folder).look().judgements


@pytest.mark.parametrize("judged", [one_by_one, in_processes, while_it_grows])
def test_a_certificate_settles_the_instance_for_all(
    campaign: Path, judged: Callable[[Path], tuple[Judgement, ...]]
) -> None:
    assert [j.verdict for j in judged(campaign)] == [Verdict.UNLABELLED] * 3
    job = judge_campaigns([campaign]).judgements[0].record.job
    place = proof_path(campaign, job)
    place.parent.mkdir(exist_ok=True)
    place.write_text(certificate())
    found = judged(campaign)
    assert [j.verdict for j in found] == [Verdict.CORRECT, Verdict.CORRECT, Verdict.WRONG_SAT]
    assert found[0].certificate == "linear"


def test_a_certificate_that_proves_nothing_settles_nothing(campaign: Path) -> None:
    job = judge_campaigns([campaign]).judgements[0].record.job
    place = proof_path(campaign, job)
    place.parent.mkdir(exist_ok=True)
    place.write_text(certificate().replace("linear", "constant-on-box"))
    for judged in (one_by_one, in_processes, while_it_grows):
        assert {j.verdict for j in judged(campaign)} == {Verdict.UNLABELLED}
