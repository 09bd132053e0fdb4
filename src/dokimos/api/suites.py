"""Suites: read one, prove its labels again, find labels for instances that have none, release it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dokimos.core.errors import InputError
from dokimos.core.files import as_paths, home, write_whole
from dokimos.core.parallel import default_jobs, each
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.records import Table, record_of
from dokimos.suites.card import ReleaseSettings
from dokimos.suites.entry import exists
from dokimos.suites.folder import (
    Suite,
    find_suite,
    is_network,
    pair_suite,
    read_suite_file,
    unlabelled_on_purpose,
)
from dokimos.suites.vnnlib.text import parse_decimal as parse_decimal

if TYPE_CHECKING:
    from dokimos.constructions.generation import GeneratedInstance
    from dokimos.engine.runtimes.cross_check import CrossCheck as CrossCheck
    from dokimos.judging.checked_entry import CheckedEntry as CheckedEntry
    from dokimos.judging.judged_campaign import JudgedCampaigns
    from dokimos.judging.label_tasks import LabelOutcome as LabelOutcome
    from dokimos.laws.proving.saved_proofs import CheckedProof


# Look up a suite: the suite itself, its folder, or the name of a shipped suite


SuiteSource = str | Path | Suite
"""A suite: its folder, the name of a shipped one, or the suite itself."""


def read_suite(
    suite: SuiteSource, *, make: bool = True, progress: ProgressCallback[GeneratedInstance] = ignore
) -> Suite:
    """Read the suite in a folder, or the shipped suite of that name.

    A shipped suite is generated into the cache the first time, which takes a while. Raises InputError if
    there is no such suite, if it cannot be read, or if it is not in the cache yet and `make` is false.

    >>> suite = dokimos.read_suite("tiny")
    >>> [(entry.family, entry.read_truth().label.value) for entry in suite]
    [('exclusive-pairs', 'unsat'), ('exclusive-pairs', 'sat')]
    >>> len(suite), suite.entry(suite.entries[0].name).timeout_seconds
    (2, 60.0)
    """
    if isinstance(suite, Suite):
        return suite
    done = 0

    def generate(name: str) -> Suite:
        from dokimos.constructions.generation import shipped_suite

        def step(made: GeneratedInstance) -> None:
            nonlocal done
            done += 1
            progress(
                ProgressUpdate(f"making {name}", done, None, f"{made.name}: {made.label}, proven", made)
            )

        return shipped_suite(name, progress=step)

    return find_suite(str(suite), make=generate if make else None)


#: What can be checked in so many CPU seconds is checked in one process: starting others takes longer.
_ALONE_SECONDS = 2.0


@dataclass(frozen=True, repr=False)
class CheckedSuite(Brief, Table):
    """A suite, and what the checker says about each of its labels, in the order of its entries.

    `cross_checks` has, by name, the result of the comparison with runtimes for each proven label: a label
    that a runtime contradicts does not count as proven. It is empty with `core_only`. `unlabelled` names
    the instances that have no truth file and need none, because Dokimos did not make the suite, the suite
    has no labels at all, or they were left without one on purpose; they are not among the entries.
    """

    suite: Suite
    entries: tuple[CheckedEntry, ...]
    cross_checks: Mapping[str, CrossCheck] = field(default_factory=dict)
    unlabelled: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[CheckedEntry, ...]:
        """The entries whose label is not proven."""
        return tuple(entry for entry in self.entries if not entry.is_proven)

    @property
    def is_proven(self) -> bool:
        """Whether every label is proven."""
        return not self.failed

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each label."""
        return [
            record_of(one, "name", "family", "label", "kind", "is_proven", "problem")
            for one in self.entries
        ]


def check(
    suite: SuiteSource,
    *,
    jobs: int | None = None,
    core_only: bool = False,
    plugin_proofs: bool = False,
    progress: ProgressCallback[CheckedEntry] = ignore,
) -> CheckedSuite:
    """Prove every label of a suite again, from its files alone: `dokimos check`.

    The result says why a label is not proven. Each network is also cross-checked: what onnxruntime computes
    at a few points must agree with the exact value, up to rounding, or the label is refused. With
    `core_only`, only the trusted core is loaded, nothing is cross-checked, and a shipped suite must be in
    the cache already; with `plugin_proofs`, kinds of proof that other packages add are trusted as well. An
    instance without a label is not checked and does not count as a failure, unless Dokimos made the suite
    with labels and this instance's truth file is missing.

    >>> checked = dokimos.check("tiny")
    >>> checked.is_proven, len(checked.entries)
    (True, 2)
    >>> [(entry.label, entry.kind) for entry in checked.entries]
    [('unsat', 'linear'), ('sat', 'witness')]
    >>> [compared.runtime for compared in checked.cross_checks.values()]
    ['onnxruntime', 'onnxruntime']
    """
    from dokimos.judging.checked_entry import check_and_compare

    if core_only and plugin_proofs:
        raise InputError(
            "The trusted core has no plug-ins; give either `core_only` or `plugin_proofs`, not both."
        )
    found = read_suite(suite, make=not core_only)
    unlabelled = _unlabelled(found)
    labelled = [entry for entry in found.entries if entry.name not in unlabelled]
    count = len(labelled)
    processes = jobs or default_jobs()
    checked: dict[int, CheckedEntry] = {}
    cross_checks: dict[str, CrossCheck] = {}
    work = partial(check_and_compare, core_only=core_only, plugin_proofs=plugin_proofs)
    for index, ((one, compared), cost) in each(
        work, labelled, jobs=processes, alone_seconds=_ALONE_SECONDS
    ):
        checked[index] = one
        if compared is not None:
            cross_checks[one.name] = compared
        note = f"{one.name}: {one.label}, proven ({cost})" if one.is_proven else f"{one.name}: NOT PROVEN"
        progress(ProgressUpdate("checking", len(checked), count, note, one))
    entries = tuple(checked[index] for index in range(count))
    return CheckedSuite(found, entries, cross_checks, tuple(unlabelled))


