"""Suites on disk."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from dokimos.checker import check
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.suites.folder import instance_names, read_suite, read_suite_file
from dokimos.suites.instance import Instance, LabelledInstance
from dokimos.suites.suite_files import files_of, store_files, write_index
from tests.checker.files import model, question, stated


def _labelled(name: str) -> LabelledInstance:
    network = model([("Relu", ["X"], "r"), ("Add", ["r", "one"], "Y")], {"one": [1.0]}, [1, 1], [1, 1])
    instance = Instance(
        name=name,
        network_file=network,
        property_file=question([(-1, 1)], 1, "(<= Y_0 0.5)"),
        timeout_seconds=12.5,
        family="small",
        seed=3,
    )
    return LabelledInstance(instance, stated(instance, "linear", {"questions": [{}]}))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    unlabelled = replace(_labelled("c"), truth=None)
    folder.mkdir()
    for labelled in (_labelled("b"), _labelled("a"), unlabelled):
        store_files(folder, files_of(labelled))
    listed = [(name, "small") for name in "bac"]
    write_index(folder, listed, 12.5, recipe={"x": 1}, version="0")
    return folder


def test_what_is_written_is_read_and_checked(suite: Path) -> None:
    read = read_suite(suite)
    assert [entry.name for entry in read.entries] == ["b", "a", "c"]
    for entry in read.entries[:2]:
        truth = entry.read_truth()
        assert truth is not None
        instance = entry.read_instance()
        assert (entry.timeout_seconds, entry.family) == (12.5, "small")
        assert entry.network_sha256 == instance.network_sha256
        assert entry.property_sha256 == instance.property_sha256
        assert float(check(instance, truth).real) == pytest.approx(0.5)
    assert read.entry("c").read_truth() is None
    with pytest.raises(InputError, match="no instance 'd' in this suite; did you mean '"):
        read.entry("d")


def test_compressed_files_are_the_same_instance(suite: Path) -> None:
    for path in [*suite.glob("onnx/*"), *suite.glob("vnnlib/*")]:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    entry = read_suite(suite).entries[0]
    truth = entry.read_truth()
    assert truth is not None
    check(entry.read_instance(), truth)


def test_a_damaged_compressed_file_is_unreadable(suite: Path) -> None:
    path = suite / "onnx" / "b.onnx"
    path.write_bytes(gzip.compress(path.read_bytes())[:-9])
    with pytest.raises(UnreadableFile, match="truncated"):
        read_suite(suite).entries[0].read_instance()


@pytest.mark.parametrize(
    "table",
    [
        "",
        "\n\n",
        "a,b\n",
        "a,b,c,d\n",
        "onnx/a.onnx,vnnlib/a.vnnlib,soon\n",
        "onnx/a.onnx,vnnlib/a.vnnlib,nan\n",
        "onnx/a.onnx,vnnlib/a.vnnlib,inf\n",
        "onnx/a.onnx,vnnlib/a.vnnlib,0\n",
        "onnx/a.onnx,vnnlib/a.vnnlib,-1\n",
        "\"[('f', 'a.onnx')]\",vnnlib/a.vnnlib,1\n",
        "onnx/a.onnx,vnnlib/a.vnnlib,1\nonnx/a.onnx,vnnlib/a.vnnlib,2\n",
        "x" * 200_000 + ",b,1\n",
    ],
)
def test_other_tables_are_refused(suite: Path, table: str) -> None:
    (suite / "instances.csv").write_text(table)
    with pytest.raises(UnreadableFile):
        read_suite(suite)


@pytest.mark.parametrize("name", ["absent", "nul\0nul", "x" * 5000, "", "..", "b.onnx/under"])
def test_names_that_no_file_has(suite: Path, name: str) -> None:
    (suite / "instances.csv").write_text(f"onnx/{name},vnnlib/{name},1\n")
    (entry,) = read_suite(suite).entries
    assert entry.read_truth() is None
    with pytest.raises(UnreadableFile):
        entry.read_instance()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'{"schema": 1}', b'{"format": 1}', b'{"format": 2}', b"\xff\xfe"),
        b'{"format": 2, "dokimos": "0", "recipe": {}, "families": {"a": 1}}',
        b'{"format": 2, "dokimos": "0", "recipe": [], "families": {}}',
        b'{"format": 2, "dokimos": "0", "recipe": {}, "families": {}, "more": 1}',
    ],
)
def test_other_suite_files_are_refused(suite: Path, content: bytes) -> None:
    (suite / "suite.json").write_bytes(content)
    with pytest.raises(UnreadableFile):
        read_suite(suite)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"schema": 1, "recipe": {}}', "NAME"),
        ('{"format": 1, "suite": "quick"}', "quick"),
        ('{"format": 2, "suite": "quick; rm -r /"}', "NAME"),
        ('{"format": true, "suite": ["quick"]}', "NAME"),
    ],
)
def test_a_suite_of_another_format_is_refused_with_the_command_that_makes_it_again(
    suite: Path, content: str, named: str
) -> None:
    (suite / "suite.json").write_text(content)
    with pytest.raises(UnreadableFile, match=f"`dokimos generate --suite {named} --out FOLDER`$"):
        read_suite(suite)


def test_a_suite_knows_what_it_was_made_from(suite: Path) -> None:
    made = read_suite_file(suite)
    assert made is not None
    assert (made.dokimos, made.recipe, made.families) == ("0", {"x": 1}, dict.fromkeys("bac", "small"))
    (suite / "suite.json").unlink()
    assert read_suite_file(suite) is None


def test_a_folder_that_is_no_suite(tmp_path: Path, suite: Path) -> None:
    with pytest.raises(UnreadableFile, match="no such suite"):
        read_suite(tmp_path / "absent")
    with pytest.raises(UnreadableFile, match="no instances"):
        read_suite(tmp_path)
    (suite / "suite.json").unlink()
    assert read_suite(suite).entries[0].family == "suite"


def test_a_row_that_is_there_again_counts_once(suite: Path) -> None:
    table = suite / "instances.csv"
    before = read_suite(suite).entries
    first = table.read_text().splitlines()[0]
    table.write_text(f"{table.read_text()}{first}\n")
    assert read_suite(suite).entries == before
    table.write_text(f"{table.read_text()}{first.rpartition(',')[0]},12345\n")
    with pytest.raises(UnreadableFile, match="listed twice, differently"):
        read_suite(suite)


def test_names_that_collide_have_their_folders(tmp_path: Path) -> None:
    rows = [
        ("onnx/medical/net.onnx", "vnnlib/medical/box_1.vnnlib"),
        ("onnx/ruarobot/net.onnx", "vnnlib/ruarobot/box_1.vnnlib"),
        ("onnx/medical/net.onnx", "vnnlib/medical/box_2.vnnlib"),
        ("./onnx/one.onnx", "vnnlib/a/b/one.vnnlib"),
        ("onnx/one.onnx", "vnnlib/a/c/one.vnnlib"),
        ("onnx/one.onnx", "vnnlib/a/c/two.vnnlib"),
    ]
    assert instance_names(rows) == [
        "medical_net__medical_box_1",
        "ruarobot_net__ruarobot_box_1",
        "net__box_2",
        "one__b_one",
        "one__c_one",
        "one__two",
    ]
    (tmp_path / "instances.csv").write_text("".join(f"{a},{b},60\n" for a, b in rows))
    entries = read_suite(tmp_path).entries
    assert [entry.name for entry in entries] == instance_names(rows)
    assert entries[1].truth_path == tmp_path / "truth" / "ruarobot_net__ruarobot_box_1.json"


def test_other_names_are_those_of_the_files() -> None:
    rows = [("onnx/a/n.onnx", "vnnlib/a/p.vnnlib.gz"), ("onnx/b/n.onnx", "vnnlib/b/q.vnnlib")]
    assert instance_names(rows) == ["n__p", "n__q"]
    assert instance_names([("onnx/i.onnx", "vnnlib/i.vnnlib")] * 2) == ["i", "i"]


def test_a_table_may_be_named_after_its_benchmark(suite: Path) -> None:
    before = read_suite(suite)
    (suite / "instances.csv").rename(suite / "bench_instances.csv")
    assert read_suite(suite) == before
    (suite / "other_instances.csv").write_text("")
    with pytest.raises(UnreadableFile, match=r"no instances\.csv"):
        read_suite(suite)
