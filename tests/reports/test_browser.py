"""The page in a real browser, without a network: what a reader sees and can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dokimos.judging.rules import Mark, Standing
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.suites.answers import Answer
from tests.browsing import chromium
from tests.reports.explanation_sample import explained, known_facts
from tests.reports.sample import CONTEXT, LOG_TAILS, judgement, sample_judgements, write_report

pytestmark = pytest.mark.browser

UNMEASURED = "convex-corners-6d-s1-sat"
Opener = Callable[..., AbstractContextManager[Page]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


def _marked(run: Judgement) -> Judgement:
    """The run under four rule sets, which do not agree on wrong answers."""
    exact = Standing.INCORRECT if run.verdict.is_wrong else Standing.CORRECT
    rules = ("exact", "vnncomp2026", "vnncomp2025-small", "vnncomp2025-zero")
    standings = (exact, Standing.CORRECT, Standing.CORRECT, exact)
    marks = (Mark(name, standing, 10, "because") for name, standing in zip(rules, standings, strict=True))
    return replace(run, marks=tuple(marks))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    runs = [_marked(run) for run in sample_judgements()]
    write_report(
        runs,
        CONTEXT,
        path,
        log_tails=LOG_TAILS,
        known=known_facts(runs, without=(UNMEASURED,)),
        explanation=explained(runs),
    )
    return path


@pytest.fixture
def opened(browser: Browser, report: Path) -> Opener:
    """Opens the report in a window of a given width; anything asked of the network, or said on the
    console, fails the test."""

    @contextmanager
    def open_page(
        *, width: int = 1400, dark: bool = False, scripts: bool = True, path: Path = report, place: str = ""
    ) -> Iterator[Page]:
        trouble: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            offline=True,
            java_script_enabled=scripts,
            reduced_motion="reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        page = context.new_page()
        page.on("console", lambda message: trouble.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(("file:", "data:")) else trouble.append(request.url)
            ),
        )
        page.goto(path.as_uri() + place)
        yield page
        context.close()
        assert trouble == []

    return open_page


def _names(page: Page) -> list[str]:
    return page.locator("#table tbody td.name a").all_inner_texts()


def _column(page: Page, number: int) -> list[str]:
    return page.locator(f"#table tbody td:nth-child({number})").all_inner_texts()


def test_the_matrix_comes_first_and_wrong_answers_next(opened: Opener, tmp_path: Path) -> None:
    with opened() as page:
        assert page.locator("h1").inner_text().startswith("2 of 2 verifiers gave wrong answers: marabou")
        headings = page.locator("main > section > h2").all_inner_texts()
        assert headings == [
            "By family and verifier",
            "Wrong answers",
            "Cactus plot",
            "What makes it hard",
            "Breaking points",
            "Rule sets side by side",
            "Every instance",
        ]
        tops = page.evaluate(
            "['families', 'wrong-1', 'cactus', 'instances']"
            ".map(name => document.getElementById(name).getBoundingClientRect().top)"
        )
        assert tops == sorted(tops)
        assert page.locator("article.wrong").count() == 3
        page.screenshot(path=tmp_path / "wide.png", full_page=True)


def test_a_command_is_copied_with_one_click(opened: Opener) -> None:
    with opened() as page:
        button = page.locator("#wrong-2 button.copy")
        button.click()
        expect(button).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator("#wrong-2 .command code").inner_text()
        assert copied.startswith("dokimos run quick --verifier marabou")


def test_the_exact_outputs_unfold(opened: Opener) -> None:
    with opened() as page:
        cell = page.locator("#wrong-2 .outputs td").first
        expect(cell).not_to_be_visible()
        page.locator("#wrong-2 .outputs summary").click()
        assert cell.inner_text() == "0.0005"
        assert page.locator("#wrong-2 .full span").inner_text().startswith("-0.000488281250000000000847")


def test_instances_are_sorted_by_a_click_on_any_heading(opened: Opener) -> None:
    with opened() as page:
        everything = _names(page)
        assert len(everything) == 39
        button = page.get_by_role("button", name="marabou", exact=True)
        header = page.locator("#table th", has=button)
        button.click()
        assert header.get_attribute("aria-sort") == "ascending"
        solved = [float(cell.split()[2]) for cell in _column(page, 4) if cell.startswith("✓")]
        assert len(solved) == 27
        assert solved == sorted(solved)
        assert _column(page, 4)[-1].startswith("✗ sat")
        button.click()
        assert _column(page, 4)[0].startswith("✗ sat")
        page.get_by_role("button", name="scripted", exact=True).click()
        assert _column(page, 5)[-2:] == ["–", "–"]  # not run there
        page.get_by_role("button", name="G_IBP, looseness of interval bounds").click()
        assert header.get_attribute("aria-sort") is None
        gaps = [float(cell) for cell in _column(page, 7) if cell != "–"]
        assert gaps == sorted(gaps)
        assert len(gaps) == 38
        for heading in ("Instance", "Family", "Label"):
            page.get_by_role("button", name=heading, exact=True).click()
            assert sorted(_names(page)) == sorted(everything)
        assert _column(page, 3) == sorted(_column(page, 3))


def test_instances_are_filtered_by_words_and_choices(opened: Opener) -> None:
    with opened() as page:
        page.get_by_label("Outcome", exact=True).select_option("undecided")
        marabou = page.get_by_label("Verifier", exact=True)
        marabou.select_option("scripted")
        some = len(_names(page))
        marabou.select_option("marabou")
        assert 0 < some < len(_names(page))
        assert {cell[0] for cell in _column(page, 4)} == {"T", "E"}
        page.get_by_label("Outcome", exact=True).select_option("error")
        page.get_by_label("Family", exact=True).select_option("convex-corners")
        page.get_by_label("Search", exact=True).fill("segmentation FAULT")
        assert _names(page) == ["convex-corners-9d-s9-unsat"]
        expect(page.locator("#shown")).to_have_text("1 of 39 instances")
        page.get_by_label("Search", exact=True).fill("no such instance")
        expect(page.get_by_text("No instance matches.")).to_be_visible()
        page.get_by_role("button", name="Show all").click()
        expect(page.locator("#shown")).to_have_text("39 instances")
        page.get_by_label("Search", exact=True).fill("depth=3")
        assert 0 < len(_names(page)) < 10


def test_a_number_of_the_matrix_leads_to_its_runs(opened: Opener) -> None:
    with opened() as page:
        row = page.locator(".matrix tr", has=page.get_by_role("rowheader", name="exclusive-pairs"))
        row.locator("td").first.locator("a.bad").click()
        verdict = page.get_by_label("Outcome", exact=True).input_value()
        family = page.get_by_label("Family", exact=True).input_value()
        assert (verdict, family) == ("o:wrong", "exclusive-pairs")
        shown = _names(page)
        assert shown and all(name.startswith("exclusive-pairs") for name in shown)
        assert {cell[0] for cell in _column(page, 4)} == {"✗"}
        page.get_by_role("button", name="Show all").click()
        row.locator("td").first.locator("a.bad").click()  # the same place once more
        assert _names(page) == shown


def test_the_navigation_stays_in_sight_and_says_where_one_is(opened: Opener) -> None:
    for width in (1400, 390):
        with opened(width=width) as page:
            page.evaluate("document.getElementById('breaking').scrollIntoView()")
            place = page.locator("nav.sections")
            expect(page.locator("nav.sections a[aria-current]")).to_have_text("Breaking points")
            assert place.bounding_box()["y"] == 0  # type: ignore[index]
            top = page.evaluate("document.getElementById('breaking-title').getBoundingClientRect().top")
            assert top >= place.bounding_box()["height"] - 1  # type: ignore[index]


def test_an_instance_opens_with_all_that_is_known_of_it(opened: Opener, tmp_path: Path) -> None:
    name = "exclusive-pairs-20x8-g0.001-s1-unsat"
    with opened() as page:
        page.locator("#table").get_by_role("link", name=name).click()
        sheet = page.get_by_role("dialog")
        expect(sheet).to_be_visible()
        expect(page).to_have_url(re.compile(f"#instance={name}$"))
        text = sheet.inner_text()
        for said in (name, "wrong-sat", "0.840 s", "gamma", "0.001", "exclusive-pairs", "above"):
            assert said in text
        assert "not applicable: the margin is <constant>" in text
        sheet.get_by_text("Log and command").first.click()
        assert f"--only {name}" in sheet.inner_text()
        page.screenshot(path=tmp_path / "instance.png")
        sheet.get_by_role("button", name="Copy the command").first.click()
        expect(sheet.locator("button.copy").first).to_have_text("Copied")
        assert f"--only {name}" in page.evaluate("navigator.clipboard.readText()")
        sheet.get_by_role("link", name="See the wrong answer.").click()
        expect(sheet).not_to_be_visible()
        expect(page).to_have_url(re.compile("#wrong-2$"))
        page.locator("#wrong-2 h3 a").click()
        expect(sheet).to_be_visible()
        page.go_back()
        expect(sheet).not_to_be_visible()


def test_the_keyboard_is_enough(opened: Opener) -> None:
    with opened() as page:
        link = page.locator("#table td.name a").nth(1)
        link.focus()
        page.keyboard.press("Enter")
        heading = page.locator("#instance-name")
        first, second, third = _names(page)[:3]
        expect(heading).to_have_text(second)
        page.keyboard.press("ArrowRight")
        expect(heading).to_have_text(third)
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(heading).to_have_text(first)
        expect(page.locator("#instance-back")).to_be_disabled()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).not_to_be_visible()
        assert page.evaluate("document.activeElement.textContent") == first
        expect(page).to_have_url(re.compile("#instances$"))


def test_a_link_leads_straight_to_an_instance_and_a_broken_one_to_the_page(opened: Opener) -> None:
    with opened(place=f"#instance={UNMEASURED}") as page:
        expect(page.locator("#instance-name")).to_have_text(UNMEASURED)
        assert "there is no profile" in page.get_by_role("dialog").inner_text()
    for cut in ("#instance=nobody", "#instance=%E0%A4%A"):
        with opened(place=cut) as page:
            expect(page.get_by_role("dialog")).not_to_be_visible()
            expect(page.locator("h1")).to_be_visible()


def test_figures_are_drawn_and_answer_the_pointer(opened: Opener) -> None:
    with opened() as page:
        lines = page.locator("#cactus svg.wide path.line")
        assert lines.count() == 4  # two curves, and two in the legend
        box = lines.last.bounding_box()
        assert box is not None
        assert box["width"] > 300
        colours = lines.evaluate_all("lines => lines.map(l => getComputedStyle(l).stroke)")
        assert len(set(colours)) == 2
        mark = page.locator("#cactus svg.wide [data-tip]").nth(3)
        mark.hover()
        expect(page.locator(".tip")).to_have_text(mark.get_attribute("data-tip") or "")
        page.mouse.move(2, 2)
        expect(page.locator(".tip")).not_to_be_visible()
        assert page.locator("svg.narrow:visible").count() == 0
        assert page.locator("#reasons svg.figure:visible").count() == 1
    with opened(width=400) as page:
        assert page.locator("svg.wide:visible").count() == 0
        expect(page.locator("#cactus svg.narrow")).to_be_visible()


def test_without_scripts_there_is_everything_but_the_table(opened: Opener) -> None:
    with opened(scripts=False) as page:
        assert page.locator("h1").inner_text().startswith("2 of 2 verifiers")
        assert page.locator("article.wrong").count() == 3
        expect(page.locator("#cactus svg.wide")).to_be_visible()
        assert "dokimos report --csv" in page.locator("#instances").inner_text()
        expect(page.locator("#filters")).not_to_be_visible()
        assert page.locator("button.copy:visible").count() == 0


def test_thousands_of_instances_are_turned_by_pages(opened: Opener, tmp_path: Path) -> None:
    runs = [judgement(f"instance-{k}", verdict=Verdict.CORRECT, wall_seconds=k / 100) for k in range(3000)]
    write_report(runs, CONTEXT, tmp_path / "large.html", log_tails={runs[7].record.job: "</script>"})
    with opened(path=tmp_path / "large.html") as page:
        assert len(_names(page)) == 100
        expect(page.locator("#page-place")).to_have_text("1 to 100 of 3000")
        page.get_by_role("button", name="Next").click()
        expect(page.locator("#page-place")).to_have_text("101 to 200 of 3000")
        page.get_by_role("button", name="marabou", exact=True).click()
        page.get_by_role("button", name="marabou", exact=True).click()
        assert _names(page)[0] == "instance-2999"
        page.get_by_label("Search", exact=True).fill("</script>")
        assert _names(page) == ["instance-7"]
        page.goto((tmp_path / "large.html").as_uri() + "#instance=instance-2345")
        expect(page.locator("#instance-name")).to_have_text("instance-2345")
        assert page.evaluate("document.querySelectorAll('*').length") < 6000


@pytest.mark.parametrize(
    "runs",
    [
        [judgement("alone", verdict=Verdict.UNDECIDED, answer=Answer.UNKNOWN)],
        [judgement("x", verdict=Verdict.UNDECIDED, answer=Answer.TIMEOUT, verifier=v) for v in "ab"],
        [],
    ],
    ids=["one verifier, nothing solved", "two that time out", "nothing at all"],
)
def test_little_to_show_is_no_trouble(opened: Opener, tmp_path: Path, runs: list[Judgement]) -> None:
    write_report(runs, CONTEXT, tmp_path / "r.html", explanation=explained(runs), known=known_facts(runs))
    with opened(path=tmp_path / "r.html") as page:
        expect(page.get_by_text("No run is solved")).to_be_visible()
        assert len(_names(page)) == len({run.record.instance for run in runs})


@pytest.mark.parametrize("width", [360, 901, 1061])
def test_nothing_is_wider_than_the_window(opened: Opener, tmp_path: Path, width: int) -> None:
    with opened(width=width) as page:
        page.evaluate("document.querySelectorAll('details').forEach((d, k) => { d.open = k < 8; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        hidden = page.evaluate(
            "[...document.querySelectorAll('.panel:not(.scroll)')]"
            ".filter(p => p.scrollWidth > p.clientWidth + 1).map(p => p.textContent.trim().slice(0, 40))"
        )
        assert hidden == []
        page.screenshot(path=tmp_path / f"{width}.png", full_page=True)


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_stands_out_from_its_background(opened: Opener, tmp_path: Path, dark: bool) -> None:
    with opened(dark=dark) as page:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 22, 26)" if dark else "rgb(248, 247, 243)")
        assert page.evaluate(_FAINT_TEXT) == []
        page.screenshot(path=tmp_path / "colours.png", full_page=True)


def test_the_page_prints_on_white_with_everything_unfolded(opened: Opener, tmp_path: Path) -> None:
    with opened(dark=True, width=720) as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        expect(page.locator(".filters")).not_to_be_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        expect(page.locator("#wrong-2 .outputs td").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(page.locator("#wrong-2 .outputs td").first).not_to_be_visible()
        assert page.locator("#table tbody tr").count() == 39
        assert page.pdf(path=tmp_path / "report.pdf", format="A4").startswith(b"%PDF")


# WCAG's contrast ratio of every visible text against the nearest opaque background: 4.5 is its level AA.
_FAINT_TEXT = """
() => {
  const parse = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const faint = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.add(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
  }
  return [...faint];
}
"""