def _unlabelled(suite: Suite) -> dict[str, None]:
    """The names of the instances that have no label and need none."""
    missing = dict.fromkeys(entry.name for entry in suite.entries if not exists(entry.truth_path))
    is_ours = read_suite_file(suite.folder) is not None
    if not is_ours or len(missing) == len(suite.entries):
        return missing
    return dict.fromkeys(name for name in missing if name in unlabelled_on_purpose(suite.folder))


def check_proofs(
    files: str | Path | Sequence[str | Path],
    *,
    model: str | Path | None = None,
    domain: str | Path | None = None,
    allow_code: bool = False,
) -> tuple[CheckedProof, ...]:
    """Check proofs of laws again, from the law's text, the domain and the model: `dokimos check`.

    `files` are proofs that `verify_law` wrote to its folder `out`. `model` and `domain` are the recorded
    ones unless given. A domain or model that is code is loaded only where `allow_code` is true, or it is
    given.

    >>> [checked] = dokimos.check_proofs("proofs/older.json", allow_code=True)
    >>> checked.problem, checked.over
    (None, 'the whole domain')
    """
    from dokimos.laws.proving.saved_proofs import check_saved

    none = "There is nothing to check; give a proof that `dokimos law verify` wrote."
    return tuple(
        check_saved(path, model=model, domain=domain, allow_code=allow_code)
        for path in as_paths(files, none=none)
    )


# `release`: a suite as a folder and an archive that can be published and cited


@dataclass(frozen=True, repr=False)
class ReleasedSuite(Brief):
    """A release: its folder, its archive, and what the checker says about each label in it.

    If a label is not proven, nothing was written, and `folder` and `archive` are None.
    """

    checked: tuple[CheckedEntry, ...]
    unlabelled: tuple[str, ...]
    folder: Path | None
    archive: Path | None

    @property
    def failed(self) -> tuple[CheckedEntry, ...]:
        """The labels that are not proven."""
        return tuple(entry for entry in self.checked if not entry.is_proven)


def release(
    suite: SuiteSource,
    *,
    out: str | Path,
    settings: ReleaseSettings | None = None,
    campaigns: Sequence[str | Path] = (),
    jobs: int | None = None,
    progress: ProgressCallback[CheckedEntry] = ignore,
) -> ReleasedSuite:
    """Make a suite ready to publish, as a folder and an archive next to it: `dokimos release`.

    `out` is the folder to write, new or empty. It will hold the suite in the layout of VNN-COMP with its
    proofs, a card (README.md), a table of labels, Croissant metadata, CITATION.cff and checksums; with
    `campaigns`, also their judged results as tables and a page. `settings` are its title, authors and the
    like. Every label is first proven again on the copied files.

    >>> about = dokimos.ReleaseSettings(authors=["A. Author"], published="2026-01-31")
    >>> released = dokimos.release("tiny", out="released", settings=about)
    >>> released.archive.name, len(released.checked), len(released.failed)
    ('released.tar.gz', 2, 0)
    >>> dokimos.check("released").is_proven
    True
    """
    from dokimos.suites.card import publication
    from dokimos.suites.release import RESULTS, copy_suite, describe, expect_release_room, write_archive

    source, folder = read_suite(suite), Path(out)
    about = publication(source, settings or ReleaseSettings())
    place = folder.absolute()
    archive = place.with_name(f"{place.name}.tar.gz")
    expect_release_room(source, folder, archive)
    judged = _judged(source, campaigns) if campaigns else None
    building = place.with_name(f".{place.name}.part")
    try:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(parents=True)
        copied = copy_suite(source, building)
        checked = check(copied, jobs=jobs, progress=progress)
        if checked.failed:
            told = tuple(
                replace(entry, problem=entry.problem.replace(str(building), str(source.folder)))
                for entry in checked.entries
            )
            return ReleasedSuite(told, checked.unlabelled, None, None)
        if judged is not None:
            _write_results(judged, source, campaigns, building / RESULTS, name=place.name)
        describe(copied, about)
        if folder.exists():
            folder.rmdir()
        building.replace(folder)
    except OSError as error:
        at = error.filename or folder
        raise InputError(f"{at} cannot be written ({error.strerror}); choose another `out`.") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    write_archive(folder, place.name, archive)
    return ReleasedSuite(
        checked.entries,
        checked.unlabelled,
        folder,
        folder.with_name(archive.name) if folder.name else archive,
    )


