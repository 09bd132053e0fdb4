from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.campaigns.manifest import Manifest, merge, read_manifest, suite_version, write_manifest
from dokimos.core.errors import UnreadableFile
from tests.json_mutants import mutants

RECORDED = Path(__file__).with_name("recorded") / "manifest.json"


def test_a_manifest_of_an_earlier_version_is_read_and_written_alike(tmp_path: Path) -> None:
    manifest = read_manifest(RECORDED)
    assert [suite.seed for suite in manifest.suites] == [7, None]
    assert [tool.name for tool in manifest.verifiers] == ["marabou", "nnenum=/opt/nnenum"]
    assert [instance.timeout_seconds for instance in manifest.instances] == [None, 30.0]
    assert manifest.limits.memory_bytes == 4 * 10**9
    write_manifest(manifest, tmp_path / "manifest.json")
    assert (tmp_path / "manifest.json").read_text() == RECORDED.read_text() + "\n"


def test_another_list_of_instances_is_another_version_of_a_suite(tmp_path: Path) -> None:
    table = tmp_path / "instances.csv"
    assert suite_version(tmp_path) == ""
    table.write_text("onnx/a.onnx,vnnlib/a.vnnlib,10\n")
    before = suite_version(tmp_path)
    assert re.fullmatch("[0-9a-f]{8}", before)
    table.write_text("onnx/b.onnx,vnnlib/b.vnnlib,10\n")
    assert suite_version(tmp_path) != before


def test_a_mutant_is_a_manifest_or_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    refused = 0
    for mutant in mutants(json.loads(RECORDED.read_text())):
        path.write_text(json.dumps(mutant))
        try:
            manifest = read_manifest(path)
        except UnreadableFile as error:
            refused += 1
            assert "\n" not in str(error)
        else:
            assert isinstance(merge(manifest, replace(manifest, verifiers=()), tmp_path), Manifest)
    assert refused > 500


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"limits": {"wall_seconds": 0}}, "The time limit 0.0 is not a positive number"),
        ({"repeat": "1"}, "repeat: expected `int`, got `str`"),
        ({"repeat": -1}, "repeat: expected `int` >= 0"),
        ({"machine": None}, "machine: expected `object`, got `null`"),
        ({"verifiers": [{"name": "a", "version": "1", "place": "/"}]}, "unknown field `verifiers.place`"),
        ({"seed": 1}, "unknown field `seed`"),
        ({"suites": []}, "its instance 'exclusive-pairs-1' belongs to no suite of the campaign"),
        ({"schema": [1]}, "this manifest has schema of another kind, not 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**json.loads(RECORDED.read_text()), **change}))
    with pytest.raises(UnreadableFile, match=reason):
        read_manifest(path)
