"""Domains are found, read, and explained where they are wrong."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws import Layout, choice, integer, text
from dokimos.laws.domain.definition import read_domain
from dokimos.laws.domain.functions import DomainFunction
from dokimos.laws.domain.lookup import DomainNotFound, load_domain, shipped_domains
from dokimos.laws.language.imports import domain_of
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.validation import Severity, check_law
from tests.laws.toy import BLOCK, FEATURES, domain, law

CODE = """
import math
from dokimos.laws import integer

FEATURES = [integer("age", 0, 9), "income"]
CLASSES = ["no", "yes"]
DECISION = "loan"

def inputs():
    return [[1, 2.0], [3, 4.0]]

def older(x):
    x[0] += 1
    return x

def older_batch(xs):
    xs[:, 0] += 1
    return xs

def noisy(x, rng):
    return x

def _hidden(x):
    return x
"""


def test_a_file_beside_the_law(tmp_path: Path) -> None:
    (tmp_path / "people.py").write_text(CODE)
    found = domain_of(parse_law("import people; input x1; {}"), folder=tmp_path)
    assert found is not None
    assert (found.name, found.classes, found.decision) == ("people", ("no", "yes"), "loan")
    assert set(found.functions) == {"older", "noisy"}
    assert found.functions["older"].batch is not None
    assert [found.functions[name].takes_rng for name in ("older", "noisy")] == [False, True]
    assert found.layout is not None and found.layout.names == ("age", "income")
    assert load_domain(str(tmp_path / "people.py")).name == "people"


def test_a_package_and_a_second_import(tmp_path: Path) -> None:
    (tmp_path / "people").mkdir()
    (tmp_path / "people" / "__init__.py").write_text("from .more import inputs\ndef f(x): return x\n")
    (tmp_path / "people" / "more.py").write_text("def inputs(): return [[1.0]]\n")
    (tmp_path / "extra.py").write_text("def g(x): return x\ndef f(x): return 0\nDECISION = 'loan'\n")
    found = domain_of(parse_law("import people; import extra; input x1; {}"), folder=tmp_path)
    assert found is not None and found.inputs is not None
    assert (set(found.functions), found.inputs(), found.decision) == ({"f", "g"}, [[1.0]], "loan")
    assert found.functions["f"].single is not None and found.functions["f"].single(3) == 3


def test_laws_without_a_domain() -> None:
    assert domain_of(parse_law("input x1; {}")) is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("FEATURES = [1]", "neither a Feature nor a name"),
        ("FEATURES = []", "FEATURES is empty"),
        ("FEATURES = ['a', 'a']", "Two features are called a"),
        ("FEATURES = ['age']\nINDICES = {-1: 'aeg'}", r"no feature aeg \(did you mean age\?\)"),
        ("def randInt(x): return x", "name of a builtin"),
        ("x = 1\ny = x / 0", "line 2: ZeroDivisionError"),
        ("def f(:", "line 1: invalid syntax"),
        ("from dokimos.laws import choice\nFEATURES = [choice('a', 'b')]", "at least two values"),
    ],
)
def test_wrong_domains(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "people.py").write_text(code)
    with pytest.raises(InputError, match=message):
        load_domain("people", folder=tmp_path)


def test_missing_domains(tmp_path: Path) -> None:
    with pytest.raises(DomainNotFound, match="There is no domain nobody"):
        load_domain("nobody", folder=tmp_path)
    with pytest.raises(UnreadableFile, match="no such file"):
        load_domain(str(tmp_path / "nobody.py"))
    (tmp_path / "people.py").write_text(CODE)
    with pytest.raises(InputError, match="--no-code"):
        load_domain("people", folder=tmp_path, allow_code=False)


def test_layouts_by_name_and_index() -> None:
    layout = Layout([integer("age"), choice("sex", "Female", "Male"), text("note")], {-1: "sex"})
    assert layout.width == 4
    assert (layout.named("sex").start, layout.named("sex").stop) == (1, 3)
    assert (layout.named("sex_Male").start, layout.named("f2").start, layout.at(2).start) == (2, 2, 2)
    assert layout.at(-1) == layout.named("sex")
    assert layout.at(2).feature.spoken == "sex Male"
    for wrong in (4, -2):
        with pytest.raises(InputError, match="columns 0 to 3"):
            layout.at(wrong)
    with pytest.raises(InputError, match="did you mean note"):
        layout.named("nots")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input x1; var x2 := x1[felonnies := 1];", "no feature felonnies (did you mean felonies?)"),
        ("input x1; var x2 := x1[felonies := x1.agge];", "no feature agge (did you mean age?)"),
        ("input x1; var x2 := setFeat(x1, 17, 1);", "records have the columns 0 to 5"),
        ("input x1; var x2 := setFeat(x1, f9, 1);", "no feature 9"),
        ("input x1; var x2 := setFeat(x1, 'ages', 1);", "did you mean age"),
        ("input x1; var x2 := setFeat(x1, age, 'old');", "age is a number, and this is a string"),
        ("input x1; var x2 := blurr(x1);", "no function blurr (did you mean blur?)"),
        ("input x1; var x2 := blur(x1, 2, 3);", "blur takes 1 argument, not 3"),
        ("input x1; var x2 := x1[age := 1, income := 2, f0 := 3];", "age is changed twice"),
        ("input x1; var x2 := x1; requires label(x1) == 1;", "has no labels"),
    ],
)
def test_what_a_domain_lets_the_checker_see(text: str, message: str) -> None:
    problems = check_law(law(text), domain(blur=lambda x: x))
    assert [each for each in problems if message in each.message], problems


def test_undeclared_names_in_the_block() -> None:
    block = "d = predikt(x1) + toy.predict(x1) + len(blur(x1))"
    text = f"import toy; input x1; output d; {{\n  {block}\n}} ensures d == 1;"
    (problem,) = check_law(parse_law(text), domain(blur=lambda x: x))
    assert "uses predikt" in problem.message and "did you mean predict" in problem.message
    assert (problem.at.line, problem.at.column) == (2, 7)
    one_line = "input x1; output d; { d = predikt(x1) } ensures d == 1;"
    (problem,) = check_law(parse_law(one_line), domain())
    assert one_line[problem.at.column - 1 :].startswith("predikt")


def test_python_binds_names_in_many_ways() -> None:
    code = """
