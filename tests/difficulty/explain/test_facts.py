from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.campaigns.manifest import read_manifest
from dokimos.core.errors import UnreadableFile
from dokimos.difficulty.explain.facts import missing_profiles, read_facts
from tests.difficulty.explain.sample import Made, write_campaign, write_suite

WHOLE = Made("whole", knobs={"pairs": 3}, components={"unstable": 0.25})
BARE = Made("bare")
FOREIGN = Made("foreign", label=None, components={"unstable": 0.75})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    suite = write_suite(tmp_path / "suite", [WHOLE, BARE, FOREIGN])
    write_campaign(tmp_path / "run", suite, [], verifiers=["marabou"])
    return tmp_path


def test_facts_are_read_from_truths_and_profiles(folder: Path) -> None:
    facts = read_facts(folder / "suite", read_manifest(folder / "run" / "manifest.json").instances)
    assert {name: fact.position for name, fact in facts.items()} == {"whole": 0, "bare": 1, "foreign": 2}
    assert facts["whole"].knobs == {"pairs": 3.0}
    assert facts["whole"].profile is not None
    assert facts["foreign"].knobs == {}
    assert facts["foreign"].profile is not None
    assert (facts["bare"].profile, facts["bare"].problem) == (None, "there is no profile")
    (missing,) = missing_profiles("suite", folder / "suite", facts)
    assert missing.instances == ("bare",)
    assert missing.remedy == f"dokimos profile {folder / 'suite'}"


def test_a_profile_of_other_files_does_not_count(folder: Path) -> None:
    instances = read_manifest(folder / "run" / "manifest.json").instances
    path = folder / "suite" / "profiles" / "whole.json"
    path.write_text(path.read_text().replace('"network": "', '"network": "0'))
    fact = read_facts(folder / "suite", instances)["whole"]
    assert fact.profile is None
    assert fact.problem == "the profile was measured on other files than were run"


def test_a_damaged_profile_is_missing_and_said_so(folder: Path) -> None:
    instances = read_manifest(folder / "run" / "manifest.json").instances
    for content in ("", "{", "[]", '{"schema": 9}'):
        (folder / "suite" / "profiles" / "whole.json").write_text(content)
        fact = read_facts(folder / "suite", instances)["whole"]
        assert fact.profile is None
        assert fact.problem.startswith("the profile cannot be read")


def test_an_instance_that_is_gone_is_an_error(folder: Path) -> None:
    instances = read_manifest(folder / "run" / "manifest.json").instances
    table = folder / "suite" / "instances.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(UnreadableFile, match="no instance 'whole'"):
        read_facts(folder / "suite", instances)
