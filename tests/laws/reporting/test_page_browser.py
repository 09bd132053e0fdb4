"""The page of laws in a real browser, without a network: what a reader sees and can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from dokimos.laws.reporting.law_page import write_page
from tests.browsing import chromium
from tests.laws.reporting.test_law_page import CONTEXT, FAILING, MORE_FELONIES, NEVER, SAME, named
from tests.laws.toy import run
from tests.reports.test_browser import _FAINT_TEXT

pytestmark = pytest.mark.browser

Opener = Callable[..., AbstractContextManager[Page]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = {
        "same": run(SAME),
        "more_felonies_never_fall": run(
            MORE_FELONIES, by=("sex", "felonies"), exhaustive=False, budget=2000
        ),
        "never": run(NEVER),
        "failing": run(FAILING, budget=20),
    }
    page = tmp_path_factory.mktemp("laws") / "laws.html"
    results = [named(result, f"laws/{name}.law") for name, result in made.items()]
    write_page(results, [f"dokimos law test laws/{name}.law" for name in made], CONTEXT, page)
    return page


@pytest.fixture
def opened(browser: Browser, path: Path) -> Opener:
    """Opens the page; anything asked of the network, or said on the console, fails the test."""

    @contextmanager
    def open_page(*, width: int = 1300, dark: bool = False) -> Iterator[Page]:
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
        page.goto(path.as_uri())
        yield page
        context.close()
        assert trouble == []

    return open_page


def test_the_verdict_and_the_violations_are_seen_at_once(opened: Opener, tmp_path: Path) -> None:
    with opened() as page:
        assert page.locator("h1").inner_text() == "function violates 1 of 4 laws: more_felonies_never_fall."
        assert page.locator(".tile").all_inner_texts() == [
            "1 violated",
            "1 failed",
            "1 not tested",
            "1 holds for every draw",
        ]
        assert page.locator("article:visible h3").all_inner_texts() == [
            "more_felonies_never_fall",
            "failing",
            "never",
        ]
        law = page.locator("#law-2")
        assert law.locator(".violations > li:visible").count() == 3
        assert "the risk falls from" in law.locator(".words").first.inner_text()
        cells = law.locator(".records").first.locator("tr").all_inner_texts()
        assert cells[0].split() == ["x1", "x2", "What", "moved"] and cells[1].startswith("felonies")
        law.locator(".more > summary").click()
        assert law.locator(".violations > li:visible").count() > 3
        page.screenshot(path=tmp_path / "wide.png", full_page=True)


def test_rates_are_drawn_on_one_scale(opened: Opener) -> None:
    with opened() as page:
        table = page.locator("#law-2 .rates").first
        shares = [float(text.split("%")[0]) for text in table.locator("td.count").all_inner_texts()]
        points = [float(each) for each in table.locator("b").evaluate_all("b => b.map(e => e.offsetLeft)")]
        order = sorted(range(len(shares)), key=lambda k: shares[k])
        assert [points[k] for k in order] == sorted(points) and len(set(points)) > 1


def test_a_link_opens_what_is_folded_and_a_command_is_copied(opened: Opener) -> None:
    with opened() as page:
        folded = page.locator("#law-1")
        expect(folded).not_to_be_visible()
        page.get_by_role("link", name="same").click()
        expect(folded).to_be_visible()
        button = page.locator("#law-2 button.copy")
        button.click()
        expect(button).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "dokimos law test laws/more_felonies_never_fall.law"


@pytest.mark.parametrize("width", [360, 640, 900])
def test_nothing_is_wider_than_the_window(opened: Opener, tmp_path: Path, width: int) -> None:
    with opened(width=width) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=tmp_path / f"{width}.png", full_page=True)


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_stands_out_from_its_background(opened: Opener, dark: bool) -> None:
    with opened(dark=dark) as page:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(21, 22, 26)" if dark else "rgb(248, 247, 243)")
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert page.evaluate(_FAINT_TEXT) == []


def test_the_page_prints_on_white_with_everything_unfolded(opened: Opener, tmp_path: Path) -> None:
    with opened(dark=True, width=720) as page:
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        expect(page.locator("#law-1")).to_be_visible()
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(page.locator("#law-1")).not_to_be_visible()
        assert page.pdf(path=tmp_path / "laws.pdf", format="A4").startswith(b"%PDF")
