"""What was published of the competition of 2025, where it lies beside the project."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

from dokimos.campaigns.journal import RunRecord
from dokimos.core.inputs import uncompressed
from dokimos.judging.witness_replay import Question, Referee
from dokimos.suites.answers import Answer
from dokimos.suites.folder import instance_names
from dokimos.verifiers.result_file import flat_witness
from tests.judging.test_judge import record
from tests.shared import SHARED

RESULTS = SHARED / "results2025"
#: Categories of 2025 whose files are those of 2026; the others lie in their own folder.
_AS_IN_2026 = ("acasxu_2023", "sat_relu")
#: The organisers' scoring leaves this tool out.
NOT_SCORED = "rover"


@dataclass(frozen=True)
class PublishedInstance:
    """One row of the published table: an instance of a category."""

    category: str
    index: int
    network: str
    property: str

    @cached_property
    def referee(self) -> Referee:
        """The instance, ready to look at witnesses as the competition does."""
        return _referee(self.category, self.network, self.property)

    @cached_property
    def question(self) -> Question:
        """The instance, ready to look at witnesses as we do."""
        return _question(self.category, self.network, self.property)

    def run(self, tool: str, answer: Answer) -> RunRecord:
        """What `tool` answered, with its witness where it is `sat`."""
        if answer is not Answer.SAT:
            return record(answer, verifier=tool)
        stems = [PurePosixPath(p).stem for p in (self.network, self.property)]
        folder = PurePosixPath(self.network).parent.name
        name = "_".join(stems if folder == "onnx" else [folder, *stems])
        path = RESULTS / tool / f"2025_{self.category}" / f"{name}.counterexample.gz"
        found = flat_witness(_content(path).decode())
        inputs, outputs = ((), None) if found is None else (found.inputs, found.outputs)
        return record(answer, inputs, outputs=outputs, verifier=tool)


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a published table; none where it is not here."""
    path = RESULTS / f"{name}.csv"
    return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []


def instance_of(row: Mapping[str, str]) -> PublishedInstance:
    """The instance that a row of `official` or `instances` speaks of."""
    return PublishedInstance(row["category"], int(row["instance_index"]), row["network"], row["property"])


@cache
def campaign_places() -> Mapping[tuple[str, int], tuple[str, int]]:
    """The name of each published row's instance, and which of its runs it is, by category and index."""
    found = {}
    by_category: dict[str, list[PublishedInstance]] = {}
    for row in rows("instances"):
        by_category.setdefault(row["category"], []).append(instance_of(row))
    for category, own in by_category.items():
        names = instance_names([(one.network, one.property) for one in own])
        for k, (one, name) in enumerate(zip(own, names, strict=True)):
            found[category, one.index] = (name, names[:k].count(name))
    return found


@cache
def answers() -> Mapping[tuple[str, int, str], Answer]:
    """What each tool answered, by category, index and tool; what decides nothing is `unknown`."""
    found = {}
    for folder in sorted(RESULTS.glob("*/2025_*")):
        category = folder.name.removeprefix("2025_")
        listed = [instance_of(row) for row in rows("instances") if row["category"] == category]
        with (folder / "results.csv").open() as table:
            # An uncut table ends with a warm-up, which is no instance.
            for instance, row in zip(listed, csv.reader(table), strict=False):
                said = {"sat": Answer.SAT, "unsat": Answer.UNSAT}.get(row[4], Answer.UNKNOWN)
                found[category, instance.index, folder.parent.name] = said
    return found


def runs_of(instance: PublishedInstance, tools: Iterator[str]) -> list[RunRecord]:
    """What `tools` answered on `instance`."""
    return [instance.run(tool, answers()[instance.category, instance.index, tool]) for tool in tools]


@cache
def _referee(category: str, network: str, property_: str) -> Referee:
    return _question(category, network, property_).referee


@cache
def _question(category: str, network: str, property_: str) -> Question:
    year = Path("2026", category, "1.0") if category in _AS_IN_2026 else Path("2025", category)
    files = [_content(SHARED / year / f"{name}.gz") for name in (network, property_)]
    return Question(files[0], files[1], f"{category}/{network}/{property_}")


def _content(path: Path) -> bytes:
    return uncompressed(path.read_bytes(), file=str(path))
