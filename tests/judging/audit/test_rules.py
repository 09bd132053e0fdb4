"""Each rule finds what it looks for in a made-up benchmark, and nothing in a good one."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from dokimos.api.results import Audit
from dokimos.core.files import reading_at_most
from dokimos.judging.audit import file_rules, lint
from dokimos.judging.audit.file_rules import Remark
from dokimos.judging.audit.instance_rules import ONE_SIDED, RUNTIME_DECIDES, TIME_NOT_NEEDED
from dokimos.judging.audit.lint import LINT_RULES, lint_benchmark, sarif
from dokimos.judging.audit.property_rules import FLOAT32_ROUNDING, can_never_hold
from dokimos.judging.audit.subjects import PublishedCategory, PublishedRuns
from dokimos.judging.verdicts import Judgement, Replay, Verdict
from dokimos.networks.summary import operators_of, operators_on_data
from dokimos.suites.answers import Answer
from dokimos.suites.folder import LintFinding, LintSeverity
from dokimos.suites.vnnlib.model import Linear
from dokimos.suites.vnnlib.reader import parse_vnnlib
from dokimos.verifiers.catalogue import VERIFIERS
from tests.difficulty.explain.sample import record
from tests.scripting import relu_network

DECLARED = "(declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n"
BOX = "".join(f"(assert (>= X_{i} -1.0))\n(assert (<= X_{i} 1.0))\n" for i in range(2))
HARD = "(assert (>= Y_0 2.0))\n"


def benchmark(
    folder: Path, text: str, *, rows: Sequence[str] = ("onnx/n.onnx,vnnlib/p.vnnlib,60",)
) -> Path:
    for name in ("onnx", "vnnlib"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "onnx" / "n.onnx").write_bytes(relu_network())
    (folder / "vnnlib" / "p.vnnlib").write_text(text)
    (folder / "instances.csv").write_text("\n".join(rows) + "\n")
    return folder


def found(folder: Path) -> dict[str, LintFinding]:
    return {finding.rule: finding for finding in lint_benchmark(folder, jobs=1)}


def test_good_files_have_no_faults(tmp_path: Path) -> None:
    text = DECLARED + BOX + "(assert (>= Y_0 2.0))\n(assert (<= X_0 0.5))\n"
    assert set(found(benchmark(tmp_path, text))) == {"easy-unsat"}


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        (DECLARED + BOX + "(assert (Y_0 <= 1.0))\n", "infix", 8),
        (DECLARED + BOX + "(assert (<= Y_0))\n", "damaged-property", 8),
        (DECLARED + BOX + "(assert (<= X_1 -2.0))\n" + HARD, "empty-box", 6),
        (DECLARED + BOX + "(assert (<= Y_0 1.0))\n(assert (>= Y_0 1.5))\n", "vacuous", 8),
        (DECLARED + BOX, "trivial", None),
        (DECLARED + BOX.replace("-1.0", "1.0") + HARD, "point-box", 4),
        (DECLARED + BOX + "(assert (or (and (>= Y_0 2.0)) (and (>= Y_0 2.0))))\n", "repeated-disjunct", 8),
        (
            DECLARED + BOX + "(assert (or (and (>= Y_0 2.0)) (and (>= Y_0 1.0) (<= Y_0 0.5))))\n",
            "dead-disjunct",
            8,
        ),
        (DECLARED + BOX + "(assert (>= Y_0 1.9999999))\n", "float32-rounding", 8),
        (DECLARED + BOX + "(assert (<= Y_0 1e39))\n", "float32-overflow", 8),
        (DECLARED + BOX + "(assert (>= Y_0 0.5))\n", "easy-sat", None),
        (DECLARED + BOX + "(assert (>= Y_0 2.5))\n", "easy-unsat", None),
    ],
)
def test_a_property_with_a_fault_is_found(tmp_path: Path, text: str, rule: str, line: int | None) -> None:
    findings = found(benchmark(tmp_path, text))
    assert rule in findings
    assert findings[rule].file == str(tmp_path / "vnnlib" / "p.vnnlib")
    assert findings[rule].line == line
    assert findings[rule].reason and findings[rule].remedy


@pytest.mark.parametrize(
    ("decimal", "example"),
    [
        # The float32 number nearest to 0.1, in 17 digits: another decimal, the same number to both readers.
        ("0.10000000149011612", ""),
        ("1.9999999", "1.9999999: 1.9999998807907104 in float32, 1.9999999 in float64"),
        ("0.5 ; not 0.1, which comments may name\n", ""),
        ("0.100000001", "0.100000001: 0.10000000149011612 in float32, 0.100000001 in float64"),
    ],
)
def test_a_decimal_is_rounded_differently_where_two_readers_see_two_numbers(
    tmp_path: Path, decimal: str, example: str
) -> None:
    finding = found(benchmark(tmp_path, DECLARED + BOX + f"(assert (>= Y_0 {decimal}))\n")).get(
        "float32-rounding"
    )
    assert (finding is None) is not bool(example)
    assert finding is None or finding.reason.endswith(f"in 1 constant, e.g. {example}")


@pytest.mark.parametrize(
    ("rows", "rule", "line"),
    [
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "onnx/gone.onnx,vnnlib/p.vnnlib,60"], "missing-file", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "../n.onnx,vnnlib/p.vnnlib,60"], "file-elsewhere", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "onnx/link.onnx,vnnlib/p.vnnlib,60"], "file-elsewhere", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "onnx/cut.onnx,vnnlib/p.vnnlib,60"], "unreadable-file", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "onnx/lfs.onnx,vnnlib/p.vnnlib,60"], "missing-file", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "onnx/wide.onnx,vnnlib/p.vnnlib,60"], "large-file", 2),
        ([""], "no-instances", None),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60"] * 2, "listed-twice", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib,60", "onnx/same.onnx,vnnlib/p.vnnlib,60"], "same-content", 2),
        (["onnx/n.onnx,vnnlib/p.vnnlib"], "bad-row", 1),
        (["onnx/n.onnx,vnnlib/p.vnnlib,soon"], "bad-row", 1),
        (["[nonsense,vnnlib/p.vnnlib,60"], "bad-row", 1),
    ],
)
def test_a_table_with_a_fault_is_found(
    tmp_path: Path, rows: list[str], rule: str, line: int | None
) -> None:
    folder = benchmark(tmp_path, DECLARED + BOX + HARD, rows=rows)
    (folder / "onnx" / "same.onnx").write_bytes(relu_network())
    (folder / "onnx" / "link.onnx").symlink_to("/etc/hostname")
    (folder / "onnx" / "cut.onnx").write_bytes(gzip.compress(relu_network())[:-9])
    (folder / "onnx" / "lfs.onnx").write_text("version https://git-lfs.github.com/spec/v1\nsize 9\n")
    (folder / "onnx" / "wide.onnx").write_bytes(gzip.compress(b"\0" * 9999))
    with reading_at_most(9998):
        findings = found(folder)
    assert {one.rule for one in findings.values() if one.severity is LintSeverity.ERROR} <= {rule}
    assert (findings[rule].file, findings[rule].line) == (str(tmp_path / "instances.csv"), line)


def test_a_network_that_is_none_is_found(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, DECLARED + BOX + HARD)
    (folder / "onnx" / "n.onnx").write_bytes(b"\x08\x01 nonsense")
    assert "damaged-network" in found(folder)
    (folder / "onnx" / "n.onnx").write_bytes(relu_network().replace(b"MatMul", b"MatMup"))
    assert "runtime-refuses" in found(folder)


def test_a_table_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, DECLARED + BOX + HARD)
    (folder / "instances.csv").write_bytes(b"\xff\xfe")
    assert set(found(folder)) == {"unreadable-file"}


def test_what_dokimos_does_not_read_or_does_not_fit_is_said(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, DECLARED + BOX + HARD)
    (folder / "onnx" / "n.onnx").write_bytes(relu_network().replace(b"Relu", b"Gelu"))
    assert "Gelu" in found(folder)["not-read"].reason
    third = "(declare-const X_2 Real)\n(assert (<= X_2 0))\n(assert (>= X_2 0))\n"
    folder = benchmark(tmp_path, third + DECLARED + BOX + HARD)
    finding = found(folder)["does-not-fit"]
    assert "the network has 2 inputs and 1 output, the property 3 inputs" in finding.reason


def test_a_box_in_which_nothing_varies_is_found(tmp_path: Path) -> None:
    off = (
        BOX.replace("-1.0", "-3.0").replace("<= X_0 1.0", "<= X_0 -2.0").replace("<= X_1 1.0", "<= X_1 -2")
    )
    assert "constant-output" in found(benchmark(tmp_path, DECLARED + off + HARD))
    assert "constant-output" not in found(benchmark(tmp_path, DECLARED + BOX + HARD))


def test_operators_that_an_installed_verifier_does_not_read_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {"narrow 1.0": frozenset({"Tanh", "Sin"})}
    monkeypatch.setattr(file_rules, "unread_by_installed", lambda: installed)
    folder = benchmark(tmp_path, DECLARED + BOX + HARD)
    assert "unread-operators" not in found(folder)
    (folder / "onnx" / "n.onnx").write_bytes(relu_network().replace(b"Relu", b"Tanh"))
    finding = found(folder)["unread-operators"]
    assert finding.severity is LintSeverity.NOTE
    assert "narrow 1.0 does not support Tanh" in finding.reason


def test_operators_on_shapes_are_not_counted() -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy")
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Div", ["s", "one"], ["t"]),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    content = helper.make_model(helper.make_graph(nodes, "g", [x], [y], [one])).SerializeToString()
    assert operators_on_data(content) == {"Reshape"}
    assert set(operators_of(content)) == {"Shape", "Div", "Reshape"}


@pytest.mark.parametrize("name", ["marabou", "neuralsat", "never2", "vibecheck"])
def test_what_verifiers_do_not_read_is_what_was_measured(name: str) -> None:
    page = Path(__file__).parents[3] / "studies" / "results" / "state-2026-11-16.md"
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.read_text().splitlines()]
    (head,) = (cells for cells in lines if cells[:2] == ["operator", "form"] and name in cells)
    column, measured = head.index(name), dict[str, set[str]]()
    for cells in lines[lines.index(head) + 2 :]:
        if len(cells) != len(head):
            break
        measured.setdefault(cells[0], set()).add(cells[column])
    unread = set(VERIFIERS[name].unread_operators.split())
    assert unread & set(measured)
    assert {
        op: measured[op] for op in unread & set(measured) if measured[op] - {"unsupported", "error"}
    } == {}


def test_an_old_property_in_a_folder_for_the_new_ones_is_found(tmp_path: Path) -> None:
    text = DECLARED + BOX + HARD
    assert "old-version" in found(benchmark(tmp_path / "b" / "2.0", text))
    assert "old-version" not in found(benchmark(tmp_path / "b" / "1.0", text))


def test_a_product_of_variables_is_noted(tmp_path: Path) -> None:
    text = (
        "(vnnlib-version <2.0>)\n(declare-network f\n(declare-input X real [1,2])\n"
        "(declare-output Y real [1,1]))\n"
        + "".join(f"(assert (and (>= X[0,{i}] -1.0) (<= X[0,{i}] 1.0)))\n" for i in range(2))
        + "(assert (>= (* X[0,0] Y[0,0]) 1.5))\n"
    )
    findings = found(benchmark(tmp_path, text))
    assert findings["products"].severity is LintSeverity.NOTE
    assert findings["products"].line == 7


def test_instances_of_several_networks_are_tried_as_one(tmp_path: Path) -> None:
    text = "(vnnlib-version <2.0>)\n" + "".join(
        f"(declare-network {f} (declare-input X{f} real [1,2]) (declare-output Y{f} real [1,1]))\n"
        for f in "fg"
    )
    text += "".join(
        f"(assert (and (>= X{f}[0,{i}] -1) (<= X{f}[0,{i}] 1)))\n" for f in "fg" for i in (0, 1)
    )
    networks = "[('f','onnx/n.onnx'),('g','onnx/n.onnx')]"
    row = f'"{networks}",vnnlib/p.vnnlib,60'
    findings = found(benchmark(tmp_path / "a", text + "(assert (< Yf[0,0] Yg[0,0]))\n", rows=[row]))
    assert findings["easy-sat"].file == str(tmp_path / "a" / "vnnlib" / "p.vnnlib")
    assert "with n.onnx: it is sat" in findings["easy-sat"].reason
    findings = found(benchmark(tmp_path / "b", text + "(assert (> Yf[0,0] (+ Yg[0,0] 4)))\n", rows=[row]))
    assert "easy-unsat" in findings


def conjunction(*asserts: str) -> tuple[Linear, ...]:
    (case,) = parse_vnnlib(DECLARED + BOX + "".join(f"(assert {one})\n" for one in asserts)).cases
    (only,) = case.any_of
    return only


def test_only_what_is_certain_is_called_contradictory() -> None:
    assert can_never_hold(conjunction("(<= Y_0 1.0)", "(>= Y_0 1.25)"))
    assert not can_never_hold(conjunction("(<= Y_0 1.0)", "(>= Y_0 1.0)"))
    assert not can_never_hold(conjunction("(<= Y_0 1.0)", "(<= Y_0 -5.0)"))
    strict = [replace(one, strict=True) for one in conjunction("(<= Y_0 1.0)", "(>= Y_0 1.0)")]
    assert can_never_hold(strict)


def test_a_time_limit_that_nobody_needs_is_found() -> None:
    quick = replace(record("i", Answer.UNSAT), wall_seconds=2.0)
    slow = replace(record("i", Answer.SAT, verifier="slow"), wall_seconds=30.0)
    late = record("i", Answer.TIMEOUT, verifier="late")

    def rules(*runs: object) -> list[LintFinding]:
        return TIME_NOT_NEEDED.findings(PublishedRuns(100.0, tuple(runs)), "instances.csv")  # type: ignore[arg-type]

    assert [one.rule for one in rules(quick)] == ["time-not-needed"]
    assert rules(quick, slow) == []
    assert rules(quick, late) == []
    assert rules(late) == []


def test_answers_that_are_all_the_same_are_one_sided() -> None:
    def rules(answers: Sequence[Answer]) -> list[LintFinding]:
        judged = [
            Judgement(record(f"i{k}", answer), None, None, Verdict.UNLABELLED, "", None, "")
            for k, answer in enumerate(answers)
        ]
        return ONE_SIDED.findings(PublishedCategory(tuple(judged)), "bench")

    (finding,) = rules([Answer.UNSAT] * 8 + [Answer.TIMEOUT])
    assert finding.reason == "every answer is unsat, on 8 instances and by all tools"
    assert rules([Answer.UNSAT] * 7) == []
    assert rules([Answer.UNSAT] * 8 + [Answer.SAT]) == []


def test_a_benchmark_whose_instances_are_all_easily_sat_is_one_sided(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, DECLARED + BOX + "(assert (>= Y_0 0.5))\n")
    for k in range(8):
        text = DECLARED + BOX + f"(assert (>= Y_0 0.{k}5))\n"
        (folder / "vnnlib" / f"p{k}.vnnlib").write_text(text)
    rows = [f"onnx/n.onnx,vnnlib/p{k}.vnnlib,60" for k in range(8)]
    (folder / "instances.csv").write_text("\n".join(rows[:7]))
    assert "one-sided" not in found(folder), "seven may be so by chance"
    (folder / "instances.csv").write_text("\n".join(rows))
    one = found(folder)["one-sided"]
    assert (one.file, one.reason) == (
        str(folder / "instances.csv"),
        "all 8 instances are sat, each of them easily so",
    )
    (folder / "vnnlib" / "p3.vnnlib").write_text(DECLARED + BOX + "(assert (>= Y_0 2.5))\n")
    assert "one-sided" not in found(folder)


def test_an_instance_that_is_sat_in_floats_only_depends_on_the_runtime() -> None:
    def judged(verifier: str, *, exactly: bool) -> Judgement:
        run = replace(record("i", Answer.SAT, verifier=verifier), witness=(Fraction(1),))
        replay = Replay(
            in_box=True,
            outside_by=Fraction(0),
            violates_exactly=exactly,
            violation=Fraction(0),
            exact_outputs=(),
            violates_in_onnxruntime=True,
            onnxruntime_outputs=(),
            witness_in_float32=True,
        )
        return Judgement(run, None, None, Verdict.ROUNDING, "", replay, "")

    floats, exact = judged("a", exactly=False), judged("b", exactly=True)
    assert [one.rule for one in RUNTIME_DECIDES.findings(PublishedCategory((floats,)), "b")] == [
        "runtime-decides"
    ]
    assert RUNTIME_DECIDES.findings(PublishedCategory((floats, exact)), "b") == []


def test_rules_have_names_of_their_own_and_remedies() -> None:
    assert len({rule.name for rule in LINT_RULES}) == len(LINT_RULES)
    assert all(rule.about and rule.remedy for rule in LINT_RULES)


def test_a_fault_of_ours_hides_no_other_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(subject: object) -> list[Remark]:
        raise ZeroDivisionError("by\nchance")

    broken = replace(FLOAT32_ROUNDING, look=fail)
    rules = [broken if rule is FLOAT32_ROUNDING else rule for rule in lint.PROPERTY_RULES]
    monkeypatch.setattr(lint, "PROPERTY_RULES", rules)
    seen = found(benchmark(tmp_path, DECLARED + BOX + HARD))
    assert set(seen) == {"fault", "easy-sat"}
    assert "a fault of Dokimos: ZeroDivisionError: by chance (rule float32-rounding)" in str(seen["fault"])
    assert str(tmp_path / "vnnlib" / "p.vnnlib") in str(seen["fault"])
    assert Audit(tuple(seen.values())).has_fault
    assert not Audit((seen["easy-sat"],)).has_fault


def test_findings_are_sarif(tmp_path: Path) -> None:
    folder = benchmark(tmp_path, DECLARED + BOX + "(assert (Y_0 <= 1.0))\n")
    (run,) = json.loads(sarif(lint_benchmark(folder, jobs=1)))["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (result["ruleId"], result["level"], place["region"]["startLine"]) == ("infix", "error", 8)
    assert place["artifactLocation"]["uri"].endswith("vnnlib/p.vnnlib")
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {rule.name for rule in LINT_RULES}


def test_a_folder_without_a_table_is_no_benchmark(tmp_path: Path) -> None:
    assert "it has no instances.csv" in found(tmp_path)["unreadable-file"].reason


def test_what_was_found_is_kept_for_the_same_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    folder = benchmark(tmp_path / "bench", DECLARED + BOX + "(assert (>= Y_0 0.5))\n")
    said: list[str] = []

    def again() -> set[str]:
        said.clear()
        findings = lint_benchmark(folder, jobs=1, linted=lambda _done, _total, name: said.append(name))
        assert all(isinstance(one, LintFinding) for one in findings)
        return {one.rule for one in findings}

    assert (again(), said) == ({"easy-sat"}, ["p.vnnlib"])
    assert (again(), said) == ({"easy-sat"}, ["kept from before"])
    with reading_at_most(1 << 20):  # a limit decides what is read
        assert (again(), said) == ({"easy-sat"}, ["p.vnnlib"])
    (folder / "vnnlib" / "p.vnnlib").write_text(DECLARED + BOX + "(assert (>= Y_0 2.5))\n")
    assert (again(), said) == ({"easy-unsat"}, ["p.vnnlib"])


def test_a_fault_of_ours_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path / "home"))
    folder = benchmark(tmp_path / "bench", DECLARED + BOX + "(assert (>= Y_0 0.5))\n")

    def by_chance(_: object) -> Sequence[Remark]:
        raise ZeroDivisionError("by chance")

    with monkeypatch.context() as broken:
        broken.setattr(lint, "PROPERTY_RULES", (replace(FLOAT32_ROUNDING, look=by_chance),))
        assert "fault" in found(folder)
    assert set(found(folder)) == {"easy-sat"}
