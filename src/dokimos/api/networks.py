"""Networks, their properties and instances: read, evaluated, replayed at a point, shown and profiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dokimos.api.suites import SuiteSource, read_suite
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import contained
from dokimos.core.parallel import default_jobs
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.core.readable import Brief
from dokimos.difficulty.components import EXTRAS as EXTRAS
from dokimos.difficulty.components import symbol as symbol
from dokimos.difficulty.profiles import MeasuredProfile as MeasuredProfile
from dokimos.difficulty.profiles import ProfileTask, measure_all
from dokimos.engine.runtimes.node_comparison import NodeComparison as NodeComparison
from dokimos.engine.runtimes.node_comparison import compare_nodes
from dokimos.engine.runtimes.sessions import NO_RUNTIME as NO_RUNTIME
from dokimos.judging.bulk import locate
from dokimos.judging.judged_campaign import judge_entry
from dokimos.judging.label_checks import LabelCheck, LabelChecker
from dokimos.judging.label_one import OpenForm
from dokimos.judging.label_tasks import read_open
from dokimos.judging.verdicts import Judgement
from dokimos.judging.verdicts import Replay as Replay
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.judging.written_points import exact_point, read_point
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics import exact
from dokimos.networks.semantics.exact import Enclosure
from dokimos.networks.summary import NetworkSummary, summarise
from dokimos.suites.entry import SuiteEntry, read_content, read_onnx_file, read_vnnlib_file
from dokimos.suites.facts import COMPONENTS as COMPONENTS
from dokimos.suites.facts import FOLDER, Profile, read_facts, read_truth_form
from dokimos.suites.facts import Measurement as Measurement
from dokimos.suites.facts import ProfileSettings as ProfileSettings
from dokimos.suites.folder import Suite, instance_name, is_network, pair_suite, row_files
from dokimos.suites.instance import Semantics as Semantics
from dokimos.suites.instance import Truth
from dokimos.suites.vnnlib.model import Box as Box
from dokimos.suites.vnnlib.model import Conjunction as Conjunction
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import box_in_words as box_in_words
from dokimos.suites.vnnlib.writer import unsafe_in_words as unsafe_in_words


def read_network(network: str | Path | bytes) -> Network:
    """Read a network from an ONNX file (plain or gzipped), or from the bytes of one.

    >>> network = dokimos.read_network(dokimos.read_suite("tiny").entries[0].network_path)
    >>> network.input_size, network.output_size
    (20, 3)
    """
    return read_onnx(network) if isinstance(network, bytes) else read_onnx_file(Path(network))


def read_property(property: str | Path | bytes) -> Property:
    """Read a property from a VNN-LIB file (plain or gzipped), or from the bytes of one.

    >>> asked = dokimos.read_property(dokimos.read_suite("tiny").entries[0].property_path)
    >>> len(asked.cases[0].box.lower)
    20
    """
    if isinstance(property, bytes):
        return read_vnnlib(property, file="the property")
    return read_vnnlib_file(Path(property))


def evaluate(
    network: str | Path | bytes | Network,
    point: Sequence[float | Fraction],
    *,
    relative_width: Fraction = Fraction(1, 2**40),
    max_bits: int = 4096,
) -> Enclosure:
    """Evaluate a network, or the one in a file, at a point (row-major), as a function of real numbers.

    Exact if all operators stay within the rationals; otherwise enclosed with `upper - lower <=
    relative_width * max(1, |value|)` at every output. Raises Undecided if `max_bits` of precision do not
    suffice (as when the network divides by zero).

    >>> outputs = dokimos.evaluate(dokimos.read_suite("tiny").entries[0].network_path, [0.25] * 20)
    >>> outputs.is_exact, [round(float(value), 4) for value in outputs.lower]
    (True, [0.0005, 0.3472, -0.0005])
    """
    read = network if isinstance(network, Network) else read_network(network)
    return exact.evaluate(read, exact_point(point), relative_width=relative_width, max_bits=max_bits)


# `replay`: what happens at one point, exactly and in onnxruntime


@dataclass(frozen=True)
class ReplayedPoint:
    """What happens at one point.

    `replay` has the exact outputs at the point as written. The runtime computes at the nearest point of the
    network's float type: `in_floats` is the replay there, None if a coordinate is outside the range of that
    type. `nodes` compares exact and computed values node by node, at that nearest point.
    """

    replay: Replay
    in_floats: Replay | None
    nodes: NodeComparison

    @property
    def violates(self) -> bool:
        """Whether the point, or the nearest one of the network's type, is in the box and violates the
        property, exactly or (at the latter) in the runtime."""
        near = self.in_floats
        if self.replay.violates_exactly:
            return True
        return near is not None and (near.violates_exactly or near.violates_in_onnxruntime)

    @property
    def parts(self) -> bool:
        """Whether the runtime and the exact values differ by more than rounding explains."""
        return self.nodes.first is not None


def replay(
    network: str | Path,
    property: str | Path,
    point: str | Path | Sequence[str] | Sequence[float | Fraction],
) -> ReplayedPoint:
    """Evaluate a network at one point, exactly and in onnxruntime: `dokimos replay`.

    `point` is a file with a witness in VNN-COMP's format, or with numbers; or a text with the numbers,
    separated by commas or blanks; or the numbers themselves. Nodes are compared one by one, in the order of
    the file: `nodes.first` is the first node whose difference rounding does not explain.

    >>> entry = dokimos.read_suite("tiny").entries[1]
    >>> witness = entry.read_truth().witness
    >>> replayed = dokimos.replay(entry.network_path, entry.property_path, witness)
    >>> replayed.replay.in_box, replayed.violates, replayed.nodes.first
    (True, True, None)
    """
    files = Path(network), Path(property)
    content, asked = (read_content(path) for path in files)
    question = Question(content, asked, str(files[0]), (str(files[0]), str(files[1])))
    written = read_point(point)
    found = replay_witness(question, written)
    if found.as_written is None:
        raise InputError(
            f"{files[0]}: the point has {len(written)} numbers, but the network takes "
            f"{question.network.input_size}; give one for each input, row by row."
        )
    near = found.in_floats
    nodes = (
        NodeComparison(remark=f"the point is outside the range of {found.as_written.float_type}")
        if near is None
        else compare_nodes(content, question.network, found.points[1])
    )
    return ReplayedPoint(found.as_written, near, nodes)


# `show`: everything that is known about one instance


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
            f"{given!r} names no instance; write SUITE/INSTANCE, or give a campaign in `campaigns`."
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


# `profile`: what makes instances hard


#: Fewer instances than this are measured in one process, which is faster than starting others.
WORTH_PROCESSES = 16


@dataclass(frozen=True, repr=False)
class ProfiledSuite(Brief):
    """The folder of the profiles, and the outcome for each instance, in the order of the suite."""

    folder: Path
    outcomes: tuple[MeasuredProfile, ...]

    @property
    def failed(self) -> tuple[MeasuredProfile, ...]:
        """The instances that could not be measured."""
        return tuple(outcome for outcome in self.outcomes if outcome.profile is None)


def profile(
    suite: SuiteSource,
    property: str | Path | None = None,
    *,
    out: str | Path | None = None,
    settings: ProfileSettings | None = None,
    more: bool = False,
    jobs: int | None = None,
    progress: ProgressCallback[MeasuredProfile] = ignore,
) -> ProfiledSuite:
    """Measure the difficulty profile of each instance: `dokimos profile`.

    Takes a suite, or a network and its `property`. Profiles are written to `out`, or to the suite's own
    folder of profiles. An existing profile of the same files and settings is kept. With `more`, they also
    have components that take seconds for each instance: margins bracketed by proof, the number of linear
    regions, the size of the smallest proof found, and the components that the paper left out.

    >>> profiled = dokimos.profile("tiny")
    >>> len(profiled.outcomes), profiled.failed
    (2, ())
    >>> sorted(profiled.outcomes[0].profile.components)
    ['gradient_dimension', 'ibp_gap', 'margin', 'regions', 'unstable']
    """
    chosen = ProfileSettings() if settings is None else settings
    tasks = [replace(task, more=more) for task in _tasks(suite, property, chosen, out)]
    processes = jobs or (default_jobs() if len(tasks) >= WORTH_PROCESSES else 1)
    outcomes: dict[str, MeasuredProfile] = {}
    for outcome in measure_all(tasks, jobs=processes):
        outcomes[outcome.name] = outcome
        note = f"{outcome.name}: {_in_words(outcome)}"
        progress(ProgressUpdate("profiling", len(outcomes), len(tasks), note, outcome))
    return ProfiledSuite(tasks[0].out, tuple(outcomes[task.name] for task in tasks))


def _tasks(
    suite: SuiteSource, property: str | Path | None, settings: ProfileSettings, out: str | Path | None
) -> list[ProfileTask]:
    if property is not None:
        network, asked = Path(str(suite)), Path(property)
        name = instance_name(network.name, asked.name)
        folder = pair_suite(network, asked).folder / FOLDER if out is None else Path(out)
        return [ProfileTask(name, network, asked, settings, folder)]
    if str(suite).endswith((".onnx", ".onnx.gz")):
        raise InputError(
            f"{suite} is a network; give its property as well: dokimos profile NETWORK PROPERTY."
        )
    found = read_suite(suite)
    folder = contained(found.folder, FOLDER) if out is None else Path(out)
    return [ProfileTask(e.name, e.network_path, e.property_path, settings, folder) for e in found.entries]


def _in_words(outcome: MeasuredProfile) -> str:
    if outcome.profile is None:
        return "FAILED"
    return "already measured" if outcome.was_there else "measured"
