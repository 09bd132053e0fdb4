"""Verifiers whose process stays: the same answers as of cold runs, and a mark in the record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from dokimos.campaigns.campaign import run_campaign
from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.plan import CampaignSuite
from dokimos.campaigns.settings import RunSettings
from dokimos.core.errors import InputError
from dokimos.suites.answers import Answer
from dokimos.verifiers.adapters.built_in import Scripted
from dokimos.verifiers.catalogue import find, styles_of
from tests.scripting import StubInstance, at_least, instance, script

BEHAVIOURS = ("right", "crash", "garbage", "no-witness", "partial", "right", "wrong")


def by_verifier(records: tuple[RunRecord, ...]) -> dict[str, dict[str, RunRecord]]:
    found: dict[str, dict[str, RunRecord]] = {}
    for record in records:
        found.setdefault(record.verifier, {})[record.instance] = record
    return found


def said(record: RunRecord) -> tuple[object, ...]:
    """All that does not depend on how long it took."""
    return record.answer, record.witness, record.outputs, record.detail, record.exit_code, record.variables


def asked_of(folder: Path) -> tuple[StubInstance, ...]:
    made = (instance(folder, f"i{k}", asked=at_least(f"{k}.5")) for k, _ in enumerate(BEHAVIOURS))
    return tuple(made)


def scripted(folder: Path) -> Scripted:
    truth = {"label": "sat", "witness": ["1"]}
    entries = {f"i{k}": {"behaviour": each, **truth} for k, each in enumerate(BEHAVIOURS)}
    return Scripted(script(folder / "script.json", default={"behaviour": "right"}, instances=entries))


def test_whatever_it_does_a_warm_verifier_answers_as_a_cold_one(tmp_path: Path) -> None:
    cold = scripted(tmp_path)
    staying = cold.warm()
    assert staying is not None
    campaign = run_campaign(
        [CampaignSuite(tmp_path / "suite", asked_of(tmp_path / "suite"))],
        [cold, staying],
        settings=RunSettings(timeout_seconds=30),
        out=tmp_path / "out",
    )
    found = by_verifier(campaign.records)
    answers = {name: said(record) for name, record in found["scripted"].items()}
    assert {name: said(record) for name, record in found["scripted:warm"].items()} == answers
    assert {answer for answer, *_ in answers.values()} == {Answer.SAT, Answer.UNSAT, Answer.ERROR}
    assert {record.warm for record in found["scripted"].values()} == {0}
    counts = [record.warm for record in found["scripted:warm"].values()]
    # Three of them fail: each is asked again of a new process, which does not stay either.
    assert sorted(counts) == [1, 1, 1, 1, 1, 1, 2]
    assert campaign.records == dokimos.read_campaign(tmp_path / "out").records
    assert not (tmp_path / "out" / "work").exists()


@pytest.mark.parametrize("name", ["reference", "planted=ideal"])
def test_the_answers_of_a_warm_verifier_are_those_of_cold_runs(
    name: str, copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = copy_of_tiny(tmp_path / "suite")
    entries = dokimos.read_suite(suite).entries
    wanted = [entry.name for entry in entries if entry.family == "exclusive-pairs"]
    names = [name, f"{name}:warm"]
    campaign = dokimos.run(
        suite, names, out=tmp_path / "out", only=wanted, settings=dokimos.RunSettings(timeout_seconds=60)
    )
    found = by_verifier(campaign.records)
    assert [record.warm for record in found[f"{name}:warm"].values()] == [1, 2]
    for each in wanted:
        assert said(found[f"{name}:warm"][each]) == said(found[name][each])
        assert found[name][each].answer.decides


def test_a_warm_verifier_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    staying = find("mine=reference:warm")
    assert (staying.name, staying.called_as) == ("mine:warm", "mine=reference:warm")
    assert staying.warm() is None
    assert styles_of("reference:warm") == styles_of("reference")
    monkeypatch.setattr(type(find("nnenum")), "can_stay_warm", False)
    with pytest.raises(InputError, match="nnenum cannot stay warm"):
        find("nnenum:warm")


def test_on_a_cluster_nothing_stays_warm(tmp_path: Path) -> None:
    staying = scripted(tmp_path).warm()
    assert staying is not None
    with pytest.raises(InputError, match="leave out :warm on a cluster"):
        run_campaign(
            [CampaignSuite(tmp_path / "suite", asked_of(tmp_path / "suite"))],
            [staying],
            settings=RunSettings(timeout_seconds=30, dask="tcp://127.0.0.1:1"),
            out=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()
