"""Domains are found, read, and explained where they are wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.laws.domain.definition import DomainNotFound, load_domain, shipped_domains
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.record_constraints import domain_of

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
    with pytest.raises(InputError, match="allow_code=False"):
        load_domain("people", folder=tmp_path, allow_code=False)


def test_shipped_domains_are_listed() -> None:
    assert all(name.isidentifier() for name in shipped_domains())
