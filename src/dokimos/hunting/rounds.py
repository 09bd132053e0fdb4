"""A hunt: rounds of draws that are run as campaigns, wrong answers made small, and distinct causes kept.

A hunt's folder is a suite of what was found, one instance for each distinct cause, with `hunt.jsonl` (a
line for each round, from which the hunt continues), `findings/NAME` (the folder of each finding), and
`round` while one is under way. A round that was interrupted is done again.
"""

from __future__ import annotations

import json
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from dokimos import __version__
from dokimos.campaigns.campaign import alone_in, run_campaign
from dokimos.campaigns.job import remove_folder
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core import strict_json
from dokimos.core.errors import DokimosError, InputError, UnreadableFile
from dokimos.core.files import append_line, write_whole
from dokimos.core.readable import size_in_words
from dokimos.core.typed_values import convert
from dokimos.hunting.asking import Wrong
from dokimos.hunting.proven_draws import Bandit, DrawKind, Harvest, draw, kinds
from dokimos.hunting.reduction import tool_name
from dokimos.hunting.write_up import (
    FINDING,
    NETWORK,
    PROPERTY,
    TRUTH,
    FindingForm,
    NotWrong,
    Reduced,
    reduce_one,
    wrong_of,
)
from dokimos.judging.verdicts import Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, read_content, read_text
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Label, LabelledInstance
from dokimos.suites.suite_files import files_of, store_files, write_index
from dokimos.verifiers.base import NO_ATTACK, Verifier

#: Draws in a round: the first, the most, and how much CPU time later ones should take.
_FIRST_DRAWS, _DRAWS, _ROUND_SECONDS = 8, 24, 90.0
#: The CPU time that one reduction may take, and how many wrong answers of a kind are made small before they
#: count as repeats.
REDUCTION_SECONDS, MOST_ALIKE = 30.0, 2
#: Findings with more numbers than this are gone on with, so many times, each for twice as long.
_SMALL, _MOST_TRIES = 8, 4
#: A round is not begun with less disk than this.
_LEAST_DISK_BYTES = 1 << 30
_JOURNAL, _ROUND, _FINDINGS, _ASIDE = "hunt.jsonl", "round", "findings", "aside"


@dataclass(frozen=True, kw_only=True)
class HuntSettings:
    """How to hunt: see `dokimos.hunt`.

    `slow` lists answers that take so many times as long as those on siblings. `draws` is how many draws a
    round has at most (fewer where answers take long), `reduction_seconds` what one reduction may take; 0
    makes nothing small.
    """

    seed: int = 0
    budget_seconds: float | None = None
    rounds: int | None = None
    slow: float | None = None
    draws: int = _DRAWS
    reduction_seconds: float = REDUCTION_SECONDS
    known: frozenset[str] = frozenset()


@dataclass
class HuntState:
    """What a hunt has found so far."""

    rounds: int = 0
    draws: int = 0
    instances: int = 0
    told: int = 0
    wrong: int = 0
    crashes: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    findings: list[FindingForm] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    slow: list[str] = field(default_factory=list)
    #: How often each finding has been made smaller again.
    tries: dict[str, int] = field(default_factory=dict)

    @property
    def causes(self) -> dict[str, list[FindingForm]]:
        """The findings of each distinct cause, wrong answers before crashes, the smallest first."""
        groups: dict[str, list[FindingForm]] = {}
        for found in sorted(self.findings, key=lambda f: (f.wrong.startswith("crash"), f.numbers, f.name)):
            groups.setdefault(found.cause.key, []).append(found)
        return groups

    @property
    def in_words(self) -> str:
        """One line of progress."""
        causes = [key for key, own in self.causes.items() if not own[0].wrong.startswith("crash")]
        crashes = len(self.causes) - len(causes)
        return (
            f"instances drawn: {self.instances}, tests that bit: {self.told}, wrong answers: {self.wrong}, "
            f"distinct causes: {len(causes)}, distinct crashes: {crashes}, CPU-s: {self.cpu_seconds:.0f}"
        )


@dataclass(frozen=True)
class _Met:
    """One answer of one tool that is wrong, or a crash."""

    record: RunRecord
    labelled: LabelledInstance
    wrong: Wrong
    kind: DrawKind

    @property
    def alike(self) -> str:
        """Wrong answers with the same word here are likely to be one bug."""
        shape = "" if self.wrong.crash else self.kind.name
        return f"{tool_name(self.record.verifier)} {self.wrong.in_words} {shape}"


class _Round(TypedDict):
    """What a line of the journal has at least."""

    seconds: float
    cpu_seconds: float
    crashes: int
    alike: dict[str, int]
    kinds: dict[str, dict[str, float]]
    times: dict[str, list[float]]
    slow: list[str]


