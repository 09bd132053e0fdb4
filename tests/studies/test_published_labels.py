"""The labels of published benchmarks in `studies/labels.jsonl.gz`: whole, ours alone, and proven again."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import dokimos
from dokimos.core import strict_json
from dokimos.suites.database import Database
from tests.shared import SHARED

LABELS = Path(__file__).parents[2] / "studies" / "labels.jsonl.gz"
#: Where the benchmarks lie beside the project.
BENCHMARKS = {
    "test": "2021/test",
    "mnistfc": "2021/mnistfc",
    "oval21": "2021/oval21",
    "cifar10_resnet": "2021/cifar10_resnet",
    "safenlp_2024": "2025/safenlp_2024",
    "collins_rul_cnn_2022": "2025/collins_rul_cnn_2022",
    "malbeware": "2025/malbeware",
    "metaroom_2023": "2025/metaroom_2023",
    "ml4acopf_2024": "2025/ml4acopf_2024",
    "cersyve": "2025/cersyve",
    "dist_shift_2023": "2025/dist_shift_2023",
    "sat_relu": "2026/sat_relu/1.0",
    "acasxu_2023": "2026/acasxu_2023/1.0",
    "isomorphic_acasxu_2026": "2026/isomorphic_acasxu_2026/2.0",
}


def test_they_are_whole_and_nobody_elses() -> None:
    records = list(Database.at(LABELS))
    assert LABELS.stat().st_size < 5_000_000
    assert len({one.key for one in records}) == len(records)
    for one in records:
        assert re.fullmatch(r"[0-9a-f]{64}", one.key) and one.label in ("sat", "unsat")
        (benchmark,) = {each.benchmark for each in one.seen}
        assert one.answers == () and benchmark in BENCHMARKS
        truth = strict_json.parse(one.truth, file=one.key)
        assert truth["label"] == one.label and truth["certificate"]["kind"] == one.kind
        assert ("witness" in truth) == (one.label == "sat")


def test_the_page_counts_them() -> None:
    counts = Counter((one.seen[0].benchmark, one.label) for one in Database.at(LABELS))
    page = (LABELS.parent / "README.md").read_text()
    for name in BENCHMARKS:
        (row,) = re.findall(rf"^\| {name} \| \d+ \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
        assert row == (str(counts[name, "sat"]), str(counts[name, "unsat"]))


@pytest.mark.parametrize(
    "name", [name if name == "test" else pytest.param(name, marks=pytest.mark.slow) for name in BENCHMARKS]
)
def test_each_is_proven_again_on_the_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    place = SHARED / BENCHMARKS[name]
    if not place.is_dir():
        pytest.skip(f"{place} is not here")
    found = dokimos.find_labels(database=LABELS, benchmark=name)
    made = dokimos.export_labels(found, place, out=tmp_path / "proven")
    assert made.left_out == () and made.suite is not None
    assert len(made.suite) == len(found.labels)
    assert dokimos.check(made.suite.folder).is_proven
