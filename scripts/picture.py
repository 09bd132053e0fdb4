"""Take the picture of a report that the README shows: `python scripts/picture.py demo/report.html`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]


def main(report: Path) -> int:
    """Photograph the top of `report` into docs/report.png."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no chromium on this machine; install one to take the picture.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1690}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.screenshot(path=ROOT / "docs" / "report.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