import math
def f(a): return a
class C: pass
try:
    d = f(1)
except ValueError as problem:
    d = [i for i in range(3)] + [problem]
with open(C) as g:
    d = math.pi + g
"""
    parsed = parse_law(f"input x1; output d; {{{code}\nx1 = x1}} ensures d == 1;")
    assert check_law(parsed, domain()) == ()


def test_warnings_do_not_stop_a_law() -> None:
    problems = check_law(parse_law(f"input x1; var x2 := x1; var y := 1; {BLOCK}"), domain())
    assert [each.severity for each in problems] == [Severity.WARNING, Severity.WARNING]
    assert "warning: " in problems[0].shown(parse_law(f"input x1; var x2 := x1; var y := 1; {BLOCK}"))


def test_shipped_domains_are_listed() -> None:
    assert all(name.isidentifier() for name in shipped_domains())


def test_features_that_are_text_are_strings() -> None:
    words = read_domain(SimpleNamespace(FEATURES=[text("pos"), text("neg")]), name="review")
    problems = check_law(law("input x1; var x2 := x1[pos := x1.neg + 1];"), words)
    assert [each for each in problems if "strConcat" in each.message]
    assert len(FEATURES) == 5


@pytest.mark.parametrize(
    ("function", "taken", "words"),
    [
        (lambda: 1, {0}, "no arguments"),
        (lambda x: x, {1}, "1 argument"),
        (lambda x, y, rng: x, {2}, "2 arguments"),
        (lambda x, y=1, *, predict: x, {1, 2}, "1 to 2 arguments"),
        (lambda x, *more: x, {1, 2, 3}, "1 or more arguments"),
        (max, {0, 1, 2, 3}, "any arguments"),
    ],
)
def test_how_many_arguments_a_function_takes(function: Any, taken: set[int], words: str) -> None:
    for versions in ({"single": function}, {"batch": function}):
        own = DomainFunction("f", **versions)
        assert {count for count in range(4) if own.takes(count)} == taken
        assert own.wanted() == words
