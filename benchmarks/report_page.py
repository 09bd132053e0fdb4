"""How large a report is, and how soon a browser answers, against a report of one run.

python benchmarks/report_page.py [INSTANCES] [VERIFIERS]

Needs a chromium. The runs are made up: logs of 1,500 characters that share little, a profile for every
instance, timeouts that depend on it.
"""

from __future__ import annotations

import random
import shutil
import string
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from dokimos.campaigns.journal import RunRecord
from dokimos.difficulty.explain.explanation import explain
from dokimos.difficulty.explain.strata import Resampling
from dokimos.judging.verdicts import Judgement, Verdict
from dokimos.reports.campaign_report import CampaignInfo, ReportContext, tail_length
from dokimos.reports.findings import Findings
from dokimos.reports.page import write_page
from dokimos.suites.facts import COMPONENTS, Facts, Measurement, Profile, ProfileSettings
from dokimos.suites.instance import Answer, Label
from dokimos.verifiers.execution.limits import Limits, Termination

LIMITS = Limits(wall_seconds=60)
REPEATS = 5


def run(numbers: random.Random, verifier: int, instance: int) -> Judgement:
    late = numbers.random() < instance % 100 / 120
    record = RunRecord(
        job=f"{verifier}-{instance}",
        suite="made-up",
        instance=f"family-{instance % 9}-{instance:010x}",
        family=f"family-{instance % 9}",
        verifier=f"verifier-{verifier}",
        verifier_version="1",
        repeat=0,
        answer=Answer.TIMEOUT if late else Answer.UNSAT,
        witness=None,
        detail="",
        termination=Termination.WALL_LIMIT if late else Termination.EXITED,
        exit_code=None if late else 0,
        wall_seconds=60.0 if late else numbers.uniform(0.1, 59),
        cpu_seconds=1.0,
        peak_memory_bytes=numbers.randrange(10**9),
        log=f"runs/made-up/logs/{verifier}-{instance}.log",
        started_at="",
        limits=LIMITS,
    )
    return Judgement(
        record=record,
        label=Label.UNSAT,
        certificate="made-up",
        verdict=Verdict.UNDECIDED if late else Verdict.CORRECT,
        reason="timeout" if late else "the answer matches the label",
        replay=None,
        reproduce=f"dokimos run made-up --verifier {record.verifier} --only {record.instance} --out again",
    )


def facts(numbers: random.Random, name: str, position: int) -> Facts:
    measured = {c: Measurement(numbers.lognormvariate(0, 3) + position % 100) for c in COMPONENTS}
    profile = Profile(
        instance=name,
        network_sha256=f"n{position}",
        property_sha256="p",
        settings=ProfileSettings(),
        components=measured,
        extras={f"extra_{k}": Measurement(numbers.random()) for k in range(8)},
    )
    return Facts(f"n{position}", "p", position, {f"knob_{k}": numbers.random() for k in range(10)}, profile)


def write(path: Path, instances: int, verifiers: int) -> None:
    numbers = random.Random(0)
    runs = [run(numbers, v, i) for i in range(instances) for v in range(verifiers)]
    names = dict.fromkeys(j.record.instance for j in runs)
    known = {("made-up", name): facts(numbers, name, k) for k, name in enumerate(names)}
    size = tail_length(len(runs))
    tails = {j.record.job: "".join(numbers.choices(string.printable, k=size)) for j in runs}
    campaign = CampaignInfo(
        folder="runs/made-up",
        suites=("made-up",),
        verifiers=(),
        machine="",
        wall_seconds=LIMITS.wall_seconds,
        memory_bytes=LIMITS.memory_bytes,
        planned=len(runs),
        recorded=len(runs),
    )
    context = ReportContext(
        title="made up", campaigns=(campaign,), dokimos_version="", generated_at="today"
    )
    explanation = explain(runs, known, resampling=Resampling(100, 0))
    write_page(Findings(runs, known=known, log_tails=tails, explanation=explanation), context, path)


def milliseconds(browser: Browser, path: Path) -> tuple[float, float]:
    """Until the page has drawn its table and listens; and for sorting it by a verifier."""
    ready, sorted_ = [], []
    for _ in range(REPEATS):
        page = browser.new_page()
        page.goto(path.as_uri())
        timing = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        ready.append(float(page.evaluate(timing)))
        sort = (
            "() => { const button = document.querySelectorAll('#table th button')[3];"
            " const start = performance.now(); button.click(); document.body.offsetHeight;"
            " return performance.now() - start; }"
        )
        sorted_.append(float(page.evaluate(sort)))
        page.close()
    return min(ready), min(sorted_)


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no chromium on this machine.")
    sizes = [int(word) for word in sys.argv[1:3]] or [225, 5]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        large, small = Path(folder) / "large.html", Path(folder) / "small.html"
        write(large, *sizes)
        write(small, 1, 1)
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        ready, sorting = milliseconds(browser, large)
        least, _ = milliseconds(browser, small)
        browser.close()
        print(f"{sizes[0]} instances, {sizes[1]} verifiers: {large.stat().st_size / 1e6:.2f} MB")
        print(f"ready after {ready:.0f} ms, {ready / least:.1f} times what a page of one run takes")
        print(f"sorted after {sorting:.0f} ms")


if __name__ == "__main__":
    main()
