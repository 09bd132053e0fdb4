"""`train_study`, `compare_studies`: the case studies that ship with the package."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.api.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.errors import InputError
from dokimos.core.files import expect_writable, write_whole
from dokimos.laws.studies.comparison_table import markdown
from dokimos.laws.studies.jobs import StudyJob, domains_with_laws, jobs_of, run_jobs
from dokimos.laws.studies.paper import TRAININGS
from dokimos.laws.studies.runs import Skipped, StudyRecords
from dokimos.laws.studies.shipped import find_study

_log = logging.getLogger("dokimos")


@dataclass(frozen=True)
class TrainedModel:
    """The file of a trained model, and how good it is, in words."""

    path: Path
    quality: str


@dataclass(frozen=True)
class StudyComparison:
    """The files of a comparison, how many runs it has and how many were asked for."""

    page: Path
    data: Path
    runs: int
    asked: int
    skipped: tuple[Skipped, ...]
    is_interrupted: bool


def train_study(study: str, out: str | Path, *, kind: str = "network", seed: int = 0) -> TrainedModel:
    """Train the network or the tree of a case study: `dokimos law train`.

    `out` ends in .onnx for a network, in .json for a tree. Its data is fetched from a registry, or made.

    >>> dokimos.train_study("mnist", "mnist.txt")
    Traceback (most recent call last):
    dokimos.core.errors.InputError: mnist.txt: a network is written to a file that ends in .onnx.
    """
    path = Path(out)
    found = find_study(study, kind)
    suffix = ".json" if kind == "tree" else ".onnx"
    if path.suffix != suffix:
        raise InputError(f"{path}: a {kind} is written to a file that ends in {suffix}.")
    expect_writable(path, what=kind, example=f"{study}{suffix}")
    content = found.train(seed)
    quality = found.quality(content)
    write_whole(path, content, make_folder=False)
    return TrainedModel(path, quality)


def compare_studies(
    domains: Sequence[str] = (),
    *,
    out: str | Path = "law-study",
    seeds: int | None = None,
    budget: int | None = None,
    trainings: int = TRAININGS,
    progress: ProgressCallback[None] = ignore,
) -> StudyComparison:
    """Test the laws of the case studies with several seeds, beside the paper's counts: `dokimos law study`.

    Without `domains`, all that have laws and whose data can be had. Writes `out`.json and `out`.md.
    `trainings` networks are trained, each with another seed.
    Interrupted (Ctrl-C), the same call goes on where it stopped.

    >>> dokimos.compare_studies(["mnits"])
    Traceback (most recent call last):
    dokimos.core.errors.InputError: There is no domain mnits with laws (did you mean mnist?); ...
    """
    base = Path(out)
    data, page = base.with_name(f"{base.name}.json"), base.with_name(f"{base.name}.md")
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"{page.parent}: cannot be made a folder: {problem.strerror}.") from None
    expect_writable(page, what="comparison", example="law-study")
    records = StudyRecords(data)
    jobs: list[StudyJob] = []
    skipped = []
    for name in dict.fromkeys(domains or domains_with_laws()):
        try:
            _log.info("%s: fetching data and training models where they are not kept yet", name)
            jobs += jobs_of(name, seeds=seeds, budget=budget, trainings=trainings)
        except InputError as problem:
            if domains:
                raise
            _log.warning("%s", problem)
            skipped.append(Skipped(name, str(problem)))
    done = 0

    def step(note: str) -> None:
        nonlocal done
        done += 1
        progress(ProgressUpdate("study", done, len(jobs), note, None))

    is_interrupted = False
    try:
        run_jobs(jobs, records, step)
    except KeyboardInterrupt:
        is_interrupted = True
    shown = markdown(records.runs.values(), records.qualities, skipped)
    write_whole(page, shown, make_folder=False)
    return StudyComparison(page, data, len(records.runs), len(jobs), tuple(skipped), is_interrupted)
