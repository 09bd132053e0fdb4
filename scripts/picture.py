"""Take the picture of a report that the README shows: `python scripts/picture.py demo/report.html`."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Photograph the top of a report into docs/report.png."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    report = parser.parse_args().report
    if not report.is_file():
        sys.exit(f"{report}: there is no such file; `make demo` makes a report.")
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


if __name__ == "__main__":
    main()