class Hunt:
    """One hunt in one folder. `given` are networks of the user to mutate."""

    def __init__(
        self,
        verifiers: Sequence[Verifier],
        *,
        out: Path,
        settings: RunSettings,
        hunting: HuntSettings,
        given: Sequence[SuiteEntry] = (),
        seen: Callable[[HuntState, str], None] = lambda _state, _note: None,
    ) -> None:
        self._verifiers = {each.name: each for each in verifiers}
        self._out, self._settings, self._hunting, self._given = out, settings, hunting, given
        self._seen = seen
        self._bandit = Bandit(kinds(given))
        self.state = HuntState()
        self._siblings: dict[str, list[float]] = {}

    def run(self) -> HuntState:
        """Rounds until the budget is used up; the same call continues."""
        with alone_in(self._out):
            self._read()
            while not self._is_over():
                begun, before = time.monotonic(), _cpu_seconds()
                line = self._round()
                line["seconds"] = time.monotonic() - begun
                line["cpu_seconds"] = _cpu_seconds() - before + line.pop("tools")
                append_line(self._out / _JOURNAL, json.dumps(line), what="the journal of the hunt")
                self._count(line)
                self._seen(self.state, "")
            self._write_suite()
        return self.state

    def _is_over(self) -> bool:
        limit, rounds = self._hunting.budget_seconds, self._hunting.rounds
        return (limit is not None and self.state.seconds >= limit) or (
            rounds is not None and self.state.rounds >= rounds
        )

    # The journal

    def _read(self) -> None:
        path = self._out / _JOURNAL
        if path.exists():
            lines = read_content(path).splitlines(keepends=True)
            for number, line in enumerate(lines):
                try:
                    document = strict_json.parse(line, file=f"line {number + 1}")
                    convert(document, _Round, file=f"line {number + 1}", what="a round of a hunt")
                    self._count(document)
                except (UnreadableFile, TypeError) as error:
                    if number == len(lines) - 1 and not line.endswith(b"\n"):
                        write_whole(path, b"".join(lines[:-1]), what="the journal of the hunt")
                        break
                    raise UnreadableFile(path, f"no round of a hunt: {error}") from error
        self.state.findings += map(_read_finding, _forms(self._out))

    def _count(self, line: Mapping[str, Any]) -> None:
        state = self.state
        state.rounds += 1
        state.seconds += float(line["seconds"])
        state.cpu_seconds += float(line["cpu_seconds"])
        state.crashes += int(line["crashes"])
        for word, count in line["alike"].items():
            state.seen[word] = state.seen.get(word, 0) + int(count)
        for name, values in line["kinds"].items():
            tally = Harvest(**values)
            self._bandit.tally(name).add(tally)
            state.draws += tally.draws
            state.instances += tally.instances
            state.told += tally.told
            state.wrong += tally.wrong
        for word, seconds in line["times"].items():
            self._siblings.setdefault(word, []).extend(seconds)
        state.slow += line["slow"]
        for name in line.get("tried", ()):
            state.tries[name] = state.tries.get(name, 0) + 1

    # One round

    @property
    def _draws(self) -> int:
        """How many draws: as many as take about as long as a round should, by what they took so far."""
        state = self.state
        if not state.draws:
            return min(_FIRST_DRAWS, self._hunting.draws)
        fitting = _ROUND_SECONDS * state.draws / max(1.0, state.cpu_seconds)
        return min(self._hunting.draws, max(4, round(fitting)))

    def _round(self) -> dict[str, Any]:
        _expect_free_disk(self._out)
        folder = self._out / _ROUND
        remove_folder(folder)
        rng = np.random.default_rng([self._hunting.seed, self.state.rounds])
        tallies: dict[str, Harvest] = {}
        drawn: dict[str, tuple[LabelledInstance, DrawKind]] = {}
        for number in range(self._draws):
            kind = self._bandit.choose(rng)
            begun = time.process_time()
            own = draw(
                kind, np.random.default_rng([self._hunting.seed, self.state.rounds, number]), self._given
            )
            tally = tallies.setdefault(kind.name, Harvest())
            new = {one.instance.name: (one, kind) for one in own if one.instance.name not in drawn}
            drawn |= new
            tally.add(Harvest(1, len(new), cpu_seconds=time.process_time() - begun))
        line: dict[str, Any] = {"round": self.state.rounds, "alike": {}, "crashes": 0, "tools": 0.0}
        line |= {"times": {}, "slow": [], "tried": []}
        if drawn:
            met = list(self._asked(folder, drawn, tallies, line))
            self._made_small(met, tallies, line)
        if self._hunting.reduction_seconds:
            self._made_smaller(line)
        remove_folder(folder)
        line["kinds"] = {name: asdict(tally) for name, tally in tallies.items()}
        return line

    def _asked(
        self,
        folder: Path,
        drawn: Mapping[str, tuple[LabelledInstance, DrawKind]],
        tallies: Mapping[str, Harvest],
        line: dict[str, Any],
    ) -> Iterator[_Met]:
        """Ask all tools about all instances, with and without their attack, and see who is wrong."""
        suite = folder / "suite"
        for one, _ in drawn.values():
            store_files(suite, files_of(one))
        families = [(name, kind.family) for name, (_, kind) in drawn.items()]
        write_index(suite, families, 60.0, recipe={"hunt": self._hunting.seed}, version=__version__)
        warm = [each.warm() or each for each in self._verifiers.values()]
        quiet = {each.name: each.without_attack() for each in warm}
        campaign = run_campaign(
            [CampaignSuite(suite, read_suite(suite).entries, name="round")],
            warm,
            out=folder / "campaign",
            settings=self._settings,
            following={name: each for name, each in quiet.items() if each is not None},
            progress=lambda step: self._seen(self.state, f"{step.record.verifier} {step.record.instance}"),
        )
        told = set()
        for record in campaign.records:
            labelled, kind = drawn[record.instance]
            assert labelled.truth is not None
            tally = tallies[kind.name]
            tally.cpu_seconds += record.cpu_seconds
            line["tools"] += record.cpu_seconds
            if _tells(record, labelled) and (tool_name(record.verifier), record.instance) not in told:
                told.add((tool_name(record.verifier), record.instance))
                tally.told += 1
            self._pace(record, labelled, kind, line)
            wrong = wrong_of(record, labelled)
            if wrong is not None and not wrong.is_rounding:
                line["crashes"] += bool(wrong.crash)
                tally.wrong += not wrong.crash
                yield _Met(record, labelled, wrong, kind)

    def _pace(
        self, record: RunRecord, labelled: LabelledInstance, kind: DrawKind, line: dict[str, Any]
    ) -> None:
        """Keep how long a decision took, and what is far slower than its siblings of about its size."""
        if self._hunting.slow is None or not record.answer.decides:
            return
        size = len(labelled.instance.network_file).bit_length()
        word = f"{record.verifier} {kind.name} {size}"
        before = self._siblings.get(word, [])
        if len(before) >= 5 and record.cpu_seconds > max(
            0.5, self._hunting.slow * float(np.median(before))
        ):
            store_files(self._out / "slow", files_of(labelled))
            median = float(np.median(before))
            line["slow"].append(
                f"{record.verifier} {record.instance}: {record.cpu_seconds:.2f} CPU-s, others {median:.2g}"
            )
        line["times"].setdefault(word, []).append(record.cpu_seconds)

    def _made_small(
        self, met: Sequence[_Met], tallies: Mapping[str, Harvest], line: dict[str, Any]
    ) -> None:
        """Make what is new small; what looks like something seen often counts as a repeat."""
        order = sorted(met, key=lambda m: (bool(m.wrong.crash), m.record.cpu_seconds, m.record.job))
        for one in order:
            often = self.state.seen.get(one.alike, 0) + line["alike"].get(one.alike, 0)
            line["alike"][one.alike] = line["alike"].get(one.alike, 0) + 1
            most = 1 if one.wrong.crash else MOST_ALIKE
            if often >= most and (often & (often - 1)):  # later only the 4th, 8th, 16th, … like it
                continue
            if self._hunting.reduction_seconds:
                new, cpu_seconds = self._finding(one)
                tallies[one.kind.name].new += new
                line["tools"] += cpu_seconds

    def _made_smaller(self, line: dict[str, Any]) -> None:
        """Go on with the finding that was gone on with least, of those that are still large."""
        large = [
            own[0]
            for own in self.state.causes.values()
            if own[0].numbers > _SMALL and not own[0].wrong.startswith("crash")
        ]
        tries = [(self.state.tries.get(form.name, 0), form.numbers, form.name) for form in large]
        if not tries or min(tries)[0] >= _MOST_TRIES:
            return
        tried, _, name = min(tries)
        form = next(one for one in large if one.name == name)
        line["tried"].append(name)
        self._write_suite()
        entry = read_suite(self._out).entry(name)
        labelled = LabelledInstance(entry.read_instance(), entry.read_truth())
        seconds = self._hunting.reduction_seconds * 2**tried
        place = self._out / _ASIDE / f"again-{name}"
        reduced = self._reduced(
            labelled, form.cause.called, Wrong(Verdict(form.wrong)), place, seconds, earlier=form
        )
        if reduced is not None:
            line["tools"] += reduced.cpu_seconds - form.cpu_seconds
            if reduced.form.numbers < form.numbers:
                self._keep(reduced.form, place)
                self.state.findings.remove(form)
                remove_folder(self._out / _FINDINGS / f"{form.tool}-{name}")
        remove_folder(place)

    def _finding(self, one: _Met) -> tuple[bool, float]:
        """Reduce one wrong answer; whether its cause is new, and the CPU time of the tool."""
        called = one.record.verifier
        name = one.labelled.instance.name + ("-quiet" if NO_ATTACK in called else "")
        place = self._out / _ASIDE / f"{tool_name(called)}-{name}"
        origin = f"{one.kind.name}, round {self.state.rounds}"
        seconds = self._hunting.reduction_seconds / (4 if one.wrong.crash else 1)
        reduced = self._reduced(one.labelled, called, one.wrong, place, seconds, origin=origin)
        if reduced is None:
            return False, 0.0
        key = reduced.form.cause.key
        is_new = key not in self.state.causes and key not in self._hunting.known
        if key not in self._hunting.known:
            self._keep(reduced.form, place)
        remove_folder(place)
        if is_new:
            self._write_suite()
            self._seen(self.state, f"new: {key}")
        return is_new, reduced.cpu_seconds

    def _reduced(
        self,
        labelled: LabelledInstance,
        called: str,
        wrong: Wrong,
        place: Path,
        seconds: float,
        *,
        origin: str = "",
        earlier: FindingForm | None = None,
    ) -> Reduced | None:
        """The wrong answer of a verifier that is called so, made small in `place`; None if it is not."""
        assert labelled.truth is not None
        name, tool = labelled.instance.name, tool_name(called)
        verifier = self._verifiers[next(n for n in self._verifiers if tool_name(n) == tool)]
        if NO_ATTACK in called:
            verifier = verifier.without_attack() or verifier
        try:
            reduced = reduce_one(
                labelled.instance,
                labelled.truth,
                verifier,
                folder=place,
                settings=self._settings,
                wanted=wrong,
                origin=origin,
                earlier=earlier,
                most_seconds=seconds,
                seen=lambda step: self._seen(self.state, f"reducing {name}: {step.numbers} numbers"),
            )
        except DokimosError as error:
            self._seen(self.state, f"not confirmed: {error}")
            if earlier is None and not isinstance(error, NotWrong):  # wrong, not made small: the files stay
                store_files(self._out / "unreduced", files_of(labelled))
            remove_folder(place)
            return None
        for path in place.glob("asked*"):
            remove_folder(path)
        return reduced

    def _keep(self, form: FindingForm, place: Path) -> None:
        """Make the folder of a reduction that of a finding, unless there is the same one."""
        (self._out / _FINDINGS).mkdir(exist_ok=True)
        final = self._out / _FINDINGS / f"{form.tool}-{form.name}"
        if not final.exists():
            place.replace(final)
            self.state.findings.append(form)

    def _write_suite(self) -> None:
        """The suite of what was found: the smallest instance of each cause that has a label."""
        listed = []
        for own in self.state.causes.values():
            first = own[0]
            place = self._out / _FINDINGS / f"{first.tool}-{first.name}"
            if not (place / TRUTH).exists():
                continue
            for name, folder in ((NETWORK, "onnx"), (PROPERTY, "vnnlib"), (TRUTH, "truth")):
                (self._out / folder).mkdir(exist_ok=True)
                target = self._out / folder / f"{first.name}{Path(name).suffix}"
                write_whole(target, (place / name).read_bytes(), what="a file of the suite")
            listed.append((first.name, "found"))
        chosen = list(dict.fromkeys(listed))
        if chosen:
            write_index(self._out, chosen, 60.0, recipe={"hunt": self._hunting.seed}, version=__version__)


def read_known(path: Path) -> list[str]:
    """Causes that are known: those in the folder of a hunt, or one a line in a file."""
    if path.is_dir():
        return [_read_finding(form).cause.key for form in _forms(path)]
    lines = read_text(path).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _forms(folder: Path) -> list[Path]:
    return sorted((folder / _FINDINGS).glob(f"*/{FINDING}"))


def _read_finding(path: Path) -> FindingForm:
    return strict_json.read(read_content(path), FindingForm, file=path, what="a finding")


def _tells(record: RunRecord, labelled: LabelledInstance) -> bool:
    """Whether an answer tested the tool's proofs: a counterexample that it did not find."""
    assert labelled.truth is not None
    reached = record.answer not in (Answer.UNSUPPORTED, Answer.ERROR, Answer.MEMOUT)
    return labelled.truth.label is Label.SAT and reached and record.answer is not Answer.SAT


def _expect_free_disk(folder: Path) -> None:
    """Raise InputError where the disk is nearly full: a hunt runs for long, and nobody looks."""
    free = shutil.disk_usage(folder).free
    if free < _LEAST_DISK_BYTES:
        raise InputError(
            f"The disk with {folder} has only {size_in_words(free)} left; make room and run it again."
        )


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
