from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from dokimos.core.errors import InputError
from dokimos.difficulty.explain.rows import Status
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.campaign_report import VerifierInfo
from dokimos.reports.findings import Findings
from dokimos.reports.page import render_page
from tests.reports.explanation_sample import explained, known_facts
from tests.reports.sample import CAMPAIGN, CONTEXT, LOG_TAILS, judgement, sample_judgements, write_report

NASTY = "<script>alert('x')</script>\"&<img src=x onerror=y>"


class _Elements(HTMLParser):
    """All start tags with their attributes, and the text outside script and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.text += data


def _page(judgements: list[Judgement]) -> str:
    limit = CONTEXT.wall_seconds
    return render_page(Findings(judgements, log_tails=LOG_TAILS, limit_wall_seconds=limit), CONTEXT)


def test_the_page_is_self_contained() -> None:
    page = _page(sample_judgements())
    elements = _Elements(page)
    for tag, attributes in elements.tags:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            link = attributes.get(name)
            assert link is None or link == "data:," or link.startswith("#"), (tag, link)
        assert tag not in {"iframe", "object", "embed", "base", "img"}
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page
    assert len(page.encode()) < 250_000


def test_every_link_inside_the_page_leads_somewhere() -> None:
    elements = _Elements(_page(sample_judgements()))
    names = [a["id"] for _, a in elements.tags if "id" in a]
    instances = {j.record.instance for j in sample_judgements()}
    assert len(names) == len(set(names))
    for tag, attributes in elements.tags:
        if tag == "a":
            place = (attributes["href"] or "").removeprefix("#")
            known = place.partition("?")[0] in names
            assert known or unquote(place).removeprefix("instance=") in instances


def test_what_is_missing_stands_at_the_top() -> None:
    text = _Elements(_page(sample_judgements())).text
    assert "5 of 80 runs are missing." in text
    assert text.index("5 of 80 runs") < text.index("By family and verifier")
    page = _page(sample_judgements())
    assert re.search(r"<h1[^>]*>[^<]*5 of 80 runs are missing\.</h1>", page)


def test_an_explanation_has_its_sections_and_says_which_profiles_are_missing() -> None:
    runs = sample_judgements()
    assert 'id="reasons"' not in _page(runs)
    page = render_page(Findings(runs, explanation=explained(runs)), CONTEXT)
    for section in ("reasons", "breaking"):
        assert f'<section id="{section}"' in page
        assert f'<a href="#{section}">' in page
    assert "dokimos profile quick" in page
    described = page.count('role="img"><title>')
    assert described == page.count("<desc>") == page.count("<svg") - len(Status)


def test_the_same_judgements_give_the_same_bytes() -> None:
    assert _page(sample_judgements()) == _page(list(reversed(sample_judgements())))


def test_everything_from_outside_is_escaped() -> None:
    one = judgement(
        NASTY, verdict=Verdict.WRONG_SAT, verifier=NASTY, family=NASTY, reason=NASTY, detail=NASTY
    )
    one = replace(one, certificate=NASTY, reproduce=NASTY, record=replace(one.record, log=NASTY))
    context = replace(
        CONTEXT,
        title=NASTY,
        campaigns=(
            replace(
                CAMPAIGN,
                folder=NASTY,
                suites=(NASTY,),
                verifiers=(VerifierInfo(name=NASTY, version=NASTY),),
                machine=NASTY,
            ),
            CAMPAIGN,
        ),
        generated_at=NASTY,
        dokimos_version=NASTY,
    )
    solved = judgement("solved", verdict=Verdict.CORRECT, verifier=NASTY, family=NASTY)
    runs = [one, solved]
    findings = Findings(
        runs,
        log_tails={one.record.job: NASTY},
        known=known_facts(runs),
        explanation=explained(runs),
    )
    elements = _Elements(render_page(findings, context))
    assert [tag for tag, _ in elements.tags].count("script") == 3
    assert not [tag for tag, attributes in elements.tags if tag == "img" or "onerror" in attributes]
    assert elements.text.count(NASTY) > 12


def test_a_report_without_wrong_answers_and_an_empty_one_say_so() -> None:
    whole = replace(CONTEXT, campaigns=(replace(CONTEXT.campaigns[0], planned=1, recorded=1),))
    good = render_page(Findings([judgement("i", verdict=Verdict.CORRECT)]), whole)
    assert '<h1 class="open">' in _page([judgement("i", verdict=Verdict.CORRECT)])  # some are missing
    assert "None. No answer contradicts a proven label" in good
    assert '<h1 class="good">' in good
    assert '<h1 class="open">' in _page([judgement("i", verdict=Verdict.UNDECIDED)])
    assert '<h1 class="bad">' in _page([judgement("i", verdict=Verdict.WRONG_SAT, label=None)])
    empty = _page([])
    assert "There are no runs to judge." in empty
    assert '<p class="lacking" id="cactus"><b>Cactus plot</b> No run is solved' in empty
    assert 'href="#cactus"' not in empty


def test_more_than_ten_wrong_answers_are_folded_not_left_out() -> None:
    page = _page([judgement(f"i{k:02}", verdict=Verdict.WRONG_SAT) for k in range(13)])
    assert "3 more wrong answers" in page
    assert len(re.findall(r'<article class="wrong"', page)) == 13
    assert page.count("<details") == page.count("</details>")


def test_the_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.html"
    with pytest.raises(InputError, match=r"there is no folder .*/new; create it first"):
        write_report(sample_judgements(), CONTEXT, path, log_tails=LOG_TAILS)
    path.parent.mkdir()
    write_report(sample_judgements(), CONTEXT, path, log_tails=LOG_TAILS)
    assert path.read_text(encoding="utf-8") == _page(sample_judgements())
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder: the report cannot be written"):
        write_report([], CONTEXT, tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "new"]


def test_text_that_is_not_unicode_can_still_be_written(tmp_path: Path) -> None:
    broken = judgement("i\udcff", verdict=Verdict.CORRECT, detail="\udc80")
    write_report([broken], replace(CONTEXT, title="\udcfe"), tmp_path / "r.html")
    assert "i�" in (tmp_path / "r.html").read_text(encoding="utf-8")
