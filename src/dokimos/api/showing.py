"""`show`: everything that is known about one instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.api.suite_lookup import read_suite
from dokimos.core.brief import Brief
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.judging.label_checks import LabelCheck, LabelChecker
from dokimos.judging.one_instance import judge_entry
from dokimos.judging.suite_places import locate
from dokimos.judging.verdicts import Judgement
from dokimos.labelling.tasks import OpenForm, read_open
from dokimos.networks.summary import NetworkSummary, summarise
from dokimos.properties.model import Property
from dokimos.properties.reading import read_vnnlib
from dokimos.suites.entry import SuiteEntry, read_content
from dokimos.suites.facts import read_facts, read_truth_form
from dokimos.suites.folder import Suite, row_files
from dokimos.suites.instance import Truth
from dokimos.suites.pairs import is_network, pair_suite
from dokimos.suites.profile_file import Profile


@dataclass(frozen=True, repr=False)
class ShownInstance(Brief):
    """What is known about one instance of a suite.

    `networks` and `property_path` are the files that its row names: several networks, or products of
    variables, are lowered to the one network that `network` is about (`is_lowered`). `asked` is None if the
    property cannot be read, and then `property_problem` says why. `truth` is its label, and `label_check`
    what the checker says about it; without a label, `kept_open` is what `dokimos label` found. `profile` is
    None if none was measured on these files. `judgements` are the judged answers in the given campaigns.
    """

    suite: Suite
    entry: SuiteEntry
    networks: Mapping[str, Path]
    property_path: Path
    network: NetworkSummary
    asked: Property | None
    property_problem: str
    truth: Truth | None
    label_check: LabelCheck | None
    kept_open: OpenForm | None
    profile: Profile | None
    judgements: tuple[Judgement, ...]

    @property
    def is_lowered(self) -> bool:
        """Whether verifiers get a different network from the one that the row names."""
        return self.entry.network_path not in self.networks.values()


def show(
    instance: str | Path,
    property: str | Path | None = None,
    *,
    campaigns: Sequence[str | Path] = (),
) -> ShownInstance:
    """Collect everything that is known about one instance: `dokimos show`.

    `instance` is SUITE/NAME, where SUITE is a folder or a shipped suite; or its name in one of the
    `campaigns`; or SUITE, with NAME in place of `property`; or a network, with its `property`. The label is
    proven again from the files, unless that was done before for the same files. `campaigns` are folders of
    campaigns: their answers on the same files, under any name, are judged.

    >>> name = dokimos.read_suite("tiny").entries[0].name
    >>> shown = dokimos.show(f"tiny/{name}", campaigns=["campaign"])
    >>> shown.network.input_shape, shown.truth.label.value, shown.label_check.is_proven
    ((1, 20), 'unsat', True)
    >>> [(j.record.verifier, j.verdict.value) for j in shown.judgements]
    [('reference', 'correct')]
    """
    folders = [Path(folder) for folder in campaigns]
    suite, entry = _find(str(instance), property, folders)
    checker = LabelChecker()
    truth = entry.read_truth()
    networks, place = row_files(suite.folder, entry.name)
    asked, problem = _read_property(place)
    return ShownInstance(
        suite=suite,
        entry=entry,
        networks=networks,
        property_path=place,
        network=summarise(read_content(entry.network_path), name=str(entry.network_path)),
        asked=asked,
        property_problem=problem,
        truth=truth,
        label_check=None if truth is None else checker(entry),
        kept_open=read_open(suite.folder, entry) if truth is None else None,
        profile=_profile(suite, entry),
        judgements=judge_entry(entry, folders, checker),
    )


def _find(given: str, property: str | Path | None, campaigns: Sequence[Path]) -> tuple[Suite, SuiteEntry]:
    if property is not None and not is_network(given):
        if str(property).removesuffix(".gz").endswith(".vnnlib"):
            raise InputError(f"{given} is not a network (.onnx); write NETWORK PROPERTY or SUITE INSTANCE.")
        return _find(f"{given.rstrip('/')}/{property}", None, campaigns)
    if property is not None:
        suite = pair_suite(Path(given), Path(property))
        return suite, suite.entries[0]
    if is_network(given):
        raise InputError(f"{given} is a network; give its property as well: dokimos show NETWORK PROPERTY.")
    place, _, name = given.rstrip("/").rpartition("/")
    if found := _in_campaigns(place, name, campaigns):
        return found
    if not place:
        raise InputError(
            f"{given!r} does not name a suite; write SUITE/INSTANCE, or give a campaign with --campaign."
        )
    suite = read_suite(place)
    return suite, suite.entry(name)


def _in_campaigns(suite: str, name: str, campaigns: Sequence[Path]) -> tuple[Suite, SuiteEntry] | None:
    """The instance that a campaign ran under this name, with or without the name of its suite."""
    from dokimos.campaigns.campaign import read_campaign

    for folder in campaigns:
        manifest = read_campaign(folder).manifest
        places = {i.suite for i in manifest.instances if i.name == name and suite in ("", i.suite)}
        if len(places) > 1:
            raise InputError(
                f"{name} is in several suites ({', '.join(sorted(places))}); write SUITE/{name}."
            )
        for own in places:
            found = read_suite(locate(manifest, ())[own])
            return found, found.entry(name)
    return None


def _read_property(place: Path) -> tuple[Property | None, str]:
    try:
        return read_vnnlib(read_content(place), file=str(place)), ""
    except UnreadableFile as error:
        return None, str(error)


def _profile(suite: Suite, entry: SuiteEntry) -> Profile | None:
    return read_facts(
        suite,
        suite.entries.index(entry),
        read_truth_form(entry),
        network_sha256=entry.network_sha256,
        property_sha256=entry.property_sha256,
    ).profile
