"""`label` and `release`: labels for instances that have none, and suites that can be published."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from dokimos.api.checking import SuiteSource, check, read_suite
from dokimos.api.results import judge, report
from dokimos.core.errors import InputError
from dokimos.core.files import expect_room, write_whole
from dokimos.core.parallel import each
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.core.records import Table, record_of
from dokimos.judging.checked_entry import CheckedEntry
from dokimos.judging.judged_campaign import JudgedCampaigns
from dokimos.judging.label_tasks import LabelOutcome, LabelTask, label_instance
from dokimos.suites.card import Publication, ReleaseSettings
from dokimos.suites.folder import Suite, benchmark_name, is_network, pair_suite, read_suite_file
from dokimos.suites.release import RESULTS, copy_suite, describe, files_in, without_folders, write_archive

# `release`: a suite as a folder and an archive that can be published and cited


#: The default licence of suites that Dokimos made, which is its own.
OWN_LICENCE = "Apache-2.0"
#: The authors of a shipped suite, as CITATION.cff names them.
OWN_AUTHORS = "The Dokimos maintainers"


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
    source, folder = read_suite(suite), Path(out)
    about = _publication(source, settings or ReleaseSettings())
    place = folder.absolute()
    archive = place.with_name(f"{place.name}.tar.gz")
    _expect_room(source, folder, archive)
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


def _expect_room(suite: Suite, folder: Path, archive: Path) -> None:
    """Raise InputError unless the folder and the archive can be made without losing anything."""
    expect_room(folder)
    if archive.exists():
        raise InputError(f"{archive} is already there; choose another `out`, or remove it first.")
    if folder.resolve().is_relative_to(suite.folder.resolve()):
        raise InputError(f"{folder} lies in the suite that is released; choose an `out` beside it.")


def _publication(suite: Suite, settings: ReleaseSettings) -> Publication:
    made = read_suite_file(suite.folder)
    title, licence, version, url = settings.title, settings.licence, settings.version, settings.url
    authors = settings.authors
    if licence is None and made is None:
        raise InputError(f"{suite.folder} was not made by Dokimos: give its `licence`, such as CC-BY-4.0.")
    if not authors and made is not None and made.suite:
        authors = (OWN_AUTHORS,)
    if not authors:
        raise InputError("A release names its authors; give them as `authors`.")
    day = settings.published or datetime.now(UTC).date().isoformat()
    try:
        date.fromisoformat(day)
    except ValueError:
        raise InputError(f"{day!r} is not a date; write it as 2026-01-31.") from None
    given = [text for text in (title, licence, version, *authors) if text is not None]
    if not all(text.strip() and text.isprintable() for text in given) or not url.isprintable():
        raise InputError("The title, licence, version, url and authors must be single lines of text.")
    if url and not re.match(r"https?://", url):
        raise InputError(f"`url` {url!r} is not an address; it must begin with https://.")
    name = title or (made and made.suite) or benchmark_name(suite.folder)
    return Publication(name, licence or OWN_LICENCE, tuple(authors), version, day, url)


def _judged(suite: Suite, campaigns: Sequence[str | Path]) -> JudgedCampaigns:
    """The campaigns, judged by the suite. Raises InputError if they ran on other files."""
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
    folder.mkdir()
    report(judged, html=folder / "report.html", csv=folder / "tables")
    places = {suite.folder: name, **{Path(campaign): Path(campaign).name for campaign in campaigns}}
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
    accepted its proof. Instances that stay open are recorded in `open/` and tried again only with a larger
    budget, so the same call continues where it stopped.

    >>> labelled = dokimos.label("tiny")
    >>> [(outcome.label, outcome.was_there) for outcome in labelled.outcomes]
    [('unsat', True), ('sat', True)]
    """
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