def _judged(suite: Suite, campaigns: Sequence[str | Path]) -> JudgedCampaigns:
    """The campaigns, judged by the suite. Raises InputError if they ran on other files."""
    from dokimos.api.results import judge

    judged = judge(campaigns, suites=[suite.folder])
    known = {entry.network_sha256 for entry in suite.entries}
    for (run_suite, instance), facts in judged.facts.items():
        if facts.network_sha256 not in known:
            raise InputError(
                f"The run on {run_suite}/{instance} used other files than {suite.folder} holds; "
                "release the suite that was run."
            )
    return judged


def _write_results(
    judged: JudgedCampaigns, suite: Suite, campaigns: Sequence[str | Path], folder: Path, *, name: str
) -> None:
    """Write the tables and the page of campaigns on this suite, which is called `name` in them.

    They contain no paths on the machine that ran them, or on this one.
    """
    from dokimos.api.results import report
    from dokimos.suites.release import files_in, without_folders

    folder.mkdir()
    report(judged, html=folder / "report.html", csv=folder / "tables")
    places = {suite.folder: name, **{Path(campaign): Path(campaign).name for campaign in campaigns}}
    places |= {home(): "DOKIMOS_HOME"} | ({Path.home(): "~"} if len(Path.home().parts) > 1 else {})
    for path in files_in(folder):
        text = path.read_text(encoding="utf-8")
        for where, called in places.items():
            for spelling in (where.resolve(), where.absolute(), where):
                if spelling.is_absolute():
                    text = text.replace(str(spelling), called)
        write_whole(path, without_folders(text))


# `label`: labels, with proofs, for instances that have none


@dataclass(frozen=True, repr=False)
class LabelledSuite(Brief, Table):
    """A suite, and what is known about each of its instances, in order."""

    suite: Suite
    outcomes: tuple[LabelOutcome, ...]

    @property
    def labelled(self) -> tuple[LabelOutcome, ...]:
        """The instances that have a label."""
        return tuple(outcome for outcome in self.outcomes if outcome.label)

    @property
    def open(self) -> tuple[LabelOutcome, ...]:
        """The instances that have no label."""
        return tuple(outcome for outcome in self.outcomes if not outcome.label)

    def to_records(self) -> list[dict[str, Any]]:
        """One record for each instance."""
        return [
            record_of(one, "name", "family", "label", "kind", "by", "margin", "reason")
            for one in self.outcomes
        ]


def label(
    suite: SuiteSource,
    property: str | Path | None = None,
    *,
    budget_seconds: float = 60.0,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: ProgressCallback[LabelOutcome] = ignore,
) -> LabelledSuite:
    """Find labels for the instances of a suite that have none: `dokimos label`.

    Takes a suite's folder, or a network and its `property`, which become a suite in the folder `out`
    (default: in Dokimos' home). Each instance is attacked, then every proof that applies is tried, within
    `budget_seconds`; a label is written to the suite's `truth/` once the checker and the cross-check have
    accepted its proof. Instances that stay open are recorded in `open/`; with a larger budget, their search
    goes on from there. So the same call continues where it stopped.

    >>> labelled = dokimos.label("tiny")
    >>> [(outcome.label, outcome.was_there) for outcome in labelled.outcomes]
    [('unsat', True), ('sat', True)]
    """
    from dokimos.judging.label_tasks import LabelTask, label_instance

    if not 0 < budget_seconds < 1e6:
        raise InputError("The budget of an instance must be a positive number of seconds below a million.")
    found = _suite(suite, property, out)
    tasks = [LabelTask(found.folder, entry, budget_seconds) for entry in found.entries]
    outcomes: dict[int, LabelOutcome] = {}
    for index, outcome in each(label_instance, tasks, jobs=jobs):
        outcomes[index] = outcome
        note = f"{outcome.name}: {outcome.label or 'open'}{' (as before)' if outcome.was_there else ''}"
        progress(ProgressUpdate("labelling", len(outcomes), len(tasks), note, outcome))
    return LabelledSuite(found, tuple(outcomes[index] for index in range(len(tasks))))


def _suite(suite: SuiteSource, property: str | Path | None, out: str | Path | None) -> Suite:
    if property is not None:
        return pair_suite(Path(str(suite)), Path(property), folder=None if out is None else Path(out))
    if out is not None:
        raise InputError(
            "`out` is only for a network and its property; the labels of a suite are "
            "written to its own folder."
        )
    if not isinstance(suite, Suite) and is_network(suite):
        raise InputError(
            f"{suite} is a network; give its property as well: dokimos label NETWORK PROPERTY."
        )
    return read_suite(suite)
