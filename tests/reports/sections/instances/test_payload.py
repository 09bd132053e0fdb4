from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.judging.verdicts import Verdict
from dokimos.reports.findings import Findings
from dokimos.reports.sections.instances import NAME, campaign_rows, details, payload
from tests.reports.explanation_sample import known_facts
from tests.reports.sample import LOG_TAILS, judgement, sample_judgements


def _documents(**options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    runs = sample_judgements()
    rows = campaign_rows(Findings(runs, log_tails=LOG_TAILS, known=known_facts(runs, **options)))
    return json.loads(payload(rows)), json.loads(details(rows))


def test_every_run_finds_its_instance_and_its_texts_again() -> None:
    document, more = _documents()
    rows = campaign_rows(Findings(sample_judgements(), log_tails=LOG_TAILS))
    pool, other_pool, runs, others = document["pool"], more["pool"], document["runs"], more["runs"]
    names = [
        own
        for own, count in zip(document["instances"]["own"], document["instances"]["runs"], strict=True)
        for _ in range(count)
    ]
    assert len(document["instances"]["own"]) == len({run.instance for run in rows.runs})
    assert names == [row.instance for row in rows.runs]
    for k, row in enumerate(rows.runs):
        assert document["verifiers"][runs["verifier"][k]] == row.verifier
        shown = [pool[runs[name][k]] for name in ("answer", "verdict", "outcome", "reason")]
        assert shown == [row.answer.value, row.verdict.value, row.outcome.value, row.reason]
        texts = [other_pool[others[name][k]] for name in ("ended", "detail", "tail")]
        assert texts == [row.termination, row.detail, row.log_tail]
        assert other_pool[others["folder"][k]] + others["log"][k] == row.log
        assert other_pool[others["command"][k]].replace(NAME, names[k]) == row.reproduce
        assert others["anchor"][k] == row.anchor
    assert len(pool) == len(set(pool)) and len(other_pool) == len(set(other_pool))


def test_a_profile_keeps_its_numbers_and_what_qualifies_them() -> None:
    document, more = _documents(without=("convex-corners-6d-s1-sat",))
    instances, pool = document["instances"], document["pool"]
    place = instances["own"].index("convex-corners-6d-s1-unsat")
    margin, _, _, regions, dimension = (column[place] for column in instances["components"])
    assert margin == pytest.approx(0.49)
    assert (regions[0], pool[regions[1]]) == (6.9, ">= log N: every sample has its own")
    assert dimension[0] is None
    assert pool[dimension[1]] == "not applicable: the margin is <constant>"
    parameters = {more["pool"][name]: value for name, value in more["instances"]["parameters"][place]}
    assert parameters == {"depth": 1, "gamma": 0.001, "disguise": "['permute']"}
    without = instances["own"].index("convex-corners-6d-s1-sat")
    assert [column[without] for column in instances["components"]] == [None] * 5
    assert more["pool"][more["instances"]["problem"][without]] == "there is no profile"


def test_names_of_several_suites_are_put_together_again() -> None:
    one = judgement("i", verdict=Verdict.CORRECT)
    other = replace(one, record=replace(one.record, suite="full", job="other"))
    document = json.loads(payload(campaign_rows(Findings([one, other]))))
    assert document["several"] is True
    columns = document["instances"]
    names = [
        f"{document['pool'][s]}/{own}" for s, own in zip(columns["suite"], columns["own"], strict=True)
    ]
    assert names == ["full/i", "quick/i"]
    assert json.loads(payload(campaign_rows(Findings([one]))))["several"] is False


@given(st.text(max_size=60))
def test_no_text_ends_the_element_it_stands_in(text: str) -> None:
    nasty = f"{text}</script><!--<script>\u2028]]>"
    one = judgement("i", verdict=Verdict.CORRECT, reason=nasty, detail=text)
    rows = campaign_rows(Findings([one], log_tails={one.record.job: nasty}))
    assert not set("<>&\u2028\u2029") & set(payload(rows) + details(rows))
    document = json.loads(details(rows))
    tail = document["pool"][document["runs"]["tail"][0]]
    assert "</script><!--<script>" in tail and tail.endswith("]]>")


def test_nothing_makes_an_empty_document() -> None:
    document = json.loads(payload(campaign_rows(Findings([]))))
    assert document["instances"]["own"] == document["runs"]["verifier"] == document["verifiers"] == []
