"""Attacks run on the instances of a suite: which counterexamples they find, and after how much time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dokimos.core.errors import InputError, UnsupportedOp
from dokimos.core.files import append_line, read_whole
from dokimos.core.parallel import each
from dokimos.core.strict_json import read, write
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import exact_decimal

JOURNAL = "attacks.jsonl"
#: The times, in CPU-seconds, at which a curve of survivors is read off.
CURVE_SECONDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 300.0, 600.0, 3600.0)


@dataclass(frozen=True)
class AttackTask:
    """One attack on one instance."""

    entry: SuiteEntry
    attack: str
    cpu_seconds: float
    seed: int


@dataclass(frozen=True)
class AttackOutcome:
    """The outcome of one attack on one instance.

    `witness` is a counterexample that was replayed exactly, in decimals, and `seconds` the CPU time until
    it was found; without a witness, `seconds` is all the time used. `reason` says why the attack does not
    apply. `label` is what the suite says, empty if it says nothing.
    """

    instance: str
    family: str
    label: str
    attack: str
    seconds: float
    least_margin: float | None = None
    witness: tuple[str, ...] | None = None
    reason: str = ""

    @property
    def is_found(self) -> bool:
        """Whether there is a counterexample."""
        return self.witness is not None


@dataclass(frozen=True)
class JournalLine:
    """An outcome as it is stored, with everything it depends on."""

    network_sha256: str
    property_sha256: str
    budget_seconds: float
    seed: int
    outcome: AttackOutcome


def attack_instance(task: AttackTask) -> AttackOutcome:
    """Run the attack until it finds a counterexample or its time is up."""
    from dokimos.engine import differentiable  # noqa: F401 - torch is not part of the time

    entry = task.entry
    truth = entry.read_truth()
    label = "" if truth is None else truth.label.value
    instance = entry.read_instance()
    budget = Budget(cpu_seconds=task.cpu_seconds, until_found=True)
    start = time.process_time()
    try:
        network = read_onnx(instance.network_file, name=str(entry.network_path))
        question = read_vnnlib(instance.property_file, file=str(entry.property_path))
        found = ATTACKS[task.attack](network, question, seed=task.seed, budget=budget)
    except (InputError, UnsupportedOp) as error:
        return AttackOutcome(
            entry.name, entry.family, label, task.attack, time.process_time() - start, reason=str(error)
        )
    return AttackOutcome(
        entry.name,
        entry.family,
        label,
        task.attack,
        time.process_time() - start,
        found.least_margin if abs(found.least_margin) < 1e300 else None,
        None if found.witness is None else tuple(exact_decimal(x) for x in found.witness),
    )


def attack_all(
    tasks: Sequence[AttackTask],
    *,
    folder: Path | None = None,
    jobs: int = 1,
    progress: Callable[[int, AttackOutcome], None] = lambda _done, _outcome: None,
) -> tuple[AttackOutcome, ...]:
    """The outcomes in the order of the tasks.

    Finished outcomes are kept in `folder`, if one is given: the same call continues where it stopped.
    """
    kept = {} if folder is None else _read_journal(folder / JOURNAL)
    outcomes = {k: kept[key] for k, task in enumerate(tasks) if (key := _key(task)) in kept}
    for outcome in outcomes.values():
        progress(len(outcomes), outcome)
    left = [k for k in range(len(tasks)) if k not in outcomes]
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be created ({error.strerror}); choose another `out`."
            ) from None
    for index, outcome in each(attack_instance, [tasks[k] for k in left], jobs=jobs):
        task = tasks[left[index]]
        outcomes[left[index]] = outcome
        if folder is not None:
            network, question, _, budget, seed = _key(task)
            line = JournalLine(network, question, budget, seed, outcome)
            append_line(folder / JOURNAL, write(line).replace("\n", " "), what="the journal of attacks")
        progress(len(outcomes), outcome)
    return tuple(outcomes[k] for k in range(len(tasks)))


_Key = tuple[str, str, str, float, int]


def _key(task: AttackTask) -> _Key:
    entry = task.entry
    return entry.network_sha256, entry.property_sha256, task.attack, task.cpu_seconds, task.seed


def _read_journal(path: Path) -> dict[_Key, AttackOutcome]:
    """The kept outcomes; a truncated last line is ignored."""
    if not path.exists():
        return {}
    found: dict[_Key, AttackOutcome] = {}
    lines = read_whole(path).decode("utf-8", errors="replace").splitlines()
    for number, text in enumerate(lines, start=1):
        try:
            line = read(text, JournalLine, file=f"{path}:{number}", what="a line of a journal of attacks")
        except InputError:
            if number == len(lines):
                break
            raise
        key = (line.network_sha256, line.property_sha256, line.outcome.attack)
        found[*key, line.budget_seconds, line.seed] = line.outcome
    return found


@dataclass(frozen=True)
class AttackRate:
    """How many counterexamples of a family one attack found, and how many instances it applies to."""

    family: str
    attack: str
    found: int
    tried: int
    median_seconds: float | None


def rates(outcomes: Iterable[AttackOutcome]) -> tuple[AttackRate, ...]:
    """The rate of each attack on each family, instances that are proven `unsat` left out."""
    groups: dict[tuple[str, str], list[AttackOutcome]] = {}
    for one in outcomes:
        if one.label != Label.UNSAT.value or one.is_found:
            groups.setdefault((one.family, one.attack), []).append(one)
    rows = []
    for (family, attack), members in groups.items():
        times = sorted(one.seconds for one in members if one.is_found)
        tried = sum(not one.reason for one in members)
        rows.append(
            AttackRate(family, attack, len(times), tried, times[len(times) // 2] if times else None)
        )
    return tuple(rows)


def hidden_instances(outcomes: Iterable[AttackOutcome]) -> dict[str, bool]:
    """For each instance that is not proven `unsat`: whether no attack found a counterexample."""
    hidden: dict[str, bool] = {}
    for one in outcomes:
        if one.label != Label.UNSAT.value or one.is_found:
            hidden[one.instance] = hidden.get(one.instance, True) and not one.is_found
    return hidden


@dataclass(frozen=True)
class SurvivorCurve:
    """How many counterexamples an attack (or all attacks, `any`) has not found after a given time each."""

    attack: str
    total: int
    survivors: Mapping[float, int]


def survivor_curves(
    outcomes: Sequence[AttackOutcome], *, budget_seconds: float
) -> tuple[SurvivorCurve, ...]:
    """The curve of each attack up to the budget, then that of all attacks together, named `any`."""
    times = [t for t in CURVE_SECONDS if t < budget_seconds] + [budget_seconds]
    wanted = [one for one in outcomes if one.label != Label.UNSAT.value or one.is_found]
    names = [*dict.fromkeys(one.attack for one in wanted), "any"]
    curves = []
    for name in names:
        first: dict[str, float] = {}
        for one in wanted:
            if name in (one.attack, "any"):
                seconds = one.seconds if one.is_found else float("inf")
                first[one.instance] = min(first.get(one.instance, float("inf")), seconds)
        # The last time stands for the whole budget, whose last look may end a little late.
        counts = {t: sum(s > t for s in first.values()) for t in times[:-1]}
        counts[times[-1]] = sum(s == float("inf") for s in first.values())
        curves.append(SurvivorCurve(name, len(first), counts))
    return tuple(curves)
