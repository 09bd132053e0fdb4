"""The files of what failed in a gate, kept with the commands that show each failure again."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.files import contained, write_whole
from dokimos.core.readable import markdown_text, printable
from dokimos.judging.gate import GateFindingKind, GateOutcome, run_key
from dokimos.judging.judged_campaign import InstanceKey, JudgedCampaigns, reproduction
from dokimos.judging.verdicts import Judgement
from dokimos.judging.written_points import counterexample_text, seen_from_here, write_witness
from dokimos.suites.answers import Answer
from dokimos.suites.entry import SuiteEntry, exists, read_content, read_text
from dokimos.suites.suite_files import InstanceFiles, store_files, write_rows

#: The folder of what is kept of the failures, in that of a campaign.
FAILURES = "failures"


_log = logging.getLogger("dokimos")


@dataclass(frozen=True)
class _Failure:
    """A run that failed; `point` is the place of its point below the folder of failures, if it has one."""

    judgement: Judgement
    text: str
    point: Path | None

    def replay(self, below: str = "") -> str:
        """The command that evaluates the point, for someone to whom the folder of failures is `below`."""
        record = self.judgement.record
        files = (Path("onnx", f"{record.instance}.onnx"), Path("vnnlib", f"{record.instance}.vnnlib"))
        paths = (*(Path(record.suite, file) for file in files), self.point or "")
        return shlex.join(["dokimos", "replay", *(str(Path(below, path)) for path in paths)])


def keep_failures(
    folder: Path, outcome: GateOutcome, entries: Mapping[InstanceKey, SuiteEntry]
) -> GateOutcome:
    """Keep the files of every failure in the folder of a campaign; returns the outcome with commands.

    Each suite with a failure becomes a smaller suite there, with network, property, proof and points, so
    that nothing else is needed to see a failure again: neither the suite nor the verifier. A point is the
    verifier's own witness, if it gave one; otherwise one that violates, if one is known. README.md has all
    commands, relative to its own folder. Files that cannot be written only lead to a remark.
    """
    kept = folder / FAILURES
    told = {
        finding.run: finding.text
        for finding in outcome.findings
        if finding.run and (finding.kind.fails or finding.kind is GateFindingKind.EXPECTED)
    }
    failing = [j for j in outcome.judged.judgements if run_key(j) in told]
    keys = dict.fromkeys([(j.record.suite, j.record.instance) for j in failing])
    keys |= dict.fromkeys(outcome.failed_labels)
    if not keys:
        return outcome
    try:
        _store(kept, {key: entries[key] for key in keys if key in entries})
        failures = [_Failure(j, told[run_key(j)], _keep_point(kept, j, entries)) for j in failing]
        guide = _guide(outcome, failures, {suite for suite, _ in keys})
        write_whole(kept / "README.md", guide, what="the commands")
    except (InputError, OSError) as error:
        _log.warning("The files of the failures are not kept: %s", error)
        return outcome
    here = seen_from_here(kept)
    by_job = {one.judgement.record.job: one for one in failures}

    def pointed(judgement: Judgement) -> Judgement:
        record, shown = judgement.record, judgement.counterexample
        failure = by_job.get(record.job)
        if failure is None:
            return judgement
        if shown is not None and failure.point is not None:
            shown = replace(shown, command=failure.replay(here))
        again = reproduction(
            record, manifests[record.job], {record.suite: seen_from_here(kept / record.suite)}
        )
        return replace(judgement, counterexample=shown, reproduce=again)

    manifests = {
        judgement.record.job: one.campaign.manifest
        for one in outcome.judged.campaigns
        for judgement in one.judgements
    }
    campaigns = tuple(
        replace(one, judgements=tuple(map(pointed, one.judgements))) for one in outcome.judged.campaigns
    )
    replays = {run_key(one.judgement): one.replay(here) for one in failures if one.point is not None}
    return replace(outcome, judged=JudgedCampaigns(campaigns), replays=MappingProxyType(replays))


def _store(kept: Path, entries: Mapping[InstanceKey, SuiteEntry]) -> None:
    """Write the suites of what failed."""
    suites: dict[str, list[SuiteEntry]] = {}
    for (suite, _), entry in entries.items():
        suites.setdefault(suite, []).append(entry)
    for suite, own in suites.items():
        place = contained(kept, suite)
        for entry in own:
            truth = read_text(entry.truth_path) if exists(entry.truth_path) else None
            contents = read_content(entry.network_path), read_content(entry.property_path)
            store_files(place, InstanceFiles(entry.name, "", *contents, truth))
        rows = [(f"onnx/{e.name}.onnx", f"vnnlib/{e.name}.vnnlib", e.timeout_seconds) for e in own]
        families = {entry.name: entry.family for entry in own}
        write_rows(place, rows, families, recipe={}, version=__version__)


def _keep_point(kept: Path, judgement: Judgement, entries: Mapping[InstanceKey, SuiteEntry]) -> Path | None:
    """Write the point of a failure; returns its place, None if there is no point to be written."""
    record = judgement.record
    entry = entries.get((record.suite, record.instance))
    truth = None if entry is None or not exists(entry.truth_path) else entry.read_truth()
    name = f"{record.instance}.counterexample"
    try:
        if judgement.counterexample is not None:
            text = counterexample_text(judgement.counterexample)
        elif record.answer is Answer.SAT and record.witness is not None:
            text, name = write_witness(record.witness, ()), f"{record.job}.witness"
        elif truth is not None and truth.witness is not None:
            text = write_witness(truth.witness, ())
        else:
            return None
    except InputError:  # a coordinate without a finite decimal expansion
        return None
    place = Path(record.suite, "points", name)
    write_whole(contained(kept, place), text, what="the point")
    return place


def _code(command: str) -> str:
    """A command as code on one line; a name with line breaks cannot be copied from there."""
    return f"      {printable(' '.join(command.split()))}"


def _guide(outcome: GateOutcome, failures: Sequence[_Failure], suites: Iterable[str]) -> str:
    """What to do with the folder of failures: commands that need nothing outside of it but Dokimos."""

    def command(*words: str) -> str:
        return _code(shlex.join(["dokimos", *words]))

    def blocks() -> Iterator[str]:
        yield "# What failed"
        yield "Networks, properties, proofs and points of every failure. Run these commands in this folder."
        for suite in sorted(suites):
            own = markdown_text(suite)
            yield f"- prove the labels of {own} again, and run a verifier on the same questions:"
            again = command("gate", suite, "--verifier", "NAME=PLACE", "--out", f"again-{suite}")
            yield f"{command('check', suite)}\n{again}"
        labels = [finding.text for finding in outcome.of_kind(GateFindingKind.LABEL)]
        for text, failure in (*((text, None) for text in labels), *((one.text, one) for one in failures)):
            yield f"- {markdown_text(text)}"
            if failure is not None and failure.point is not None:
                yield _code(failure.replay())

    return "\n\n".join(blocks()) + "\n"
