"""`dokimos-studies law-study`: the counts of the case studies, next to the paper's."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos_studies.command_line import on_stderr, positive
from dokimos_studies.laws.comparison_table import markdown
from dokimos_studies.laws.jobs import StudyPart, domains_with_laws, parts_of, run_jobs
from dokimos_studies.laws.paper import TRAININGS
from dokimos_studies.laws.runs import Skipped, StudyRecords

_log = logging.getLogger("dokimos")


@dataclass(frozen=True)
class StudyComparison:
    """The files of a comparison, how many runs it has, and how many were asked for."""

    page: Path
    data: Path
    runs: int
    asked: int
    skipped: tuple[Skipped, ...]
    is_interrupted: bool


def compare_studies(
    domains: Sequence[str] = (),
    *,
    out: str | Path = "law-study",
    seeds: int | None = None,
    budget: int | None = None,
    trainings: int = TRAININGS,
    progress: ProgressCallback[None] = ignore,
) -> StudyComparison:
    """Test the laws of the case studies, and compare with the paper's counts: `dokimos-studies law-study`.

    Without `domains`, all domains that have laws and whose data can be fetched. Writes `out`.json and
    `out`.md. `trainings` networks are trained, each with a different seed; both files are rewritten after
    each. If interrupted (Ctrl-C), the same call continues where it stopped.
    """
    base = Path(out)
    data, page = base.with_name(f"{base.name}.json"), base.with_name(f"{base.name}.md")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{page.parent}: this folder cannot be created: {problem.strerror}.") from None
    expect_writable(page, what="comparison", example="law-study")
    study = _Study(StudyRecords(data), page, progress)
    wanted = []
    for name in dict.fromkeys(domains or domains_with_laws()):
        with study.skipping(name, is_named=bool(domains)):
            wanted += parts_of(name, seeds=seeds, budget=budget, trainings=trainings)
    study.asked = sum(part.size for part in wanted)
    is_interrupted = False
    try:
        for part in wanted:
            with study.skipping(part.domain.name, is_named=bool(domains)):
                study.run(part)
    except KeyboardInterrupt:
        is_interrupted = True
    study.write_page()
    return StudyComparison(
        page, data, len(study.records.runs), study.asked, tuple(study.skipped.values()), is_interrupted
    )


class _Study:
    """A comparison in progress: the page is rewritten after each part, with the runs so far."""

    def __init__(self, records: StudyRecords, page: Path, progress: ProgressCallback[None]) -> None:
        self.records, self.skipped = records, dict[str, Skipped]()
        self.asked = 0
        self._page, self._progress, self._done = page, progress, 0

    def run(self, part: StudyPart) -> None:
        """Train and test, unless the domain is left out already."""
        name = part.domain.name
        if name in self.skipped:
            self._done += part.size
            return
        trained = f" (training {part.training})" if part.training else ""
        _log.info("%s%s: fetching data and training models, unless they are kept already", name, trained)
        after = self._done + part.size
        try:
            run_jobs(part.jobs(), self.records, self._step)
        finally:
            self._done = after
        self.write_page()

    def write_page(self) -> None:
        """Write the page with all runs so far."""
        shown = markdown(self.records.runs.values(), self.records.qualities, [*self.skipped.values()])
        write_whole(self._page, shown, make_folder=False)

    @contextmanager
    def skipping(self, name: str, *, is_named: bool) -> Iterator[None]:
        """Leave out a domain whose data cannot be fetched, unless it was asked for by name: then raise."""
        try:
            yield
        except InputError as problem:
            if is_named:
                raise
            _log.warning("%s", problem)
            self.skipped[name] = Skipped(name, str(problem))

    def _step(self, note: str) -> None:
        self._done += 1
        self._progress(ProgressUpdate("study", self._done, self.asked, note, None))


def main() -> int:
    """Test the laws, and write the page and its numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("domains", nargs="*", metavar="DOMAIN", help="default: all that have laws")
    parser.add_argument(
        "--out", type=Path, default=Path("law-study"), help="NAME for NAME.json and NAME.md"
    )
    parser.add_argument("--seeds", type=positive, help="default: 10; for the game, 3")
    parser.add_argument(
        "--budget", type=positive, help="tests of each law with each seed (5,000; game: 200)"
    )
    parser.add_argument(
        "--trainings", type=positive, default=TRAININGS, help="networks, each of another seed"
    )
    given = parser.parse_args()
    found = compare_studies(
        given.domains,
        out=given.out,
        seeds=given.seeds,
        budget=given.budget,
        trainings=given.trainings,
        progress=on_stderr,
    )
    print(
        f"{found.page}: {found.runs:,} runs of {found.asked:,} asked for; the numbers are in {found.data}"
    )
    return 130 if found.is_interrupted else 0
