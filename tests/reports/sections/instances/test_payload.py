from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.judging.verdicts import Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.sections.instances.payload import NAME, payload
from dokimos.reports.sections.instances.rows import campaign_rows
from tests.reports.explanation_sample import known_facts
from tests.reports.sample import LOG_TAILS, judgement, sample_judgements


def _document(**options: Any) -> dict[str, Any]:
    runs = sample_judgements()
    rows = campaign_rows(Findings.of(runs, log_tails=LOG_TAILS, known=known_facts(runs, **options)))
    document: dict[str, Any] = json.loads(payload(rows))
    return document


def test_every_run_finds_its_instance_and_its_texts_again() -> None:
    document, rows = _document(), campaign_rows(Findings.of(sample_judgements(), log_tails=LOG_TAILS))
    pool = document["pool"]
    assert len(document["instances"]) == len({run.instance for run in rows.runs})
    for packed, row in zip(document["runs"], rows.runs, strict=True):
        own = document["instances"][packed[0]][0]
        assert own == row.instance
        assert document["verifiers"][packed[1]] == row.verifier
        texts = [pool[number] for number in packed[9:15]]
        assert texts[:5] == [row.termination, row.reason, row.detail, row.log, row.log_tail]
        assert texts[5].replace(NAME, own) == row.reproduce
        assert packed[15] == row.anchor
    assert len(pool) == len(set(pool))


def test_a_profile_keeps_its_numbers_and_what_qualifies_them() -> None:
    document = _document(without=("convex-corners-6d-s1-sat",))
    by_name = {row[0]: row for row in document["instances"]}
    with_profile = by_name["convex-corners-6d-s1-unsat"]
    margin, _, _, regions, dimension = with_profile[6]
    assert margin == pytest.approx(0.49)
    assert (regions[0], document["pool"][regions[1]]) == (6.9, ">= log N: every sample has its own")
    assert dimension[0] is None
    assert document["pool"][dimension[1]] == "not applicable: the margin is <constant>"
    parameters = {document["pool"][name]: value for name, value in with_profile[5]}
    assert parameters == {"depth": 1, "gamma": 0.001, "disguise": "['permute']"}
    without = by_name["convex-corners-6d-s1-sat"]
    assert without[6] == [None] * 5
    assert document["pool"][without[8]] == "there is no profile"


def test_names_of_several_suites_are_put_together_again() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    other = replace(one, record=replace(one.record, suite="full", job="other"))
    document = json.loads(payload(campaign_rows(Findings.of([one, other]))))
    assert document["several"] is True
    names = [f"{document['pool'][row[2]]}/{row[0]}" for row in document["instances"]]
    assert names == ["full/i", "quick/i"]
    assert json.loads(payload(campaign_rows(Findings.of([one]))))["several"] is False


@given(st.text(max_size=60))
def test_no_text_ends_the_element_it_stands_in(text: str) -> None:
    nasty = f"{text}</script><!--<script>\u2028]]>"
    one = judgement("i", verdict=Verdict.CORRECT, reason=nasty, detail=text)
    written = payload(campaign_rows(Findings.of([one], log_tails={one.record.job: nasty})))
    assert not set("<>&\u2028\u2029") & set(written)
    document = json.loads(written)
    tail = document["pool"][document["runs"][0][13]]
    assert "</script><!--<script>\u2028]]>" in tail


def test_nothing_makes_an_empty_document() -> None:
    document = json.loads(payload(campaign_rows(Findings.of([]))))
    assert (document["instances"], document["runs"], document["verifiers"]) == ([], [], [])
