"""The plug-in of pytest, run by a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dokimos
from dokimos.core.errors import InputError
from dokimos.laws.pytest_plugin import LawViolated, check_law
from tests.cli.test_law import DOMAIN, LAW

SOURCE = str(Path(dokimos.__file__).parents[1])
FINE = LAW.replace("ensures d1 <= d2", "ensures d1 <= d2 || d2 == 0")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "people.py").write_text(DOMAIN)
    (tmp_path / "income.law").write_text(LAW)
    (tmp_path / "fine.law").write_text(FINE)
    (tmp_path / "mine.py").write_text("def model(record): return 1\n")
    return tmp_path


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Pytest in the project, with the plug-in and nothing of this project's own configuration."""
    (project / "pytest.ini").touch()
    blocked = ["-p", "no:cacheprovider", "-p", "no:dokimos"]
    command = [sys.executable, "-m", "pytest", "-p", "dokimos.laws.pytest_plugin", *blocked, *arguments]
    environment = {**os.environ, "PYTHONPATH": SOURCE, "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=project, capture_output=True, text=True, env=environment)


def test_laws_are_not_collected_unless_asked_for(project: Path) -> None:
    (project / "test_it.py").write_text("def test_it(): pass\n")
    done = run(project)
    assert "1 passed" in done.stdout and "income.law" not in done.stdout


def test_the_fixture(project: Path) -> None:
    (project / "test_it.py").write_text(
        "def test_fine(dokimos_law):\n"
        "    assert dokimos_law('fine.law').tested == 100\n"
        "def test_mine(dokimos_law):\n"
        "    dokimos_law('income.law', model=lambda record: 1, budget=10)\n"
        "def test_income(dokimos_law):\n"
        "    dokimos_law('income.law')\n"
    )
    done = run(project)
    assert "2 passed" in done.stdout and "1 failed" in done.stdout
    assert "LawViolated" in done.stdout and "the loan falls" in done.stdout


def test_checking_a_file(project: Path) -> None:
    assert check_law(project / "fine.law").is_exhaustive
    with pytest.raises(LawViolated, match="VIOLATED"):
        check_law(project / "income.law")
    rate = check_law(project / "income.law", max_rate=0.99).rate.value
    with pytest.raises(LawViolated, match="VIOLATED"):
        check_law(project / "income.law", max_rate=rate - 1e-9)
    with pytest.raises(InputError):
        check_law(project / "none.law")
    (project / "never.law").write_text(FINE.replace("output d1", "requires x1.age > 99;\noutput d1"))
    with pytest.raises(LawViolated, match="never held"):
        check_law(project / "never.law", exhaustive=True)


def test_collected_laws(project: Path, pytester: pytest.Pytester) -> None:
    for path in project.iterdir():
        (pytester.path / path.name).write_text(path.read_text())
    plugin = ["-p", "dokimos.laws.pytest_plugin", "-p", "no:dokimos", "-p", "no:cacheprovider"]
    pytester.makeini("[pytest]\ndokimos_laws = true\ndokimos_law_model = mine.py:model\n")
    pytester.makepyfile("def test_it(dokimos_law):\n    dokimos_law('fine.law', budget=3)\n")
    pytester.runpytest_inprocess(*plugin).assert_outcomes(passed=3)

    (pytester.path / "wrong.nom").write_text("input x1")
    pytester.makeini("[pytest]\ndokimos_laws = true\ndokimos_law_budget = 50\ndokimos_law_max_rate = 0\n")
    result = pytester.runpytest_inprocess(*plugin, "-k", "fine or income or wrong")
    result.assert_outcomes(passed=1, failed=2, deselected=1)
    result.stdout.fnmatch_lines(["*the loan falls from yes to no*", "*wrong.nom:1:8*"])

    pytester.makeini("[pytest]\ndokimos_laws = true\ndokimos_law_budget = many\n")
    result = pytester.runpytest_inprocess(*plugin, "-k", "income")
    result.stdout.fnmatch_lines(["*ValueError*"])
