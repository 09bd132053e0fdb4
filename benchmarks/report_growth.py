"""A report of 50,000 runs against the same report as an earlier commit writes it, measured in one run.

python benchmarks/report_growth.py [INSTANCES] [VERIFIERS] [COMMIT]

Prints how large both pages are, how much of that is drawings, the CPU time for writing them, and the time
until a browser has drawn the table and listens, the smallest of several, opened in turn. Needs a chromium,
and git for the earlier sources, which each write their page by their own `report_page.py`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
WRITING = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from report_page import write
start = time.process_time()
write(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
print(time.process_time() - start)
"""


def cpu_seconds_to_write(sources: Path, page: Path, instances: int, verifiers: int) -> float:
    """Write the page by the code in `sources`."""
    words = [
        sys.executable,
        "-c",
        WRITING,
        str(sources / "benchmarks"),
        str(page),
        str(instances),
        str(verifiers),
    ]
    environment = {**os.environ, "PYTHONPATH": str(sources / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def milliseconds_until_ready(browser: Browser, path: Path) -> float:
    page = browser.new_page()
    page.goto(path.as_uri())
    found = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    page.close()
    return float(found)


def extract(commit: str, folder: Path) -> None:
    """The sources of a commit."""
    packed = subprocess.run(
        ["git", "archive", commit, "src", "benchmarks"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no chromium on this machine.")
    instances, verifiers = (int(word) for word in (sys.argv[1:3] or ("10000", "5")))
    commit = sys.argv[3] if len(sys.argv) > 3 else "8df1248"
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        old = Path(scratch) / "old"
        extract(commit, old)
        pages = {commit: Path(scratch) / "old.html", "now": Path(scratch) / "now.html"}
        cpu = {
            name: cpu_seconds_to_write(sources, pages[name], instances, verifiers)
            for name, sources in ((commit, old), ("now", ROOT))
        }
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        ready: dict[str, list[float]] = {name: [] for name in pages}
        for _ in range(ROUNDS):
            for name, page in pages.items():
                ready[name].append(milliseconds_until_ready(browser, page))
        browser.close()
        print(f"{instances * verifiers:,} runs on {instances:,} instances")
        for name, page in pages.items():
            drawn = sum(map(len, re.findall(r"<svg.*?</svg>", page.read_text("utf-8"), re.DOTALL)))
            print(
                f"{name}: {page.stat().st_size / 1e6:.1f} MB, of which {drawn / 1e6:.2f} MB drawings; "
                f"{cpu[name]:.1f} CPU-seconds to write; ready after {min(ready[name]):.0f} ms"
            )
        print(f"ready in {min(ready['now']) / min(ready[commit]):.2f} of the time of {commit}")


if __name__ == "__main__":
    main()
