"""The documentation as a site: it builds without a warning, and is read and searched from a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dokimos
from tests.browsing import chromium

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = ["-m", "sphinx", "--nitpicky", "--fail-on-warning", "--quiet", "-b", "html"]
    done = subprocess.run(
        [sys.executable, *words, "-d", str(folder / "trees"), str(ROOT / "docs"), str(folder / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_command_and_function_is_in_it(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    functions = (site / "reference" / "python.html").read_text(encoding="utf-8")
    public = [name for name in dokimos.__all__ if name != "__version__"]
    assert [name for name in public if f"{name}</span>" not in functions] == []
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "dokimos law test" in commands and "--pass-env" in commands


@pytest.mark.browser
def test_it_is_read_and_searched_from_a_folder_without_a_network(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        assert "Dokimos" in page.title()
        page.goto(f"{(site / 'search.html').as_uri()}?q=cactus")
        page.wait_for_selector("#search-results li a", timeout=60_000)
        assert page.locator("#search-results li a", has_text="Formats").count()
        assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
