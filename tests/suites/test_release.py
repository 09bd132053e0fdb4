"""A release: complete, its own proof, the same bytes for the same contents, and honest about what fails."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import dokimos
from dokimos.core.errors import InputError
from dokimos.core.files import home
from dokimos.suites.release import without_folders
from tests.scripting import flat

release = flat(dokimos.release, dokimos.ReleaseSettings)

ABOUT = {"authors": ["A. Author", "B. Büthor"], "published": "2026-01-31"}


@pytest.fixture(scope="module")
def tiny(copy_of_tiny: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_tiny(tmp_path_factory.mktemp("release") / "tiny")


def test_the_unpacked_archive_is_proven_by_itself_and_complete(tiny: Path, tmp_path: Path) -> None:
    campaign = tmp_path / "run"
    settings = dokimos.RunSettings(timeout_seconds=60)
    dokimos.run(tiny, ["reference"], out=campaign, settings=settings)
    telling = tmp_path / "tool"
    telling.mkdir()
    (telling / "run_instance.sh").write_text("echo from; echo $HOME/file; echo $PATH; pwd; exit 3\n")
    dokimos.run(tiny, [f"vnncomp={telling}"], out=campaign, settings=settings)
    released = release(
        tiny,
        out=tmp_path / "bench",
        campaigns=[campaign],
        settings=dokimos.ReleaseSettings(title="Bench"),
        **ABOUT,
    )
    assert released.archive is not None and not released.failed
    with tarfile.open(released.archive) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    folder = tmp_path / "unpacked" / "bench"
    assert dokimos.check(folder).is_proven
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    assert sums.keys() == found.keys() - {"SHA256SUMS"}
    for name, recorded in sums.items():
        assert hashlib.sha256(found[name].read_bytes()).hexdigest() == recorded
    with (folder / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["label"] for row in rows} == {"sat", "unsat"} and all(
        (folder / r["network"]).exists() for r in rows
    )
    metadata = json.loads((folder / "croissant.json").read_text())
    assert metadata["name"] == "Bench" and metadata["distribution"][0]["sha256"] == sums["labels.csv"]
    assert metadata["rai:dataBiases"][0].startswith("By label: 2 sat, 2 unsat.")
    assert metadata["citeAs"] == "A. Author, B. Büthor. Bench, version 1.0."
    assert 'name: "B. Büthor"' in (folder / "CITATION.cff").read_text()
    card = (folder / "README.md").read_text()
    listed = {path.split("/")[0] for path in found} - {"README.md"}
    assert all(f"`{name}`" in card or f"`{name}/`" in card for name in listed), "the card lists every file"
    assert "> A. Author, B. Büthor. Bench, version 1.0, 2026-01-31.\n" in card
    assert {"results/report.html"} <= found.keys() and any(n.startswith("results/tables/") for n in found)
    for path in found.values():
        content = path.read_bytes()
        for place in (tmp_path, Path.home(), home(), *os.environ["PATH"].split(":")):
            assert str(place) in ("/", "/bin", "/usr/bin", "/sbin", "/usr/sbin") or (
                f"{place}/".encode() not in content
            ), f"{path} names a folder of this machine"


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ('File "/home/me/env/lib/a.py", line 1', 'File "a.py", line 1'),
        ('["Property: /tmp/runs/work/7-x/vnnlib/a.vnnlib"]', '["Property: a.vnnlib"]'),
        ("(/Users/me/a.py:12)", "(a.py:12)"),
        ("log=/work/log.txt", "log=log.txt"),
        (r'"use only\n/root/.cache/tool/lib/a.py"', r'"use only\na.py"'),
        ("PATH=/usr/bin:/home/me/bin:/opt/tool", "PATH=/usr/bin:bin:tool"),
    ],
)
def test_folders_of_a_machine_are_taken_out(text: str, published: str) -> None:
    assert without_folders(text) == published


@pytest.mark.parametrize(
    "text", ["https://example.org/home/a", "a/b/tmp/c", "</data>", "#!/usr/bin/env python", "a / data / b"]
)
def test_what_is_no_folder_of_a_machine_stays(text: str) -> None:
    assert without_folders(text) == text


def test_the_same_contents_give_the_same_archive(tiny: Path, tmp_path: Path) -> None:
    archives = [
        release(tiny, out=tmp_path / place / "bench", **ABOUT).archive for place in ("one", "other")
    ]
    one, other = (archive.read_bytes() for archive in archives if archive is not None)
    assert one == other


def test_a_label_that_is_not_proven_is_not_released(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = copy_of_tiny(tmp_path / "suite")
    truth = next(p for p in (suite / "truth").iterdir() if '"unsat"' in p.read_text())
    truth.write_text(truth.read_text().replace('"unsat"', '"sat"', 1))
    released = release(suite, out=tmp_path / "out", **ABOUT)
    assert [one.name for one in released.failed] == [truth.stem]
    assert released.folder is None and not (tmp_path / "out").exists()
    assert not list(tmp_path.glob("*.tar.gz")) and not list(tmp_path.glob(".*part"))


def test_bad_input_is_one_sentence(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for changed, message in [
        ({"authors": []}, "give them as `authors`"),
        ({"published": "yesterday"}, "not a date"),
        ({"url": "ftp"}, "not an address"),
        ({"authors": ["A\nB"]}, "single lines"),
        ({"authors": [" "]}, "single lines"),
        ({"licence": ""}, "single lines"),
        ({"title": ""}, "single lines"),
        ({"version": ""}, "single lines"),
        ({"campaigns": [tmp_path / "nowhere"]}, "no campaign here"),
    ]:
        with pytest.raises(InputError, match=message):
            release(tiny, out=tmp_path / "out", **{**ABOUT, **changed})
    with pytest.raises(InputError, match="holds something else"):
        release(tiny, out=tmp_path / "full", **ABOUT)
    with pytest.raises(InputError, match="lies in the suite"):
        release(tiny, out=tiny / "sub", **ABOUT)
    (tmp_path / "out.tar.gz").write_text("years of work")
    with pytest.raises(InputError, match=r"out\.tar\.gz is already there"):
        release(tiny, out=tmp_path / "out", **ABOUT)
    assert (tmp_path / "out.tar.gz").read_text() == "years of work"
    (tmp_path / "out.tar.gz").unlink()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name in ("onnx", "vnnlib", "instances.csv"):
        (foreign / name).symlink_to(tiny / name)
    with pytest.raises(InputError, match="leads out of the folder"):
        release(foreign, out=tmp_path / "out", **ABOUT)
    assert not (tmp_path / "out").exists()


def test_a_shipped_suite_has_authors_of_its_own(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = copy_of_tiny(tmp_path / "suite")
    made = json.loads((suite / "suite.json").read_text())
    (suite / "suite.json").write_text(json.dumps({**made, "suite": "edge"}))
    release(suite, out=tmp_path / "out")
    assert 'name: "The Dokimos maintainers"' in (tmp_path / "out" / "CITATION.cff").read_text()


def test_a_generated_suite_has_its_card(tiny: Path) -> None:
    card = (tiny / "README.md").read_text()
    assert "4 instances" in card and "| exclusive-pairs | unsat | `linear` | 1 | 1 | 1 |" in card
