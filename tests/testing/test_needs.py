"""What the contract tests need is asked for in one sentence, and nothing else needs it."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import dokimos
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.testing import relu_oracle
from dokimos.testing.statements import question

SOURCE = Path(dokimos.__file__).parent


@cache
def imported(path: Path) -> set[str]:
    """The packages that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        found |= {name.partition(".")[0] for name in names}
    return found


def test_only_the_contracts_need_the_tools_of_tests() -> None:
    tools = {"pytest", "hypothesis", "z3"}
    users = {
        str(path.relative_to(SOURCE)).partition("/")[0]
        for path in SOURCE.rglob("*.py")
        if imported(path) & tools and path.name != "pytest_plugin.py"
    }
    assert users == {"testing"}
    assert not any("hypothesis" in imported(path) for path in SOURCE.rglob("*.py"))


def test_without_pytest_there_is_one_sentence() -> None:
    script = "import sys; sys.modules['pytest'] = None; import dokimos.testing"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == "ImportError: dokimos.testing needs pytest; install it with `pip install pytest`."


def test_without_z3_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    network = ModelBuilder([1]).relu().build(1)
    with pytest.raises(ImportError, match="needs z3; install it with `pip install z3-solver`"):
        relu_oracle.is_sat(network, question([(0, 1)], 1, "(>= Y_0 2)"))


def test_every_contract_is_offered() -> None:
    import dokimos.testing

    files = {path.stem for path in (SOURCE / "testing").glob("*_contract.py")}
    offered = {
        getattr(dokimos.testing, name).__module__.rpartition(".")[2] for name in dokimos.testing.__all__
    }
    assert offered == files
