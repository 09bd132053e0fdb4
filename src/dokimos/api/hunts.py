"""`hunt` and `reduce`: wrong answers that are found without end, and made as small as they get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dokimos.api.campaigns import chosen_verifiers, read_campaign
from dokimos.api.suites import SuiteSource, read_suite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.core.files import read_whole
from dokimos.core.progress import ProgressCallback, ProgressUpdate, ignore
from dokimos.hunting.asking import Wrong
from dokimos.hunting.reduction import ReductionStep
from dokimos.hunting.rounds import Hunt, read_known
from dokimos.hunting.rounds import HuntSettings as HuntSettings
from dokimos.hunting.rounds import HuntState as HuntState
from dokimos.hunting.write_up import Reduced as Reduced
from dokimos.hunting.write_up import labelled, reduce_one
from dokimos.judging.bulk import locate
from dokimos.judging.verdicts import Verdict
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Instance, Truth
from dokimos.verifiers.adapters.built_in import Planted
from dokimos.verifiers.base import Verifier
from dokimos.verifiers.catalogue import installed
from dokimos.verifiers.placed import PlacedVerifier
from dokimos.verifiers.script_guard import why_not_isolated

_MOST_BYTES = 1 << 30
#: What a tool may use for one answer in a hunt, unless it is said otherwise.
_HUNTED = RunSettings(timeout_seconds=20.0, cpu_seconds=5.0)


def reduce(
    question: str | Path,
    property: str | Path | None = None,
    *,
    verifier: str | Verifier,
    out: str | Path,
    verdict: str | None = None,
    settings: RunSettings | None = None,
    progress: ProgressCallback[ReductionStep] = ignore,
) -> Reduced:
    """Make a wrong answer as small as it gets, each step proven: `dokimos reduce`.

    `question` is CAMPAIGN/INSTANCE, SUITE/INSTANCE, or a network, with its `property`; a label is proven
    again, or looked for if there is none. `verdict` is what must stay (default: whatever is wrong now).
    `out` gets the two files, a program that asks the tool alone, and the text of an issue. The same call
    continues where it stopped.

    >>> found = dokimos.reduce(
    ...     "tiny/exclusive-pairs-692a8f26b4", verifier="planted=always-unsat", out="small"
    ... )
    >>> found.cause.wrong, found.specimen.numbers <= 4
    ('wrong-unsat', True)
    """
    instance, truth = _question(question, property)
    tool = verifier if isinstance(verifier, Verifier) else installed(verifier)
    wanted = None if verdict is None else Wrong(_verdict(verdict))
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose another folder for `out`.")

    def step(so_far: ReductionStep) -> None:
        note = f"{so_far.stage}: {so_far.numbers} numbers, {so_far.nodes} nodes, {so_far.inputs} inputs"
        progress(ProgressUpdate("reducing", so_far.asked, None, note, so_far))

    return reduce_one(
        instance,
        truth,
        tool,
        folder=folder,
        settings=settings or RunSettings(timeout_seconds=60.0),
        wanted=wanted,
        seen=step,
    )


def _verdict(name: str) -> Verdict:
    wrong = [each.value for each in Verdict if each.is_wrong]
    if name not in wrong:
        raise InputError(f"`verdict` {name!r:.40} is not one of {', '.join(wrong)}.")
    return Verdict(name)


def _question(question: str | Path, property: str | Path | None) -> tuple[Instance, Truth]:
    """The instance with a label that has just been proven."""
    if property is not None:
        network, text = (read_whole(Path(path), most_bytes=_MOST_BYTES) for path in (question, property))
        name = Path(question).name.partition(".")[0]
        return labelled(Instance(name, network, text), None)
    place, _, name = str(question).rpartition("/")
    if not place or not name:
        raise InputError(
            f"{question}: is not CAMPAIGN/INSTANCE, SUITE/INSTANCE or a network with a property."
        )
    entry = _of_campaign(Path(place), name) if (Path(place) / "manifest.json").exists() else None
    entry = entry or read_suite(place).entry(name)
    return labelled(entry.read_instance(), entry.read_truth())


def _of_campaign(folder: Path, name: str) -> SuiteEntry:
    """The instance in the suite that a campaign ran."""
    manifest = read_campaign(folder).manifest
    for suite, place in locate(manifest, []).items():
        if any(one.name == name for one in manifest.instances if one.suite == suite):
            return read_suite(place).entry(name)
    raise InputError(f"{folder}: the campaign has no instance {name!r:.80}.")


def hunt(
    verifiers: str | Verifier | Sequence[str | Verifier],
    *,
    out: str | Path,
    hunting: HuntSettings | None = None,
    settings: RunSettings | None = None,
    networks: Sequence[SuiteSource] = (),
    known: Sequence[str | Path] = (),
    progress: ProgressCallback[HuntState] = ignore,
) -> HuntState:
    """Draw proven instances without end, and keep each distinct wrong answer, made small: `dokimos hunt`.

    `out` is the hunt's folder: a suite of what was found, and a folder for each finding; the same call
    continues. `hunting` says how long, and from which seed; `settings` what each answer may use. `networks`
    are suites whose networks are mutated; they are strangers' files. `known` are files with causes, one a
    line, or folders of hunts: what they have is not reported again.

    >>> hunting = dokimos.HuntSettings(rounds=1, draws=2)
    >>> found = dokimos.hunt("planted=always-unsat", out="found", hunting=hunting)
    >>> found.rounds, found.draws
    (1, 2)
    """
    tools = chosen_verifiers(verifiers)
    settings = settings or _HUNTED
    for tool in tools:
        if isinstance(tool, PlacedVerifier) and not isinstance(tool, Planted) and why_not_isolated():
            raise VerifierUnavailable(
                f"{tool.name} is a tool at a place, and cannot be isolated here ({why_not_isolated()}); "
                "a hunt runs it thousands of times without anyone looking, so it is refused."
            )
    given = tuple(entry for source in networks for entry in read_suite(source).entries)
    causes = frozenset(key for path in known for key in read_known(Path(path)))

    def seen(state: HuntState, note: str) -> None:
        said = f"{state.in_words}; {note}" if note else state.in_words
        progress(ProgressUpdate("hunting", state.draws, None, said, state))

    hunting = hunting or HuntSettings()
    found = Hunt(
        tools,
        out=Path(out),
        settings=settings,
        hunting=replace(hunting, known=hunting.known | causes),
        given=given,
        seen=seen,
    )
    return found.run()
