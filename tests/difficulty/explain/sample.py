"""Made-up observations, and a made-up campaign with its suite on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from dokimos.campaigns.journal import Journal, RunRecord
from dokimos.campaigns.manifest import describe, write_manifest
from dokimos.campaigns.plan import CampaignSuite, Tool
from dokimos.campaigns.settings import RunSettings
from dokimos.difficulty.explain.rows import Observation, Status
from dokimos.suites.answers import Answer
from dokimos.suites.facts import COMPONENTS, Measurement, Profile, ProfileSettings, dump_profile
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Certificate, Claim, Label, Semantics, Truth, sha256
from dokimos.suites.suite_files import dump_truth, write_index
from dokimos.verifiers.base import CertificateStyle
from dokimos.verifiers.catalogue import styles_of
from dokimos.verifiers.execution.limits import Termination

SETTINGS = RunSettings(timeout_seconds=10)
LIMITS = SETTINGS.limits(10)


def seen(
    instance: str,
    status: Status,
    *,
    verifier: str = "marabou",
    family: str = "f",
    seconds: float = 1.0,
    suite: str = "s",
    position: int = 0,
    label: str | None = "unsat",
    styles: tuple[CertificateStyle, ...] | None = None,
    knobs: Mapping[str, float] | None = None,
    variant: str = "",
    network: str = "",
    seed: int | None = None,
    **components: float | None,
) -> Observation:
    return Observation(
        suite=suite,
        instance=instance,
        position=position,
        family=family,
        label=label,
        verifier=verifier,
        styles=styles_of(verifier) if styles is None else styles,
        status=status,
        seconds=seconds,
        repeats=1,
        knobs=knobs or {},
        components=components,
        variant=variant,
        network_sha256=network,
        seed=seed,
    )


def measured(
    values: Sequence[float], late: Sequence[bool], component: str = "unstable", *, families: int = 3
) -> list[Observation]:
    """One observation for each value and family."""
    return [
        seen(
            f"i{k}-{family}",
            Status.TIMEOUT if is_late else Status.SOLVED,
            family=f"f{family}",
            **{component: value},
        )
        for family in range(families)
        for k, (value, is_late) in enumerate(zip(values, late, strict=True))
    ]


@dataclass(frozen=True)
class Made:
    """An instance of the made-up suite; `components` is None for one without a profile."""

    name: str
    family: str = "pairs"
    knobs: Mapping[str, Any] = field(default_factory=dict)
    components: Mapping[str, float] | None = None
    label: Label | None = Label.UNSAT
    seed: int | None = None
    margin: Fraction | None = None
    infinite: tuple[str, ...] = ()

    @property
    def network(self) -> bytes:
        return f"network of {self.name}".encode()

    @property
    def asked(self) -> bytes:
        return f"property of {self.name}".encode()


def write_suite(folder: Path, instances: Sequence[Made]) -> Path:
    """A suite of files that nobody can read as networks, with truths and profiles as told."""
    for part in ("onnx", "vnnlib", "truth", "profiles"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for made in instances:
        (folder / "onnx" / f"{made.name}.onnx").write_bytes(made.network)
        (folder / "vnnlib" / f"{made.name}.vnnlib").write_bytes(made.asked)
        if made.label is not None:
            claims = {semantics: Claim(proven=True, margin=made.margin) for semantics in Semantics}
            hashes = sha256(made.network), sha256(made.asked)
            truth = Truth(made.label, claims, Certificate("linear"), *hashes)
            origin: dict[str, Any] = {"family": made.family, "parameters": dict(made.knobs)}
            if made.seed is not None:
                origin["seed"] = made.seed
            (folder / "truth" / f"{made.name}.json").write_text(dump_truth(truth, origin=origin))
        if made.components is not None:
            (folder / "profiles" / f"{made.name}.json").write_text(dump_profile(profile_of(made)))
    write_index(folder, [(m.name, m.family) for m in instances], 10.0, recipe={}, version="0")
    return folder


def profile_of(made: Made) -> Profile:
    given = made.components or {}
    return Profile(
        instance=made.name,
        network_sha256=sha256(made.network),
        property_sha256=sha256(made.asked),
        settings=ProfileSettings(),
        components={
            name: Measurement.infinite("a test")
            if name in made.infinite
            else Measurement(given[name])
            if name in given
            else Measurement.not_applicable("a test")
            for name in COMPONENTS
        },
        extras={
            "parameters": Measurement(7.0),
            **{name: Measurement(value) for name, value in given.items() if name not in COMPONENTS},
        },
    )


def record(
    instance: str,
    answer: Answer,
    *,
    verifier: str = "marabou",
    family: str = "pairs",
    suite: str = "suite",
    seconds: float = 1.0,
    repeat: int = 0,
    **rest: Any,
) -> RunRecord:
    timed_out = answer is Answer.TIMEOUT
    given = {
        "job": f"{suite}-{verifier}-{instance}-{repeat}",
        "termination": Termination.WALL_LIMIT if timed_out else Termination.EXITED,
        "exit_code": None if timed_out else 0,
        "limits": LIMITS,
        "verifier_version": "1",
        **rest,
    }
    return RunRecord(
        suite=suite,
        instance=instance,
        family=family,
        verifier=verifier,
        repeat=repeat,
        answer=answer,
        witness=None,
        detail="",
        wall_seconds=seconds,
        cpu_seconds=seconds,
        peak_memory_bytes=1,
        log="logs/x",
        started_at="2026-07-01T12:00:00.000+00:00",
        **given,
    )


def write_campaign(
    out: Path, suite: Path, records: Sequence[RunRecord], *, verifiers: Sequence[str], repeat: int = 1
) -> Path:
    """A campaign on disk, as `dokimos run` leaves it."""
    out.mkdir(parents=True)
    tools = [Tool(name, "1") for name in verifiers]
    suites = [CampaignSuite(suite, read_suite(suite).entries)]
    write_manifest(describe(suites, tools, replace(SETTINGS, repeat=repeat)), out / "manifest.json")
    with Journal(out / "journal.jsonl") as journal:
        for one in records:
            journal.started(one.job, one.started_at)
            journal.finish(one)
    return out
