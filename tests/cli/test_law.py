"""`dokimos law` from end to end."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import Result

from dokimos.core.errors import InputError
from dokimos.networks.writing.builder import ModelBuilder
from tests.cli.conftest import invoke

LAW = """import people;
input x1;
var x2 := x1[income := x1.income + randInt(1, 5)];
output d1;
output d2;
{
    d1 = predict(x1)
    d2 = predict(x2)
}
ensures d1 <= d2;
"""
DOMAIN = """
from dokimos.laws import integer
FEATURES = [integer("age", 18, 90), integer("income", 0, 100)]
CLASSES = ["no", "yes"]
DECISION = "loan"
def inputs():
    return [[30, k] for k in range(20)]
def model():
    return lambda record: int(5 <= record[1] != 12)
"""


def run(*arguments: object) -> Result:
    words = ["law", *map(str, arguments)]
    return invoke(words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.py").write_text(DOMAIN)
    (tmp_path / "income.law").write_text(LAW)
    rising = ModelBuilder([2]).affine([[0, 0], [0, 1]], [5, 0]).build(2)
    (tmp_path / "fine.onnx").write_bytes(rising)
    (tmp_path / "falling.onnx").write_bytes(ModelBuilder([2]).affine([[0, 1], [0, 0]], [0, 5]).build(2))
    return tmp_path


def test_check(folder: Path) -> None:
    assert (run("lint", folder).exit_code, run("lint", folder / "income.law").exit_code) == (0, 0)
    (folder / "wrong.law").write_text(LAW.replace("x1.income", "x1.incme"))
    (folder / "unreadable.nom").write_text("input")
    done = run("lint", folder)
    assert done.exit_code == 1
    assert "did you mean income" in done.stdout and "unreadable.nom:1:5" in done.stdout
    assert "income.law: fine" in done.stdout
    (folder / "stranger.law").write_text(LAW.replace("people", "nobody"))
    stranger = run("lint", folder / "stranger.law")
    assert stranger.exit_code == 0
    assert "stranger.law: parses; functions not checked" in stranger.stdout
    empty = folder / "empty"
    empty.mkdir()
    assert isinstance(run("lint", empty).exception, InputError)
    refused = run("lint", folder / "income.law", "--no-code")
    assert "refuses" in refused.stdout and refused.exit_code == 2
    (folder / "garbage.law").write_bytes(b"\xff\xfe\x00")
    assert run("lint", folder).exit_code == 2  # what cannot be read is no law that is wrong


def test_fmt(folder: Path) -> None:
    path = folder / "income.law"
    path.write_text(LAW.replace(";\n", " ;  "))
    assert run("fmt", path, "--check").exit_code == 1
    assert run("fmt", path).exit_code == 0
    once = path.read_text()
    assert run("fmt", path, "--check").exit_code == 0 and path.read_text() == once
    assert "d1 = predict(x1)" in once
    path.write_text(LAW.replace(";\n", " ;  "))
    (folder / "wrong.law").write_text("input")
    assert isinstance(run("fmt", path, folder / "wrong.law").exception, InputError)
    assert path.read_text() != once  # nothing is laid out where not all can be


def test_test_and_replay(folder: Path) -> None:
    law, out = folder / "income.law", folder / "out"
    assert run("test", law, "--model", folder / "fine.onnx").exit_code == 0
    done = run("test", law, "--model", folder / "falling.onnx", "--out", out, "--seed", 1)
    assert done.exit_code == 1 and "the loan falls from yes to no" in done.stdout
    assert run("replay", "--allow-code", out / "income.json").exit_code == 1
    changed = run("replay", "--allow-code", out / "income.json", "--model", folder / "fine.onnx")
    assert changed.exit_code == 0 and "no longer" in changed.stdout
    assert "the model has changed" in changed.stderr
    assert isinstance(run("replay", out / "income.json", "--no-code").exception, InputError)


def test_replay_from_another_folder_and_of_a_folder_that_moved(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "mine.py").write_text("def falling(record):\n    return int(record[1] < 5)\n")
    for model in ("falling.onnx", "mine.py:falling"):
        assert run("test", "income.law", "--model", model, "--out", "out").exit_code == 1
        elsewhere = folder / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        monkeypatch.chdir(elsewhere)
        done = run("replay", "--allow-code", "../out/income.json")
        assert done.exit_code == 1 and "the loan falls from yes to no" in done.stdout
        assert "has changed since" not in done.stderr
        monkeypatch.chdir(folder)
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("out", "people.py", "mine.py"):
        (folder / name).rename(moved / name)
    monkeypatch.chdir("/")
    done = run("replay", "--allow-code", moved / "out" / "income.json")
    assert done.exit_code == 1 and "the loan falls from yes to no" in done.stdout


def test_a_law_that_cannot_be_read_stops_all_before_any_is_tested(folder: Path) -> None:
    (folder / "wrong.law").write_text("input")
    done = run("test", folder, "--model", folder / "fine.onnx")
    assert isinstance(done.exception, InputError) and done.stdout == ""


def test_the_domains_own_model(folder: Path) -> None:
    law, out = folder / "income.law", folder / "out"
    done = run("test", law, law, "--out", out)
    assert done.exit_code == 1 and "2 of 2 laws violated" in done.stdout
    assert "holds" not in done.stdout
    assert run("replay", "--allow-code", out / "income.json").exit_code == 1
    other = run("test", law, "--domain", folder / "people.py", "--no-code", "--model", folder / "fine.onnx")
    assert isinstance(other.exception, InputError)


def test_an_interruption_ends_the_laws(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "people.py").write_text(
        DOMAIN + "def model():\n    def f(x): raise KeyboardInterrupt\n    return f\n"
    )
    done = run("test", folder / "income.law", folder / "income.law", "--budget", 10)
    assert "0 of 2 laws violated, 1 not tested" in done.stdout
    assert done.stdout.count("interrupted") == 1 and "starts from the beginning" in done.stderr
    assert "to continue" not in done.stderr
    assert done.exit_code == 130  # what was not tested has not passed


def test_a_law_that_is_never_tested_does_not_pass(folder: Path) -> None:
    (folder / "never.law").write_text(LAW.replace("output d1;", "requires x1.age > 99;\noutput d1;", 1))
    done = run("test", folder / "never.law", "--model", folder / "fine.onnx")
    assert done.exit_code == 1 and "the precondition never held" in done.stdout


def test_new(folder: Path) -> None:
    path = folder / "laws" / "more.law"
    arguments = ("new", "monotone", "--feature", "income", "--domain", "people", "--out", path)
    assert run(*arguments).exit_code == 0
    (folder / "laws" / "people.py").write_text(DOMAIN)
    assert run("lint", path).exit_code == 0
    assert isinstance(run(*arguments).exception, InputError)
    assert run("new", "fair", "--feature", "age").stdout.startswith("# People who differ only in age")


def test_a_new_law_of_fairness_tries_each_value_in_the_same_record(tmp_path: Path) -> None:
    """So that its violations are people: not each of them beside every stranger of another group."""
    (tmp_path / "people.py").write_text(
        "from dokimos.laws import category, integer\n"
        'FEATURES = [integer("age", 18, 90), category("region", "east", "north", "west")]\n'
        "def inputs():\n    return [[20 + k, 'north' if k % 5 else 'west'] for k in range(20)]\n"
        "def northern(x):\n    return int(x[1] == 'north')\n"
    )
    for template in ("fair", "invariant"):
        path = tmp_path / f"{template}.law"
        new = ("new", template, "--feature", "region", "--domain", "people", "--out", path)
        assert run(*new).exit_code == 0
        result = run("test", path, "--model", f"{tmp_path / 'people.py'}:northern")
        assert "20 violated (20 unique, 20 inputs)" in result.stdout


def test_names_that_stand_for_nothing_are_input_errors(folder: Path) -> None:
    for command in ("lint", "fmt", "test"):
        problem = run(command, "compass").exception
        assert isinstance(problem, InputError)
        assert "no such file, folder or shipped domain (did you mean compas?)" in str(problem)
    problem = run("lint", "compas/others_de").exception
    assert "no such file, folder or shipped law (did you mean compas/others_dec?)" in str(problem)
    law = folder / "income.law"
    assert "`by` incme: there is no feature incme (did you mean income?)" in str(
        run("test", law, "--by", "incme").exception
    )
    law.write_text(LAW.replace("import people;", "").replace("x1.income", "getFeat(x1, 1)"))
    assert "no domain names the features" in str(run("test", law, "--by", "income").exception)


def test_a_place_that_cannot_be_written_is_found_before_the_test(folder: Path) -> None:
    done = run("test", folder / "income.law", "--out", folder / "fine.onnx")
    assert isinstance(done.exception, FileExistsError)
    assert "tests in" not in done.stdout
    for place, said in (
        (folder / "fine.onnx" / "page.html", "the page cannot be written"),
        (folder, "is a folder; give the page a name"),
        (Path("/proc/page.html"), "the page cannot be written"),
    ):
        done = run("test", folder / "income.law", "--html", place)
        assert isinstance(done.exception, InputError) and said in str(done.exception)
        assert "tests in" not in done.stdout


def test_replaying_no_violations_says_so(folder: Path) -> None:
    assert run("test", folder, "--model", folder / "fine.onnx", "--out", folder / "out").exit_code == 0
    done = run("replay", "--allow-code", folder / "out" / "income.json")
    assert done.exit_code == 0
    assert "nothing to replay" in done.stdout


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("FEATURES = 3", "must be a list"),
        ("FEATURES = 'age'", "must be a list"),
        ("exit(3)", "SystemExit: 3"),
    ],
)
def test_a_domain_that_is_none_gets_one_sentence(folder: Path, code: str, said: str) -> None:
    (folder / "people.py").write_text(f"import sys\nfrom sys import exit\n{code}\n")
    problem = run("test", folder / "income.law").exception
    assert isinstance(problem, InputError)
    assert said in str(problem)


def test_code_that_a_file_names_is_refused_and_named(folder: Path) -> None:
    law, out = folder / "income.law", folder / "out"
    done = run("test", law, "--model", folder / "falling.onnx", "--out", out, "--seed", 1)
    assert "replay with: dokimos law replay --allow-code " in done.stdout
    refused = run("replay", out / "income.json").exception
    assert isinstance(refused, InputError) and "replaying it runs Python: the domain" in str(refused)
    both = run("replay", out / "income.json", "--allow-code", "--no-code").exception
    assert isinstance(both, InputError) and "either" in str(both)


@pytest.mark.parametrize(("value", "kind"), [("x1", "record"), ("list(x1)", "list"), ("{}", "dict")])
@pytest.mark.parametrize("asked", ["d1 <= d2", "d1 == d2", "d1 + 1 <= d2"])
def test_an_output_of_several_values_is_told(folder: Path, value: str, kind: str, asked: str) -> None:
    text = LAW.replace("d1 = predict(x1)", f"d1 = {value}").replace("d1 <= d2", asked)
    (folder / "several.law").write_text(text)
    ran = run("test", folder / "several.law")
    assert ran.exception is None or isinstance(ran.exception, InputError | SystemExit)
    said = f"{ran.output}{ran.exception}"
    assert f"the output d1 is a {kind}, not a number, a text or a truth value" in said
