"""The page in a real browser, without a network: what a reader sees and can do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from dokimos.reports.page import write_report
from tests.reports.sample import CONTEXT, LOG_TAILS, sample_judgements

pytestmark = pytest.mark.browser

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Opener = Callable[..., AbstractContextManager[Page]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    executable = next((path for name in names if (path := shutil.which(name))), None)
    if executable is None:
        pytest.skip(f"no browser on this machine (looked for {', '.join(names)})")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(sample_judgements(), CONTEXT, path, log_tails=LOG_TAILS)
    return path


@pytest.fixture
def opened(browser: Browser, report: Path) -> Opener:
    """Opens the report in a window of a given width; anything asked of the network, or said on the
    console, fails the test."""

    @contextmanager
    def open_page(*, width: int = 1400, dark: bool = False) -> Iterator[Page]:
        trouble: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            offline=True,
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
        page.goto(report.as_uri())
        yield page
        context.close()
        assert trouble == []

    return open_page


def _column(page: Page, number: int) -> list[str]:
    cells = page.locator(f"#runs-table tbody tr:visible td:nth-child({number})")
    return [str(value) for value in cells.evaluate_all("cells => cells.map(c => c.dataset.value)")]


def test_wrong_answers_come_first(opened: Opener, tmp_path: Path) -> None:
    with opened() as page:
        assert page.locator("h1").inner_text().startswith("2 of 2 verifiers gave wrong answers: marabou")
        headings = page.locator("h2").all_inner_texts()
        assert headings == ["Wrong answers", "By family and verifier", "Cactus plot", "Every run"]
        tops = page.evaluate(
            "['wrong-1', 'table', 'cactus', 'runs']"
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
        assert not cell.is_visible()
        page.locator("#wrong-2 .outputs summary").click()
        assert cell.inner_text() == "0.0005"
        assert page.locator("#wrong-2 .full span").inner_text().startswith("-0.000488281250000000000847")


def test_runs_are_sorted_by_a_click_on_a_heading(opened: Opener) -> None:
    with opened() as page:
        wall = page.get_by_role("button", name="Wall s")
        wall.click()
        times = [float(value) for value in _column(page, 7)]
        assert len(times) == len(sample_judgements())
        assert times == sorted(times)
        header = page.locator("#runs-table th").nth(6)
        assert header.get_attribute("aria-sort") == "ascending"
        wall.click()
        assert [float(value) for value in _column(page, 7)] == sorted(times, reverse=True)
        page.get_by_role("button", name="Verdict").click()
        assert header.get_attribute("aria-sort") is None
        assert _column(page, 6) == sorted(_column(page, 6))


def test_runs_are_filtered_by_words_and_choices(opened: Opener) -> None:
    with opened() as page:
        page.get_by_label("Verdict", exact=True).select_option("undecided")
        assert set(_column(page, 6)) == {"undecided"}
        page.get_by_label("Verifier", exact=True).select_option("marabou")
        page.get_by_label("Family", exact=True).select_option("convex-corners")
        page.get_by_label("Search", exact=True).fill("segmentation FAULT")
        assert _column(page, 1) == ["convex-corners-9d-s9-unsat"]
        assert page.locator("#runs-shown").inner_text() == "1 of 75 runs"
        page.get_by_label("Search", exact=True).fill("no such run")
        assert page.get_by_text("No run matches.").is_visible()
        page.get_by_role("button", name="Show all").click()
        expect(page.locator("#runs-shown")).to_have_text("75 runs")
        assert len(_column(page, 1)) == 75


def test_a_run_unfolds_and_leads_to_its_wrong_answer(opened: Opener) -> None:
    with opened() as page:
        row = page.locator("#runs-table tr[data-verdict='wrong-sat']")
        row.locator("summary").click()
        row.get_by_role("link", name="See the wrong answer.").click()
        assert page.url.endswith("#wrong-2")


def test_the_plot_is_drawn_and_answers_the_pointer(opened: Opener) -> None:
    with opened() as page:
        lines = page.locator(".plot-area path.line")
        assert lines.count() == 2
        box = lines.first.bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 100
        colours = lines.evaluate_all("lines => lines.map(l => getComputedStyle(l).stroke)")
        assert len(set(colours)) == 2
        dot = page.locator(".plot-area [data-tip]").nth(3)
        dot.scroll_into_view_if_needed()
        place = dot.evaluate(
            "d => { const f = d.closest('.plot-area').getBoundingClientRect();"
            " return [f.left + d.dataset.x / 100 * f.width, f.top + d.dataset.y / 100 * f.height]; }"
        )
        page.mouse.move(*place)
        assert page.locator(".tip").inner_text() == dot.get_attribute("data-tip")
        page.mouse.move(2, 2)
        assert not page.locator(".tip").is_visible()


@pytest.mark.parametrize("width", [400, 1000, 1061])
def test_nothing_is_wider_than_the_window(opened: Opener, tmp_path: Path, width: int) -> None:
    with opened(width=width) as page:
        page.evaluate("document.querySelectorAll('details').forEach((d, k) => { d.open = k < 8; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        hidden = page.evaluate(
            "[...document.querySelectorAll('.panel')]"
            ".filter(p => p.scrollWidth > p.clientWidth + 1).map(p => p.textContent.trim().slice(0, 40))"
        )
        assert hidden == []
        page.screenshot(path=tmp_path / f"{width}.png", full_page=True)


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_stands_out_from_its_background(opened: Opener, tmp_path: Path, dark: bool) -> None:
    with opened(dark=dark) as page:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 22, 26)" if dark else "rgb(247, 245, 240)")
        assert page.evaluate(_FAINT_TEXT) == []
        page.screenshot(path=tmp_path / "colours.png", full_page=True)


def test_the_page_prints_on_white_with_everything_unfolded(opened: Opener, tmp_path: Path) -> None:
    with opened(dark=True, width=720) as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not page.locator(".filters").is_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#wrong-2 .outputs td").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 720
        page.screenshot(path=tmp_path / "print.png", full_page=True)
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not page.locator("#wrong-2 .outputs td").first.is_visible()
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
