"""What all pages share: the frame, and what keeps text from outside apart from it."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from importlib import resources

import pytest
from jinja2 import UndefinedError

from dokimos.reports.render import PALETTE, PageHead, Tile, Tone, render

HEAD = PageHead(
    title="A title",
    headline="A headline.",
    tone=Tone.GOOD,
    tiles=(Tile("correct", "12 correct on 3 instances", "✓"),),
    facts=(("Machine", "a <machine>"),),
    generated_at="today",
    dokimos_version="0.1.0",
)
TEMPLATE = '{% extends "base.html.jinja" %}{% block content %}<p>{{ words }}</p>{% endblock %}'
NASTY = "<script>alert('x')</script>\"&"


def test_the_head_stands_above_the_content() -> None:
    page = render(TEMPLATE, HEAD, words="what it is about")
    assert '<h1 class="good">A headline.</h1>' in page
    assert "<b>12</b> correct on <b>3</b> instances" in page
    assert "<dt>Machine</dt><dd>a &lt;machine&gt;</dd>" in page
    assert page.index("A headline.") < page.index("<p>what it is about</p>")
    assert "Made by Dokimos 0.1.0 on today." in page
    assert "<nav" not in page
    linked = render(TEMPLATE, replace(HEAD, links=(("here", "There"),)), words="")
    assert 'aria-label="Sections"><div class="wrap"><a href="#here">There</a></div></nav>' in linked
    assert linked.index("</header>") < linked.index("<nav")  # it stays in sight below the head


def test_a_notice_has_its_commands_set_as_such() -> None:
    page = render(TEMPLATE, replace(HEAD, notices=("`dokimos run` goes <on>.",)), words="")
    assert "<code>dokimos run</code> goes &lt;on&gt;." in page


def test_what_comes_from_outside_is_escaped() -> None:
    head = replace(HEAD, title=NASTY, headline=NASTY, notices=(NASTY,), facts=((NASTY, NASTY),))
    page = render(TEMPLATE, replace(head, generated_at=NASTY, dokimos_version=NASTY), words=NASTY)
    assert NASTY not in page
    assert page.count("<script>") == 1


def test_styles_and_scripts_of_a_page_stand_between_those_of_all_pages() -> None:
    page = render(TEMPLATE, HEAD, styles=[".own { color: red; }", ""], scripts=["own();"], words="")
    order = [PALETTE, ".wrap {", ".own { color: red; }", "@media print", "<body>", "const all =", "own();"]
    places = [page.index(part) for part in order]
    assert places == sorted(places)


def test_a_browser_runs_only_the_script_whose_hash_the_page_states() -> None:
    page = render(TEMPLATE, HEAD, scripts=["const own = '<é>';\n"], words="")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert policy is not None
    stated = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    computed = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    assert "const own" in script
    assert stated["script-src"] == f"'sha256-{computed}'"
    assert {stated[name] for name in ("default-src", "base-uri", "form-action")} == {"'none'"}


def test_a_name_that_is_not_defined_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="words"):
        render(TEMPLATE, HEAD)


def test_colours_are_named_in_one_place() -> None:
    """Pages are dark at night and white on paper because no other style sheet has colours of its own."""
    package = resources.files("dokimos")
    sheets = [
        package.joinpath("reports", "layout", "base.css"),
        package.joinpath("reports", "assets", "tables.css"),
        package.joinpath("reports", "assets", "media.css"),
        package.joinpath("reports", "figures", "figures.css"),
        package.joinpath("laws", "reporting", "assets", "laws.css"),
    ]
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8")
        assert "#" not in text.replace("#none-shown", ""), sheet
        assert ":root" not in text, sheet
