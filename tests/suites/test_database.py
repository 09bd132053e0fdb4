"""Labels are kept by what an instance means: copies are one record, changes are another."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import dokimos
from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.judging.audit import lint
from dokimos.judging.verdicts import Verdict
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.database import Database, Seen, meaning
from dokimos.suites.vnnlib.reader import parse_vnnlib
from tests.campaigns.published import write_benchmark, write_results
from tests.scripting import at_least, relu_network

DECLARED = "(declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
BOX = "".join(f"(assert (>= X_{i} 0))\n(assert (<= X_{i} 1))\n" for i in range(2))
ASKED = DECLARED + BOX + "(assert (or (and (>= Y_0 1.5) (<= X_0 0.5)) (and (<= Y_0 -1))))\n"


def key(network: bytes, text: str = ASKED) -> str:
    return meaning(read_onnx(network), parse_vnnlib(text))


def exported_again(network: bytes) -> bytes:
    """The same graph with other names, its constants in another order, and a node that nothing reads."""
    model = onnx.load_model_from_string(network)
    names = {name: f"t{k}" for k, name in enumerate(["x", "w", "h", "r", "v", "y"])}
    nodes = [
        helper.make_node(n.op_type, [names[i] for i in n.input], [names[o] for o in n.output])
        for n in model.graph.node
    ]
    nodes.append(helper.make_node("Relu", ["t0"], ["unused"]))
    weights = [
        numpy_helper.from_array(numpy_helper.to_array(t), names[t.name]) for t in model.graph.initializer
    ]
    graph = helper.make_graph(
        nodes,
        "again",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("t5", TensorProto.FLOAT, [1, 1])],
        weights[::-1],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(made.SerializeToString())


def test_a_copy_has_the_same_key(tmp_path: Path) -> None:
    network = relu_network()
    again = exported_again(network)
    assert again != network and key(again) == key(network)
    for same in (
        ASKED.replace(
            "(and (>= Y_0 1.5) (<= X_0 0.5)) (and (<= Y_0 -1))",
            "(and (<= Y_0 -1)) (and (<= X_0 0.5) (>= Y_0 1.5))",
        ),
        ASKED.replace("(>= Y_0 1.5)", "(<= (* -2.0 Y_0) -3.0)"),
        "; a comment\n" + ASKED.replace("1.5", "1.50"),
    ):
        assert key(network, same) == key(network)


@pytest.mark.parametrize(
    ("old", "new"),
    [("1.5", "1.5000001"), ("(>= Y_0 1.5)", "(> Y_0 1.5)"), ("(<= X_1 1)", "(<= X_1 2)"), ("-1)", "-2)")],
)
def test_another_question_has_another_key(old: str, new: str) -> None:
    assert old in ASKED
    assert key(relu_network(), ASKED.replace(old, new, 1)) != key(relu_network())


def test_another_network_has_another_key() -> None:
    tiny = float(np.nextafter(np.float32(1), np.float32(2)))
    swapped = onnx.load_model_from_string(relu_network())
    swapped.graph.node[1].op_type = "Tanh"
    keys = {key(relu_network()), key(relu_network(tiny)), key(bytes(swapped.SerializeToString()))}
    assert len(keys) == 3


def test_renamed_and_compressed_copies_are_one_record(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = dokimos.read_suite(copy_of_tiny(tmp_path / "tiny"))
    store = tmp_path / "db"
    first = dokimos.add_labels(suite, database=store, year=2025)
    assert len(first.labels) == len(suite)
    assert len(dokimos.find_labels(database=store, label="unsat").labels) == 2
    assert len(dokimos.find_labels(database=store, operators=["Relu"], years="2023-").labels) == 4
    assert dokimos.find_labels(database=store, operators=["Softmax"]).labels == ()
    assert dokimos.find_labels(database=store, years="2021-2024").labels == ()
    # The same files as their authors publish them: other names, compressed, without labels.
    theirs = tmp_path / "theirs"
    rows = []
    for k, entry in enumerate(suite):
        for name, path in ((f"{k}.onnx", entry.network_path), (f"{k}.vnnlib", entry.property_path)):
            (theirs / "files").mkdir(parents=True, exist_ok=True)
            (theirs / "files" / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        rows.append(f"files/{k}.onnx,files/{k}.vnnlib,60")
    (theirs / "instances.csv").write_text("\n".join(rows))
    found = dokimos.find_labels(database=store, label="sat")
    made = dokimos.export_labels(found, theirs, out=tmp_path / "mine")
    assert made.suite is not None and len(made.suite) == 2 and made.left_out == ()
    checked = dokimos.check(tmp_path / "mine")
    assert checked.is_proven and {one.label for one in checked.entries} == {"sat"}


def test_what_is_not_proven_is_neither_kept_nor_given_out(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = dokimos.read_suite(copy_of_tiny(tmp_path / "tiny"))
    entry = next(e for e in suite if json.loads(e.truth_path.read_text())["label"] == "unsat")
    kept = Database(tmp_path / "db").add(entry, Seen("tiny", entry.name), found="2026-01-01")
    document = json.loads(entry.truth_path.read_text())
    other = next(e for e in suite if e.name != entry.name and "unsat" in e.truth_path.read_text())
    document["certificate"] = json.loads(other.truth_path.read_text())["certificate"]
    entry.truth_path.write_text(json.dumps(document))
    assert entry.name not in {
        one.seen[0].instance for one in dokimos.add_labels(suite, database=tmp_path / "new").labels
    }
    false = dokimos.FoundLabels((replace(kept, truth=json.dumps(document)),))
    made = dokimos.export_labels(false, suite, out=tmp_path / "mine")
    assert made.suite is None and [name for name, _ in made.left_out] == [entry.name]
    document["label"] = "sat"
    entry.truth_path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="one of the two proofs is wrong"):
        Database(tmp_path / "db").add(entry, Seen("tiny", entry.name), found="2026-01-01")


def test_years_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="write it like 2025, 2023- or 2021-2024"):
        dokimos.find_labels(database=tmp_path, years="soon")
    with pytest.raises(InputError, match="must be sat or unsat"):
        dokimos.find_labels(database=tmp_path, label="open")
    assert at_least("1") and dokimos.find_labels(database=tmp_path).to_records() == []


def test_a_database_in_one_file_is_taken_over_and_joined(
    copy_of_tiny: Callable[[Path], Path], tmp_path: Path
) -> None:
    suite = dokimos.read_suite(copy_of_tiny(tmp_path / "tiny"))
    packed = tmp_path / "labels.jsonl.gz"
    made = dokimos.add_labels(suite, database=packed, year=2025)
    content = packed.read_bytes()
    assert len(made.labels) == len(suite) == len(gzip.decompress(content).splitlines())
    dokimos.add_labels(suite, database=packed, year=2025)
    assert packed.read_bytes() == content
    taken = dokimos.add_labels(str(packed), database=tmp_path / "db")
    assert {one.key for one in taken.labels} == {one.key for one in made.labels}
    for entry in suite:
        entry.truth_path.unlink()
    found = dokimos.find_labels(database=packed, label="unsat")
    joined = dokimos.export_labels(found, suite, out=tmp_path / "mine")
    assert joined.suite is not None and len(joined.suite) == len(found.labels) == 2
    assert dokimos.check(tmp_path / "mine").is_proven


def test_what_is_no_database_is_one_sentence(copy_of_tiny: Callable[[Path], Path], tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match=r"notes.txt: a database is a folder, or a file NAME.jsonl.gz"):
        dokimos.find_labels(database=tmp_path / "notes.txt")
    for name in ("missing", "missing.jsonl.gz"):
        with pytest.raises(InputError, match=f"{name}: there is no such database"):
            dokimos.find_labels(database=tmp_path / name)
    packed = tmp_path / "labels.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"key": 1}\n'))
    with pytest.raises(InputError, match=r"labels.jsonl.gz:1"):
        dokimos.find_labels(database=packed)
    (good, *_) = dokimos.add_labels(copy_of_tiny(tmp_path / "tiny"), database=tmp_path / "db").labels
    packed.write_text(strict_json.write(replace(good, key="../outside"), indent=None))
    with pytest.raises(InputError, match=r"labels.jsonl.gz:1: .* a key of 64 hexadecimal digits"):
        dokimos.add_labels(packed, database=tmp_path / "db")
    packed.write_bytes(b"\x1f\x8bno")
    with pytest.raises(InputError, match=r"labels.jsonl.gz: the compressed file is truncated or damaged"):
        dokimos.add_labels(packed, database=tmp_path / "db")


def test_an_operator_that_nobody_has_is_named(tmp_path: Path) -> None:
    assert dokimos.find_labels(database=tmp_path, operators=["Softmax"]).labels == ()
    with pytest.raises(InputError, match=r"'Softmx': neither ONNX nor a kept network has one .*Softmax"):
        dokimos.find_labels(database=tmp_path, operators=["Softmx"])


def test_an_audit_uses_the_labels_of_the_database_and_proves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    bench = write_benchmark(tmp_path / "bench")
    monkeypatch.setattr(lint, "INSTANCE_RULES", ())  # which would settle instances as small as these
    results = write_results(tmp_path / "results", "bench", {"t": [("two", "unsat", None)]})

    def verdict() -> Verdict:
        audited = dokimos.audit(bench, results=results, out=tmp_path / "campaign", jobs=1)
        assert audited.judged is not None
        return audited.judged.judgements[0].verdict

    assert verdict() is Verdict.UNLABELLED
    dokimos.label(bench, budget_seconds=5)
    entry = next(e for e in dokimos.read_suite(bench) if e.name == "net__two")
    kept = Database.at(None).add(entry, Seen("bench", entry.name), found="2026-01-01")
    entry.truth_path.unlink()
    document = json.loads(kept.truth)
    document["certificate"]["data"] = {}
    false = replace(kept, truth=json.dumps(document))
    for record, expected in ((false, Verdict.UNLABELLED), (kept, Verdict.CORRECT)):
        (tmp_path / "home" / "database" / f"{kept.key}.json").write_text(strict_json.write(record))
        for label in (tmp_path / "campaign").glob("labels/*/*.json"):
            label.unlink()
        assert verdict() is expected
