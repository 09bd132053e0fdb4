from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from msgspec.structs import replace

from dokimos.campaigns.campaign import read_campaign
from dokimos.core.errors import UnreadableFile
from dokimos.difficulty.explain.explanation import missing_profiles
from dokimos.judging.judged_campaign import JudgedCampaign, judge_campaigns
from dokimos.suites.answers import Answer
from dokimos.suites.facts import Facts, read_facts, read_truth_form
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Label
from tests.difficulty.explain.sample import Made, record, write_campaign, write_suite

WHOLE = Made("whole", knobs={"pairs": 3}, components={"unstable": 0.25}, seed=5, margin=Fraction(1, 8))
BARE = Made("bare")
FOREIGN = Made("foreign", label=None, components={"unstable": 0.75})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite", [WHOLE, BARE, FOREIGN])
    write_campaign(tmp_path / "run", suite, [record("bare", Answer.UNSAT)], verifiers=["marabou"])
    return tmp_path


def judged(folder: Path) -> JudgedCampaign:
    (one,) = judge_campaigns([folder / "run"]).campaigns
    return one


def facts_of(folder: Path) -> dict[str, Facts]:
    return {name: facts for (_, name), facts in judged(folder).facts.items()}


def test_facts_are_read_from_truths_and_profiles(folder: Path) -> None:
    facts = facts_of(folder)
    assert {name: fact.position for name, fact in facts.items()} == {"whole": 0, "bare": 1, "foreign": 2}
    assert facts["whole"].knobs == {"pairs": 3.0}
    assert facts["whole"].profile is not None
    assert facts["foreign"].knobs == {}
    assert facts["foreign"].profile is not None
    assert (facts["bare"].profile, facts["bare"].problem) == (None, "there is no profile")
    (missing,) = missing_profiles(judged(folder))
    assert missing.instances == ("bare",)
    assert missing.remedy == f"dokimos profile {folder / 'suite'}"


def test_the_draw_and_the_proven_margin_are_facts(folder: Path) -> None:
    facts = facts_of(folder)
    assert (facts["whole"].seed, facts["whole"].proven_margin) == (5, 0.125)
    assert (facts["bare"].seed, facts["bare"].proven_margin) == (None, None)
    assert (facts["foreign"].seed, facts["foreign"].proven_margin) == (None, None)


def test_a_violated_instance_has_a_negative_margin(tmp_path: Path) -> None:
    suite = read_suite(write_suite(tmp_path / "suite", [WHOLE]))
    form = read_truth_form(suite.entries[0])
    assert form is not None
    violated = replace(form, label=Label.SAT)
    assert read_facts(suite, 0, violated, network_sha256="", property_sha256="").proven_margin == -0.125


def test_a_profile_of_other_files_does_not_count(folder: Path) -> None:
    path = folder / "suite" / "profiles" / "whole.json"
    path.write_text(path.read_text().replace('"network": "', '"network": "0'))
    fact = facts_of(folder)["whole"]
    assert fact.profile is None
    assert fact.problem == "the profile was measured on other files than those that were run"


DAMAGED = (
    "",
    "{",
    "[]",
    '{"schema": 9}',
    '{"schema": 1}',
    pytest.param(lambda text: text.replace('"samples": 1000', '"samples": 1'), id="settings"),
    pytest.param(lambda text: text.replace('"value": 0.25', '"value": NaN'), id="not-a-number"),
    pytest.param(lambda text: text.replace('"unstable"', '"unstabled"'), id="component"),
    pytest.param(lambda text: text.replace('"extras"', '"more": 1, "extras"'), id="unknown-key"),
)


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_profile_is_missing_and_said_so(folder: Path, content: object) -> None:
    path = folder / "suite" / "profiles" / "whole.json"
    before = path.read_text()
    damaged = content(before) if callable(content) else str(content)
    assert damaged != before
    path.write_text(damaged)
    fact = facts_of(folder)["whole"]
    assert fact.profile is None
    assert fact.problem.startswith("the profile cannot be read")


def test_an_instance_that_is_gone_is_an_error(folder: Path) -> None:
    assert read_campaign(folder / "run").manifest.instances[0].name == "whole"
    table = folder / "suite" / "instances.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(UnreadableFile, match="no instance 'whole'"):
        judged(folder)
