"""The corpus of proofs on disk: accepted, invalid, unreadable."""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.checker import check
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.suites.entry import load_truth, read_content, read_text
from tests.checker.files import instance_of
from tests.corpus.make_certificates import CORPUS, entries

FOLDERS = sorted(path.parent for path in CORPUS.glob("*/*/truth.json"))
WRONG = {"reject": InvalidProof, "malformed": UnreadableFile}


def checked(folder: Path) -> None:
    instance = instance_of(read_content(folder / "network.onnx"), read_content(folder / "property.vnnlib"))
    check(instance, load_truth(read_text(folder / "truth.json"), file=str(folder / "truth.json")))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_corpus_is_judged_rightly(folder: Path) -> None:
    verdict = folder.parent.name
    if verdict == "accept":
        checked(folder)
    else:
        with pytest.raises(WRONG[verdict]) as caught:
            checked(folder)
        assert "\n" not in str(caught.value)


@pytest.mark.no_cover
def test_the_corpus_is_what_its_script_writes() -> None:
    made = {(entry.verdict, entry.name): entry for entry in entries()}
    assert set(made) == {(folder.parent.name, folder.name) for folder in FOLDERS}
    for folder in FOLDERS:
        entry = made[folder.parent.name, folder.name]
        assert (folder / "network.onnx").read_bytes() == entry.instance.network_file
        assert (folder / "property.vnnlib").read_bytes() == entry.instance.property_file
        assert (folder / "truth.json").read_text(encoding="utf-8") == entry.truth


def test_each_verdict_has_a_corpus() -> None:
    counts = {
        name: sum(f.parent.name == name for f in FOLDERS) for name in ("accept", "reject", "malformed")
    }
    assert min(counts.values()) >= 10
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 300_000
