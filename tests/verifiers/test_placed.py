"""Verifiers at a place that the user gives: folders of VNN-COMP tools, and solvers of VNN-LIB 2.0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.suites.entry import read_vnnlib_file
from dokimos.verifiers.base import Verifier
from dokimos.verifiers.catalogue import VERIFIERS, catalogue, find, installed
from dokimos.verifiers.result_file import declared_network, in_vnnlib2
from tests.verifiers.recording import SMALL, Question, ask, at_least

QUESTION = Question(SMALL, at_least("8.0", inputs=2), wall_seconds=60, told_seconds=20)
WITNESS = "((X_0 1.0)\n(X_1 -1.0)\n(Y_0 8.5703125))"


def run(verifier: Verifier, folder: Path, question: Question = QUESTION) -> VerifierAnswer:
    query, outcome, log = ask(verifier, question, folder)
    return verifier.answer(outcome, query, log)


def tool(folder: Path, run_script: str, prepare_script: str | None = None) -> str:
    folder.mkdir(parents=True)
    (folder / "run_instance.sh").write_text(run_script)
    if prepare_script is not None:
        (folder / "prepare_instance.sh").write_text(prepare_script)
    return f"vnncomp={folder}"


def test_a_tool_is_prepared_and_run_as_in_the_competition(tmp_path: Path) -> None:
    prepare = f'echo prepare "$@" > {tmp_path}/calls\n'
    script = f'echo run "$@" >> {tmp_path}/calls\nprintf "sat\\n{WITNESS}" > "$5"\n'
    given = run(installed(tool(tmp_path / "tool", script, prepare)), tmp_path)
    assert given.answer is Answer.SAT
    assert given.witness == (1, -1)
    prepared, ran = (tmp_path / "calls").read_text().splitlines()
    files = f"{tmp_path}/n.onnx {tmp_path}/p.vnnlib"
    assert prepared == f"prepare v1 test {files}"
    *words, seconds = ran.split()
    assert " ".join(words) == f"run v1 test {files} {tmp_path}/work/result"
    assert 1 <= int(seconds) <= 20


def test_the_category_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOKIMOS_VNNCOMP_CATEGORY", "acasxu")
    given = tool(tmp_path / "tool", '[ "$2" = acasxu ] && echo unsat > "$5"\n')
    assert run(installed(given), tmp_path).answer is Answer.UNSAT


@pytest.mark.parametrize(
    ("script", "prepare", "detail"),
    [
        ("echo unsat\n", None, "no readable answer (it wrote no result file)"),
        ('echo "all is unsat" > "$5"\n', None, "which is not a verdict"),
        ('mkfifo "$5"\n', None, "no readable answer (what it wrote as its result is not a file)"),
        ('ln -s /dev/zero "$5"\n', None, "what it wrote as its result is not a file"),
        ('echo unsat > "$5"; exit 3\n', None, "exit code 3"),
        ('echo unsat > "$5"\n', "echo no; exit 4\n", "prepare_instance.sh exited with code 4"),
    ],
)
def test_anything_else_is_an_error(tmp_path: Path, script: str, prepare: str | None, detail: str) -> None:
    given = run(installed(tool(tmp_path / "tool", script, prepare)), tmp_path)
    assert given.answer is Answer.ERROR
    assert detail in given.detail


def test_the_version_follows_the_scripts_and_the_commit(tmp_path: Path) -> None:
    verifier = find(tool(tmp_path / "tool", "true\n"))
    versions = [verifier.version()]
    (tmp_path / "tool" / "prepare_instance.sh").write_text("true\n")
    versions.append(verifier.version())
    (tmp_path / "tool" / ".git" / "refs").mkdir(parents=True)
    (tmp_path / "tool" / ".git" / "HEAD").write_text("ref: refs/main\n")
    for commit in ("aaaa", "bbbb"):
        (tmp_path / "tool" / ".git" / "refs" / "main").write_text(commit)
        versions.append(verifier.version())
    assert None not in versions
    assert len(set(versions)) == 4


def test_the_version_follows_the_repository_around_the_scripts(tmp_path: Path) -> None:
    """As α,β-CROWN and nnenum have them: in a folder of the repository."""
    verifier = find(tool(tmp_path / "repository" / "vnncomp_scripts", "true\n"))
    versions = [verifier.version()]
    git = tmp_path / "repository" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    for commit in ("aaaa", "bbbb"):
        (git / "packed-refs").write_text(f"{commit} refs/heads/main\n")
        versions.append(verifier.version())
    assert len(set(versions)) == 3


def test_another_category_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = find(tool(tmp_path / "tool", "true\n"))
    usual = verifier.version()
    monkeypatch.setenv("DOKIMOS_VNNCOMP_CATEGORY", "acasxu")
    assert verifier.version() == f"{usual}-acasxu"
    monkeypatch.setenv("DOKIMOS_VNNCOMP_CATEGORY", "")
    assert verifier.version() == usual


def test_every_edit_of_a_file_is_another_version(tmp_path: Path) -> None:
    """Committed or not: answers of before an edit are not those of the tool as it is."""
    verifier = find(tool(tmp_path / "repository" / "vnncomp_scripts", "true\n"))
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / ".gitignore").write_text("out/\n")
    source = repository / "tool.py"
    versions = []
    for text in ("bug = 1\n", "bug = 0\n", "bug = 1\n"):
        source.write_text(text)
        versions.append(verifier.version())
    assert versions[0] == versions[2] != versions[1]
    (repository / "out").mkdir()
    (repository / "out" / "answers").write_text("what it leaves behind is not what it is")
    (repository / "__pycache__").mkdir()
    assert verifier.version() == versions[2]


def test_a_version_can_be_named(tmp_path: Path) -> None:
    given = tool(tmp_path / "tool", "true\n")
    assert find(f"{given},version=2.1").version() == "2.1"


def test_settings_follow_a_place_and_are_part_of_the_version(tmp_path: Path) -> None:
    given = tool(tmp_path / "a,b=c", '[ "$2" = acasxu ] && echo unsat > "$5"\n')
    verifier = installed(f"{given},category=acasxu")
    assert run(verifier, tmp_path).answer is Answer.UNSAT
    assert verifier.version() != find(given).version()


@pytest.mark.parametrize("before", ["", "mine=", "mine=vnncomp="])
def test_a_setting_that_there_is_none_of_is_named(tmp_path: Path, before: str) -> None:
    place = tool(tmp_path / "tool", "exit 1\n").removeprefix("" if not before else "vnncomp=")
    with pytest.raises(VerifierUnavailable, match=r"no setting 'categry' \(did you mean category\?\)"):
        installed(f"{before}{place},categry=acasxu")
    with pytest.raises((VerifierUnavailable, InputError)) as nowhere:
        installed(f"{before}{place}-gone,categry=acasxu")
    assert "no setting" not in str(nowhere.value)


def test_a_category_from_the_environment_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = tool(tmp_path / "tool", "true\n")
    monkeypatch.setenv("DOKIMOS_VNNCOMP_CATEGORY", "acasxu")
    assert find(given).called_as == f"{given},category=acasxu"
    assert find(f"mine={given}").called_as == f"mine={given},category=acasxu"


def test_a_tool_has_the_name_that_the_user_gives_it(tmp_path: Path) -> None:
    given = tool(tmp_path / "tool", 'echo unsat > "$5"\n')
    folder = given.partition("=")[2]
    for named in (f"mine={folder}", f"mine={given}"):
        verifier = installed(named)
        assert verifier.name == "mine"
        assert verifier.called_as == f"mine={given}"
        assert find(verifier.called_as).called_as == verifier.called_as
    assert run(verifier, tmp_path).answer is Answer.UNSAT
    assert installed("mine=reference").name == "mine"
    assert installed(f"mine={sys.executable} -c pass").called_as == f"mine=vnnlib2={sys.executable} -c pass"
    with pytest.raises(InputError, match=r"neither a folder that holds run_instance\.sh, nor a command"):
        find("mine=/nowhere/at/all")


def test_the_name_and_the_attack_go_together(tmp_path: Path) -> None:
    given = tool(tmp_path / "tool", "true\n")
    (tmp_path / "tool" / "run_instance_without_attack.sh").write_text("true\n")
    quiet = find(f"mine={given}:no-attack")
    assert (quiet.name, quiet.called_as) == ("mine:no-attack", f"mine={given}:no-attack")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "AssertionError: Onnx model contains node with op Pow, which is unsupported. Updated it",
            "operator Pow",
        ),
        ("NotImplementedError: Conversion not implemented for op_type=Hardmax.", "operator Hardmax"),
        ("NotImplementedError: LSTM clip 3", "LSTM clip 3"),
    ],
)
def test_what_a_tool_cannot_read_is_unsupported(tmp_path: Path, line: str, said: str) -> None:
    given = run(installed(tool(tmp_path / "tool", f"echo '{line}'; exit 1\n")), tmp_path)
    assert (given.answer, given.detail) == (Answer.UNSUPPORTED, said)


def test_a_log_that_mentions_it_early_explains_nothing(tmp_path: Path) -> None:
    script = "echo 'NotImplementedError: fast path'\nfor i in 1 2 3 4 5 6; do echo step; done; exit 1\n"
    assert run(installed(tool(tmp_path / "tool", script)), tmp_path).answer is Answer.ERROR


def test_the_words_of_2021(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert (
        run(installed(tool(tmp_path / "1", 'echo holds > "$5"\n')), tmp_path / "a").answer is Answer.UNSAT
    )
    assert run(installed(tool(tmp_path / "2", 'echo violated > "$5"\n')), tmp_path).answer is Answer.SAT


def test_a_place_without_a_tool(tmp_path: Path) -> None:
    with pytest.raises(VerifierUnavailable, match=r"there is no file .*run_instance\.sh"):
        installed(f"pyrat={tmp_path}")
    (finding,) = find(f"pyrat={tmp_path}").diagnose()
    assert not finding.is_ok
    assert "--verifier pyrat=" in finding.remedy


def test_no_place_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOKIMOS_NNENUM", raising=False)
    with pytest.raises(VerifierUnavailable, match="nnenum is not installed; to get it: "):
        installed("nnenum")
    with pytest.raises(InputError, match="needs a place"):
        find("nnenum=")
    with pytest.raises(InputError, match="write only marabou"):
        find("marabou=/opt")
    (finding,) = find("nnenum").diagnose()
    assert "no path given" in finding.what


def test_a_place_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool(tmp_path / "tool", 'echo unknown > "$5"\n')
    monkeypatch.setenv("DOKIMOS_PYRAT", str(tmp_path / "tool"))
    verifier = installed("pyrat")
    assert verifier.name == "pyrat"
    assert run(verifier, tmp_path).answer is Answer.UNKNOWN
    assert [finding.is_ok for finding in verifier.diagnose()] == [True]


SOLVER = """
import pathlib, sys
assert sys.argv[1] == "verify" and sys.argv[3] == "--network" and sys.argv[5] == "--timeout", sys.argv
name, _, network = sys.argv[4].partition("=")
text = pathlib.Path(sys.argv[2]).read_text()
assert pathlib.Path(network).is_file() and f"(declare-network {name}" in text, text
print("unsat, says the log", file=sys.stderr)
ANSWER
"""


def solver(folder: Path, answer: str) -> str:
    (folder / "solver.py").write_text(SOLVER.replace("ANSWER", answer))
    return f"vnnlib2={sys.executable} {folder / 'solver.py'}"


def test_a_solver_of_vnnlib_2(tmp_path: Path) -> None:
    answer = 'print("sat\\nX real [1,2]\\n1.0\\n-1.0\\nY real [1,1]\\n8.57"); sys.exit(1)'
    given = run(installed(solver(tmp_path, answer)), tmp_path)
    assert given.answer is Answer.SAT
    assert given.witness == (1, -1)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('print("unsat")', Answer.UNSAT),
        ('print("timed-out")', Answer.TIMEOUT),
        ('print("it is\\nunsat")', Answer.ERROR),
        ("raise SystemExit(2)", Answer.ERROR),
        ('print("unsat", flush=True); raise SystemExit(1)', Answer.UNSAT),
        ('print("unsat", flush=True); import os; os.kill(os.getpid(), 11)', Answer.ERROR),
    ],
)
def test_the_first_line_of_standard_output_is_the_answer(
    tmp_path: Path, answer: str, expected: Answer
) -> None:
    assert run(installed(solver(tmp_path, answer)), tmp_path).answer is expected


def test_a_command_is_seen_from_where_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solver(tmp_path, 'print("unsat")')
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solver.py").chmod(0o755)
    for k, (command, said) in enumerate(
        (
            (f"{sys.executable} solver.py", ""),
            # It does not say by what it is run.
            ("./solver.py", "solver.py cannot be started: Exec format error"),
        )
    ):
        (tmp_path / str(k)).mkdir()
        given = run(installed(f"vnnlib2={command}"), tmp_path / str(k))
        assert given.answer is (Answer.ERROR if said else Answer.UNSAT)
        assert said in given.detail


def test_a_property_that_cannot_be_written_in_2_is_an_error(tmp_path: Path) -> None:
    given = run(installed(solver(tmp_path, 'print("unsat")')), tmp_path, Question(SMALL, b"unsat("))
    assert given.answer is Answer.ERROR
    assert "cannot be written in VNN-LIB 2.0" in given.detail


def test_the_property_keeps_its_meaning_in_2(tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(SMALL)
    (tmp_path / "p.vnnlib").write_bytes(at_least("8.0", inputs=2))
    path, name = in_vnnlib2(tmp_path / "p.vnnlib", tmp_path / "n.onnx", folder=tmp_path)
    assert name == declared_network(path) == "f"
    before, after = read_vnnlib_file(tmp_path / "p.vnnlib"), read_vnnlib_file(path)
    assert after.cases == before.cases
    assert after.networks[0].input_shape == (1, 2)
    assert in_vnnlib2(path, tmp_path / "n.onnx", folder=tmp_path) == (path, "f")


def test_a_command_that_is_none() -> None:
    for place, trouble in (("no-such-program-here", "not a program"), ("'", "not a command")):
        with pytest.raises(VerifierUnavailable, match=trouble):
            installed(f"vnnlib2={place}")


def test_the_catalogue_says_what_each_cannot_read_and_how_to_get_it() -> None:
    rows = {row.name: row for row in catalogue()}
    assert set(rows) == set(VERIFIERS)
    assert rows["reference"].is_installed
    for row in rows.values():
        assert row.how_to_get
        assert row.limitations or row.name in ("planted", "scripted")
